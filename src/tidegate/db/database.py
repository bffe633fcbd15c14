"""The database as the services see it: read a snapshot, write, ratify."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from tidegate.db.engines import parse_url, postgres_connection, quick_engine, reading_engine, writing_engine
from tidegate.db.errors import unavailable
from tidegate.db.exclusive import Exclusive
from tidegate.db.hot_statements import hot_statements
from tidegate.db.known_tables import KnownTables
from tidegate.db.lookups import Lookup, SqliteLookup
from tidegate.db.quick_transactions import QuickTransactions
from tidegate.db.transactions import Transactions
from tidegate.db.unit_of_work import SqlUnitOfWork
from tidegate.db.writer import DecideGroup, Writer
from tidegate.domain.audit import AuditRecord
from tidegate.domain.errors import NoSuchTable
from tidegate.domain.names import TableId, TableName
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.ratification import Decision, Proposal
from tidegate.domain.tables import Table
from tidegate.telemetry.current import CURRENT, AtWork, RequestAtWork
from tidegate.telemetry.server import ServerMeasures
from tidegate.telemetry.traces import Traces

if TYPE_CHECKING:
    from tidegate.db.pipelined_transactions import PipelinedTransactions

T = TypeVar("T")

GROUP_SECONDS_MAX = 30
"""How long a group waits for PostgreSQL: for a row that another server holds locked, or for a sync."""
LOOKUP_SECONDS_MAX = 10
"""How long a load waits for PostgreSQL before it says that there is no answer."""


class SqlDatabase:
    def __init__(
        self,
        url: str,
        decide_group: DecideGroup,
        *,
        readers: int,
        group_max: int,
        queue_max: int,
        known_max: int,
        measures: ServerMeasures,
        traces: Traces | None = None,
        record: Callable[[AtWork | None], AuditRecord | None] | None = None,
    ) -> None:
        """`record` tells what the audit log says of a write that is asked for; None if it says nothing."""
        parsed = parse_url(url)
        self._record = record
        self._known = KnownTables(entries_max=known_max)
        self._hot = hot_statements(parsed.get_backend_name())
        # One more than there are threads, for the lookups on SQLite.
        self._reading = reading_engine(parsed, connections=readers + 1)
        self._writing = writing_engine(parsed)
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="tidegate-reader")
        sqlite = parsed.get_backend_name() == "sqlite"
        self._writer = Writer(
            Transactions(self._writing, self._known, self._hot),
            QuickTransactions(quick_engine(parsed), self._known, self._hot) if sqlite else None,
            None if sqlite else _pipelined_transactions(parsed, self._readers, self._known),
            decide_group,
            group_max=group_max,
            queue_max=queue_max,
            measures=measures,
            traces=traces,
        )
        self._lookup: Lookup = SqliteLookup(self._reading) if sqlite else _postgres_lookup(parsed, self._readers)
        self._exclusive = Exclusive(None if sqlite else writing_engine(parsed), self._readers)

    def start(self) -> None:
        self._writer.start()

    async def finish(self) -> None:
        """Before `stop`, on the event loop that was served: takes no more writes."""
        await self._writer.finish()

    def stop(self) -> None:
        self._writer.stop()
        self._readers.shutdown()
        self._exclusive.close()
        self._lookup.close()
        self._reading.dispose()
        self._writing.dispose()

    async def read(self, work: Callable[[UnitOfWork], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    async def table(self, name: TableName) -> Table:
        found = await self._lookup.find(name)
        if found is None:
            raise NoSuchTable(name)
        table = self._known.get(*found)
        return table if table is not None else await self.read(lambda uow: uow.tables.get(name))

    def known_table(self, id: TableId) -> Table | None:
        return self._known.newest(id)

    async def write(self, work: Callable[[UnitOfWork], T], *, audited: bool = True) -> T:
        asked_by = CURRENT.get()
        record = self._record(asked_by) if audited and self._record is not None else None
        if record is None or not isinstance(asked_by, RequestAtWork):
            return await self._writer.submit(work)
        done = await self._writer.submit(lambda uow: _with_record(uow, work, record))
        asked_by.recorded = True
        return done

    def exclusively(self, work: str) -> AbstractAsyncContextManager[bool]:
        return self._exclusive(work)

    async def ratify(self, proposal: Proposal) -> Decision:
        return await self._writer.submit(proposal)

    def _read(self, work: Callable[[UnitOfWork], T]) -> T:
        try:
            with self._reading.begin() as connection:
                return work(SqlUnitOfWork(connection, self._known, self._hot))
        except DBAPIError as error:
            raise unavailable(error) from error


def _with_record(uow: UnitOfWork, work: Callable[[UnitOfWork], T], record: AuditRecord) -> T:
    done = work(uow)
    uow.audit.add([record])
    return done


# Imported late: whoever runs on SQLite does not wait for PostgreSQL's driver.


def _pipelined_transactions(url: URL, threads: Executor, known: KnownTables) -> PipelinedTransactions:
    from tidegate.db.pipelined_transactions import PipelinedTransactions
    from tidegate.db.postgres_reading import READING_STATEMENTS
    from tidegate.db.postgres_session import PostgresSession
    from tidegate.db.postgres_statements import GROUP_STATEMENTS

    connect = partial(postgres_connection, url)
    statements = (*GROUP_STATEMENTS, *READING_STATEMENTS)
    session = PostgresSession(connect, statements, threads, seconds_max=GROUP_SECONDS_MAX)
    return PipelinedTransactions(session, known)


def _postgres_lookup(url: URL, threads: Executor) -> Lookup:
    from tidegate.db.postgres_lookup import PostgresLookup
    from tidegate.db.postgres_session import PostgresSession
    from tidegate.db.postgres_statements import FIND

    connect = partial(postgres_connection, url)
    return PostgresLookup(PostgresSession(connect, [FIND], threads, seconds_max=LOOKUP_SECONDS_MAX))
