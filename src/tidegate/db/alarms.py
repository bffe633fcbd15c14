"""Alarms in the database: at most one for each version of a table; over when that version is published after all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tidegate.db.schema import alarms, catalogs, schemas, tables
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.publishing import Alarm, AlarmReason

_STANDING = (
    sa.select(alarms)
    .join(tables, tables.c.id == alarms.c.table_id)
    # Nobody can do anything about one of a dropped table, and nobody has to.
    .where(alarms.c.version > tables.c.published, tables.c.dropped_at.is_(None))
)
_NAMED = (
    _STANDING.add_columns(
        tables.c.name.label("table"), schemas.c.name.label("schema"), catalogs.c.name.label("catalog")
    )
    .join(schemas, schemas.c.id == tables.c.schema_id)
    .join(catalogs, catalogs.c.id == schemas.c.catalog_id)
    .order_by(alarms.c.raised_at.desc(), alarms.c.table_id, alarms.c.version)
)


class SqlAlarms:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, alarm: Alarm) -> bool:
        """Whether it is news: one for another reason takes the place of the last. The table's row must be locked."""
        of_version = (alarms.c.table_id == alarm.table_id, alarms.c.version == alarm.version)
        reason = self._connection.scalar(sa.select(alarms.c.reason).where(*of_version))
        if reason == alarm.reason:
            return False
        self._connection.execute(alarms.delete().where(*of_version))
        self._connection.execute(
            alarms.insert().values(
                table_id=alarm.table_id,
                version=alarm.version,
                reason=alarm.reason.value,
                message=alarm.message,
                raised_at=alarm.raised_at,
            )
        )
        return True

    def of(self, id: TableId) -> Sequence[Alarm]:
        rows = self._connection.execute(_STANDING.where(alarms.c.table_id == id).order_by(alarms.c.version))
        return [_alarm(row) for row in rows]

    def count(self) -> int:
        return self._connection.scalars(sa.select(sa.func.count()).select_from(_STANDING.subquery())).one()

    def newest(self, *, limit: int) -> Sequence[tuple[TableName, Alarm]]:
        rows = self._connection.execute(_NAMED.limit(limit))
        return [(TableName(row.catalog, row.schema, row.table), _alarm(row)) for row in rows]


def _alarm(row: sa.Row[Any]) -> Alarm:
    return Alarm(TableId(row.table_id), Version(row.version), AlarmReason(row.reason), row.message, row.raised_at)
