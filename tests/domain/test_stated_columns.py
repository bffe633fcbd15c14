"""Columns as clients state them: every spelling of a type, what follows from it, and what contradicts the log."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.builders import columns, field, schemas, struct
from tidegate.domain.columns import ArrayType, DataType, MapType, StructType, log_field, log_schema
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.stated_columns import StatedColumn, difference, stated_partitions, stated_schema
from tidegate.http.unity.columns import from_columns, to_stated
from tidegate.wire.unity import SentColumn


def storable_schemas() -> st.SearchStrategy[StructType]:
    """Those without a NUL, which no request gets in."""
    return schemas().filter(lambda schema: "\\u0000" not in json.dumps(log_schema(schema)))


def through_the_wire(schema: StructType, partition_columns: tuple[str, ...] = ()) -> list[StatedColumn]:
    """As the API shows the columns, and a client sends them back."""
    shown = msgspec.json.encode(from_columns(schema, partition_columns))
    return to_stated(msgspec.json.decode(shown, type=list[SentColumn]))


@given(schema=storable_schemas())
@settings(deadline=None)
def test_columns_survive_their_way_to_a_client_and_back(schema: StructType) -> None:
    stated = through_the_wire(schema, tuple(schema.names()[:1]))
    assert stated_schema(stated) == schema
    assert stated_partitions(stated) == tuple(schema.names()[:1])
    assert difference(stated, schema) is None


@given(schema=storable_schemas())
@settings(deadline=None)
def test_columns_that_come_back_without_json_agree_with_those_that_were_shown(schema: StructType) -> None:
    texts_only = [
        StatedColumn(name=one.name, type_text=one.type_text, nullable=one.nullable) for one in through_the_wire(schema)
    ]
    assert difference(texts_only, schema) is None


NESTED = ArrayType(MapType("string", struct(field("at", "timestamp", nullable=False)), False), False)


@pytest.mark.parametrize(
    ("sent", "data_type"),
    [
        ({"type_json": json.dumps(log_field(field("c", NESTED)))}, NESTED),
        ({"type_json": json.dumps(log_schema(NESTED))}, NESTED),
        ({"type_json": '"long"'}, "long"),
        ({"type_json": '"bigint"'}, "long"),
        ({"type_json": "long"}, "long"),
        ({"type": "long"}, "long"),
        ({"type": log_schema(NESTED)}, NESTED),
        ({"type_text": "array<bigint>"}, ArrayType("long", True)),
        ({"type_name": "LONG"}, "long"),
        ({"type_name": "INT"}, "integer"),
        ({"type_name": "NULL"}, "void"),
        ({"type_name": "TIMESTAMP_NTZ"}, "timestamp_ntz"),
        ({"type_name": "DECIMAL", "precision": 10, "scale": 2}, "decimal(10,2)"),
        ({"type_name": "INTERVAL", "interval": "DAY TO SECOND"}, "interval day to second"),
        # The first that is there counts; the others may say less, but not something else.
        ({"type_json": '"long"', "type_text": "garbled", "type_name": "LONG"}, "long"),
        ({"type_text": "decimal(10,2)", "type_name": "DECIMAL", "precision": 10, "scale": 2}, "decimal(10,2)"),
        ({"type_text": "varchar(3)", "type_name": "STRING"}, "varchar(3)"),
        ({"type_text": "string", "precision": 0, "scale": 0}, "string"),
        ({"type_text": "geometry(4326)", "type_name": "USER_DEFINED_TYPE"}, "geometry(4326)"),
    ],
)
def test_a_type_may_be_stated_in_every_way_that_clients_have(sent: dict[str, Any], data_type: DataType) -> None:
    assert stated_schema([StatedColumn(name="c", **sent)]) == struct(field("c", data_type))


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"name": "c"}, "Column c: It has no type"),
        ({"type_text": "int"}, r"Column \(without a name\): It has no name"),
        ({"name": "c", "type_text": "number"}, "Column c: The type 'number' cannot be read"),
        ({"name": "c", "type_json": "{"}, "Column c: The type '{' cannot be read"),
        ({"name": "c", "type_json": "[]"}, "Column c: .*neither a name nor an object"),
        ({"name": "c", "type_json": '{"type":"array"}'}, "Column c: .*elementType"),
        ({"name": "c", "type_json": '{"name":"c","nullable":true}'}, "Column c: .*'type' is missing"),
        ({"name": "c", "type_json": '{"name":"c","type":"long","nullable":1}'}, "neither true nor false"),
        ({"name": "c", "type_json": '{"name":"d","type":"long","nullable":true}'}, "c is called d in its type_json"),
        ({"name": "c", "type_json": '{"name":"c","type":"long","nullable":true}', "nullable": False}, "nullable of"),
        ({"name": "c", "type_json": '"\\ud800"'}, "half a surrogate pair"),
        ({"name": "c", "type_json": '{"name":"c\\u0000","type":"long"}'}, "NUL"),
        ({"name": "c", "type_json": "[" * 500 + "]" * 500}, "nested more than"),
        ({"name": "c", "type_text": "string", "type_name": "LONG"}, "type_name of column c is LONG, but .* string"),
        ({"name": "c", "type_text": "decimal(9,2)", "precision": 8, "scale": 2}, "type_precision and type_scale"),
        ({"name": "c", "type_name": "DECIMAL"}, "needs type_precision and type_scale"),
        ({"name": "c", "type_name": "ARRAY"}, "ARRAY does not say what the type is made of"),
        ({"name": "c", "type_name": "TABLE_TYPE"}, "'table_type' cannot be read"),
    ],
)
def test_a_column_that_says_too_little_or_contradicts_itself_is_refused(sent: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        stated_schema([StatedColumn(**sent)])


def test_what_is_not_stated_is_nullable_and_without_metadata() -> None:
    sent = [StatedColumn(name="a", type_text="int"), StatedColumn(name="b", type_text="int", nullable=False)]
    assert stated_schema(sent) == struct(field("a", "integer"), field("b", "integer", nullable=False))


def test_a_comment_becomes_the_fields_metadata() -> None:
    assert stated_schema([StatedColumn(name="a", type_text="bigint", comment="c")]) == struct(field("a", comment="c"))


def test_positions_say_the_order_wherever_a_column_stands_in_the_list() -> None:
    sent = [StatedColumn(name=name, type_text="int", position=at) for name, at in (("c", 2), ("a", 0), ("b", 1))]
    assert stated_schema(sent).names() == ["a", "b", "c"]


@pytest.mark.parametrize("positions", [(0, 0), (1, 2), (-1, 0), (0, None)])
def test_positions_that_do_not_count_the_columns_are_refused(positions: tuple[int | None, ...]) -> None:
    with pytest.raises(InvalidRequest, match="position counts the columns from 0"):
        stated_schema([StatedColumn(name=f"c{at}", type_text="int", position=at) for at in positions])


@pytest.mark.parametrize(("indexes", "partitions"), [((None, None), None), ((None, 0), ("b",)), ((1, 0), ("b", "a"))])
def test_partition_columns_come_in_the_order_of_their_index(
    indexes: tuple[int | None, ...], partitions: tuple[str, ...] | None
) -> None:
    sent = [
        StatedColumn(name=name, type_text="int", partition_index=at) for name, at in zip("ab", indexes, strict=True)
    ]
    assert stated_partitions(sent) == partitions


@pytest.mark.parametrize("indexes", [(0, 0), (1, None), (-1, 0), (0, 2)])
def test_partition_indexes_that_do_not_count_are_refused(indexes: tuple[int | None, ...]) -> None:
    with pytest.raises(InvalidRequest, match="partition_index counts the partition columns from 0"):
        stated_partitions([StatedColumn(name=f"c{at}", type_text="int", partition_index=at) for at in indexes])


@pytest.mark.parametrize(
    ("position", "change", "told"),
    [
        (0, {"name": "ID"}, "['ID', 'port', 'height'] are stated, ['id', 'port', 'height'] are in the log"),
        (0, {"nullable": True}, "id is stated with nullable=True, in the log it is False"),
        (1, {"type_text": "bigint"}, "port is stated as bigint, in the log it is string"),
        (2, {"type_text": "float"}, "height is stated as float, in the log it is double"),
    ],
)
def test_the_first_difference_from_the_log_is_named(position: int, change: dict[str, Any], told: str) -> None:
    stated = [
        {"name": one.name, "type_text": one.type_text, "nullable": one.nullable} for one in through_the_wire(columns())
    ]
    stated[position] |= change
    assert told in str(difference([StatedColumn(**one) for one in stated], columns()))


def test_a_type_stated_in_json_must_agree_on_what_may_be_null_too() -> None:
    log = struct(field("a", ArrayType("long", False)))
    other = json.dumps(log_schema(ArrayType("long", True)))
    assert difference([StatedColumn(name="a", type_json=other)], log) == (
        "a is stated as array<bigint>, in the log it is array<bigint>"
    )


@pytest.mark.parametrize("raw", ["varchar(3)", "char(10)", "array<varchar(3)>"])
def test_char_and_varchar_may_be_stated_for_the_string_that_the_log_keeps(raw: str) -> None:
    in_log: DataType = ArrayType("string", True) if raw.startswith("array") else "string"
    log = struct(field("a", in_log, __CHAR_VARCHAR_TYPE_STRING=raw))
    assert difference([StatedColumn(name="a", type_text=raw)], log) is None
    assert difference([StatedColumn(name="a", type_text="varchar(4)")], log) is not None
