"""How long things took: kept as plain numbers while the clock runs, understood afterwards."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from time import perf_counter


class Samples:
    """When each thing of one kind was done, and how long it took, in seconds."""

    __slots__ = ("ended", "took")

    def __init__(self) -> None:
        self.ended = array("d")
        self.took = array("d")

    def add(self, started: float) -> None:
        """What began at `started` is done now."""
        now = perf_counter()
        self.ended.append(now)
        self.took.append(now - started)

    def until(self, end: float) -> list[float]:
        """What was done by then: the answers that are only waited for after the clock has stopped do not count."""
        return [took for ended, took in zip(self.ended, self.took, strict=True) if ended <= end]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summarize(took: Sequence[float], *, seconds: float, waiting: Sequence[float] = ()) -> dict[str, float | None]:
    """`waiting` is how long those have waited who had not got it when the clock stopped. Whoever has waited longer than
    nearly all that got it counts for the percentiles: else one who never gets it would not show."""
    long = percentile(took, 0.99) if took else 0
    took_or_waited = [*took, *(waited for waited in waiting if waited > long)]
    return {
        "count": len(took),
        "per_second": len(took) / seconds,
        "p50_ms": 1000 * percentile(took_or_waited, 0.5) if took_or_waited else None,
        "p99_ms": 1000 * percentile(took_or_waited, 0.99) if took_or_waited else None,
        "max_ms": 1000 * max(took_or_waited) if took_or_waited else None,
    }
