"""Calls to a store that may hang, as a network file system does whose server is gone.

Each runs on a thread of its own, and its caller waits for a while, not for ever. A thread that hangs cannot be ended,
so there is at most one for each key (a table's location): as long as it hangs, the next call for that key fails, at
once or, with `in_turn`, after it has waited for its turn; and others go on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from tidegate.domain.errors import Unavailable

T = TypeVar("T")


class Patience:
    """For one event loop."""

    def __init__(self, *, seconds_max: float, calls_max: int) -> None:
        self._seconds_max = seconds_max
        self._calls_max = calls_max
        self._under_way: dict[str, asyncio.Future[Any]] = {}

    async def call(self, key: str, work: Callable[[], T], *, in_turn: bool = False) -> T:
        """What `work` returns or raises; Unavailable if it takes too long."""
        if in_turn:
            await self._wait_for_turn(key)
        if key in self._under_way:
            raise Unavailable(f"An earlier call to {key} has not returned yet. Check the store.")
        if len(self._under_way) >= self._calls_max:
            raise Unavailable(f"{self._calls_max} calls to stores have not returned yet. Check the stores.")
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        self._under_way[key] = outcome
        outcome.add_done_callback(lambda _: self._under_way.pop(key, None))
        threading.Thread(target=_run, args=(loop, outcome, work), name="tidegate-store", daemon=True).start()
        done, _ = await asyncio.wait([outcome], timeout=self._seconds_max)
        if not done:
            raise Unavailable(f"The store of {key} has not answered for {self._seconds_max:.0f} s. Check it.")
        return outcome.result()

    async def _wait_for_turn(self, key: str) -> None:
        patient_until = monotonic() + self._seconds_max
        while key in self._under_way and (left := patient_until - monotonic()) > 0:
            await asyncio.wait([self._under_way[key]], timeout=left)


def _run(loop: asyncio.AbstractEventLoop, outcome: asyncio.Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as error:
        _tell(loop, outcome.set_exception, error)
    else:
        _tell(loop, outcome.set_result, result)


def _tell(loop: asyncio.AbstractEventLoop, tell: Callable[[Any], None], what: object) -> None:
    try:
        loop.call_soon_threadsafe(tell, what)
    except RuntimeError:
        return  # the server has stopped meanwhile
