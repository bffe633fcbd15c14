"""Folders that go, in the database: a to-do list that survives every crash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tidegate.db.insert_if_absent import insert_if_absent
from tidegate.db.locations import overlapping
from tidegate.db.schema import removals, staging_tables, tables
from tidegate.domain.names import TableId
from tidegate.domain.removals import BACKOFF_MS_MAX, Removal, RemovalCause

_PLACES = 7_455_012_027
"""The advisory lock of PostgreSQL under which places are given away and taken back; any number that is ours alone."""
_CHANGING = ("files_removed", "attempts", "not_before", "problem")


class SqlRemovals:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def lock_places(self) -> None:
        # SQLite: the transaction itself is the lock.
        if self._connection.dialect.name == "postgresql":
            self._connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_PLACES)))

    def add(self, removal: Removal) -> bool:
        row = {
            "table_id": removal.table_id,
            "cause": removal.cause.value,
            "name": removal.name,
            "location": removal.location,
            "begun_at": removal.begun_at,
            "begun_by": removal.begun_by,
            **_changing(removal),
        }
        return self._connection.execute(insert_if_absent(self._connection, removals).values(**row)).rowcount == 1

    def get(self, id: TableId) -> Removal | None:
        row = self._connection.execute(sa.select(removals).where(removals.c.table_id == id)).one_or_none()
        return None if row is None else removal_of(row)

    def due(self, *, now: int, limit: int) -> Sequence[Removal]:
        # A moment further away than any pause was noted by a clock that was wrong.
        waited = (removals.c.not_before <= now) | (removals.c.not_before > now + BACKOFF_MS_MAX)
        query = sa.select(removals).where(waited).order_by(removals.c.not_before, removals.c.table_id).limit(limit)
        return [removal_of(row) for row in self._connection.execute(query)]

    def count(self, *, failing: bool = False) -> int:
        query = sa.select(sa.func.count()).select_from(removals)
        return self._connection.scalars(query.where(removals.c.problem.is_not(None)) if failing else query).one()

    def change(self, removal: Removal) -> None:
        of_table = removals.c.table_id == removal.table_id
        self._connection.execute(removals.update().where(of_table).values(**_changing(removal)))

    def remove(self, removal: Removal) -> bool:
        gone = self._connection.execute(removals.delete().where(removals.c.table_id == removal.table_id))
        return gone.rowcount == 1

    def find_overlapping(self, location: str) -> Removal | None:
        query = sa.select(removals).where(overlapping(removals.c.location, location)).limit(1)
        row = self._connection.execute(query).first()
        return None if row is None else removal_of(row)

    def find_neighbour(self, removal: Removal) -> str | None:
        going = sa.select(removals.c.table_id)
        for place in (tables, staging_tables):
            found = self._connection.execute(
                sa.select(place.c.name, place.c.id)
                .where(overlapping(place.c.location, removal.location), place.c.id.not_in(going))
                .limit(1)
            ).first()
            if found is not None:
                return f"{found.name} (id {found.id})"
        return None


def removal_of(row: sa.Row[Any]) -> Removal:
    return Removal(
        table_id=TableId(row.table_id),
        cause=RemovalCause(row.cause),
        name=row.name,
        location=row.location,
        begun_at=row.begun_at,
        begun_by=row.begun_by,
        **{column: getattr(row, column) for column in _CHANGING},
    )


def _changing(removal: Removal) -> dict[str, Any]:
    return {column: getattr(removal, column) for column in _CHANGING}
