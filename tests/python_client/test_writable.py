"""What the client refuses to write, by the table's protocol and properties alone."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.client import Snapshot, UnsupportedTable
from tidegate.client.log.actions import Metadata, Protocol
from tidegate.client.log.types import ArrayType, DeltaType, Field, StructType
from tidegate.client.writable import HONOURED, check_writable, features_of, tracks_rows


def snapshot(
    *features: str, writer: int = 7, columns: DeltaType = "long", metadata: Any = None, **properties: str
) -> Snapshot:
    schema = StructType((Field("c", columns, metadata=metadata or {}),))
    protocol = Protocol(3, writer, [], list(features) if writer == 7 else None)
    configuration = {f"delta.{name}": value for name, value in properties.items()}
    told = Metadata("id", "", configuration=configuration)
    return Snapshot("file:///t", 0, 0, protocol, told, schema, (), {}, {})


@pytest.mark.parametrize(
    "feature", ["icebergCompatV2", "variantType", "materializePartitionColumns", "collations", "of the future"]
)
def test_features_that_nobody_here_knows_are_refused_by_name(feature: str) -> None:
    with pytest.raises(UnsupportedTable, match=feature) as refused:
        check_writable(snapshot("appendOnly", feature), removes=False)
    assert refused.value.features == (feature,)


def test_features_that_are_honoured_are_no_hindrance() -> None:
    check_writable(snapshot(*HONOURED), removes=True)


def test_features_that_are_there_and_not_used_are_no_hindrance() -> None:
    check_writable(
        snapshot("invariants", "checkConstraints", "generatedColumns", "identityColumns"),
        removes=True,
    )
    check_writable(snapshot(writer=6), removes=True)


def test_older_protocols_have_versions_for_features() -> None:
    assert features_of(Protocol(1, 2)) == {"appendOnly", "invariants"}
    assert features_of(Protocol(1, 4)) > {"changeDataFeed", "generatedColumns"}


def test_a_protocol_of_the_future_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match="writer version 8"):
        check_writable(snapshot(writer=8), removes=False)


def test_what_a_nested_column_asks_for_is_found() -> None:
    inner = StructType((Field("x", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),))
    with pytest.raises(UnsupportedTable, match="VARCHAR"):
        check_writable(snapshot(columns=ArrayType(inner)), removes=False)


@pytest.mark.parametrize(
    ("features", "properties", "tracked"),
    [
        ([], {}, False),
        (["rowTracking"], {}, True),
        (["rowTracking"], {"enableRowTracking": "false"}, True),
        (["rowTracking"], {"rowTrackingSuspended": "true"}, False),
    ],
)
def test_rows_get_ids_as_soon_as_the_table_may_track_them(
    features: list[str], properties: dict[str, Any], tracked: bool
) -> None:
    told = snapshot(*features, **properties)
    assert tracks_rows(told.protocol, told.properties) is tracked
