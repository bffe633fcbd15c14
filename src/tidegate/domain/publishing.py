"""When a ratified commit counts as published, and may be forgotten by readers of the catalog.

A writer's report is a claim. It moves `published` only as far as each published file was seen to hold the very bytes
that were ratified; what could not be verified stays listed.

    published 3, latest 7, report "6 is published"; files 4 and 5 verified, 6 missing   ->   published 5
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.domain.commits import Commit
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import Version
from tidegate.domain.tables import Table


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A published file as the store describes it."""

    size: int
    modified_at: int
    """Milliseconds since the epoch; some stores know whole seconds only."""


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
