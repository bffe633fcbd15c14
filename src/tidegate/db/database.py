"""The database as the services see it: read a snapshot, write, ratify."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy.exc import DBAPIError

from tidegate.db.engines import parse_url, reading_engine, writing_engine
from tidegate.db.errors import unavailable
from tidegate.db.unit_of_work import SqlUnitOfWork
from tidegate.db.writer import DecideGroup, Writer
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.ratification import Decision, Proposal

T = TypeVar("T")


class SqlDatabase:
    def __init__(self, url: str, decide_group: DecideGroup, *, readers: int, group_max: int, queue_max: int) -> None:
        parsed = parse_url(url)
        self._reading = reading_engine(parsed, connections=readers)
        self._writing = writing_engine(parsed)
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="tidegate-reader")
        self._writer = Writer(self._writing, decide_group, group_max=group_max, queue_max=queue_max)

    def start(self) -> None:
        self._writer.start()

    def stop(self) -> None:
        self._writer.stop()
        self._readers.shutdown()
        self._reading.dispose()
        self._writing.dispose()

    async def read(self, work: Callable[[UnitOfWork], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    async def write(self, work: Callable[[UnitOfWork], T]) -> T:
        return await self._writer.submit(work)

    async def ratify(self, proposal: Proposal) -> Decision:
        return await self._writer.submit(proposal)

    def _read(self, work: Callable[[UnitOfWork], T]) -> T:
        try:
            with self._reading.begin() as connection:
                return work(SqlUnitOfWork(connection))
        except DBAPIError as error:
            raise unavailable(error) from error
