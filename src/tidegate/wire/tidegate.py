"""Tidegate's own API: its JSON. Moments are milliseconds since the epoch."""

from __future__ import annotations

from msgspec import Struct

from tidegate.wire.unity import PageQuery


class TimelineQuery(PageQuery, frozen=True):
    """Which part of a table's timeline."""


class TimelineEntry(Struct, frozen=True):
    version: int
    timestamp: int | None
    proposed_at: int | None
    ratified_at: int | None
    published_at: int | None
    verified: bool
    file_name: str
    file_size: int | None


class Timeline(Struct, frozen=True):
    full_name: str
    table_id: str
    table_type: str
    latest_version: int | None
    verified_version: int | None
    conflicts: int
    replays: int
    since: int
    commits: list[TimelineEntry]
    next_page_token: str | None


class MetricsQuery(PageQuery, frozen=True):
    """Which part of a table's metrics."""


class FileSizeHistogram(Struct, frozen=True):
    """Bin i holds the files from boundary i (inclusive) to boundary i + 1 (exclusive) bytes."""

    sorted_bin_boundaries: list[int]
    file_counts: list[int]
    total_bytes: list[int]


class CommitMetrics(Struct, frozen=True):
    """What a writer counted. `num_files` and `num_bytes` are those of the whole table, by its histogram."""

    version: int
    reported_at: int
    reported_by: str
    num_files_added: int | None
    num_bytes_added: int | None
    num_clustered_bytes_added: int | None
    num_files_removed: int | None
    num_bytes_removed: int | None
    num_clustered_bytes_removed: int | None
    num_rows_inserted: int | None
    num_rows_removed: int | None
    num_rows_updated: int | None
    num_files: int | None
    num_bytes: int | None
    file_size_histogram: FileSizeHistogram | None


class TableMetrics(Struct, frozen=True):
    full_name: str
    table_id: str
    reports: list[CommitMetrics]
    next_page_token: str | None
