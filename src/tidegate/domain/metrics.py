"""Commit reports: how many files, bytes and rows a commit brought, as its writer counted them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.domain.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class FileSizeHistogram:
    """Bin i holds the files from `boundaries[i]` (inclusive) to `boundaries[i + 1]` (exclusive) bytes."""

    boundaries: Sequence[int]
    file_counts: Sequence[int]
    total_bytes: Sequence[int]
    commit_version: int | None


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
