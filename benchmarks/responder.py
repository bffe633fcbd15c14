"""A responder that does nothing: every request gets the same prepared answer. It shows what the driver itself can do.

python -m benchmarks.responder --port 9000 --bytes 3000
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from typing import cast

import uvloop


class Canned(asyncio.Protocol):
    """Counts requests by the empty line that ends their heads: right for requests without a body, all it ever gets."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._write: Callable[[bytes], None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast("asyncio.Transport", transport).write

    def data_received(self, data: bytes) -> None:
        self._write(self._answer * data.count(b"\r\n\r\n"))


async def respond(*, port: int, size: int) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n\r\n"
    answer = head.encode() + b"x" * size
    server = await asyncio.get_running_loop().create_server(lambda: Canned(answer), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Answers every request with the same bytes.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bytes", type=int, required=True)
    arguments = parser.parse_args()
    uvloop.run(respond(port=arguments.port, size=arguments.bytes))
