"""Commit reports: the shape of the histogram of file sizes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.metrics import FileSizeHistogram, check_histogram


def histogram(
    boundaries: list[int], file_counts: list[int] | None = None, total_bytes: list[int] | None = None
) -> FileSizeHistogram:
    zeros = [0] * len(boundaries)
    return FileSizeHistogram(
        boundaries=boundaries,
        file_counts=zeros if file_counts is None else file_counts,
        total_bytes=zeros if total_bytes is None else total_bytes,
        commit_version=None,
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
