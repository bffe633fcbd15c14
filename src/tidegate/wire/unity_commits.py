"""The commits and metrics of specification v0.1.0, in its own spelling and in that of the clients that exist."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from tidegate.wire.unity import Int64, SentColumn, Uniform

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class CommitInfo(Struct, frozen=True):
    version: Int64
    timestamp: Int64
    file_name: str
    file_size: Int64
    file_modification_timestamp: Int64


class GetCommits(Struct, frozen=True):
    """In the query or in the body: what is required may be in either."""

    table_id: str | None = None
    table_uri: str | None = None
    start_version: Int64 | None = None
    end_version: Int64 | None = None


class GetCommitsQuery(GetCommits, frozen=True):
    """The same as parameters of the query."""


class RatifiedCommits(Struct, frozen=True):
    commits: list[CommitInfo]
    latest_table_version: int


class Format(Struct, frozen=True):
    provider: str | None = None
    options: dict[str, str] | None = None


class ColumnInfos(Struct, frozen=True):
    """How clients wrap the list that the specification has."""

    columns: list[SentColumn] | None = None


class Metadata(Struct, frozen=True):
    id: str | None = None
    name: str | None = None
    description: str | UnsetType | None = UNSET
    provider: str | None = None
    options: dict[str, str] | None = None
    format: Format | None = None
    """In the specification's example, where its table has the two fields before."""
    schema: list[SentColumn] | ColumnInfos | None = None
    partition_columns: list[str] | None = None
    properties: dict[str, str | dict[str, str]] | None = None
    """The properties, or what clients wrap them in: {"properties": {...}}."""
    created_time: Int64 | None = None


class WriteCommit(Struct, frozen=True):
    table_id: str
    table_uri: str
    commit_info: CommitInfo | None = None
    latest_published_version: Int64 | None = None
    latest_backfilled_version: Int64 | None = None
    """What clients call the one before."""
    metadata: Metadata | None = None
    uniform: Uniform | None = None


class Histogram(Struct, frozen=True):
    sorted_bin_boundaries: list[Count] | None = None
    file_counts: list[Count] | None = None
    total_bytes: list[Count] | None = None


class CommitReport(Struct, frozen=True):
    commit_version: Count
    num_files_added: Count | None = None
    num_bytes_added: Count | None = None
    num_clustered_bytes_added: Count | None = None
    num_files_removed: Count | None = None
    num_bytes_removed: Count | None = None
    num_clustered_bytes_removed: Count | None = None
    file_size_histogram: Histogram | None = None
    num_rows_inserted: Count | None = None
    num_rows_removed: Count | None = None
    num_rows_updated: Count | None = None


class Report(Struct, frozen=True):
    commit_report: CommitReport | None = None


class WriteMetrics(Struct, frozen=True):
    table_id: str
    table_uri: str
    report: Report | None = None
