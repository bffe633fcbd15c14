"""What catalogs, schemas and tables may be called, and how full names are read."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import (
    NAME_LENGTH_MAX,
    SchemaName,
    TableName,
    check_name,
    is_name,
    parse_schema_name,
    parse_table_name,
)

ALPHABET = string.ascii_letters + string.digits + "_@-"


def is_allowed(name: str) -> bool:
    return 1 <= len(name) <= 255 and all(character in ALPHABET for character in name)


@given(name=st.text(ALPHABET, min_size=1, max_size=300) | st.text(ALPHABET + " ./\n", max_size=20) | st.text())
@settings(deadline=None)
def test_a_name_is_kept_as_it_is_when_its_alphabet_and_length_allow_it_and_refused_otherwise(name: str) -> None:
    assert is_name(name) == is_allowed(name)
    if is_allowed(name):
        assert check_name("table", name) == name
    else:
        with pytest.raises(InvalidRequest, match="table"):
            check_name("table", name)


@pytest.mark.parametrize("length", [1, NAME_LENGTH_MAX])
def test_a_name_may_have_one_to_255_characters(length: int) -> None:
    assert check_name("schema", "n" * length) == "n" * length


def test_a_name_that_is_too_long_is_told_its_length_and_the_limit() -> None:
    with pytest.raises(InvalidRequest, match=r"schema name has 256 characters.*at most 255"):
        check_name("schema", "n" * 256)


def test_an_empty_name_is_asked_for_a_name() -> None:
    with pytest.raises(InvalidRequest, match=r"The catalog name is empty. Give it a name"):
        check_name("catalog", "")


@pytest.mark.parametrize(
    "name",
    [
        "a.b",
        "a/b",
        "a\\b",
        "a b",
        " a",
        "a\n",
        "a\0",
        "..",
        ".",
        "🌊",
        "é",
        "ａ",
        "٣",
        "a%2Fb",
        "a'b",
        '"a"',
        "a;b",
        "\u202ea",
    ],
)
def test_a_name_outside_the_alphabet_is_quoted_and_told_which_characters_it_may_use(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_name("table", name)
    assert repr(name) in refused.value.message
    assert "letters a-z and A-Z, digits, '_', '-' and '@'" in refused.value.message


def test_names_that_differ_in_case_are_different_names() -> None:
    assert TableName("main", "default", "Tides") != TableName("main", "default", "tides")


names = st.text(ALPHABET, min_size=1, max_size=10)


@given(catalog=names, schema=names, table=names)
@settings(deadline=None)
def test_full_names_are_read_back_as_they_are_written(catalog: str, schema: str, table: str) -> None:
    name = TableName(catalog, schema, table)
    assert parse_table_name(str(name)) == name
    assert parse_schema_name(str(name.parent)) == name.parent == SchemaName(catalog, schema)


@pytest.mark.parametrize("full_name", ["", "a", "a.b", "a.b.c.d", ".b.c", "a..c", "a.b.", "..", "a/b/c"])
def test_a_table_name_that_does_not_have_three_parts_is_refused(full_name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"Write catalog\.schema\.table") as refused:
        parse_table_name(full_name)
    assert repr(full_name) in refused.value.message


@pytest.mark.parametrize("full_name", ["", "a", "a.b.c", ".b", "a.", "."])
def test_a_schema_name_that_does_not_have_two_parts_is_refused(full_name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"Write catalog\.schema\.") as refused:
        parse_schema_name(full_name)
    assert repr(full_name) in refused.value.message
