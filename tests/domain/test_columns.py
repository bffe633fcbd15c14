"""Columns: the tree of types, its form in the log, and what makes columns sound."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.domain.builders import columns, field, schemas, struct
from tidegate.domain.columns import (
    NESTING_MAX,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
    check_columns,
    check_partition_columns,
    decimal_parts,
    is_known_primitive,
    log_schema,
    parse_log_schema,
)
from tidegate.domain.errors import InvalidRequest


@given(schema=schemas())
@settings(deadline=None)
def test_a_schema_survives_its_way_through_the_json_of_the_log(schema: StructType) -> None:
    assert parse_log_schema(json.loads(json.dumps(log_schema(schema)))) == schema


@given(schema=schemas())
@settings(deadline=None)
def test_known_types_under_distinct_names_are_sound_columns(schema: StructType) -> None:
    check_columns(schema)


def test_the_log_spells_types_in_camel_case() -> None:
    schema = struct(
        field("tags", ArrayType("string", True), nullable=False, comment="any"),
        field("levels", MapType("string", struct(field("at", "timestamp")), False)),
    )
    inner = {"type": "struct", "fields": [{"name": "at", "type": "timestamp", "nullable": True, "metadata": {}}]}
    assert log_schema(schema) == {
        "type": "struct",
        "fields": [
            {
                "name": "tags",
                "type": {"type": "array", "elementType": "string", "containsNull": True},
                "nullable": False,
                "metadata": {"comment": "any"},
            },
            {
                "name": "levels",
                "type": {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": False},
                "nullable": True,
                "metadata": {},
            },
        ],
    }


def test_a_field_of_the_log_without_metadata_has_none() -> None:
    read = parse_log_schema({"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True}]})
    assert read == struct(field("a"))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("long", "The schema is not a struct"),
        ({"type": "array", "elementType": "long", "containsNull": True}, "The schema is not a struct"),
        (None, "neither a name nor an object"),
        ([], "neither a name nor an object"),
        ({}, "'type' is missing or misshapen"),
        ({"type": "udt"}, "unknown type 'udt'"),
        ({"type": "struct"}, "'fields' is missing or misshapen"),
        ({"type": "struct", "fields": None}, "is missing or misshapen"),
        ({"type": "struct", "fields": ["a"]}, "is missing or misshapen"),
        ({"type": "struct", "fields": [{"type": "long", "nullable": True}]}, "'name' is missing"),
        ({"type": "struct", "fields": [{"name": "a", "nullable": True}]}, "'type' is missing"),
        ({"type": "struct", "fields": [{"name": "a", "type": "long"}]}, "'nullable' is missing"),
        ({"type": "struct", "fields": [{"name": "a", "type": 5, "nullable": True}]}, "neither a name nor an object"),
    ],
)
def test_what_is_no_schema_is_refused_by_what_it_lacks(schema: object, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_log_schema(schema)


KEYS = ("type", "fields", "name", "nullable", "metadata", "elementType", "containsNull", "keyType", "valueType")
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
near_schemas = st.recursive(
    scalars | st.sampled_from(["struct", "array", "map", "long"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@given(fields=near_schemas)
@example(fields=[{"name": "a", "type": "long", "nullable": True, "metadata": "abc"}])
@example(fields=[{"name": "a", "type": "long", "nullable": True, "metadata": ["abc"]}])
@settings(deadline=None, max_examples=300)
def test_whatever_a_schema_holds_it_is_read_or_refused_and_nothing_else(fields: Any) -> None:
    try:
        read = parse_log_schema({"type": "struct", "fields": fields})
    except InvalidRequest:
        return
    assert isinstance(read, StructType)


def nested(levels: int, kind: str) -> StructType:
    """One column whose type is nested so many levels deep, counting the column itself."""
    inner: DataType = "long"
    for _ in range(levels - 1):
        match kind:
            case "struct":
                inner = struct(field("s", inner))
            case "array":
                inner = ArrayType(inner, True)
            case _:
                inner = MapType("string", inner, True)
    return struct(field("deep", inner))


@pytest.mark.parametrize("kind", ["struct", "array", "map"])
def test_the_deepest_columns_that_are_accepted_can_be_read_back(kind: str) -> None:
    deepest = nested(NESTING_MAX, kind)
    check_columns(deepest)
    assert parse_log_schema(json.loads(json.dumps(log_schema(deepest)))) == deepest


@pytest.mark.parametrize("kind", ["struct", "array", "map"])
def test_columns_that_are_nested_deeper_are_refused_with_the_limit(kind: str) -> None:
    with pytest.raises(InvalidRequest, match=r"Column deep\.?.* is nested more than 64 levels deep") as refused:
        check_columns(nested(NESTING_MAX + 1, kind))
    assert len(refused.value.message) < 300


@pytest.mark.parametrize("kind", ["struct", "array", "map"])
def test_a_schema_of_the_log_that_is_nested_without_end_is_refused(kind: str) -> None:
    with pytest.raises(InvalidRequest, match="nested more than 64 levels deep"):
        parse_log_schema(log_schema(nested(150, kind)))


def nested_value(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"x": [value]}
    return value


def test_the_metadata_of_a_field_may_be_nested() -> None:
    check_columns(struct(field("a", **nested_value(10))))


@pytest.mark.parametrize("wrap", [lambda inner: inner, lambda inner: field("s", struct(inner))])
def test_the_metadata_of_a_field_is_not_nested_without_end(wrap: Callable[[Field], Field]) -> None:
    """What is stored must be readable again from anywhere in the program, however deep its stack is by then."""
    with pytest.raises(InvalidRequest, match=r"deep_one.* nested"):
        check_columns(struct(wrap(field("deep_one", **nested_value(2 * NESTING_MAX)))))


@pytest.mark.parametrize(
    "name",
    [
        *("long", "integer", "short", "byte", "float", "double", "string", "boolean", "binary", "variant", "void"),
        *("date", "timestamp", "timestamp_ntz", "char(5)", "varchar(300)", "interval", "interval year to month"),
        *("interval day to second", "decimal(10,2)", "decimal(10, 2)", "decimal(38,38)", "decimal(1,0)"),
        *("string collate UTF8_LCASE", "geometry(OGC:CRS84)", "geography"),
    ],
)
def test_the_types_of_delta_are_known(name: str) -> None:
    assert is_known_primitive(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "Long", "int", "bigint", "long ", "text", "struct", "array", "map", "decimal", "decimal(10)"),
        *("decimal(39,0)", "decimal(0,0)", "decimal(5,6)", "decimal(10,-2)", "decimal(10,  2)", "decimal(100,2)"),
        *("decimal(10,2)\n", "decimal(١٠,٢)", "char(٣)", "char", "varchar()", "interval week", "string collate "),
    ],
)
def test_other_types_are_refused_by_column_and_type(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_columns(struct(field("id"), field("level", name)))
    assert f"Column level has the unknown type {name!r}" in refused.value.message


@pytest.mark.parametrize(("name", "parts"), [("decimal(10,2)", (10, 2)), ("decimal(7, 0)", (7, 0)), ("long", None)])
def test_precision_and_scale_are_read_from_a_decimal(name: str, parts: tuple[int, int] | None) -> None:
    assert decimal_parts(name) == parts


@pytest.mark.parametrize(
    ("type", "where"),
    [
        (struct(field("x", "odd")), "level.x"),
        (ArrayType("odd", True), "level.element"),
        (MapType("odd", "long", True), "level.key"),
        (MapType("long", "odd", True), "level.value"),
        (ArrayType(MapType("long", struct(field("x", "odd")), True), True), "level.element.value.x"),
    ],
)
def test_an_unknown_type_inside_another_is_named_by_its_path(type: DataType, where: str) -> None:
    with pytest.raises(InvalidRequest, match=f"Column {where} has the unknown type 'odd'"):
        check_columns(struct(field("level", type)))


def test_a_table_needs_a_column() -> None:
    with pytest.raises(InvalidRequest, match=r"The table has no columns\. Declare at least one"):
        check_columns(struct())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (struct(field("id"), field("ID")), "Columns id and ID differ in case only. Rename one of them."),
        (struct(field("Ä"), field("ä")), "Columns Ä and ä differ in case only."),
        (struct(field("s", struct(field("x"), field("X")))), "Columns s.x and s.X differ in case only."),
        (struct(field("s", ArrayType(struct(field("x"), field("X")), True))), "Columns s.element.x and s.element.X"),
    ],
)
def test_names_that_differ_in_case_only_are_both_named(fields: StructType, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_columns(fields)
    assert message in refused.value.message


def test_two_columns_of_the_very_same_name_are_not_said_to_differ() -> None:
    with pytest.raises(InvalidRequest, match="Rename one of them") as refused:
        check_columns(struct(field("id"), field("port"), field("id")))
    assert "id" in refused.value.message
    assert "differ in case only" not in refused.value.message


def test_the_same_name_on_different_levels_is_no_duplicate() -> None:
    check_columns(struct(field("x", struct(field("x", struct(field("X")))))))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (struct(field("")), "A column has an empty name"),
        (struct(field("s", struct(field("")))), "A column below s has an empty name"),
        (struct(field("s", ArrayType(struct(field("")), True))), "A column below s.element has an empty name"),
    ],
)
def test_an_empty_name_is_refused_by_its_place(fields: StructType, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_columns(fields)


@pytest.mark.parametrize("partition_columns", [(), ("port",), ("PORT",), ("port", "id"), ("id", "port")])
def test_partition_columns_are_columns_in_any_order_and_case(partition_columns: tuple[str, ...]) -> None:
    check_partition_columns(columns(), partition_columns)


@pytest.mark.parametrize(
    ("partition_columns", "message"),
    [
        (("depth",), "Partition column 'depth' is not among the columns ['id', 'port', 'height']"),
        (("",), "Partition column '' is not among the columns"),
        (("port", "port"), "Partition column 'port' is listed twice"),
        (("port", "Port"), "Partition column 'Port' is listed twice"),
        (("port", "id", "height"), "All columns are partition columns. Leave at least one that is not"),
    ],
)
def test_partition_columns_that_do_not_fit_are_named(partition_columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_partition_columns(columns(), partition_columns)
    assert message in refused.value.message
