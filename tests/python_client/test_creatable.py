"""What a new table may be: what stock Spark would not open is refused before anything is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.client.columns import log_schema
from tidegate.client.creatable import check_creatable
from tidegate.client.errors import InvalidRequest

ARRAY = {"type": "array", "elementType": "long", "containsNull": True}
MAPPED = {"delta.columnMapping.mode": "name"}


def check(columns: Any, properties: dict[str, str] | None = None, **options: Any) -> None:
    wanted = {"partition_by": (), "cluster_by": (), **options}
    check_creatable(log_schema(columns), properties or {}, **wanted)


@pytest.mark.parametrize(
    ("columns", "properties", "options", "told"),
    [
        ({"x": "bigint"}, {}, {}, "'bigint' is no type of a column. Write long."),
        ({"x": "VARCHAR(9)"}, {}, {}, "Write string."),
        ({"x": "decimal(39,2)"}, {}, {}, "decimal(precision,scale)"),
        ({"x": "decimal(2,3)"}, {}, {}, "decimal(precision,scale)"),
        ({"x": "void"}, {}, {}, "The types are binary, boolean"),
        ({"x": "interval year"}, {}, {}, "no type"),
        ({"x": {**ARRAY, "elementType": "int"}}, {}, {}, "Write integer."),
        ({"x": 5}, {}, {}, "5 is no type"),
        ({"x y": "long"}, {}, {}, "Set that property to name"),
        ([{"name": "x", "type": "long", "metadata": {"delta.identity.start": 1}}], {}, {}, "allowExplicitInsert"),
        ({"x": "long"}, {"delta.columnMapping.mode": "names"}, {}, "one of none, name, id"),
        ({"x": "long"}, {"delta.enableIcebergCompatV2": "true"}, {}, "delta.enableIcebergCompatV2"),
        ({"x": "long"}, {"delta.universalFormat.enabledFormats": "iceberg"}, {}, "universalFormat"),
        ({"x": "long"}, {"delta.coordinatedCommits.commitCoordinator-preview": "x"}, {}, "coordinatedCommits"),
        ({"x": "long"}, {}, {"partition_by": "x"}, "a list of columns, not 'x'"),
        ({"x": "long"}, {}, {"cluster_by": "x"}, "a list of columns, not 'x'"),
        ({"x": "long"}, {}, {"cluster_by": ["x", "x"]}, "names a column twice"),
        ({"x": "long", "xs": ARRAY}, {}, {"partition_by": ["xs"]}, "it is an array"),
        ({"x": "long", "y": "long"}, {}, {"partition_by": ["x"], "cluster_by": ["y"]}, "not both"),
    ],
)
def test_what_nobody_could_read_is_refused_by_name(
    columns: Any, properties: dict[str, str], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check(columns, properties, **options)
    assert told in refused.value.message


def test_what_is_let_through() -> None:
    check({"x y=": "long", "m": "decimal(38,38)", "d": "decimal(5, 2)", "v": "variant"}, MAPPED, partition_by=["x y="])
    check({"x": "long"}, {"delta.enableIcebergCompatV2": "false", "delta.enableDeletionVectors": "true"})
