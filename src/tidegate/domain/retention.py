"""How long things are kept that nobody needs any more, and whose clock says that the time is over.

Retention is counted from the moment that the catalog, or the store, noted. The clock that ends it is the server's,
slowed where it jumps: it never says more than what has passed, by a clock that only rises, since the server started.

    started at 12:00; an hour later somebody sets the clock to next year    ->   13:00
    started at 12:00; an hour later somebody sets the clock to 11:00        ->   11:00
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.domain.frozen import frozen
from tidegate.domain.ports import Clock

HOUR_MS = 3_600_000


@frozen
class Retentions:
    """In milliseconds."""

    dropped_ms: int
    """From the drop of a table until it is purged."""
    staging_ms: int
    """From the making of a staging table until it expires."""
    staged_files_ms: int
    """From the last change of a staged commit file until it may go, if nobody needs it."""


def unhurried(clock: Clock, rising_ms: Callable[[], int]) -> Clock:
    """The clock, but never faster than `rising_ms`, which counts from anywhere and only rises."""
    started, rose_from = clock(), rising_ms()
    return lambda: min(clock(), started + rising_ms() - rose_from)
