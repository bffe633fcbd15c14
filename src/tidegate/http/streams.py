"""Answers that take their time: who waits for one, and answers that go on for a while.

Such a request ends early when its client goes away and when the server stops; `watched` tells its handler. A reader
that takes nothing for a while is cut off: what is kept for it is what the socket holds, and one chunk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

from tidegate.http.protocol import ABORT, ON_STOP

STALLED_SECONDS_MAX = 30.0

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def watched(scope: Scope, receive: Receive) -> AsyncGenerator[asyncio.Future[None]]:
    """A future that is done when the client has gone away, or when the server stops."""
    ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end() -> None:
        if not ending.done():
            ending.set_result(None)

    scope.setdefault("extensions", {})[ON_STOP] = end
    watching = asyncio.create_task(_watch(receive, end))
    try:
        yield ending
    finally:
        watching.cancel()
        # The request holds its extensions, and those hold the request: taken apart, both go at once.
        scope["extensions"] = {}


async def _watch(receive: Receive, end: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    end()


async def send_stream(
    scope: Scope, send: Send, chunks: AsyncIterator[bytes], *, content_type: bytes, id: bytes
) -> None:
    headers = [(b"content-type", content_type), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
    headers.append((b"x-request-id", id))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    try:
        async for chunk in chunks:
            async with asyncio.timeout(STALLED_SECONDS_MAX):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        async with asyncio.timeout(STALLED_SECONDS_MAX):
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        log.info("a reader of %s took nothing for %.0f s and is cut off", scope["path"], STALLED_SECONDS_MAX)
        _abort(scope)
    except Exception:
        log.exception("the stream of %s broke off", scope["path"])
        _abort(scope)


def _abort(scope: Scope) -> None:
    """It has begun with a success, so it must not look as if it had ended well."""
    abort = scope["extensions"].get(ABORT)
    if abort is not None:
        abort()
