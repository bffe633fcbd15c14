"""Events in the database, and the numbers under which everybody reads them.

SQLite has one writer, so the number that a row gets when it is written is the number under which it is read. On
PostgreSQL several transactions write at once, and one that drew a lower number may commit later: a reader that has seen
the higher would never look for the lower again. There events are numbered after their transactions have ended, all that
are visible at once, by one at a time:

    A draws position 4, B draws 5, B commits    ->  numbered: 5 as sequence 1
    A commits                                   ->  numbered: 4 as sequence 2

Events of one table keep their order: who writes the later one waited for the lock that the earlier one's writer held.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence as Several
from typing import Any

import sqlalchemy as sa

from tidegate.db.commit_rows import commit_of
from tidegate.db.hot_statements import EVENT_COLUMNS
from tidegate.db.schema import commits, event_numbers, events, tables
from tidegate.domain.commits import Commit
from tidegate.domain.event_filters import EVERYTHING, EventFilter
from tidegate.domain.events import Event, EventKind, NumberedEvent, Sequence
from tidegate.domain.names import SchemaName, TableId, TableName, Version

NUMBERED_AT_ONCE = 10_000

_NUMBER = sa.text("""
    WITH waiting AS (
        SELECT position, row_number() OVER (ORDER BY position) AS place
        FROM (SELECT position FROM events WHERE sequence IS NULL ORDER BY position LIMIT :limit) AS first
    )
    UPDATE events SET sequence = :last + waiting.place FROM waiting WHERE events.position = waiting.position
""")


class SqlEvents:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    @property
    def _numbered_when_written(self) -> bool:
        return self._connection.dialect.name == "sqlite"

    @property
    def _number(self) -> sa.Column[int]:
        return events.c.position if self._numbered_when_written else events.c.sequence

    def add(self, happened: Several[Event]) -> None:
        if happened:
            rows = [dict[str, Any](zip(EVENT_COLUMNS, event_row(event), strict=True)) for event in happened]
            self._connection.execute(events.insert(), rows)

    def number(self) -> int:
        if self._numbered_when_written:
            return 0
        # The lock on this row lets one number at a time; the statement after it sees all that was committed before.
        last = self._connection.scalars(sa.select(event_numbers.c.last).with_for_update()).one()
        given = self._connection.execute(_NUMBER, {"last": last, "limit": NUMBERED_AT_ONCE}).rowcount
        if given:
            self._connection.execute(event_numbers.update().values(last=last + given))
        return given

    def unnumbered(self) -> bool:
        if self._numbered_when_written:
            return False
        waiting = sa.select(events.c.position).where(events.c.sequence.is_(None)).limit(1)
        return self._connection.scalar(waiting) is not None

    def after(
        self, sequence: Sequence, *, up_to: Sequence, limit: int, wanted: EventFilter = EVERYTHING
    ) -> Several[NumberedEvent]:
        query = sa.select(events).where(self._number > sequence, self._number <= up_to)
        match wanted.scope:
            case None:
                pass
            case SchemaName() as schema:
                query = query.where(events.c.table_name.startswith(f"{schema}.", autoescape=True))
            case TableName() as name:
                query = query.where(events.c.table_name == str(name))
            case id:
                query = query.where(events.c.table_id == id)
        if wanted.kinds:
            query = query.where(events.c.kind.in_(sorted(wanted.kinds)))
        return [self._event(row) for row in self._connection.execute(query.order_by(self._number).limit(limit))]

    def commits_of(self, happened: Several[Event]) -> Mapping[tuple[TableId, Version], tuple[Commit, str]]:
        named = [(event.table_id, event.version) for event in happened if event.kind is EventKind.COMMITTED]
        if not named:
            return {}
        query = sa.select(commits, tables.c.location).join(tables, tables.c.id == commits.c.table_id)
        rows = self._connection.execute(query.where(sa.tuple_(commits.c.table_id, commits.c.version).in_(named)))
        return {(TableId(row.table_id), Version(row.version)): (commit_of(row), row.location) for row in rows}

    def last(self) -> Sequence:
        if self._numbered_when_written:
            newest = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)"
            return Sequence(self._connection.exec_driver_sql(newest).scalar_one())
        return Sequence(self._connection.scalars(sa.select(event_numbers.c.last)).one())

    def forgotten(self) -> Sequence:
        first: int | None = self._connection.scalar(sa.select(sa.func.min(self._number)))
        return self.last() if first is None else Sequence(first - 1)

    def oldest(self, *, limit: int) -> Several[tuple[Sequence, int]]:
        query = sa.select(self._number, events.c.at).where(self._number.is_not(None))
        rows = self._connection.execute(query.order_by(self._number).limit(limit))
        return [(Sequence(number), at) for number, at in rows]

    def remove_up_to(self, sequence: Sequence) -> int:
        return self._connection.execute(events.delete().where(self._number <= sequence)).rowcount

    def _event(self, row: sa.Row[Any]) -> NumberedEvent:
        number = row.position if self._numbered_when_written else row.sequence
        return NumberedEvent(
            Sequence(number),
            Event(
                kind=EventKind(row.kind),
                table_id=TableId(row.table_id),
                table=row.table_name,
                at=row.at,
                by=row.principal,
                version=row.version,
                data={} if row.data is None else json.loads(row.data),
            ),
        )


def event_row(event: Event) -> tuple[Any, ...]:
    """The values of EVENT_COLUMNS."""
    data = json.dumps(event.data, separators=(",", ":")) if event.data else None
    return (event.kind, event.table_id, event.table, event.version, event.at, event.by, data)
