"""Files as the Python client writes them, and what that took: how many files, and how many calls of fsync."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.driver import DriverError
from tidegate.client.errors import StorageFailure
from tidegate.client.files import LocalFiles


class _Syncs(threading.local):
    """Each thread counts its own: what others sync meanwhile is none of its cost."""

    count = 0


_syncs = _Syncs()


@contextmanager
def counting_syncs() -> Iterator[None]:
    sync = os.fsync

    def counted(fd: int) -> None:
        sync(fd)
        _syncs.count += 1

    os.fsync = counted
    try:
        yield
    finally:
        os.fsync = sync


def write_new(path: str, content: bytes, spent: Counter[str]) -> None:
    """Put-if-absent, synced; a file that is there already, with the same bytes, is as good. Call it while syncs are
    counted."""
    before = _syncs.count
    try:
        if LocalFiles().write_new(path, content):
            spent["files"] += 1
        elif LocalFiles().read(path) != content:
            raise DriverError(f"{path} is there already, with other bytes.")
    except StorageFailure as failure:
        raise DriverError(str(failure)) from failure
    spent["syncs"] += _syncs.count - before
