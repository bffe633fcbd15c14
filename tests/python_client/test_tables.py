"""Tables through the client: made from columns, listed, renamed, dropped, restored, purged."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from tests.python_client.conftest import COLUMNS, log_of
from tidegate import client


def version_0(table: Any) -> dict[str, Any]:
    lines = (log_of(table) / f"{0:020}.json").read_text().splitlines()
    return {name: action for line in lines for name, action in json.loads(line).items()}


def test_a_table_is_made_from_columns(catalog: Any, unique: str) -> None:
    table = catalog.create_table(
        f"main.default.{unique}",
        [{"name": "id", "type": "long", "nullable": False}, {"name": "day", "type": "date"}],
        partition_by=["day"],
        comment="tides",
        properties={"team": "sea"},
    )
    loaded = table.load()
    assert loaded.latest_table_version == 0
    assert [field["name"] for field in loaded.metadata.columns["fields"]] == ["id", "day"]
    assert loaded.metadata.partition_columns == ["day"]
    assert loaded.metadata.properties["team"] == "sea"
    described = table.describe()
    assert (described.comment, described.columns[0].nullable) == ("tides", False)


def test_a_table_is_made_from_a_schema_of_arrow(catalog: Any, unique: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("days", pa.list_(pa.date32()))])
    table = catalog.create_table(f"main.default.{unique}", schema)
    rows = [{"id": 1, "days": [date(2026, 11, 18)]}, {"id": 2, "days": None}]
    table.append(pa.Table.from_pylist(rows, schema=schema))
    assert table.scan().to_arrow().schema == schema
    assert table.scan().to_arrow().to_pylist() == rows


INNER = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": False}]}
IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
ASKING: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"nullable": False}, {}, "invariants"),
    ({"type": {"type": "array", "elementType": INNER, "containsNull": True}}, {}, "invariants"),
    ({"metadata": {"delta.invariants": '{"expression":{"expression":"x > 0"}}'}}, {}, "invariants"),
    ({"metadata": {"delta.generationExpression": "1"}}, {}, "generatedColumns"),
    ({"metadata": IDENTITY}, {}, "identityColumns"),
    ({"metadata": {"CURRENT_DEFAULT": "1"}}, {}, "allowColumnDefaults"),
    ({}, {"delta.constraints.positive": "x > 0"}, "checkConstraints"),
]


def test_the_protocol_has_what_columns_and_constraints_ask_of_writers(catalog: Any, unique: str) -> None:
    """Stock Spark does not open a table whose metadata makes use of a feature that its protocol has not."""
    for number, (column, properties, feature) in enumerate(ASKING):
        columns = [{"name": "x", "type": "long", **column}]
        made = catalog.create_table(f"main.default.{unique}_{number}", columns, properties=properties)
        assert feature in version_0(made)["protocol"]["writerFeatures"], column
    plain = catalog.create_table(f"main.default.{unique}", {"x": "long"})
    assert {feature for _, _, feature in ASKING}.isdisjoint(version_0(plain)["protocol"]["writerFeatures"])


def test_a_new_table_has_the_folder_that_the_stock_client_stages_into(table: Any) -> None:
    assert list((log_of(table) / "_staged_commits").iterdir()) == []


def test_nested_columns_are_spelled_for_the_log_and_for_the_wire(catalog: Any, unique: str) -> None:
    tags = {"type": "array", "elementType": "string", "containsNull": True}
    marks = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False}
    field = {"name": "elementType", "type": "long", "nullable": True, "metadata": {"keyType": "mine"}}
    table = catalog.create_table(
        f"main.default.{unique}", {"tags": tags, "marks": marks, "inner": {"type": "struct", "fields": [field]}}
    )
    logged = json.loads(version_0(table)["metaData"]["schemaString"])["fields"]
    assert [column["type"] for column in logged[:2]] == [tags, marks]
    shown = table.load().metadata.columns["fields"]
    assert shown[0]["type"] == {"type": "array", "element-type": "string", "contains-null": True}
    assert shown[2]["type"]["fields"] == [field]


@pytest.mark.parametrize(
    ("columns", "options", "features"),
    [
        ({"at": "timestamp_ntz"}, {}, {"timestampNtz"}),
        (COLUMNS, {"cluster_by": ["name"]}, {"clustering", "domainMetadata"}),
        (COLUMNS, {"properties": {"delta.columnMapping.mode": "name"}}, {"columnMapping"}),
        (COLUMNS, {"properties": {"delta.enableRowTracking": "true"}}, {"rowTracking", "domainMetadata"}),
        (COLUMNS, {"properties": {"delta.appendOnly": "true"}}, {"appendOnly"}),
        (
            COLUMNS,
            {"cluster_by": ["id"], "properties": {"delta.columnMapping.mode": "name"}},
            {"clustering", "domainMetadata", "columnMapping"},
        ),
    ],
    ids=["timestamp_ntz", "clustering", "column mapping", "row tracking", "append only", "mapped clustering"],
)
def test_a_table_gets_the_features_that_it_needs(
    catalog: Any, unique: str, columns: Any, options: Any, features: set[str]
) -> None:
    table = catalog.create_table(f"main.default.{unique}", columns, **options)
    assert features <= set(version_0(table)["protocol"]["writerFeatures"])
    assert all(table.load().metadata.properties[f"delta.feature.{name}"] == "supported" for name in features)


def test_mapped_columns_have_ids_and_names_for_files_at_every_level(catalog: Any, unique: str) -> None:
    inner = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]}
    table = catalog.create_table(
        f"main.default.{unique}", {"id": "long", "inner": inner}, properties={"delta.columnMapping.mode": "name"}
    )
    metadata = table.load().metadata
    outer = metadata.columns["fields"]
    fields = [*outer, *outer[1]["type"]["fields"]]
    assert sorted(field["metadata"]["delta.columnMapping.id"] for field in fields) == [1, 2, 3]
    assert len({field["metadata"]["delta.columnMapping.physicalName"] for field in fields}) == 3
    assert metadata.properties["delta.columnMapping.maxColumnId"] == "3"


@pytest.mark.parametrize(
    ("columns", "options", "told"),
    [
        ({}, {}, "at least one"),
        ({"id": "integr"}, {}, "integr"),
        ([{"name": "id"}], {}, "needs a name and a type"),
        (["id"], {}, "needs a name and a type"),
        ("id", {}, "types by name"),
        (None, {}, "types by name"),
        (COLUMNS, {"partition_by": ["day"]}, "day"),
        (COLUMNS, {"cluster_by": ["day"]}, "day"),
        (COLUMNS, {"cluster_by": ["id"], "partition_by": ["name"]}, "not both"),
    ],
)
def test_a_table_that_cannot_be_is_refused_and_not_made(
    catalog: Any, unique: str, columns: Any, options: Any, told: str
) -> None:
    with pytest.raises(client.InvalidRequest, match=told):
        catalog.create_table(f"main.default.{unique}", columns, **options)
    assert not catalog.has_table(f"main.default.{unique}")


def test_tables_are_listed_renamed_and_dropped(catalog: Any, unique: str) -> None:
    catalog.create_schema(f"main.{unique}")
    for name in ("a", "b"):
        catalog.create_table(f"main.{unique}.{name}", COLUMNS)
    assert [one.full_name for one in catalog.list_tables(f"main.{unique}")] == [f"main.{unique}.a", f"main.{unique}.b"]
    table = catalog.table(f"main.{unique}.a")
    table.rename("c")
    assert table.name == f"main.{unique}.c"
    assert table.commit(1, []).version == 1
    table.drop()
    assert not catalog.has_table(f"main.{unique}.c")
    with pytest.raises(client.NoSuchTable):
        table.load()


def test_properties_and_comments_of_the_catalog_are_set_and_removed(table: Any) -> None:
    table.set_properties({"team": "sea", "tier": "gold"})
    table.remove_properties(["tier"])
    table.set_comment("tides")
    properties = table.load().metadata.properties
    assert properties["team"] == "sea"
    assert "tier" not in properties
    assert table.describe().comment == "tides"


def test_a_property_of_the_log_wants_a_commit(table: Any) -> None:
    with pytest.raises(client.InvalidRequest, match="lives in the Delta log"):
        table.set_properties({"delta.appendOnly": "true"})


def test_a_dropped_table_is_restored_and_written_to(catalog: Any, table: Any, unique: str) -> None:
    table.commit(1, [])
    table.drop()
    dropped = next(one for one in catalog.list_dropped_tables() if one.full_name == table.name)
    restored = catalog.restore_table(dropped.table_id, new_full_name=f"main.default.{unique}_back")
    assert restored.name == f"main.default.{unique}_back"
    assert restored.commit(2, []).version == 2


def test_a_purged_table_does_not_come_back(catalog: Any, table: Any) -> None:
    table.drop()
    dropped = next(one for one in catalog.list_dropped_tables() if one.full_name == table.name)
    assert catalog.purge_table(dropped.table_id).state == "PURGING"
    with pytest.raises(client.TidegateError):
        catalog.restore_table(dropped.table_id)


def test_a_table_that_is_not_there(catalog: Any, unique: str) -> None:
    with pytest.raises(client.NoSuchTable, match=unique):
        catalog.table(f"main.default.{unique}").commit(1, [])
