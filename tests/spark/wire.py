"""A way to the server on which one can listen, and on which a request can be kept waiting.

with Wire(server) as wire:
    ...                                                   a client works with `wire.url`
    assert "POST /delta/preview/commits" in wire.calls    what it has asked, below /api/2.1/unity-catalog
    with wire.holding("POST", "/delta/preview/commits") as held:
        held.wait_for()                                   that call has come, and the server does not know of it
        ...                                               meanwhile, somebody else is first
    ...                                                   the call goes on to the server
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import httpx

from tests.lake import UNITY
from tests.servers import ServerProcess

WAIT_SECONDS_MAX = 120
OF_ONE_CONNECTION = {"connection", "content-length", "host", "http2-settings", "transfer-encoding", "upgrade"}
"""Headers that are between two neighbours, and not for the one behind."""


@dataclass
class Held:
    method: str
    path: str
    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def wait_for(self) -> None:
        assert self.arrived.wait(WAIT_SECONDS_MAX), f"nobody called {self.method} {self.path}"


class Wire:
    def __init__(self, server: ServerProcess) -> None:
        self.calls: list[str] = []
        self._held: Held | None = None
        self._turn = threading.Lock()
        self._onward = httpx.Client(base_url=server.url, timeout=WAIT_SECONDS_MAX)
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._listener.server_port}"

    def __enter__(self) -> Wire:
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._onward.close()

    @contextmanager
    def holding(self, method: str, path: str) -> Iterator[Held]:
        """The next such call waits until the end of the block."""
        held = self._held = Held(method, path)
        try:
            yield held
        finally:
            self._held = None
            held.released.set()

    def pass_on(self, method: str, target: str, headers: dict[str, str], body: bytes) -> httpx.Response:
        path = target.partition("?")[0].removeprefix(UNITY)
        self.calls.append(f"{method} {path}")
        self._wait_if_held(method, path)
        kept = {name: value for name, value in headers.items() if name.lower() not in OF_ONE_CONNECTION}
        return self._onward.request(method, target, headers=kept, content=body)

    def _wait_if_held(self, method: str, path: str) -> None:
        with self._turn:
            held = self._held
            if held is None or (held.method, held.path) != (method, path) or held.arrived.is_set():
                return
            held.arrived.set()
        assert held.released.wait(WAIT_SECONDS_MAX)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                response = wire.pass_on(self.command, self.path, dict(self.headers), body)
                self.send_response(response.status_code)
                self.send_header("Content-Type", response.headers.get("content-type", "application/json"))
                self.send_header("Content-Length", str(len(response.content)))
                self.end_headers()
                self.wfile.write(response.content)

            do_GET = do_POST = do_PATCH = do_DELETE = do_HEAD = answer

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody reads it."""

        return Handler
