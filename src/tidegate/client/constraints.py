"""Keys of tables: the conversations about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from tidegate.client.address import TIDEGATE, UNITY, segment, split_table
from tidegate.client.conversations import Conversation, decoded, request


class PrimaryKey(Struct, frozen=True, kw_only=True):
    name: str
    columns: list[str]


class ForeignKey(Struct, frozen=True, kw_only=True):
    """Of `table`: its `columns` refer to the `parent_columns` of `parent_table`."""

    name: str
    table: str
    columns: list[str]
    parent_table: str
    parent_columns: list[str]


class TableConstraints(Struct, frozen=True, kw_only=True):
    primary_key: PrimaryKey | None
    foreign_keys: list[ForeignKey]
    referred_by: list[ForeignKey]
    """Those of other tables."""


class _Primary(Struct, frozen=True):
    name: str
    child_columns: list[str]


class _Foreign(Struct, frozen=True):
    name: str
    child_columns: list[str]
    parent_table: str
    parent_columns: list[str]

    def of(self, table: str) -> ForeignKey:
        return ForeignKey(
            name=self.name,
            table=table,
            columns=self.child_columns,
            parent_table=self.parent_table,
            parent_columns=self.parent_columns,
        )


class _One(Struct, frozen=True):
    primary_key_constraint: _Primary | None = None
    foreign_key_constraint: _Foreign | None = None


class _Referring(Struct, frozen=True):
    table: str
    foreign_key_constraint: _Foreign


class _All(Struct, frozen=True):
    table_constraints: list[_One]
    referred_by: list[_Referring]


def get_constraints(table: str) -> Conversation[TableConstraints]:
    split_table(table)
    found = decoded((yield from request("GET", f"{TIDEGATE}/tables/{segment(table)}/constraints")), _All)
    own = found.table_constraints
    primary = [one.primary_key_constraint for one in own if one.primary_key_constraint is not None]
    return TableConstraints(
        primary_key=PrimaryKey(name=primary[0].name, columns=primary[0].child_columns) if primary else None,
        foreign_keys=[one.foreign_key_constraint.of(table) for one in own if one.foreign_key_constraint is not None],
        referred_by=[one.foreign_key_constraint.of(one.table) for one in found.referred_by],
    )


def add_primary_key(table: str, columns: Sequence[str], *, name: str | None) -> Conversation[PrimaryKey]:
    key = {"child_columns": list(columns), "name": name}
    made = (yield from _declare(table, {"primary_key_constraint": key})).primary_key_constraint
    if made is None:
        raise AssertionError("a primary key was asked for")
    return PrimaryKey(name=made.name, columns=made.child_columns)


def add_foreign_key(
    table: str, columns: Sequence[str], *, references: str, parent_columns: Sequence[str] | None, name: str | None
) -> Conversation[ForeignKey]:
    split_table(references)
    key = {
        "child_columns": list(columns),
        "parent_table": references,
        "parent_columns": None if parent_columns is None else list(parent_columns),
        "name": name,
    }
    made = (yield from _declare(table, {"foreign_key_constraint": key})).foreign_key_constraint
    if made is None:
        raise AssertionError("a foreign key was asked for")
    return made.of(table)


def remove_constraint(table: str, name: str, *, cascade: bool) -> Conversation[None]:
    split_table(table)
    query = {"constraint_name": name, "cascade": cascade}
    yield from request("DELETE", f"{UNITY}/constraints/{segment(table)}", query=query)


def _declare(table: str, constraint: dict[str, Any]) -> Conversation[_One]:
    split_table(table)
    body = {"full_name_arg": table, "constraint": constraint}
    return decoded((yield from request("POST", f"{UNITY}/constraints", body=body)), _One)
