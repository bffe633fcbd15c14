"""One at a time for each table, in this process, and not too many tables at once.

Spares work that would be in vain: two that put the same version into a log, or learn the same one, would both do all of
it and one would lose. Nothing depends on it: other servers, and writers that put files themselves, know nothing of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tidegate.domain.errors import Unavailable
from tidegate.domain.names import TableId


@dataclass(slots=True)
class _Door:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    callers: int = 0
    """Who is inside and who waits: the last one takes the door away."""


class OneAtATime:
    """For one event loop. At most `together_max` tables at once; nobody waits longer than `seconds_max`. How many can
    wait is bounded by the requests in flight.
    """

    def __init__(self, *, together_max: int, seconds_max: float) -> None:
        self._doors: dict[TableId, _Door] = {}
        self._together = asyncio.Semaphore(together_max)
        self._seconds_max = seconds_max

    @asynccontextmanager
    async def __call__(self, id: TableId) -> AsyncGenerator[None]:
        """Raises Unavailable if those before take too long."""
        door = self._doors.setdefault(id, _Door())
        door.callers += 1
        try:
            await self._enter(id, door)
            try:
                yield
            finally:
                self._together.release()
                door.lock.release()
        finally:
            door.callers -= 1
            if not door.callers:
                del self._doors[id]

    async def _enter(self, id: TableId, door: _Door) -> None:
        try:
            async with asyncio.timeout(self._seconds_max):
                await door.lock.acquire()
                try:
                    await self._together.acquire()
                except BaseException:
                    door.lock.release()
                    raise
        except TimeoutError:
            raise Unavailable(
                f"Others are busy with the log of table {id} for more than {self._seconds_max:.0f} s. Check its store, "
                "and try again."
            ) from None
