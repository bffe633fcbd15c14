"""Work that one server at a time should do.

On PostgreSQL an advisory lock says who does it: it needs no clock, and goes with the connection of a server that dies.
On SQLite there is one server.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import Executor
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from tidegate.db.errors import unavailable


class Exclusive:
    """`engine` is None on SQLite. One connection holds all locks of this server."""

    def __init__(self, engine: sa.Engine | None, threads: Executor) -> None:
        self._engine = engine
        self._threads = threads
        self._connection: sa.Connection | None = None
        self._one_at_a_time = threading.Lock()
        self._here: set[str] = set()

    @contextlib.asynccontextmanager
    async def __call__(self, work: str) -> AsyncGenerator[bool]:
        # The database lets one session have a lock as often as it likes: within this server we count ourselves.
        if work in self._here:
            yield False
            return
        self._here.add(work)
        try:
            alone = await self._ask("SELECT pg_try_advisory_lock(hashtextextended(:work, 0))", work)
            try:
                yield alone
            finally:
                if alone:
                    await self._ask("SELECT pg_advisory_unlock(hashtextextended(:work, 0))", work)
        finally:
            self._here.discard(work)

    def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.invalidate()
            connection.close()
        if self._engine is not None:
            self._engine.dispose()

    async def _ask(self, question: str, work: str) -> bool:
        if self._engine is None:
            return True
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, self._engine, question, work)

    def _run(self, engine: sa.Engine, question: str, work: str) -> bool:
        with self._one_at_a_time:
            try:
                self._connection = self._connection or engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                answer: Any = self._connection.scalar(sa.text(question), {"work": f"tidegate {work}"})
                return bool(answer)
            except DBAPIError as error:
                # With the connection all locks are gone, which costs work that is done twice and nothing else.
                if self._connection is not None:
                    self._connection.invalidate()
                    self._connection = None
                raise unavailable(error) from error
