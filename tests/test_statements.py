"""Statements told apart by their semicolons."""

from __future__ import annotations

import pytest

from tidegate.cli.statements import split_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ;; \n ; ", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2 ;", ["SELECT 1", "SELECT 2"]),
        ("-- only; a comment\n/* and ; another */", []),
        ("SELECT 1 -- one; two\n, 2; SELECT 3", ["SELECT 1 -- one; two\n, 2", "SELECT 3"]),
        ("SELECT /* a /* b; */ c; */ 1; SELECT 2", ["SELECT /* a /* b; */ c; */ 1", "SELECT 2"]),
        ("SELECT 'a;b', \"c;d\", `e;f`; SELECT 2", ["SELECT 'a;b', \"c;d\", `e;f`", "SELECT 2"]),
        (r"SELECT 'it\'s; one'; SELECT 2", [r"SELECT 'it\'s; one'", "SELECT 2"]),
        ("SELECT 'it''s; one'; SELECT 2", ["SELECT 'it''s; one'", "SELECT 2"]),
        (r"SELECT '\\'; SELECT 2", [r"SELECT '\\'", "SELECT 2"]),
        (r"SELECT r'\'; SELECT R';'; SELECT 3", [r"SELECT r'\'", "SELECT R';'", "SELECT 3"]),
        ("SELECT '--'; SELECT '/*'; SELECT 3", ["SELECT '--'", "SELECT '/*'", "SELECT 3"]),
        ("SELECT 'never closed; SELECT 2", ["SELECT 'never closed; SELECT 2"]),
        ("SELECT /* never closed; SELECT 2", ["SELECT /* never closed; SELECT 2"]),
        ("SELECT CASE WHEN a THEN 1 END; SELECT 2", ["SELECT CASE WHEN a THEN 1 END", "SELECT 2"]),
        ("BEGIN SELECT 1; SELECT 2; END; SELECT 3", ["BEGIN SELECT 1; SELECT 2; END", "SELECT 3"]),
        (
            "begin if x then select case when a then 1 end; end if; begin select 2; end; end; select 3",
            ["begin if x then select case when a then 1 end; end if; begin select 2; end; end", "select 3"],
        ),
        (
            "BEGIN CASE x WHEN 1 THEN SELECT 1; END CASE; END; SELECT 3",
            ["BEGIN CASE x WHEN 1 THEN SELECT 1; END CASE; END", "SELECT 3"],
        ),
        ("BEGIN SELECT 1; never ended; ", ["BEGIN SELECT 1; never ended;"]),
    ],
)
def test_a_semicolon_ends_a_statement_unless_it_stands_in_something(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements
