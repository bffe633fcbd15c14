"""Numbers that a server keeps of itself: counters, gauges, histograms.

Plain Python, because they are counted with every request: what is counted is found once and kept, and counting it is
one addition.

    won = measures.counter("tidegate_proposals_total", "Proposals by outcome.", "outcome").at("ratified")
    won.value += 1

Additions are not locked. Each number has one thread that counts it, or several that take turns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidegate.domain.frozen import frozen

SERIES_MAX = 2_000
"""Of one family. Labels are from small fixed sets; should one not be, what comes late is counted as `other`."""
OTHER = "other"

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds for how long something took."""
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
"""Bounds for how many there were."""

Labels = tuple[tuple[str, str], ...]
S = TypeVar("S")


@frozen
class Sample:
    """One line for whoever collects the numbers: `suffix` is what a histogram adds to its name."""

    suffix: str
    labels: Labels
    value: float


@frozen
class Family:
    """Everything of one name."""

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


class Number:
    """`value` is for whoever counts."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def samples(self, labels: Labels) -> Iterable[Sample]:
        yield Sample("", labels, self.value)


class Histogram:
    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def samples(self, labels: Labels) -> Iterable[Sample]:
        below = 0
        for bound, count in zip((*self._bounds, None), self._counts, strict=True):
            below += count
            yield Sample("_bucket", (*labels, ("le", "+Inf" if bound is None else f"{bound:g}")), below)
        yield Sample("_sum", labels, self._sum)
        yield Sample("_count", labels, below)


@dataclass(slots=True)
class Numbers:
    """A family of counters or gauges: `at` gives the one for these values of the labels."""

    names: tuple[str, ...]
    _series: dict[tuple[str, ...], Number]

    def at(self, *values: str) -> Number:
        found = self._series.get(values)
        if found is None:
            found = _add(self._series, self.names, values, Number)
        return found

    def samples(self) -> list[Sample]:
        return _samples(self._series, self.names)

    @property
    def total(self) -> float:
        return sum(number.value for number in list(self._series.values()))


@dataclass(slots=True)
class Histograms:
    names: tuple[str, ...]
    bounds: Sequence[float]
    _series: dict[tuple[str, ...], Histogram]

    def at(self, *values: str) -> Histogram:
        found = self._series.get(values)
        if found is None:
            found = _add(self._series, self.names, values, lambda: Histogram(self.bounds))
        return found

    def samples(self) -> list[Sample]:
        return _samples(self._series, self.names)


class Measures:
    """All numbers of one server, by name."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, str, Callable[[], Sequence[Sample]]]] = {}
        self._labels: dict[str, tuple[str, ...]] = {}

    def counter(self, name: str, help: str, *labels: str) -> Numbers:
        """One without labels is there from the start, at zero."""
        return self._numbers(name, "counter", help, labels)

    def gauge(self, name: str, help: str, *labels: str) -> Numbers:
        return self._numbers(name, "gauge", help, labels)

    def gauge_of(self, name: str, help: str, read: Callable[[], float], *, kind: str = "gauge") -> None:
        """One that is known elsewhere, and read when somebody asks."""
        self._add(name, kind, help, lambda: [Sample("", (), read())])

    def histogram(self, name: str, help: str, bounds: Sequence[float], *labels: str) -> Histograms:
        family = Histograms(labels, bounds, {})
        if not labels:
            family.at()
        self._add(name, "histogram", help, family.samples, labels)
        return family

    def families(self) -> list[Family]:
        return [Family(name, kind, help, read()) for name, (kind, help, read) in self._families.items()]

    def _numbers(self, name: str, kind: str, help: str, labels: tuple[str, ...]) -> Numbers:
        family = Numbers(labels, {})
        if not labels:
            family.at()
        self._add(name, kind, help, family.samples, labels)
        return family

    def labels_of(self, name: str) -> tuple[str, ...]:
        return self._labels[name]

    def _add(
        self, name: str, kind: str, help: str, read: Callable[[], Sequence[Sample]], labels: tuple[str, ...] = ()
    ) -> None:
        if name in self._families:
            raise ValueError(f"there is a {name} already")
        self._families[name] = (kind, help, read)
        self._labels[name] = labels


def _add(series: dict[tuple[str, ...], S], names: tuple[str, ...], values: tuple[str, ...], make: Callable[[], S]) -> S:
    if len(names) != len(values):
        raise ValueError(f"labels {names} cannot have the values {values}")
    if len(series) >= SERIES_MAX:
        values = (OTHER,) * len(names)
    return series.setdefault(values, make())


def _samples(
    series: dict[tuple[str, ...], Number] | dict[tuple[str, ...], Histogram], names: tuple[str, ...]
) -> list[Sample]:
    # A copy: another thread may add to it meanwhile.
    return [
        sample
        for values, counted in sorted(series.copy().items())
        for sample in counted.samples(tuple(zip(names, values, strict=True)))
    ]
