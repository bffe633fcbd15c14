"""Keys that are declared on tables: the catalog keeps them and what they rest on, and compares no rows.

    customers   primary key (id)
    orders      foreign key (customer) references customers (id)

A foreign key refers to the primary key of its parent, so each table guards its own columns, and a commit asks no other
table: the columns of a primary key keep their names, types and NOT NULL, those of a foreign key their names and types.
What does take two tables is seldom: a key is not removed, and a table not dropped, while foreign keys of others refer
to it, unless they are to go with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.domain.columns import Field, StructType
from tidegate.domain.errors import InvalidRequest, NotFound
from tidegate.domain.frozen import frozen
from tidegate.domain.names import NAME_LENGTH_MAX, TableId, TableName, check_name

CONSTRAINTS_MAX: Final = 100
"""Of one table."""
KEY_COLUMNS_MAX: Final = 32
TOLD_MAX: Final = 5
COLUMN_ID: Final = "delta.columnMapping.id"
"""With column mapping, what makes a column the same one under another name."""


@frozen
class Constraint:
    name: str
    columns: tuple[str, ...]
    parent: TableId | None = None
    """Of a foreign key; None: this is a primary key."""
    parent_columns: tuple[str, ...] = ()
    """Of a foreign key, in the order of `columns`."""

    @property
    def is_primary(self) -> bool:
        return self.parent is None

    @property
    def what(self) -> str:
        return f"the {'primary' if self.is_primary else 'foreign'} key {self.name}"


@frozen
class Referring:
    """A foreign key, as its parent sees it."""

    table_id: TableId
    table: TableName
    constraint: Constraint


def primary_key(constraints: Sequence[Constraint]) -> Constraint | None:
    return next((one for one in constraints if one.is_primary), None)


def find_constraint(table: TableName, constraints: Sequence[Constraint], name: str) -> Constraint:
    for one in constraints:
        if one.name == name:
            return one
    raise NotFound(f"{table} has no constraint {name[:NAME_LENGTH_MAX]}.")


def check_kept(table: TableName, constraints: Sequence[Constraint], *, before: StructType, after: StructType) -> None:
    """That a change of the columns leaves those of keys as they are. What was out of order before may stay so."""
    had, has = _by_name(before), _by_name(after)
    for constraint in constraints:
        for name in constraint.columns:
            was, now = had.get(name), has.get(name)
            if was is not None:
                _check_column(table, constraint, was, now)


def _check_column(table: TableName, constraint: Constraint, was: Field, now: Field | None) -> None:
    if now is None or now.type != was.type or _is_another(was, now):
        loss = "dropped or renamed" if now is None or _is_another(was, now) else "given another type"
    elif constraint.is_primary and now.nullable and not was.nullable:
        loss = "made nullable"
    else:
        return
    raise InvalidRequest(
        f"Column {was.name} of {table} belongs to {constraint.what} and cannot be {loss}. Remove the constraint first "
        f"(`tidegate constraints {table} --remove {constraint.name}`)."
    )


def _is_another(was: Field, now: Field) -> bool:
    ids = was.metadata.get(COLUMN_ID), now.metadata.get(COLUMN_ID)
    return None not in ids and ids[0] != ids[1]


def _by_name(columns: StructType) -> dict[str, Field]:
    return {field.name: field for field in columns.fields}


def new_primary_key(
    table: TableName, declared: Sequence[Constraint], columns: StructType, *, wanted: Sequence[str], name: str | None
) -> Constraint:
    other = primary_key(declared)
    if other is not None:
        raise InvalidRequest(f"{table} has a primary key already: {other.name}. Remove it first.")
    fields = _key_columns(table, columns, wanted)
    for field in fields:
        if field.nullable:
            raise InvalidRequest(
                f"Column {field.name} of {table} may be null, and so cannot be part of a primary key. A column is made "
                "NOT NULL when its table is created or replaced."
            )
    named = _free_name(table, declared, name, f"{table.table}_pk")
    return Constraint(named, tuple(field.name for field in fields))


def new_foreign_key(
    table: TableName,
    declared: Sequence[Constraint],
    columns: StructType,
    *,
    wanted: Sequence[str],
    name: str | None,
    parent: tuple[TableId, TableName, Sequence[Constraint], StructType],
    parent_wanted: Sequence[str] | None,
) -> Constraint:
    parent_id, parent_name, parent_declared, parent_columns = parent
    referred = primary_key(parent_declared)
    if referred is None:
        raise InvalidRequest(f"{parent_name} has no primary key that a foreign key could refer to. Declare one first.")
    fields = _key_columns(table, columns, wanted)
    theirs = _key_columns(parent_name, parent_columns, parent_wanted or referred.columns)
    if {field.name for field in theirs} != set(referred.columns):
        raise InvalidRequest(
            f"A foreign key refers to the primary key of {parent_name}, which is ({', '.join(referred.columns)})."
        )
    if len(fields) != len(theirs):
        raise InvalidRequest(
            f"The foreign key has {len(fields)} columns and refers to {len(theirs)} of {parent_name}. Name as many."
        )
    for mine, other in zip(fields, theirs, strict=True):
        if mine.type != other.type:
            raise InvalidRequest(
                f"Column {mine.name} of {table} is {mine.type}, and {other.name} of {parent_name} is {other.type}: "
                "the columns of a foreign key have the types of those that it refers to."
            )
    named = _free_name(table, declared, name, f"{table.table}_{parent_name.table}_fk")
    return Constraint(named, tuple(field.name for field in fields), parent_id, tuple(field.name for field in theirs))


def check_unreferred(table: TableName, referring: Sequence[Referring], *, doing: str, way_out: str) -> None:
    """That no other table's foreign key refers to this one."""
    if referring:
        told = ", ".join(f"{one.constraint.name} of {one.table}" for one in referring[:TOLD_MAX])
        more = f" and {len(referring) - TOLD_MAX} more" if len(referring) > TOLD_MAX else ""
        raise InvalidRequest(f"{table} cannot be {doing}: foreign keys refer to it: {told}{more}. {way_out}")


