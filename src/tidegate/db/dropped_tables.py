"""Dropped tables in the database: rows of `tables` that nobody else finds, and the way back or out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tidegate.db.errors import is_missing_parent
from tidegate.db.known_tables import new_state
from tidegate.db.locations import overlapping
from tidegate.db.removals import removal_of
from tidegate.db.schema import catalogs, commits, grants, removals, schemas, tables
from tidegate.db.shown import is_shown
from tidegate.domain.dropped_tables import DroppedTable, no_such_dropped_table
from tidegate.domain.errors import NoSuchSchema, TableAlreadyExists
from tidegate.domain.grants import Privilege
from tidegate.domain.names import TableId, TableName, parse_table_name
from tidegate.domain.namespaces import Schema
from tidegate.domain.privileges import Principal
from tidegate.domain.removals import Removal
from tidegate.domain.rights import Names
from tidegate.domain.tables import TableType

_SELECT = (
    sa.select(
        *[tables.c[name] for name in ("id", "name", "type", "location", "dropped_at", "dropped_by", "dropped_name")],
        schemas.c.name.label("schema"),
        catalogs.c.name.label("catalog"),
    )
    .select_from(tables)
    .outerjoin(schemas, schemas.c.id == tables.c.schema_id)
    .outerjoin(catalogs, catalogs.c.id == schemas.c.catalog_id)
    .where(tables.c.dropped_at.is_not(None))
)


class SqlDroppedTables:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def page(
        self, *, before: tuple[int, TableId] | None, limit: int, only_for: Names | None = None
    ) -> Sequence[DroppedTable]:
        query = _SELECT.order_by(tables.c.dropped_at.desc(), tables.c.id.desc()).limit(limit)
        if only_for is not None:
            on_the_way = [is_shown(one, only_for, {Privilege.MANAGE}) for one in (tables, schemas, catalogs)]
            query = query.where(sa.or_(*on_the_way))
        if before is not None:
            at, id = before
            older = (tables.c.dropped_at < at) | ((tables.c.dropped_at == at) & (tables.c.id < id))
            query = query.where(older)
        return self._read(query)

    def find(self, id: TableId) -> DroppedTable | None:
        return next(iter(self._read(_SELECT.where(tables.c.id == id))), None)

    def lock(self, id: TableId) -> DroppedTable:
        found = self.find_locked(id)
        if found is None:
            raise no_such_dropped_table(id)
        return found

    def find_locked(self, id: TableId) -> DroppedTable | None:
        locked = sa.select(tables.c.id).where(tables.c.id == id, tables.c.dropped_at.is_not(None)).with_for_update()
        # Locked first and read afterwards: what held the lock may have changed it.
        if self._connection.execute(locked).first() is None:
            return None
        return self.find(id)

    def overlaps(self, location: str) -> bool:
        found = sa.select(tables.c.id).where(tables.c.dropped_at.is_not(None), overlapping(tables.c.location, location))
        return self._connection.execute(found.limit(1)).first() is not None

    def overdue(self, *, dropped_before: int, limit: int) -> Sequence[DroppedTable]:
        """The oldest of those that nobody has begun to purge."""
        waiting = tables.c.id.not_in(sa.select(removals.c.table_id))
        query = _SELECT.where(tables.c.dropped_at <= dropped_before, waiting)
        return self._read(query.order_by(tables.c.dropped_at, tables.c.id).limit(limit))

    def restore(self, id: TableId, to: TableName, schema: Schema, *, by: Principal, now: int) -> None:
        change = (
            tables.update()
            .where(tables.c.id == id)
            .values(
                schema_id=schema.id,
                name=to.table,
                dropped_at=None,
                dropped_by=None,
                dropped_name=None,
                updated_at=now,
                updated_by=by.name,
                state=new_state(),
            )
        )
        try:
            self._connection.execute(change)
        except IntegrityError as error:
            if is_missing_parent(error):
                raise NoSuchSchema(to.parent) from None
            raise TableAlreadyExists(to) from None

    def forget_commits(self, id: TableId, *, limit: int) -> int:
        oldest = sa.select(commits.c.version).where(commits.c.table_id == id).order_by(commits.c.version).limit(limit)
        newest_of_them = self._connection.scalar(sa.select(sa.func.max(oldest.subquery().c.version)))
        if newest_of_them is None:
            return 0
        of_them = (commits.c.table_id == id, commits.c.version <= newest_of_them)
        return self._connection.execute(commits.delete().where(*of_them)).rowcount

    def forget(self, id: TableId) -> None:
        self._connection.execute(grants.delete().where(grants.c.securable_id == id))
        self._connection.execute(tables.delete().where(tables.c.id == id, tables.c.dropped_at.is_not(None)))

    def _read(self, query: sa.Select[Any]) -> list[DroppedTable]:
        rows = self._connection.execute(query).all()
        going = self._connection.execute(sa.select(removals).where(removals.c.table_id.in_([row.id for row in rows])))
        removals_by_id = {row.table_id: removal_of(row) for row in going}
        return [_dropped(row, removals_by_id.get(row.id)) for row in rows]


def _dropped(row: sa.Row[Any], removal: Removal | None) -> DroppedTable:
    name = None if row.dropped_name is None else parse_table_name(row.dropped_name)
    if row.schema is not None:
        name = TableName(row.catalog, row.schema, row.name)
    return DroppedTable(
        id=TableId(row.id),
        table=row.name,
        name=name,
        type=TableType(row.type),
        location=row.location,
        dropped_at=row.dropped_at,
        dropped_by=row.dropped_by or "",
        removal=removal,
    )
