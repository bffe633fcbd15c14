"""The two ways to run a conversation: on the calling thread, or on an event loop with file calls in threads."""

from __future__ import annotations

import asyncio
import ssl
import time
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from tidegate.client.address import Address
from tidegate.client.conversations import Again, Answer, Ask, Conversation, Do, NoAnswer, Patience, Step

T = TypeVar("T")

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL)
CONNECT_SECONDS_MAX = 10.0


class Driver:
    """Runs conversations with blocking calls. May be used by several threads at once."""

    def __init__(self, address: Address, patience: Patience) -> None:
        self._address = address
        self._patience = patience
        self._http = httpx.Client(**_options(address))

    @property
    def url(self) -> str:
        return self._address.url

    def run(self, talk: Conversation[T]) -> T:
        try:
            step: Step = next(talk)
            while True:
                result = self._done(step)
                step = talk.throw(result) if isinstance(result, Exception) else talk.send(result)
        except StopIteration as ended:
            return ended.value

    def _done(self, step: Step) -> Any:
        match step:
            case Ask():
                return self._ask(step)
            case Again():
                pause = self._patience.pause(step)
                if pause is not None:
                    time.sleep(pause)
                return pause is not None
            case Do(call):
                try:
                    return call()
                except Exception as error:
                    return error

    def _ask(self, ask: Ask) -> Answer | NoAnswer:
        url = self._address.url
        try:
            response = self._http.request(**_request(url, ask, self._patience))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _no_answer(url, error)
        return _answer(url, response)

    def close(self) -> None:
        self._http.close()


class AsyncDriver:
    """Runs conversations on an event loop."""

    def __init__(self, address: Address, patience: Patience) -> None:
        self._address = address
        self._patience = patience
        self._http = httpx.AsyncClient(**_options(address))

    @property
    def url(self) -> str:
        return self._address.url

    async def run(self, talk: Conversation[T]) -> T:
        try:
            step: Step = next(talk)
            while True:
                result = await self._done(step)
                step = talk.throw(result) if isinstance(result, Exception) else talk.send(result)
        except StopIteration as ended:
            return ended.value

    async def _done(self, step: Step) -> Any:
        match step:
            case Ask():
                return await self._ask(step)
            case Again():
                pause = self._patience.pause(step)
                if pause is not None:
                    await asyncio.sleep(pause)
                return pause is not None
            case Do(call):
                try:
                    return await asyncio.to_thread(call)
                except Exception as error:
                    return error

    async def _ask(self, ask: Ask) -> Answer | NoAnswer:
        url = self._address.url
        try:
            response = await self._http.request(**_request(url, ask, self._patience))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _no_answer(url, error)
        return _answer(url, response)

    async def close(self) -> None:
        await self._http.aclose()


def _options(address: Address) -> dict[str, Any]:
    if not _is_nearby(address.url):
        return {"headers": address.headers}
    # A proxy is for the world outside; the machine itself is reached without one. Nor are certificates of the world
    # of use here without TLS, and loading them takes longer than a commit.
    plain = address.url.startswith("http://")
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else ssl.create_default_context()
    return {"headers": address.headers, "trust_env": False, "verify": verify}


def _request(url: str, ask: Ask, patience: Patience) -> dict[str, Any]:
    return {
        "method": ask.method,
        "url": url + ask.path,
        "params": dict(ask.query),
        "content": ask.body,
        "headers": {} if ask.body is None else {"Content-Type": "application/json"},
        "timeout": httpx.Timeout(patience.answer_seconds_max + ask.waits_seconds, connect=CONNECT_SECONDS_MAX),
    }


def _answer(url: str, response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.content, _seconds(response.headers.get("retry-after")), url)


def _no_answer(url: str, error: Exception) -> NoAnswer:
    # Some have no text; none of them quotes a header, so no token is told.
    return NoAnswer(url, str(error) or type(error).__name__, never_sent=isinstance(error, _NEVER_SENT))


def _seconds(retry_after: str | None) -> float:
    """Seconds, or a date, as HTTP allows; 0 for what is neither."""
    if not retry_after:
        return 0.0
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return 0.0


def _is_nearby(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")