def _key_columns(table: TableName, columns: StructType, wanted: Sequence[str]) -> list[Field]:
    """The columns of these names, in this order. Case does not matter if nothing is called exactly so."""
    if not 1 <= len(wanted) <= KEY_COLUMNS_MAX:
        raise InvalidRequest(f"A key has 1 to {KEY_COLUMNS_MAX} columns, not {len(wanted)}.")
    exact = _by_name(columns)
    folded = {field.name.lower(): field for field in columns.fields}
    found: list[Field] = []
    for name in wanted:
        field = exact.get(name) or folded.get(name.lower())
        if field is None:
            raise InvalidRequest(f"{table} has no column {name[:NAME_LENGTH_MAX]!r} at its top level.")
        if not isinstance(field.type, str) or field.type == "variant":
            raise InvalidRequest(f"Column {field.name} of {table} is no plain value, and so cannot be part of a key.")
        if field in found:
            raise InvalidRequest(f"Column {field.name} is named twice. Name it once.")
        found.append(field)
    return found


def _free_name(table: TableName, declared: Sequence[Constraint], name: str | None, default: str) -> str:
    if len(declared) >= CONSTRAINTS_MAX:
        raise InvalidRequest(f"{table} has {len(declared)} constraints; {CONSTRAINTS_MAX} is the limit.")
    taken = {one.name for one in declared}
    if name is not None:
        if check_name("constraint", name) in taken:
            raise InvalidRequest(f"{table} has a constraint {name} already. Choose another name.")
        return name
    # Long names are cut so that a number fits behind them.
    stem = default[: NAME_LENGTH_MAX - 4]
    return next(one for one in (stem, *(f"{stem}_{number}" for number in range(2, 999))) if one not in taken)
