"""Commit reports: how many files, bytes and rows a commit brought, and how large the table's files are since then.

They are what the writer has counted. Nothing is derived from them that a table's correctness would hang on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.names import Version
from tidegate.domain.tables import Table

BINS_MAX = 1000
"""The stock client has 95. What is reported is kept, so it must end somewhere."""


@frozen
class FileSizeHistogram:
    """Bin i holds the files from `boundaries[i]` (inclusive) to `boundaries[i + 1]` (exclusive) bytes."""

    boundaries: Sequence[int]
    file_counts: Sequence[int]
    total_bytes: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReport:
    """What is None was not counted. The histogram is that of the whole table, after this version."""

    version: Version | None
    files_added: int | None = None
    bytes_added: int | None = None
    clustered_bytes_added: int | None = None
    files_removed: int | None = None
    bytes_removed: int | None = None
    clustered_bytes_removed: int | None = None
    rows_inserted: int | None = None
    rows_removed: int | None = None
    rows_updated: int | None = None
    histogram: FileSizeHistogram | None = None

    def says_something(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self) if field.name != "version")


@frozen
class KeptReport:
    """A report as it is kept: about this version, told by whom and when."""

    version: Version
    """Where the report names none, the table's latest when it came."""
    reported_at: int
    reported_by: str
    report: CommitReport


def check_report(report: CommitReport) -> None:
    if report.histogram is not None:
        check_histogram(report.histogram)


def check_histogram(histogram: FileSizeHistogram) -> None:
    boundaries = histogram.boundaries
    if not len(boundaries) == len(histogram.file_counts) == len(histogram.total_bytes):
        raise InvalidRequest(
            f"The histogram's lists have {len(boundaries)}, {len(histogram.file_counts)} and "
            f"{len(histogram.total_bytes)} entries. Give sorted-bin-boundaries, file-counts and total-bytes one length."
        )
    if not boundaries or boundaries[0] != 0:
        raise InvalidRequest("sorted-bin-boundaries must start with 0.")
    if any(low >= high for low, high in pairwise(boundaries)):
        raise InvalidRequest("sorted-bin-boundaries must rise.")
    if len(boundaries) > BINS_MAX:
        raise InvalidRequest(f"The histogram has {len(boundaries)} bins. Send at most {BINS_MAX}.")
    if max(sum(histogram.file_counts), sum(histogram.total_bytes)) >= 2**63:
        raise InvalidRequest("The files or bytes of the histogram are more than 64 bits can count together.")


def reported_version(report: CommitReport, table: Table) -> Version:
    """Which version the report is about; InvalidRequest if the table has none such."""
    if report.version is None:
        return table.latest
    # How far the log of an external table has come is not decided here.
    if table.decided_here and report.version > table.latest:
        raise InvalidRequest(
            f"The report is about version {report.version} of {table.name}, but the latest version is {table.latest}. "
            "Report on commits that were ratified."
        )
    return report.version
