"""Who waits for the next event, and who tells them.

One look at the database serves all who wait on this server. It looks as soon as this server has ratified something, and
every so often because another one may have; while nobody waits it does not look at all.

On PostgreSQL looking also gives numbers to events whose transactions have ended: see `Events.number`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tidegate.domain.events import Sequence
from tidegate.domain.ports import Database, UnitOfWork

LOOK_SECONDS = 0.25
"""Between two looks when nothing is known to have happened."""
REST_SECONDS = 0.02
"""Between two looks in any case."""
NUMBERING_ROUNDS_MAX = 100

Ending = asyncio.Future[Any]
"""Done when whoever waits has gone away, or has to."""


class EventFeed:
    """For one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], Sequence] = {}
        self._wanted = asyncio.Event()
        self._news = asyncio.Event()

    def notice(self) -> None:
        """Something happened on this server. Called with every commit, so next to free."""
        if self._waiting:
            self._news.set()

    async def newer_than(self, sequence: Sequence, *, seconds_max: float, ending: Ending | None = None) -> bool:
        """Waits for an event with a higher number; false if there is none when the time is over, or at the ending."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[told] = sequence
        self._wanted.set()
        try:
            await asyncio.wait(
                {told} if ending is None else {told, ending},
                timeout=max(0.0, seconds_max),
                return_when=asyncio.FIRST_COMPLETED,
            )
            return told.done() and not (ending is not None and ending.done())
        finally:
            told.cancel()
            self._waiting.pop(told, None)

    async def follow(self, database: Database) -> None:
        """For ever."""
        while True:
            self._wanted.clear()
            if not self._waiting:
                await self._wanted.wait()
            self._news.clear()
            self._tell(await look(database))
            await asyncio.sleep(REST_SECONDS)
            await self._pause()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return

    def _tell(self, last: Sequence) -> None:
        for told, sequence in list(self._waiting.items()):
            if sequence < last and not told.done():
                told.set_result(None)


async def look(database: Database) -> Sequence:
    """The newest number, after all events that were there before have got theirs."""
    for _ in range(NUMBERING_ROUNDS_MAX):
        unnumbered, last = await database.read(_look)
        if not unnumbered:
            return last
        await database.write(lambda uow: uow.events.number())
    return (await database.read(_look))[1]


def _look(uow: UnitOfWork) -> tuple[bool, Sequence]:
    return uow.events.unnumbered(), uow.events.last()
