"""The echo limit: an application that does nothing, served exactly as Tidegate is. Nothing on this stack is faster.

python -m benchmarks.echo --port 9001 --bytes 3000
"""

from __future__ import annotations

import argparse
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

from tidegate.http.serving import server_config

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Echo:
    """Answers every request with the same body."""

    def __init__(self, size: int) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", str(size).encode())]
        self._start = {"type": "http.response.start", "status": 200, "headers": headers}
        self._body = {"type": "http.response.body", "body": b"x" * size}

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send(self._start)
        await send(self._body)


def main() -> None:
    parser = argparse.ArgumentParser(description="Answers every request with the same body, on Tidegate's HTTP stack.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bytes", type=int, required=True)
    arguments = parser.parse_args()
    listening = socket.create_server(("127.0.0.1", arguments.port), backlog=2048)
    uvicorn.Server(server_config(Echo(arguments.bytes), shutdown_seconds_max=1)).run(sockets=[listening])


if __name__ == "__main__":
    main()
