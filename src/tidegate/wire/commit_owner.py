"""Tables on file systems that have the catalog as their commit owner: their JSON in Tidegate's own API.

Moments are milliseconds since the epoch. A table is named by its id and its location, which both are in its log.
"""

from __future__ import annotations

from msgspec import Struct


class RegisterOwned(Struct, frozen=True):
    """`version` is the one that the table has now, -1 if there is none yet. `schema` is where it is listed."""

    location: str
    version: int
    schema: str = "main.default"


class OwnedTable(Struct, frozen=True):
    """The owner agrees. It owns the table when version `owned_from` is in the log and names it, with this id."""

    table_id: str
    full_name: str
    location: str
    owned_from: int


class OwnedCommit(Struct, frozen=True):
    """A commit whose file is staged, as `_delta_log/_staged_commits/<file_name>`."""

    location: str
    version: int
    timestamp: int
    file_name: str
    file_size: int
    file_modification_timestamp: int


class OwnedCommitted(Struct, frozen=True):
    """`published`: its file is in the log."""

    version: int
    latest_version: int
    published: bool


class OwnedQuery(Struct, frozen=True):
    """Which table, and which commits, both ends included."""

    location: str
    start_version: int | None = None
    end_version: int | None = None


class UnpublishedCommit(Struct, frozen=True):
    version: int
    timestamp: int
    file_name: str
    file_size: int
    file_modification_timestamp: int


class UnpublishedCommits(Struct, frozen=True):
    """In order, without a gap, from the first that is not known to be published; more may follow. `latest_version` is
    the newest ratified one, whatever was asked for.
    """

    commits: list[UnpublishedCommit]
    latest_version: int


class PublishOwned(Struct, frozen=True):
    location: str
    version: int


class PublishedOwned(Struct, frozen=True):
    """Every version up to this one is in the log."""

    published_version: int
