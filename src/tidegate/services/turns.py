"""Turns: those who lost a race for a version are told so one after the other, not all at once.

Told all at once, every loser reloads and proposes the same next version, and all but one lose again: the more writers,
the fewer commits. So while one loser has the turn to reload and propose, the others wait for their 409. The turn passes
on when a commit to the table is ratified, or when whoever has it takes too long.

    A, B, C, D propose 5; A wins   ->   B is told "5 is taken" and has the turn; C and D wait
    B proposes 6 and wins          ->   C is told and has the turn; D waits

Nothing depends on it: a 409 is as true later as it was at once, and nobody is kept from proposing at any time. A table
without contention never sees it. Each server keeps turns of its own, and forgets a table when nobody waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import cast

from tidegate.domain.names import TableId

TURN_SECONDS = 0.02
"""How long the next one waits for whoever has the turn. A client that is near needs a few milliseconds."""
WAIT_SECONDS_MAX = 0.25
"""Nobody waits longer for a 409 than this."""


@dataclass(slots=True)
class _Queue:
    waiting: deque[asyncio.Future[None]] = field(default_factory=lambda: cast("deque[asyncio.Future[None]]", deque()))
    expiry: asyncio.TimerHandle | None = None
    """When the present turn ends by itself."""


class Turns:
    """For one event loop. How many can wait is bounded by the requests in flight."""

    def __init__(self) -> None:
        self._queues: dict[TableId, _Queue] = {}

    async def wait(self, id: TableId) -> None:
        """Returns when it is the caller's turn to be told that it lost."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(id)
        if queue is None:
            queue = self._queues[id] = _Queue()
            self._start_turn(loop, id, queue)
            return
        told: asyncio.Future[None] = loop.create_future()
        queue.waiting.append(told)
        bound = loop.call_later(WAIT_SECONDS_MAX, _tell, told)
        try:
            # Awaited as it is: whoever has the turn is to be answered without a detour, before the winner.
            await told
        finally:
            bound.cancel()

    def pass_on(self, id: TableId) -> bool:
        """A commit was ratified: the next one is told. Whether there was one."""
        queue = self._queues.get(id)
        if queue is None:
            return False
        return self._next(asyncio.get_running_loop(), id, queue)

    def _next(self, loop: asyncio.AbstractEventLoop, id: TableId, queue: _Queue) -> bool:
        if queue.expiry is not None:
            queue.expiry.cancel()
        while queue.waiting:
            if _tell(queue.waiting.popleft()):
                self._start_turn(loop, id, queue)
                return True
        del self._queues[id]
        return False

    def _start_turn(self, loop: asyncio.AbstractEventLoop, id: TableId, queue: _Queue) -> None:
        queue.expiry = loop.call_later(TURN_SECONDS, self._next, loop, id, queue)


def _tell(told: asyncio.Future[None]) -> bool:
    """Whether somebody was still waiting for it."""
    if told.done():
        return False
    told.set_result(None)
    return True
