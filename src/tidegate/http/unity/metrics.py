"""Commit reports by specification v0.1.0."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.metrics import CommitReport, FileSizeHistogram
from tidegate.domain.names import Version
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.face import UNITY
from tidegate.services.report_metrics import report_metrics_by_id
from tidegate.wire import unity_commits as wire
from tidegate.wire.unity import Empty


async def write(call: Call) -> Empty:
    body: wire.WriteMetrics = call.body
    sent = None if body.report is None else body.report.commit_report
    await report_metrics_by_id(
        call.env,
        call.caller,
        table_id=body.table_id,
        location=body.table_uri,
        report=None if sent is None else _to_report(sent),
    )
    return Empty()


def _to_report(sent: wire.CommitReport) -> CommitReport:
    return CommitReport(
        version=Version(sent.commit_version),
        files_added=sent.num_files_added,
        bytes_added=sent.num_bytes_added,
        clustered_bytes_added=sent.num_clustered_bytes_added,
        files_removed=sent.num_files_removed,
        bytes_removed=sent.num_bytes_removed,
        clustered_bytes_removed=sent.num_clustered_bytes_removed,
        rows_inserted=sent.num_rows_inserted,
        rows_removed=sent.num_rows_removed,
        rows_updated=sent.num_rows_updated,
        histogram=None if sent.file_size_histogram is None else _to_histogram(sent.file_size_histogram),
    )


def _to_histogram(sent: wire.Histogram) -> FileSizeHistogram | None:
    lists = (sent.sorted_bin_boundaries, sent.file_counts, sent.total_bytes)
    if lists == (None, None, None):
        return None
    boundaries, file_counts, total_bytes = (one or [] for one in lists)
    return FileSizeHistogram(boundaries, file_counts, total_bytes)


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        UNITY,
        "POST",
        "/delta/metrics",
        "writeMetrics",
        "Tell what a commit did to the table's files.",
        write,
        body=wire.WriteMetrics,
        answer=Empty,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
]
