"""New files, written whole and synced, several side by side.

A disk takes a while to sync a file, whatever its size, and syncs several in hardly more time than one. So some threads
take one file after the other, in order. After a failure no further file is begun, so that a full disk is not filled
again and again; what comes before the failed file is whole.

The threads are daemons: a store that hangs, hangs them too, and must not keep the server from stopping. Whoever calls
waits for all of them, and bounds by the number of its calls how many there are.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tidegate.domain.frozen import frozen

SIDE_BY_SIDE_MAX = 8

Write: TypeAlias = Callable[[bytes], None]


@frozen
class NewFile:
    """A file that is not there yet; `content` is called with what takes its bytes, piece by piece."""

    path: str
    content: Callable[[Write], None]


@frozen
class Written:
    """Which files are whole and synced, and why the first of the others is not."""

    paths: frozenset[str]
    failure: Exception | None


def write_synced(files: Sequence[NewFile]) -> Written:
    """Writes these files; every one before the first that failed is among those written. The folder is not synced."""
    left = deque(enumerate(files))
    paths: set[str] = set()
    failures: dict[int, Exception] = {}

    def work() -> None:
        while left and not failures:
            try:
                number, file = left.popleft()
            except IndexError:
                return  # another thread took the last
            try:
                _write(file)
                paths.add(file.path)
            except Exception as error:
                failures[number] = error

    _side_by_side(work, min(SIDE_BY_SIDE_MAX, len(files)))
    return Written(frozenset(paths), failures[min(failures)] if failures else None)


def _side_by_side(work: Callable[[], None], count: int) -> None:
    """The calling thread is one of them, and does it all where no other can be had."""
    others: list[threading.Thread] = []
    with contextlib.suppress(RuntimeError):
        for _ in range(count - 1):
            other = threading.Thread(target=work, name="tidegate-store-file", daemon=True)
            other.start()
            others.append(other)
    work()
    for other in others:
        other.join()


def _write(file: NewFile) -> None:
    writing = os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        file.content(lambda piece: _write_all(writing, piece))
        os.fsync(writing)
    finally:
        os.close(writing)


def _write_all(writing: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(writing, rest) :]
