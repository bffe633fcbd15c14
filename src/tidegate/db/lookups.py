"""Where a name leads right now: the table's id and the state of its row. The one thing that every load asks.

SQLite answers within this process in a few microseconds, so it is asked on the event loop itself: handing the question
to a thread would cost several times the answer. PostgreSQL is a round trip away: see `postgres_lookup.py`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Protocol, TypeAlias, cast

import sqlalchemy as sa

from tidegate.db.errors import unavailable
from tidegate.db.hot_statements import SqliteStatements
from tidegate.db.known_tables import State
from tidegate.domain.names import TableId, TableName

Found: TypeAlias = tuple[TableId, State] | None
REMEMBERED_MAX = 10_000
"""Names that SQLite need not be asked for again as long as nobody commits."""


class Lookup(Protocol):
    async def find(self, name: TableName) -> Found: ...
    def close(self) -> None: ...


class SqliteLookup:
    """Asks once in a round of the event loop whether anybody has committed since the last one, this server's writer
    included. If nobody has, names lead where they led. What is read in a round was sent before its question was asked,
    so no answer is older than its question.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._pooled: sa.PoolProxiedConnection | None = None
        self._statements = SqliteStatements()
        self._asked = False
        self._commits: int | None = None
        """SQLite's count of what others have committed, when it was last asked for."""
        self._found: dict[TableName, Found] = {}

    async def find(self, name: TableName) -> Found:
        try:
            if not self._asked:
                self._ask()
            if name not in self._found:
                self._found[name] = self._look_up(name)
            return self._found[name]
        except sqlite3.Error as error:
            self.close()
            raise unavailable(error) from error

    def close(self) -> None:
        self._found.clear()
        self._commits = None
        if self._pooled is not None:
            self._pooled.invalidate()
            self._pooled = None

    def _ask(self) -> None:
        (commits,) = self._connection().execute("PRAGMA data_version").fetchone()
        if commits != self._commits or len(self._found) > REMEMBERED_MAX:
            self._found.clear()
            self._commits = commits
        self._asked = True
        asyncio.get_running_loop().call_soon(self._next_round)

    def _next_round(self) -> None:
        self._asked = False

    def _look_up(self, name: TableName) -> Found:
        row = self._connection().execute(self._statements.find, self._statements.names([name])).fetchone()
        return None if row is None else (row[1], row[2])

    def _connection(self) -> sqlite3.Connection:
        if self._pooled is None:
            self._pooled = self._engine.raw_connection()
        return cast("sqlite3.Connection", self._pooled.driver_connection)
