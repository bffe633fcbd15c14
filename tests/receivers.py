"""Receivers of webhooks: a real HTTP server that behaves as it is told, and checks signatures by the book."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE_SECONDS = 60
OK = "ok"


@dataclass(frozen=True)
class Delivery:
    headers: dict[str, str]
    body: bytes
    outcome: str

    @property
    def event(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def sequence(self) -> int:
        return int(self.event["sequence"])

    def is_signed_with(self, secret: str) -> bool:
        """As the Standard Webhooks specification describes it, with nothing of ours."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        content = b".".join(
            [self.headers["webhook-id"].encode(), self.headers["webhook-timestamp"].encode(), self.body]
        )
        expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
        fresh = abs(time.time() - int(self.headers["webhook-timestamp"])) < 300
        return fresh and f"v1,{expected}" in self.headers["webhook-signature"].split(" ")


@dataclass
class Receiver:
    """Does with each delivery what `behave` says of it: `ok`, a status, `hang`, `break`, `huge`, `drip` or `reset`."""

    behave: Callable[[Delivery], str] = lambda _: OK
    deliveries: list[Delivery] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Receiver:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                got = Delivery({name.lower(): value for name, value in self.headers.items()}, body, "")
                outcome = receiver.behave(got)
                receiver.deliveries.append(Delivery(got.headers, got.body, outcome))
                receiver._answer(self, outcome)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def taken(self) -> list[Delivery]:
        """Those that were answered well."""
        return [delivery for delivery in self.deliveries if delivery.outcome in {OK, "huge"}]

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS} s: {what}; {len(self.deliveries)} came"
            time.sleep(0.02)

    def _answer(self, handler: BaseHTTPRequestHandler, outcome: str) -> None:
        if outcome == "hang":
            self.let_go.wait(PATIENCE_SECONDS)
            handler.close_connection = True
            return
        if outcome == "reset":
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return
        if outcome == "drip":
            handler.connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            while not self.let_go.wait(0.1):
                handler.connection.sendall(b".")
        status = int(outcome) if outcome.isdigit() else 200
        handler.send_response(status)
        if 300 <= status < 400:
            handler.send_header("location", self.url)
        size = {"break": 1000, "huge": 100_000_000}.get(outcome, 0)
        handler.send_header("content-length", str(size))
        handler.end_headers()
        if outcome == "break":
            handler.close_connection = True
        elif outcome == "huge":
            self._send_much(handler, size)

    def _send_much(self, handler: BaseHTTPRequestHandler, size: int) -> None:
        try:
            for _ in range(size // 10_000):
                handler.wfile.write(b"x" * 10_000)
        except OSError:
            handler.close_connection = True
