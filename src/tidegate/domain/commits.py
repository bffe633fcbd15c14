"""Commits: what a writer proposes and the catalog ratifies.

A staged commit lies at `_delta_log/_staged_commits/<version, 20 digits>.<uuid>.json`; the catalog keeps its name,
not its content. Published, it is `_delta_log/<version, 20 digits>.json`. An inline commit comes with its content, which
the catalog keeps until it is published; whoever asks for a file finds it where a staged one would lie.
"""

from __future__ import annotations

import re

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.names import Version

TIMESTAMP_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999."""

_STAGED = re.compile(r"([0-9]{20})\.[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\.json")


@frozen
class Commit:
    version: Version
    timestamp: int
    file_name: str
    file_size: int
    file_modified_at: int
    inline: bool = False
    content_sha256: str | None = None
    """In hexadecimal; None if nobody had read the content when the commit was ratified."""


@frozen
class RatifiedCommit:
    """A commit that happened, and when the server heard of it and decided on it: one clock, milliseconds.

    None where the commit was ratified before the catalog kept the moment.
    """

    commit: Commit
    proposed_at: int | None
    ratified_at: int | None


def check_commit(commit: Commit) -> None:
    """What can be said of a proposed commit without looking at its table."""
    if commit.version < 1:
        raise InvalidRequest(
            f"A commit's version is 1 or higher, not {commit.version}. Version 0 is made by creating the table."
        )
    for field, value in (
        ("file size", commit.file_size),
        ("file modification timestamp", commit.file_modified_at),
    ):
        if value <= 0:
            raise InvalidRequest(f"A commit's {field} is positive, not {value}.")
    check_timestamp("A commit's timestamp", commit.timestamp)
    check_staged_name(commit)


def check_timestamp(field: str, timestamp: int) -> None:
    """Timestamps must rise, so one beyond all calendars would be the table's last."""
    if timestamp <= 0:
        raise InvalidRequest(f"{field} is positive, not {timestamp}.")
    if timestamp > TIMESTAMP_MAX:
        raise InvalidRequest(f"{field} is in milliseconds and before the year 10000, not {timestamp}.")


def check_staged_name(commit: Commit) -> None:
    match = _STAGED.fullmatch(commit.file_name)
    if match is None or int(match[1]) != commit.version:
        raise InvalidRequest(
            f"{commit.file_name[:100]!r} cannot be the staged file of version {commit.version}. "
            f"Name it {commit.version:020}.<uuid>.json and put it into _delta_log/_staged_commits."
        )


def is_learned(commit: Commit) -> bool:
    """Whether the catalog learned of it from the log, where it has no staged name."""
    return commit.file_name == published_name(commit.version)


def published_name(version: int) -> str:
    return f"{version:020}.json"
