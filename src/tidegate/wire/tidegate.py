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


class Alarm(Struct, frozen=True):
    """The log does not say what was ratified as this version. Readers get the ratified commit; nothing after it is
    published until somebody has looked.
    """

    version: int
    reason: str
    message: str
    raised_at: int


class Timeline(Struct, frozen=True):
    full_name: str
    table_id: str
    table_type: str
    latest_version: int | None
    verified_version: int | None
    conflicts: int
    replays: int
    since: int
    alarms: list[Alarm]
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


class StatusServer(Struct, frozen=True):
    """`silent`: it was not heard of for a while."""

    id: str
    host: str
    pid: int
    url: str
    version: str
    started_at: int
    seen_at: int
    silent: bool
    requests_per_second: float
    commits_per_second: float
    conflicts_per_second: float


class HotTable(Struct, frozen=True):
    full_name: str
    commits_per_second: float
    loads_per_second: float


class Unpublished(Struct, frozen=True):
    """Ratified commits that wait to be published; `largest`: of one table; `seconds`: the wait of the oldest."""

    tables: int
    commits: int
    largest: int
    seconds: float


class StandingAlarm(Struct, frozen=True):
    full_name: str
    version: int
    reason: str
    message: str
    raised_at: int


class Status(Struct, frozen=True):
    """Rates are those of all servers that are heard of, over the time between their last two heartbeats."""

    at: int
    servers: list[StatusServer]
    requests_per_second: float
    commits_per_second: float
    conflicts_per_second: float
    unpublished: Unpublished
    hottest_tables: list[HotTable]
    alarms: int
    newest_alarms: list[StandingAlarm]
