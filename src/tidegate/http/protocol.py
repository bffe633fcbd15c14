"""HTTP/1.1 on the socket: uvicorn's fast protocol, faster for small answers, mended for clients that ask for HTTP/2.

An ASGI application sends the head and the body of an answer as two messages, and each is written on its own: two system
calls, and a client that is woken twice. The scope's extension `WHOLE_ANSWER` takes both at once. Others are for answers
that take their time: they learn when the server stops, and can break off.

Java's HTTP client, and with it Spark, sends `Upgrade: h2c` with its requests. A server that does not speak h2c must
answer as if that had not been said; the parser instead takes everything after the headers for another protocol and
loses the body. So such a request is read a second time, without the words that asked for the upgrade:

    POST /x  Connection: Upgrade  Upgrade: h2c  Content-Length: 2   {}      what came
    POST /x  Content-Length: 2                                      {}      what is read
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

WHOLE_ANSWER = "tidegate.whole-answer"
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
WholeAnswer: TypeAlias = Callable[[int, Headers, bytes], bool]
"""Takes the status, the headers and the body. False: the socket is full, nothing was done."""
ABORT = "tidegate.abort"
"""Closes the connection at once, whatever was still to be sent."""
ON_STOP = "tidegate.on-stop"
"""Put here by the application: called when the server is asked to stop while this request is being answered."""

_UPGRADE = frozenset({b"upgrade", b"http2-settings"})


HEAD_BYTES_MAX = 64 * 1024
"""Of the request line and all headers."""
LEFT_BYTES_MAX = 1024 * 1024
"""Of a body that still arrives when its request has been answered: read and thrown away, then cut off."""


class Http1Protocol(HttpToolsProtocol):
    """A request must arrive whole within `request_seconds_max`, its head within HEAD_BYTES_MAX bytes: who sends slowly,
    or without an end, is cut off. What arrives in one piece, as nearly all requests do, costs no timer.
    """

    request_seconds_max = 60.0
    _arriving = False
    _head_bytes = 0
    _left_bytes = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_the_rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        in_a_head = self._arriving and self._head_bytes >= 0
        self._read(data)
        if self._arriving and self._late is None:
            self._wait_for_the_rest()
        if in_a_head and self._head_bytes >= 0 and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._arriving, self._head_bytes, self._left_bytes = True, 0, 0

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.cycle.response_complete:
            self._left_bytes += len(body)
            if self._left_bytes > LEFT_BYTES_MAX:
                self.transport.abort()

    def _wait_for_the_rest(self) -> None:
        self._late = self.loop.call_later(self.request_seconds_max, self._cut_off)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _cut_off(self) -> None:
        self._late = None
        self.transport.abort()

    def _read(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            head = self._head_without_upgrade()
            self._renew_parser()
            self._read(head + rest)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def on_headers_complete(self) -> None:
        self._head_bytes = -1  # the head is whole
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._arriving = False
            self._stop_waiting()
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        extensions = {WHOLE_ANSWER: partial(_answer, cycle), ABORT: cycle.transport.abort}
        cast("dict[str, Any]", cycle.scope)["extensions"] = extensions
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        super().shutdown()
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and not cycle.response_complete:
            stop = cast("dict[str, Any]", cycle.scope).get("extensions", {}).get(ON_STOP)
            if stop is not None:
                stop()

    def _head_without_upgrade(self) -> bytes:
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        for name, value in self.headers:
            if name == b"connection":
                tokens = [token.strip() for token in value.split(b",")]
                value = b", ".join(token for token in tokens if token.lower() not in _UPGRADE) or b"keep-alive"
            if name not in _UPGRADE:
                lines.append(name + b": " + value)
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _renew_parser(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)


def protocol_for(*, request_seconds_max: float) -> type[Http1Protocol]:
    return type("Http1Protocol", (Http1Protocol,), {"request_seconds_max": request_seconds_max})


def _answer(cycle: RequestResponseCycle, status: int, headers: Headers, body: bytes) -> bool:
    """What `cycle.send` does with both messages. The headers are our own application's: they need no look."""
    if cycle.flow.write_paused or cycle.response_started:
        return False
    if cycle.disconnected:
        return True
    parts = [STATUS_LINE[status]]
    for name, value in (*cycle.default_headers, *headers):
        parts += (name, b": ", value, b"\r\n")
    if not cycle.keep_alive or cycle.more_body:
        # Who is still sending a body that nobody wants is cut off sooner or later: no place for another request.
        parts.append(b"connection: close\r\n")
    parts += (b"\r\n", body)
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(b"".join(parts))
    cycle.message_event.set()
    # The cycle holds the scope, and the scope this function with the cycle: taken apart here, both go at once. Left to
    # the garbage collector, they would stop the server for milliseconds again and again.
    cast("dict[str, Any]", cycle.scope)["extensions"] = {}
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True
