"""When a ratified commit counts as published, and may be forgotten by readers of the catalog.

A writer's report is a claim. It moves `published` only as far as each published file was seen to hold the very bytes
that were ratified; what could not be verified stays listed.

    published 3, latest 7, report "6 is published"; files 4 and 5 verified, 6 missing   ->   published 5
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from tidegate.domain.commits import Commit
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, Version
from tidegate.domain.tables import Table


@frozen
class Behind:
    """A table whose newest commits are not published, and when the oldest of those was ratified, if that is known."""

    table_id: TableId
    latest: Version
    published: Version
    ratified_at: int | None


@frozen
class Backlog:
    """Unpublished commits of all tables, those of the table that has most, and when the oldest was ratified, if that
    is known.
    """

    tables: int
    commits: int
    largest: int
    oldest_at: int | None


@frozen
class PublishedFile:
    """A published file as the store describes it."""

    size: int
    modified_at: int
    """Milliseconds since the epoch; some stores know whole seconds only."""


@frozen
class Look:
    """What one look at a log found."""

    digests: Sequence[str | None]
    """SHA-256 of published files, of those that hold what was ratified."""
    staged: bytes | None
    """The content of a staged file, if it is there."""


class AlarmReason(StrEnum):
    OTHER_BYTES = "other_bytes"
    """The published file does not hold what was ratified."""
    STAGED_FILE_GONE = "staged_file_gone"
    """The staged file is not there, so nobody can tell what was ratified."""
    STAGED_FILE_CHANGED = "staged_file_changed"
    """The staged file has another size than the one that was ratified, or other bytes."""
    UNSOUND_COMMIT = "unsound_commit"
    """A file that was put into the log as the next version is no commit that the table could have."""


@frozen
class Obstacle:
    """Why a commit cannot be published, now or ever, unless somebody looks after it."""

    version: Version
    reason: AlarmReason
    message: str


@frozen
class Publication:
    """How far publishing got: the last version whose published file was verified, and what was in the way."""

    verified: Version | None
    obstacle: Obstacle | None = None
    digests: Mapping[Version, str] = field(default_factory=dict[Version, str])
    """SHA-256 of the published files, of commits whose content nobody had read when they were ratified."""


@frozen
class Alarm:
    """The log does not say what was ratified. The commit is kept and served; nothing after it is published."""

    table_id: TableId
    version: Version
    reason: AlarmReason
    message: str
    raised_at: int


def check_report(table: Table, reported: Version) -> None:
    if reported > table.latest:
        raise InvalidRequest(
            f"Version {reported} of {table.name} is reported as published, but the latest ratified version is "
            f"{table.latest}. Report versions that were ratified."
        )


def commits_to_verify(table: Table, reported: Version) -> tuple[Commit, ...]:
    """The commits whose published files must be looked at before the report may count, in order."""
    return table.unpublished[: max(reported - table.published, 0)]


def published_after(table: Table, verified: Version) -> Version:
    """How far the table is published once this is verified. Never moves backwards, never past the latest."""
    return min(max(table.published, verified), table.latest)
