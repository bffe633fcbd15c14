"""Tables read from PostgreSQL by a session: all that are wanted and their unpublished commits, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from tidegate.db.commit_rows import COMMIT
from tidegate.db.known_tables import KnownTables
from tidegate.db.postgres_arrays import read_bigint, texts
from tidegate.db.postgres_session import PostgresSession, Row, Statement
from tidegate.db.schema import commits, tables
from tidegate.db.tables import LIVE_TABLES, keep_tables
from tidegate.domain.names import TableId

_IDS = tables.c.id == sa.any_(sa.bindparam("ids", type_=postgresql.ARRAY(sa.Text)))


class _Reading(NamedTuple):
    statement: Statement
    columns: Sequence[tuple[str, bool]]
    """Names, and whether they are numbers."""


def _reading(name: bytes, query: sa.Select[Any]) -> _Reading:
    dialect = postgresql.dialect(paramstyle="numeric_dollar")
    columns = [(column.name, isinstance(column.type, sa.Integer)) for column in query.selected_columns]
    return _Reading(Statement(name, str(query.compile(dialect=dialect)).encode()), columns)


_TABLES = _reading(b"tables", LIVE_TABLES.where(_IDS))
_UNPUBLISHED = _reading(
    b"unpublished",
    # From the table to its commits: the session's plans keep this order, and few commits are unpublished.
    sa.select(*COMMIT)
    .select_from(tables)
    .join(commits, sa.and_(commits.c.table_id == tables.c.id, commits.c.version > tables.c.published))
    .where(_IDS)
    .order_by(commits.c.table_id, commits.c.version),
)
READING_STATEMENTS = (_TABLES.statement, _UNPUBLISHED.statement)


async def read_tables(session: PostgresSession, known: KnownTables, ids: Sequence[TableId]) -> None:
    """Reads these tables in the transaction under way; from then on they are known."""
    wanted = [texts(ids)]
    found, unpublished = await session.go_on([(_TABLES.statement, wanted), (_UNPUBLISHED.statement, wanted)])
    keep_tables(known, [_named(_TABLES, row) for row in found], [_named(_UNPUBLISHED, row) for row in unpublished])


class _Named:
    """A row whose values are its attributes."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__ = values


def _named(reading: _Reading, row: Row) -> Any:
    return _Named(
        {
            name: None if sent is None else read_bigint(sent) if is_number else sent.decode()
            for (name, is_number), sent in zip(reading.columns, row, strict=True)
        }
    )
