"""Short looks at files, which a store may turn into long ones: a network file system whose server is gone hangs.

A report of publication rides along with nearly every commit, and each means two small files to compare: microseconds,
as a rule. On the event loop such a look would hold up everybody when it hangs, and a thread for each costs twenty times
as much as the look itself. So one thread takes one look after the other, and is told of them, and tells, in bulk.

    a look takes longer than a moment      ->   a further thread goes on with the others
    it takes longer than `seconds_max`     ->   its caller is told that the store does not answer
    its key (a table) is looked at again   ->   after it, or refused at once as long as it hangs: one thread for a key

Threads that hang cannot be ended. At most `threads_max` do; beyond that nobody gets an answer from any store.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from time import monotonic
from typing import Any, TypeVar, cast

from tidegate.domain.errors import Unavailable

T = TypeVar("T")

MOMENT_SECONDS = 0.02
"""After which the looks that wait get another thread, if none has ended meanwhile."""


@dataclass(slots=True, eq=False)
class _Look:
    key: str
    work: Callable[[], Any]
    outcome: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class _Line:
    """Looks with one key: the first is a thread's, since that moment; the others wait for it."""

    since: float
    waiting: deque[_Look] = field(default_factory=lambda: cast("deque[_Look]", deque()))


class QuickLooks:
    """For one event loop. Everything but `_work` runs there."""

    def __init__(self, *, seconds_max: float, threads_max: int) -> None:
        self._seconds_max = seconds_max
        self._threads_max = threads_max
        self._threads = 0
        self._lines: dict[str, _Line] = {}
        self._queue: SimpleQueue[_Look | None] = SimpleQueue()
        self._ended: deque[_Look] = deque()
        self._told = False
        """Whether the loop knows that there are ended ones."""
        self._ticking = False
        self._ended_since_tick = False

    async def call(self, key: str, work: Callable[[], T]) -> T:
        """What `work` returns or raises; Unavailable if it takes too long."""
        loop = asyncio.get_running_loop()
        look = _Look(key, work, loop.create_future())
        line = self._lines.get(key)
        if line is None:
            self._begin(loop, look)
        elif monotonic() - line.since > self._seconds_max:
            raise Unavailable(f"An earlier call to {key} has not returned yet. Check the store.")
        else:
            line.waiting.append(look)
        impatience = loop.call_later(self._seconds_max, self._give_up, look)
        try:
            return await look.outcome
        finally:
            impatience.cancel()

    def _begin(self, loop: asyncio.AbstractEventLoop, look: _Look) -> None:
        self._lines.setdefault(look.key, _Line(0.0)).since = monotonic()
        if not self._threads:
            self._start_thread(loop)
        self._queue.put(look)
        if not self._ticking:
            self._ticking = True
            self._ended_since_tick = False
            loop.call_later(MOMENT_SECONDS, self._tick, loop)

    def _give_up(self, look: _Look) -> None:
        if not look.outcome.done():
            message = f"The store of {look.key} has not answered for {self._seconds_max:.0f} s. Check it."
            look.outcome.set_exception(Unavailable(message))

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """As long as there is something to do: it must not wait for what hangs."""
        if not self._queue.empty() and not self._ended_since_tick and self._threads < self._threads_max:
            self._start_thread(loop)
        self._ended_since_tick = False
        if self._lines:
            loop.call_later(MOMENT_SECONDS, self._tick, loop)
            return
        self._ticking = False
        for _ in range(self._threads - 1):
            self._queue.put(None)
        self._threads = min(self._threads, 1)

    def _start_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        self._threads += 1
        threading.Thread(target=self._work, args=(loop,), name="tidegate-look", daemon=True).start()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while (look := self._queue.get()) is not None:
            # Who has waited too long has gone.
            if not look.outcome.done():
                try:
                    look.result = look.work()
                except BaseException as error:
                    look.error = error
            self._ended.append(look)
            if not self._told:
                self._told = True
                try:
                    loop.call_soon_threadsafe(self._settle, loop)
                except RuntimeError:
                    return  # the server has stopped meanwhile

    def _settle(self, loop: asyncio.AbstractEventLoop) -> None:
        self._told = False  # first: what ends from here on is told anew
        self._ended_since_tick = True
        while self._ended:
            look = self._ended.popleft()
            if not look.outcome.done():
                if look.error is None:
                    look.outcome.set_result(look.result)
                else:
                    look.outcome.set_exception(look.error)
            line = self._lines[look.key]
            if line.waiting:
                self._begin(loop, line.waiting.popleft())
            else:
                del self._lines[look.key]
