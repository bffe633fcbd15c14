"""The metrics of a table, as Tidegate's own API shows them: files, bytes and their histogram over time."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.metrics import KeptReport
from tidegate.domain.names import parse_table_name
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.metrics import read_metrics
from tidegate.services.paging import PageRequest
from tidegate.wire import tidegate as wire


async def get(call: Call) -> wire.TableMetrics:
    query: wire.MetricsQuery = call.query
    name = parse_table_name(call.path["full_name"])
    metrics = await read_metrics(call.env, call.caller, name, PageRequest(query.max_results, query.page_token))
    return wire.TableMetrics(
        full_name=str(metrics.name),
        table_id=metrics.table_id,
        reports=[_from_kept(kept) for kept in metrics.reports.items],
        next_page_token=metrics.reports.next_token,
    )


def _from_kept(kept: KeptReport) -> wire.CommitMetrics:
    report, sizes = kept.report, kept.report.histogram
    return wire.CommitMetrics(
        version=kept.version,
        reported_at=kept.reported_at,
        reported_by=kept.reported_by,
        num_files_added=report.files_added,
        num_bytes_added=report.bytes_added,
        num_clustered_bytes_added=report.clustered_bytes_added,
        num_files_removed=report.files_removed,
        num_bytes_removed=report.bytes_removed,
        num_clustered_bytes_removed=report.clustered_bytes_removed,
        num_rows_inserted=report.rows_inserted,
        num_rows_removed=report.rows_removed,
        num_rows_updated=report.rows_updated,
        num_files=None if sizes is None else sum(sizes.file_counts),
        num_bytes=None if sizes is None else sum(sizes.total_bytes),
        file_size_histogram=None
        if sizes is None
        else wire.FileSizeHistogram(list(sizes.boundaries), list(sizes.file_counts), list(sizes.total_bytes)),
    )


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        "/tables/{full_name}/metrics",
        "getMetrics",
        "What writers reported of a table's commits: files, bytes, rows, file sizes. Newest version first, in pages.",
        get,
        query=wire.MetricsQuery,
        answer=wire.TableMetrics,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
]
