"""Types as SQL text: what Spark's catalogs write is read, and what is written is read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.domain.builders import data_types, field, struct
from tidegate.domain.columns import NESTING_MAX, ArrayType, DataType, Field, MapType, StructType
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.sql_types import parse_sql_type, sql_type


def permissive(data_type: DataType) -> DataType:
    """The type without what its text does not say."""
    match data_type:
        case ArrayType(element):
            return ArrayType(permissive(element), True)
        case MapType(key, value):
            return MapType(permissive(key), permissive(value), True)
        case StructType(fields):
            return StructType(tuple(Field(one.name, permissive(one.type), True, {}) for one in fields))
        case str():
            return data_type


@given(data_type=data_types())
@settings(deadline=None)
def test_a_type_survives_its_way_through_text_as_far_as_text_can_say_it(data_type: DataType) -> None:
    assert parse_sql_type(sql_type(data_type)) == permissive(data_type)


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("bigint", "long"),
        ("BIGINT", "long"),
        ("int", "integer"),
        ("integer", "integer"),
        ("smallint", "short"),
        ("tinyint", "byte"),
        ("real", "float"),
        ("decimal", "decimal(10,0)"),
        ("decimal(5)", "decimal(5,0)"),
        ("numeric( 10 , 2 )", "decimal(10,2)"),
        ("varchar(3)", "varchar(3)"),
        ("timestamp_ltz", "timestamp"),
        ("interval day to second", "interval day to second"),
        ("INTERVAL  YEAR", "interval year"),
        ("string collate UTF8_LCASE", "string collate UTF8_LCASE"),
        ("void", "void"),
        (" array< int > ", ArrayType("integer", True)),
        ("map<string,array<double>>", MapType("string", ArrayType("double", True), True)),
        ("struct<>", struct()),
        ("struct<a:int,b:string>", struct(field("a", "integer"), field("b", "string"))),
        ("struct<`a b`:int,`c``d`:date>", struct(field("a b", "integer"), field("c`d", "date"))),
        ("struct<a b:int>", struct(field("a b", "integer"))),
        ("STRUCT<a: INT NOT NULL>", struct(field("a", "integer", nullable=False))),
        ("struct<a:int comment 'it\\'s'>", struct(field("a", "integer", comment="it's"))),
    ],
)
def test_what_catalogs_write_is_read(text: str, data_type: DataType) -> None:
    assert parse_sql_type(text) == data_type


def test_a_name_that_is_no_plain_word_is_quoted() -> None:
    schema = struct(field("plain_1", "integer"), field("a b", "long"), field("c`d", "long"), field("1st", "long"))
    assert sql_type(schema) == "struct<plain_1:int,`a b`:bigint,`c``d`:bigint,`1st`:bigint>"


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "foo", "int int", "array", "array<>", "array<int", "array<int>>", "map<int>", "map<int,int,int>"),
        *("struct<a>", "struct<:int>", "struct<a:int,>", "struct<a:int b:int>", "decimal(1,2,3)", "decimal(39,1)"),
        *("decimal(x)", "array(int)", "interval fortnight", "struct<``:int>", "struct<`a:int>", "<", ">", "`a`"),
    ],
)
def test_what_is_no_type_is_refused_and_says_how_to_write_one(text: str) -> None:
    with pytest.raises(InvalidRequest, match="Write it as SQL does"):
        parse_sql_type(text)


def test_a_type_that_is_nested_too_deeply_is_refused() -> None:
    assert parse_sql_type("array<" * NESTING_MAX + "int" + ">" * NESTING_MAX)
    with pytest.raises(InvalidRequest, match="nested more than"):
        parse_sql_type("array<" * 100_000)


def test_a_long_text_of_nothing_is_refused_in_no_time() -> None:
    for nothing in (" " * 1_000_000, "struct<" + " " * 1_000_000, "struct<a" + " " * 1_000_000, "`" * 1_000_000):
        with pytest.raises(InvalidRequest):
            parse_sql_type(nothing)
