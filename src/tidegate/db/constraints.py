"""Keys of tables in the database.

A table is read together with its own, see `tables.py`: whoever changes them draws a new state for its row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import sqlalchemy as sa

from tidegate.db.known_tables import new_state
from tidegate.db.schema import catalogs, schemas, table_constraints, tables
from tidegate.domain.constraints import Constraint, Referring
from tidegate.domain.names import TableId, TableName

IDS_AT_ONCE = 500
_COMMA: Any = cast("Any", sa.literal_column("','"))
"""Spelled out: as a parameter it would be one of every statement that reads tables."""

CONSTRAINTS_OF_TABLE = (
    sa.select(sa.func.aggregate_strings(table_constraints.c.document, _COMMA))
    .where(table_constraints.c.table_id == tables.c.id)
    .correlate(tables)
    .scalar_subquery()
    .label("constraints")
)
_REFERRING = (
    sa.select(
        table_constraints.c.table_id,
        table_constraints.c.document,
        tables.c.name,
        schemas.c.name.label("schema"),
        catalogs.c.name.label("catalog"),
    )
    .select_from(table_constraints)
    .join(tables, tables.c.id == table_constraints.c.table_id)
    .join(schemas, schemas.c.id == tables.c.schema_id)
    .join(catalogs, catalogs.c.id == schemas.c.catalog_id)
    .where(tables.c.dropped_at.is_(None))
    .order_by(catalogs.c.name, schemas.c.name, tables.c.name, table_constraints.c.name)
)


class SqlConstraints:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, id: TableId, constraint: Constraint) -> None:
        row = {
            "table_id": id,
            "name": constraint.name,
            "parent_id": constraint.parent,
            "document": _encode(constraint),
        }
        self._connection.execute(table_constraints.insert().values(**row))
        self._touch([id])

    def remove(self, id: TableId, name: str) -> None:
        of = (table_constraints.c.table_id == id, table_constraints.c.name == name)
        self._connection.execute(table_constraints.delete().where(*of))
        self._touch([id])

    def remove_all(self, id: TableId) -> None:
        self._connection.execute(table_constraints.delete().where(table_constraints.c.table_id == id))
        self._touch([id])

    def referring(self, id: TableId) -> Sequence[Referring]:
        others = (table_constraints.c.parent_id == id, table_constraints.c.table_id != id)
        rows = self._connection.execute(_REFERRING.where(*others))
        return [
            Referring(TableId(row.table_id), TableName(row.catalog, row.schema, row.name), _decode_one(row.document))
            for row in rows
        ]

    def remove_referring(self, ids: Sequence[TableId]) -> None:
        for first in range(0, len(ids), IDS_AT_ONCE):
            to_some = table_constraints.c.parent_id.in_(ids[first : first + IDS_AT_ONCE])
            refers = to_some & (table_constraints.c.parent_id != table_constraints.c.table_id)
            children = self._connection.scalars(sa.select(table_constraints.c.table_id).where(refers).distinct()).all()
            if children:
                self._connection.execute(table_constraints.delete().where(refers))
                self._touch([TableId(child) for child in children])

    def _touch(self, ids: Sequence[TableId]) -> None:
        self._connection.execute(tables.update().where(tables.c.id.in_(sorted(ids))).values(state=new_state()))


def decode_constraints(documents: str | None) -> tuple[Constraint, ...]:
    """By name. Most tables have none."""
    if documents is None:
        return ()
    found = (_constraint(parts) for parts in json.loads(f"[{documents}]"))
    return tuple(sorted(found, key=lambda one: (not one.is_primary, one.name)))


def _encode(constraint: Constraint) -> str:
    parts = {
        "name": constraint.name,
        "columns": constraint.columns,
        "parent": constraint.parent,
        "parentColumns": constraint.parent_columns,
    }
    return json.dumps(parts, separators=(",", ":"))


def _decode_one(document: str) -> Constraint:
    return _constraint(json.loads(document))


def _constraint(parts: dict[str, Any]) -> Constraint:
    parent = parts["parent"]
    return Constraint(
        name=parts["name"],
        columns=tuple(parts["columns"]),
        parent=None if parent is None else TableId(parent),
        parent_columns=tuple(parts["parentColumns"]),
    )
