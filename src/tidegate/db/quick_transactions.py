"""Transactions on the event loop itself, for SQLite.

Fast because nothing is handed over: SQLite runs inside this process, and the statements of a small group take less time
than waking a thread that then competes for the interpreter. What can take long is left to the writer's thread:

    the sync, if the last one was slow       the thread ends the transaction; the event loop goes on answering
    copying the log into the database        every so often, with the end of a transaction on the thread
    waiting for another process's write      nothing is begun here; the thread has the patience
    reading tables that are not known yet    likewise; the next group knows them

The same rules decide, and nobody is answered before the sync.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeVar, cast

import sqlalchemy as sa

from tidegate.db.errors import is_transient
from tidegate.db.hot_statements import HotStatements, sqlite_driver
from tidegate.db.known_tables import KnownTables
from tidegate.db.unit_of_work import SqlUnitOfWork
from tidegate.domain.names import TableId
from tidegate.domain.ports import UnitOfWork

T = TypeVar("T")

SYNC_SECONDS_MAX = 0.001
"""A disk whose last sync took longer is waited for on the thread."""
CHECKPOINT_AFTER = 1_000
"""Rows that are written before the write-ahead log is copied into the database; each is about a page."""
ROWS_OF_A_COMMIT = 3
"""Its own, its table's, and its events together, which follow each other."""


class QuickTransactions:
    """`begin` and, if `ends_quickly`, `end` run on the event loop; else `end` runs on the thread, before the next
    `begin`.
    """

    def __init__(self, engine: sa.Engine, known: KnownTables, hot: HotStatements) -> None:
        self._engine = engine
        self._known = known
        self._hot = hot
        self._connection: sa.Connection | None = None
        self._last_sync = 0.0
        self._rows = 0
        """Written since the last checkpoint, about."""

    @property
    def ends_quickly(self) -> bool:
        return self._last_sync <= SYNC_SECONDS_MAX and self._rows < CHECKPOINT_AFTER

    def begin(self, work: Callable[[UnitOfWork], T], tables: Sequence[TableId]) -> T | None:
        """Begins, and works on these tables. None if that would take long, or failed for whatever reason: nothing has
        happened then.
        """
        if any(self._known.newest(id) is None for id in tables):
            return None
        try:
            connection = self._connection = self._connection or self._engine.connect()
            sqlite_driver(connection).execute("BEGIN IMMEDIATE")
            outcome = work(SqlUnitOfWork(connection, self._known, self._hot))
        except Exception:
            # The thread runs it again from the start, and reports what is really wrong.
            self.close()
            return None
        self._rows += ROWS_OF_A_COMMIT * len(tables)
        return outcome

    def end(self) -> bool:
        """Commits what was begun; false if another process was in the way and nothing has happened. Raises an error
        that may hide a success.
        """
        started = perf_counter()
        try:
            _commit(cast("sa.Connection", self._connection))
        except sqlite3.Error as error:
            self.close()
            if is_transient(error):
                return False
            raise
        self._last_sync = perf_counter() - started
        self._known.confirm()
        return True

    def checkpoint(self) -> None:
        """On the thread. One that cannot finish because of readers goes on next time."""
        if self._rows >= CHECKPOINT_AFTER and self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                sqlite_driver(self._connection).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._rows = 0

    def close(self) -> None:
        self._known.dismiss()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.invalidate()


def _commit(connection: sa.Connection) -> None:
    sqlite_driver(connection).commit()
    if connection.in_transaction():
        connection.commit()  # for SQLAlchemy, which saw statements go by; the database has nothing left to do
