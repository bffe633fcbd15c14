"""Waiting for what a server does by itself, for as long as it takes and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS} s: {what}"
        time.sleep(0.05)
