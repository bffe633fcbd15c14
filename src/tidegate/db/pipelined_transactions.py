"""Groups on PostgreSQL in two round trips, on the event loop.

    1. BEGIN, lock the rows        the event loop goes on while another server holds them
       read tables                 only those in a state that is not known, as when another server has changed them
       decide                      by the same rules as everywhere
    2. INSERT, UPDATE, COMMIT      nobody is answered before the last of them is confirmed

Fast because no thread is woken and nothing lies between the rules and the wire. For what is not quick, such as a change
of metadata, the transaction is rolled back and the writer's thread runs the group from the start:

    an error before the last round trip       nothing has happened; the thread
    a statement of the last one fails         the database has run none after it, COMMIT included; the thread
    the connection is lost during the last    the commit may have happened: the error goes to those who wait
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar, cast

import psycopg
import sqlalchemy as sa

from tidegate.db.hot_statements import NOTHING, GroupRows, PostgresStatements, Transaction
from tidegate.db.known_tables import KnownTables, State
from tidegate.db.postgres_reading import read_tables
from tidegate.db.postgres_session import ConnectionLost, PostgresSession, Question
from tidegate.db.postgres_statements import (
    BEGIN,
    COMMIT,
    LOCK,
    OPENED,
    ROLLBACK,
    lock_parameters,
    opened_parameters,
    read_locked,
    write_questions,
)
from tidegate.db.tables import SqlTables
from tidegate.domain.names import TableId
from tidegate.domain.ports import UnitOfWork

T = TypeVar("T")

COMMITS_READ_MAX = 1_000
"""Tables that had more unpublished commits when they were last seen are read by the thread."""

log = logging.getLogger(__name__)


class PipelinedTransactions:
    """One at a time."""

    def __init__(self, session: PostgresSession, known: KnownTables) -> None:
        self._session = session
        self._known = known

    async def run(
        self, work: Callable[[UnitOfWork], T], tables: Sequence[TableId], opening: Sequence[Transaction] = ()
    ) -> T | None:
        """Works on these tables, with appends that leave their version open, and returns when what was written is
        synced. None if that is not quick, or failed: nothing has happened then. Raises ConnectionLost, which may hide
        a success.
        """
        if any(self._known.newest(id) is None for id in tables):
            return None
        try:
            outcome, writing = await self._decide(work, tables, opening)
        except Exception as error:
            # The thread runs it again from the start, and reports what is really wrong.
            log.debug("a group is left to the thread: %r", error)
            await self._roll_back()
            return None
        try:
            await self._session.go_on([*writing, (COMMIT, ())])
        except ConnectionLost:
            self._known.dismiss()
            raise
        except psycopg.Error as error:
            log.debug("a group is left to the thread: %r", error)
            await self._roll_back()
            return None
        self._known.confirm()
        return outcome

    def close(self) -> None:
        self._known.dismiss()
        self._session.close()

    async def _decide(
        self, work: Callable[[UnitOfWork], T], tables: Sequence[TableId], opening: Sequence[Transaction]
    ) -> tuple[T, Sequence[Question]]:
        asked: list[Question] = [(BEGIN, ()), (LOCK, lock_parameters(sorted(set(tables))))]
        if opening:
            # After the lock, so that it sees what a group that was waited for has written.
            asked.append((OPENED, opened_parameters(opening)))
        _, locked, *opened = await self._session.run(asked)
        if any(opened):
            raise _NotQuick("an append that has happened before has to be looked up")
        rows = [read_locked(row) for row in locked]
        if unknown := [id for id, state in rows if self._known.get(id, state) is None]:
            await self._read(unknown)
        prepared = _Prepared(rows)
        outcome = work(cast("UnitOfWork", _Decided(self._known, prepared)))
        if not self._session.connected:
            raise ConnectionLost("The connection was lost before anything was written.")
        return outcome, write_questions(prepared.rows)

    async def _read(self, ids: Sequence[TableId]) -> None:
        """Tables whose present state is not known, though an earlier one is: most of what it was is still so."""
        if sum(len(table.unpublished) for id in ids if (table := self._known.newest(id))) > COMMITS_READ_MAX:
            raise _NotQuick("reading that many commits would hold up the event loop")
        await read_tables(self._session, self._known, ids)

    async def _roll_back(self) -> None:
        self._known.dismiss()
        try:
            if self._session.connected:
                await self._session.go_on([(ROLLBACK, ())])
        except psycopg.Error:
            self._session.close()  # which rolls back too


class _NotQuick(Exception):
    """What is asked for would take another round trip."""


class _NotHere:
    def __getattr__(self, name: str) -> NoReturn:
        raise _NotQuick(name)


class _Decided(_NotHere):
    """A unit of work that has tables, and no connection to reach more than what was locked."""

    def __init__(self, known: KnownTables, prepared: _Prepared) -> None:
        self.tables = SqlTables(cast("sa.Connection", _NotHere()), known, prepared)


class _Prepared(PostgresStatements):
    """The hot statements of which the first was run already, and the others are run later."""

    def __init__(self, locked: Sequence[tuple[TableId, State]]) -> None:
        self._locked = locked
        self.rows = NOTHING

    def lock(self, connection: sa.Connection, ids: Sequence[TableId]) -> Sequence[tuple[TableId, State]]:
        return self._locked

    def opened(self, connection: sa.Connection, wanted: Sequence[Transaction]) -> Sequence[tuple[TableId, str, int]]:
        return ()

    def write(self, connection: sa.Connection, rows: GroupRows) -> None:
        self.rows = rows
