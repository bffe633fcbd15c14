"""Delta's columns <-> Arrow's."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.client.data.schema import arrow_schema, delta_schema, physical_schema
from tidegate.client.log.errors import LogDamaged, UnsupportedTable
from tidegate.client.log.types import ArrayType, DeltaType, Field, MapType, StructType, parse_schema, schema_string

PRIMITIVES = [
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "decimal(38,0)",
    "decimal(10,2)",
]
names = st.text(min_size=1, max_size=5)


def structs(types: st.SearchStrategy[DeltaType]) -> st.SearchStrategy[StructType]:
    fields = st.lists(st.builds(Field, names, types, st.booleans()), min_size=1, max_size=4, unique_by=lambda f: f.name)
    return fields.map(lambda fields: StructType(tuple(fields)))


types: st.SearchStrategy[DeltaType] = st.recursive(
    st.sampled_from(PRIMITIVES),
    lambda inner: st.one_of(
        st.builds(ArrayType, inner, st.booleans()), st.builds(MapType, inner, inner, st.booleans()), structs(inner)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(structs(types))
def test_schema_survives_its_text_and_its_way_through_arrow(schema: StructType) -> None:
    assert parse_schema(schema_string(schema)) == schema
    assert delta_schema(arrow_schema(schema)) == schema


def test_void_is_nullable_to_arrow_wherever_it_is() -> None:
    schema = StructType((Field("x", "void", nullable=False), Field("xs", ArrayType("void", contains_null=False))))
    assert arrow_schema(schema) == pa.schema({"x": pa.null(), "xs": pa.list_(pa.field("element", pa.null()))})


MAPPED = StructType(
    (
        Field("id", "long", metadata={"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}),
        Field(
            "place",
            StructType(
                (
                    Field(
                        "x",
                        "integer",
                        metadata={"delta.columnMapping.id": 3, "delta.columnMapping.physicalName": "col-3"},
                    ),
                )
            ),
            metadata={"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "col-2"},
        ),
    )
)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_data_files_know_columns_by_their_physical_names_and_ids(mode: str) -> None:
    schema = physical_schema(MAPPED, mode)
    assert schema.names == ["col-1", "col-2"]
    inner = schema.field("col-2").type.field(0)
    assert (inner.name, inner.metadata) == ("col-3", {b"PARQUET:field_id": b"3"})
    assert physical_schema(MAPPED, "none").names == ["id", "place"]
    with pytest.raises(UnsupportedTable, match="'both' is not known"):
        physical_schema(MAPPED, "both")


@pytest.mark.parametrize(
    ("arrow", "delta"),
    [
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.binary(16), "binary"),
        (pa.uint8(), "short"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.timestamp("ns"), "timestamp_ntz"),
        (pa.timestamp("s", tz="Europe/Reykjavik"), "timestamp"),
        (pa.date64(), "date"),
        (pa.large_list(pa.int8()), ArrayType("byte")),
        (pa.list_(pa.float16(), 3), ArrayType("float")),
    ],
)
def test_types_that_only_arrow_has_become_the_narrowest_that_holds_them(arrow: Any, delta: DeltaType) -> None:
    assert delta_schema(pa.schema({"x": arrow})).fields[0].type == delta


@pytest.mark.parametrize(
    "arrow", [pa.time64("us"), pa.duration("s"), pa.decimal256(50, 2), pa.month_day_nano_interval()]
)
def test_type_that_delta_has_not_is_refused_by_name(arrow: Any) -> None:
    with pytest.raises(UnsupportedTable, match="Delta has no type for Arrow's"):
        delta_schema(pa.schema({"x": arrow}))


@pytest.mark.parametrize("name", ["variant", "interval year", "geometry"])
def test_type_that_is_not_known_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedTable, match=f"type '{name}'"):
        arrow_schema(StructType((Field("x", name),)))


def test_types_nested_without_end_are_refused() -> None:
    nested: Any = "long"
    for _ in range(500):
        nested = {"type": "array", "elementType": nested, "containsNull": True}
    text = json.dumps({"type": "struct", "fields": [{"name": "x", "type": nested, "nullable": True, "metadata": {}}]})
    with pytest.raises(LogDamaged, match="nested more than"):
        parse_schema(text)
