"""Threads for what clients do themselves between their requests, such as writing files and syncing them.

The driver has one thread: a client that waited for its disk in there would keep all others waiting, which they would
not be, each on a machine of its own. A client that is alone keeps nobody waiting, and needs no thread.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Work = Callable[[], None]
NOTHING = (0, b"")
"""What a client gets when its work is done, in the place of an answer."""

C = TypeVar("C")


class Workers(Generic[C]):
    """`fd` can be read as soon as somebody's work is done."""

    def __init__(self, clients: int) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._pool = ThreadPoolExecutor(clients, "client") if clients > 1 else None
        self._done: deque[tuple[C, Exception | None]] = deque()

    def begin(self, client: C, work: Work) -> None:
        if self._pool is None:
            self._do(client, work)
        else:
            self._pool.submit(self._do, client, work)

    def done(self) -> Iterator[C]:
        """Those whose work is done. Work that failed ends the run."""
        os.eventfd_read(self.fd)
        while self._done:
            client, failure = self._done.popleft()
            if failure is not None:
                raise failure
            yield client

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        os.close(self.fd)

    def _do(self, client: C, work: Work) -> None:
        failure = None
        try:
            work()
        except Exception as error:
            failure = error
        self._done.append((client, failure))
        os.eventfd_write(self.fd, 1)
