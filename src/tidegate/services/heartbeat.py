"""The heartbeat: every few seconds a server tells the others that it is there, and what it does.

What it does is told per second, over the time since the last heartbeat. A server that stops takes its row along; that
of one that dies falls silent, and is removed by the others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

from tidegate import __version__
from tidegate.domain.errors import TidegateError
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.servers import FORGOTTEN_AFTER_MS, Activity, ServerInfo
from tidegate.services.environment import Environment

EVERY_SECONDS = 5.0
LEAVE_SECONDS_MAX = 3.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Totals:
    at: float
    requests: float
    commits: float
    conflicts: float


class Heartbeat:
    """`clock` rises steadily, in seconds."""

    def __init__(self, env: Environment, *, url: str, clock: Callable[[], float]) -> None:
        self._env = env
        self._id = env.new_id()
        self._url = url
        self._clock = clock
        self._started_at = env.clock()
        self._before = self._totals()

    async def beat(self) -> None:
        now = self._env.clock()
        server = ServerInfo(
            id=self._id,
            host=platform.node(),
            pid=os.getpid(),
            url=self._url,
            version=__version__,
            started_at=self._started_at,
            seen_at=now,
            activity=self._activity(),
        )

        def work(uow: UnitOfWork) -> None:
            uow.servers.put(server)
            uow.servers.remove_before(now - FORGOTTEN_AFTER_MS)

        await self._env.database.write(work)

    async def leave(self) -> None:
        """If the database does not answer now, the others find out by themselves."""
        try:
            async with asyncio.timeout(LEAVE_SECONDS_MAX):
                await self._env.database.write(lambda uow: uow.servers.remove(self._id))
        except (TidegateError, TimeoutError) as error:
            log.info("the other servers are not told that this one stops: %s", error)

    def _activity(self) -> Activity:
        before, now = self._before, self._totals()
        self._before = now
        seconds = max(now.at - before.at, 0.001)
        return Activity(
            requests=(now.requests - before.requests) / seconds,
            commits=(now.commits - before.commits) / seconds,
            conflicts=(now.conflicts - before.conflicts) / seconds,
            hottest=self._env.activity.take(seconds),
        )

    def _totals(self) -> _Totals:
        measures = self._env.measures
        return _Totals(self._clock(), measures.requests.total, measures.ratified.value, measures.conflicts.value)
