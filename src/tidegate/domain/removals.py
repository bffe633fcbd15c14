"""Folders that go: what is left of purged tables and of staging tables that nobody finished.

A removal is written down in the transaction that takes the table away, and struck out when nothing is left; in between
it is picked up again after every crash. It never begins, nor goes on, where another table lies in, at or above the
place: better a folder that stays than a file too many that goes.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId

BACKOFF_MS = 2000
BACKOFF_MS_MAX = 3_600_000


class RemovalCause(StrEnum):
    PURGE = "purge"
    EXPIRY = "expire"


@frozen
class Removal:
    table_id: TableId
    cause: RemovalCause
    name: str
    """The table's full name, for people."""
    location: str
    begun_at: int
    begun_by: str
    files_removed: int = 0
    attempts: int = 0
    """How often in a row it failed."""
    not_before: int = 0
    problem: str | None = None
    """Why it does not go on."""


def progressed(removal: Removal, files: int) -> Removal:
    return replace(removal, files_removed=removal.files_removed + files, attempts=0, not_before=0, problem=None)


def failed(removal: Removal, problem: str, *, now: int) -> Removal:
    """It is tried again after 2 s, 4 s, 8 s ... up to an hour."""
    pause = min(BACKOFF_MS * 2 ** min(removal.attempts, 30), BACKOFF_MS_MAX)
    return replace(removal, attempts=removal.attempts + 1, not_before=now + pause, problem=problem)
