"""Functions that the server calls with events: named in its settings, loaded when it starts.

    functions = "notify=shop.followups:notify, compact=shop.followups:compact"

Each call runs on a thread of its own and has a while to return. A thread cannot be ended, so a subscription whose last
call still hangs gets no second thread: its next attempts fail at once until the call returns.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import check_name
from tidegate.domain.subscriptions import DeliveryFailed

EventFunction = Callable[[dict[str, Any]], object]
CALLS_MAX = 64

log = logging.getLogger(__name__)


class ThreadedFunctions:
    """For one event loop."""

    def __init__(self, functions: Mapping[str, EventFunction], *, seconds_max: float) -> None:
        self._functions = functions
        self._seconds_max = seconds_max
        self._under_way: dict[str, asyncio.Future[None]] = {}

    @property
    def names(self) -> Sequence[str]:
        return sorted(self._functions)

    async def call(self, name: str, event: dict[str, Any], *, key: str) -> None:
        function = self._functions.get(name)
        if function is None:
            raise DeliveryFailed(f"This server has no function {name}. Name it in the setting functions.")
        if key in self._under_way:
            raise DeliveryFailed(f"The function {name} has not returned from an earlier call.")
        if len(self._under_way) >= CALLS_MAX:
            raise DeliveryFailed(f"{CALLS_MAX} calls of functions have not returned.")
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[None] = loop.create_future()
        self._under_way[key] = outcome
        outcome.add_done_callback(lambda done: self._forget(key, done))
        threading.Thread(
            target=_run, args=(loop, outcome, function, event), name="tidegate-function", daemon=True
        ).start()
        done, _ = await asyncio.wait([outcome], timeout=self._seconds_max)
        if not done:
            raise DeliveryFailed(f"The function {name} has not returned within {self._seconds_max:.0f} s.")
        if (error := outcome.exception()) is not None:
            log.warning("the function %s failed", name, exc_info=error)
            raise DeliveryFailed(f"The function {name} raised {type(error).__name__}.")

    def _forget(self, key: str, done: asyncio.Future[None]) -> None:
        self._under_way.pop(key, None)
        if not done.cancelled():
            done.exception()  # seen: a late failure is nobody's any more


def load_functions(text: str) -> dict[str, EventFunction]:
    """Of the setting: `name=module:callable, ...`. Raises InvalidRequest."""
    functions: dict[str, EventFunction] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, where = (part.strip() for part in entry.partition("="))
        module, _, attribute = (part.strip() for part in where.partition(":"))
        if not (name and module and attribute) or name in functions:
            raise InvalidRequest(f"The setting functions is name=module:callable, ..., each name once, not {entry!r}.")
        functions[check_name("function", name)] = _load(name, module, attribute)
    return functions


def _load(name: str, module: str, attribute: str) -> EventFunction:
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise InvalidRequest(
            f"The function {name} cannot be loaded from {module}:{attribute} ({type(error).__name__}: {error})."
        ) from error
    if not callable(found) or inspect.iscoroutinefunction(found):
        raise InvalidRequest(f"The function {name}, {module}:{attribute}, is not a plain function of one event.")
    return found


def _run(
    loop: asyncio.AbstractEventLoop, outcome: asyncio.Future[None], function: EventFunction, event: dict[str, Any]
) -> None:
    error: BaseException | None = None
    try:
        function(event)
    except BaseException as raised:
        # A future takes no StopIteration.
        error = raised if not isinstance(raised, StopIteration) else RuntimeError("StopIteration")
    try:
        loop.call_soon_threadsafe(_settle, outcome, error)
    except RuntimeError:
        return  # the server has stopped meanwhile


def _settle(outcome: asyncio.Future[None], error: BaseException | None) -> None:
    if error is None:
        outcome.set_result(None)
    else:
        outcome.set_exception(error)
