"""Commits with their content: their JSON in Tidegate's own API. Moments are milliseconds since the epoch."""

from __future__ import annotations

from msgspec import Struct


class CommitRequest(Struct, frozen=True):
    """`content` is what the commit's file would hold: one action a line, the commitInfo first, with a txnId that is a
    UUID. Without a `version` it may only add files, and `metadata_version` says for which metadata they were written.
    """

    table_id: str
    content: str
    version: int | None = None
    metadata_version: int | None = None
    latest_published_version: int | None = None


class Committed(Struct, frozen=True):
    version: int
    timestamp: int
    file_name: str
    file_size: int
    file_modification_timestamp: int
    latest_version: int


class CommitsQuery(Struct, frozen=True):
    """Which commits, both ends included."""

    start_version: int | None = None
    end_version: int | None = None


class KeptCommit(Struct, frozen=True):
    """One that is not `inline` is in the staged file of this name."""

    version: int
    timestamp: int
    file_name: str
    file_size: int
    file_modification_timestamp: int
    inline: bool
    content: str | None = None


class KeptCommits(Struct, frozen=True):
    """`latest_version` is null for an external table; `commits` in order, those of lower versions are in the log."""

    full_name: str
    table_id: str
    location: str
    latest_version: int | None
    metadata_version: int
    commits: list[KeptCommit]


class Conflict(Struct, frozen=True):
    """What was ratified since the version that was lost, without contents; commits of versions that are missing are in
    the log. `append_stands`: a commit that does nothing but add files can be sent again as it is.
    """

    latest_version: int
    append_stands: bool
    commits: list[KeptCommit]


class ErrorResponse(Struct, frozen=True, omit_defaults=True):
    """`conflict` only where a version is taken."""

    error_code: str
    message: str
    conflict: Conflict | None = None
