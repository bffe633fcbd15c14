"""A real TCP proxy between a client and a server, which does to requests and answers what networks do.

PASS            nothing
DROP_ANSWER     the server hears and answers; the client hears nothing but the end of the connection
CUT_ANSWER      the client gets half of the answer
DROP_REQUEST    the client is cut off before the server hears anything
LATE            the client is cut off first; the server hears the request after that
DELAY           the server hears it a little later
UNKNOWN         the server hears it; the client is told 500, outcome unknown
UNAVAILABLE     the server hears nothing; the client is told 503, without Tidegate's words
BUSY            the server hears nothing; the client is told 429 and to come back at once
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import urlsplit

UNKNOWN_BODY = b'{"error":{"type":"CommitStateUnknownException","code":500,"message":"Nobody knows. Send it again."}}'
BUSY_BODY = b'{"error":{"type":"TooManyRequestsException","code":429,"message":"Too many. Try again."}}'
QUIET_SECONDS_MAX = 30.0


class Fault(Enum):
    PASS = auto()
    DROP_ANSWER = auto()
    CUT_ANSWER = auto()
    DROP_REQUEST = auto()
    LATE = auto()
    DELAY = auto()
    SILENT = auto()
    UNKNOWN = auto()
    UNAVAILABLE = auto()
    BUSY = auto()


@dataclass
class Proxy:
    """`fault` decides on each request, by its first line; bytes are what the client is told instead of the server's
    answer, which hears nothing. `target` may be moved to a server that was started anew.
    """

    target: str
    fault: Callable[[str], Fault | bytes]
    heard: list[str] = field(default_factory=list)
    """The first lines of all requests that came."""
    port: int = 0
    _listening: socket.socket | None = None
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Proxy:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._begin(self._accept)
        return self

    def stop(self) -> None:
        """Waits for requests that are still on their way to the server."""
        assert self._listening is not None
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(QUIET_SECONDS_MAX)

    def _begin(self, work: Callable[..., None], *of: object) -> None:
        thread = threading.Thread(target=work, args=of, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        assert self._listening is not None
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._begin(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        """One request for each connection: a client that keeps connections meets the end of one often."""
        with client, contextlib.suppress(OSError):
            client.settimeout(QUIET_SECONDS_MAX)
            request = read_message(client)
            if request:
                line = request.partition(b"\r\n")[0].decode()
                self.heard.append(line)
                self._deal(self.fault(line), client, request)

    def _deal(self, fault: Fault | bytes, client: socket.socket, request: bytes) -> None:
        match fault:
            case bytes():
                client.sendall(fault)
            case Fault.PASS:
                client.sendall(closing(self._forward(request)))
            case Fault.DELAY:
                time.sleep(0.05)
                client.sendall(closing(self._forward(request)))
            case Fault.DROP_ANSWER:
                self._forward(request)
            case Fault.CUT_ANSWER:
                answer = closing(self._forward(request))
                client.sendall(answer[: len(answer) // 2])
            case Fault.DROP_REQUEST:
                pass
            case Fault.LATE:
                client.shutdown(socket.SHUT_RDWR)
                client.close()
                time.sleep(0.02)
                self._forward(request)
            case Fault.SILENT:
                self._forward(request)
                client.recv(1)
            case Fault.UNKNOWN:
                self._forward(request)
                client.sendall(made("500 Internal Server Error", UNKNOWN_BODY))
            case Fault.UNAVAILABLE:
                client.sendall(made("503 Service Unavailable", b"<html>down</html>"))
            case Fault.BUSY:
                client.sendall(made("429 Too Many Requests", BUSY_BODY, "Retry-After: 0\r\n"))

    def _forward(self, request: bytes) -> bytes:
        """The answer of the server; nothing if it is not there, or goes."""
        parts = urlsplit(self.target)
        try:
            with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=QUIET_SECONDS_MAX) as server:
                server.sendall(request)
                return read_message(server)
        except OSError:
            return b""


@contextlib.contextmanager
def proxy_to(url: str, fault: Callable[[str], Fault | bytes]) -> Iterator[Proxy]:
    proxy = Proxy(url, fault).start()
    try:
        yield proxy
    finally:
        proxy.stop()


def read_message(connection: socket.socket) -> bytes:
    """One request or answer with its body, whose length its head tells; what there is of it, if it breaks off."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    wanted = int(lengths[0]) if lengths else 0
    while len(body) < wanted:
        piece = connection.recv(65536)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body


def closing(answer: bytes) -> bytes:
    """Says that the connection ends here."""
    return answer.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


def made(status: str, body: bytes, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
