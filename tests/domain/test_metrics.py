"""Commit reports: the shape of the histogram of file sizes, and which version a report is about."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.builders import external_table, managed_table
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.metrics import BINS_MAX, CommitReport, FileSizeHistogram, check_histogram, reported_version
from tidegate.domain.names import Version


def histogram(
    boundaries: list[int], file_counts: list[int] | None = None, total_bytes: list[int] | None = None
) -> FileSizeHistogram:
    zeros = [0] * len(boundaries)
    return FileSizeHistogram(
        boundaries=boundaries,
        file_counts=zeros if file_counts is None else file_counts,
        total_bytes=zeros if total_bytes is None else total_bytes,
    )


@given(higher=st.sets(st.integers(1, 2**63 - 1), max_size=10))
@settings(deadline=None)
def test_boundaries_that_start_with_0_and_rise_are_accepted(higher: set[int]) -> None:
    check_histogram(histogram([0, *sorted(higher)]))


@pytest.mark.parametrize(
    "lists",
    [([0, 10], [1], [1, 1]), ([0, 10], [1, 1], [1]), ([0], [1, 1], [1, 1]), ([0], [], []), ([], [1], [])],
)
def test_lists_of_different_lengths_are_refused_with_their_lengths(
    lists: tuple[list[int], list[int], list[int]],
) -> None:
    boundaries, file_counts, total_bytes = lists
    lengths = f"{len(boundaries)}, {len(file_counts)} and {len(total_bytes)} entries"
    with pytest.raises(InvalidRequest) as refused:
        check_histogram(histogram(boundaries, file_counts, total_bytes))
    assert lengths in refused.value.message
    assert "Give sorted-bin-boundaries, file-counts and total-bytes one length" in refused.value.message


@pytest.mark.parametrize("boundaries", [[], [1], [1, 2], [-1, 0]])
def test_boundaries_that_do_not_start_with_0_are_refused(boundaries: list[int]) -> None:
    with pytest.raises(InvalidRequest, match="sorted-bin-boundaries must start with 0"):
        check_histogram(histogram(boundaries))


@pytest.mark.parametrize("boundaries", [[0, 0], [0, 5, 5], [0, 5, 4], [0, 1, 2, 1]])
def test_boundaries_that_do_not_rise_are_refused(boundaries: list[int]) -> None:
    with pytest.raises(InvalidRequest, match="sorted-bin-boundaries must rise"):
        check_histogram(histogram(boundaries))


def test_a_histogram_with_too_many_bins_is_refused() -> None:
    check_histogram(histogram(list(range(BINS_MAX))))
    with pytest.raises(InvalidRequest, match=f"at most {BINS_MAX}"):
        check_histogram(histogram(list(range(BINS_MAX + 1))))


@pytest.mark.parametrize("counts", [{"file_counts": [2**62, 2**62]}, {"total_bytes": [2**63 - 1, 1]}], ids=str)
def test_sums_that_nobody_could_be_shown_are_refused(counts: dict[str, list[int]]) -> None:
    with pytest.raises(InvalidRequest, match="64 bits"):
        check_histogram(histogram([0, 10], **counts))


def test_a_report_is_about_its_version_or_else_about_the_latest() -> None:
    table = managed_table(latest=4)
    assert reported_version(CommitReport(version=None), table) == 4
    assert [reported_version(CommitReport(version=Version(v)), table) for v in (0, 3, 4)] == [0, 3, 4]


def test_a_report_about_a_version_that_never_was_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="the latest version is 4"):
        reported_version(CommitReport(version=Version(5)), managed_table(latest=4))
    assert reported_version(CommitReport(version=Version(5)), external_table()) == 5, "its log is somebody else's"


def test_a_report_without_a_number_says_nothing() -> None:
    assert not CommitReport(version=Version(3)).says_something()
    assert CommitReport(version=None, rows_updated=0).says_something()
