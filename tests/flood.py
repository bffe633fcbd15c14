"""A flood of wrong tokens, in a process of its own: 10,000 in the first second, and one more for each that is answered.

python -m tests.flood http://127.0.0.1:8080
"""

from __future__ import annotations

import itertools
import json
import selectors
import socket
import sys
import time
from collections import Counter
from urllib.parse import urlparse

CONNECTIONS = 200
AT_ONCE = 50
"""On each connection, one after the other, without waiting for answers."""


def main(url: str) -> None:
    """Says `10000 in 0.3 s` when those are sent, goes on until a line comes in, then tells which answers it got."""
    address, numbers = urlparse(url), itertools.count()
    selector, answers = selectors.DefaultSelector(), Counter[str]()
    begun = time.monotonic()
    connections = [socket.create_connection((address.hostname, address.port)) for _ in range(CONNECTIONS)]
    for connection in connections:
        connection.sendall(b"".join(_guess(next(numbers)) for _ in range(AT_ONCE)))
        selector.register(connection, selectors.EVENT_READ)
    print(f"{next(numbers)} in {time.monotonic() - begun:.1f} s", flush=True)
    selector.register(sys.stdin, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if not isinstance(key.fileobj, socket.socket):
                print(json.dumps(answers), flush=True)
                return
            told = key.fileobj.recv(1 << 20)
            if not told:
                answers["closed"] += 1
                selector.unregister(key.fileobj)
                continue
            count = told.count(b"HTTP/1.1 ")
            refused = told.count(b"HTTP/1.1 401")
            answers["401"] += refused
            if count > refused:
                answers["other"] += count - refused
            key.fileobj.sendall(b"".join(_guess(next(numbers)) for _ in range(count)))


def _guess(number: int) -> bytes:
    lines = ("GET /api/tidegate/v1/whoami HTTP/1.1", "Host: x", f"Authorization: Bearer tg_{number:043}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


if __name__ == "__main__":
    main(sys.argv[1])
