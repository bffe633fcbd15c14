"""Both faces of the client under one set of tests: the async one is run to its end, call by call."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

from tidegate.client import AsyncCatalog, AsyncTable, Catalog, connect, connect_async


class Awaited:
    """An async object whose calls block."""

    def __init__(self, awaited: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._awaited = awaited
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._awaited, name)
        return self._called(value) if callable(value) else value

    def _called(self, method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            if inspect.isasyncgen(result):
                return self._stepped(result)
            if inspect.isawaitable(result):
                result = self._loop.run_until_complete(result)
            return Awaited(result, self._loop) if isinstance(result, AsyncTable) else result

        return call

    def _stepped(self, events: Any) -> Iterator[Any]:
        try:
            while True:
                yield self._loop.run_until_complete(anext(events))
        except StopAsyncIteration:
            return
        finally:
            self._loop.run_until_complete(events.aclose())

    def end(self) -> None:
        self._loop.run_until_complete(self._awaited.close())
        self._loop.close()


def open_face(face: str, url: str, **options: Any) -> Any:
    if face == "sync":
        return connect(url, **options)
    loop = asyncio.new_event_loop()

    async def made() -> AsyncCatalog:
        return connect_async(url, **options)

    return Awaited(loop.run_until_complete(made()), loop)


def close_face(opened: Any) -> None:
    if isinstance(opened, Catalog):
        opened.close()
    else:
        opened.end()
