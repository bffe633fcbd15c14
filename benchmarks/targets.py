"""What must be reached, as ratios where machines differ; each with what was measured and whether that is enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import cases
from benchmarks.figures import number, share
from benchmarks.results import ECHO, ECHO_LARGE, Results, large_of, publishing_of

STARVING_SHARE = 0.25
"""A writer that wins less than this share of what is fair is starving; pure chance leaves the unluckiest with 0.6."""


@dataclass(frozen=True, slots=True)
class Target:
    what: str
    measured: float
    wanted: float
    unit: str
    """'%' for a share, else what the number counts."""
    at_least: bool = True

    @property
    def reached(self) -> bool:
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted

    @property
    def verdict(self) -> str:
        return "reached" if self.reached else "not reached"

    def shown(self, value: float) -> str:
        return share(value, 1) if self.unit == "%" else f"{number(value)} {self.unit}"


def targets(results: Results) -> list[Target]:
    """Those of which everything was measured."""
    judged = (_commits, _guards, _inline, _loads, _contention, _size, _start)
    return [target for judge in judged for target in judge(results)]


def _share(what: str, part: float | None, whole: float | None, wanted: float) -> Iterator[Target]:
    if part is not None and whole:
        yield Target(what, part / whole, wanted, "%")


def _commits(results: Results) -> Iterator[Target]:
    commit, echo = cases.commit(), results.rate(ECHO, cases.LIMIT)
    sqlite = results.get("sqlite", commit)
    if sqlite is not None:
        yield from _share("commit, 32 clients, SQLite: share of the echo limit", sqlite.per_second, echo, 0.25)
        yield from _share("the same: the goal beyond", sqlite.per_second, echo, 0.33)
        p50, p99 = sqlite.median("p50_ms"), sqlite.median("p99_ms")
        if p50 and p99:
            yield Target("commit, 32 clients, SQLite: p99 over p50", p99 / p50, 5, "times", at_least=False)
    one = results.rate("postgresql", commit)
    yield from _share("commit, 32 clients, PostgreSQL: share of the echo limit", one, echo, 0.12)
    two = results.rate("postgresql, 2 servers", commit)
    yield from _share("commit: two servers on one PostgreSQL, against one", two, one, 1.0)


def _guards(results: Results) -> Iterator[Target]:
    for database in ("sqlite", "postgresql"):
        admin, granted = (results.rate(database, case) for case in (cases.BY_ADMIN, cases.GRANTED))
        yield from _share(f"commit, 32 clients, {database}: granted rights against the admin's", granted, admin, 0.90)


def _loads(results: Results) -> Iterator[Target]:
    for database in ("sqlite", "postgresql"):
        few, many = (results.rate(database, cases.load(pending)) for pending in (10, 1000))
        what = f"load, 10 pending, {database}: share of the echo limit"
        yield from _share(what, few, results.rate(ECHO, cases.LIMIT), 0.60)
        what = f"load, 1000 pending, {database}: share of an echo of as many bytes"
        yield from _share(what, many, results.rate(ECHO_LARGE, cases.LIMIT), 0.60)


def _contention(results: Results) -> Iterator[Target]:
    for database in ("sqlite", "postgresql"):
        result = results.get(database, cases.CONTEND)
        if result is None:
            continue
        yield Target(f"32 contend, {database}: wins", result.per_second, 600, "a second")
        p99 = result.median("p99_ms")
        if p99 is not None:
            yield Target(f"32 contend, {database}: p99 of a win", p99, 250, "ms", at_least=False)
        what = f"32 contend, {database}: wins of the unluckiest writer, as a share of what is fair"
        yield Target(what, result.shares[0], STARVING_SHARE, "%")


def _inline(results: Results) -> Iterator[Target]:
    for database in ("sqlite", "postgresql"):
        publishing = publishing_of(database)
        staged, inline = (results.rate(publishing, cases.whole(how, 1)) for how in ("staged", "inline"))
        if staged and inline:
            yield Target(f"whole commit, 1 client, {database}: inline against staged", inline / staged, 1.5, "times")
        for site, case in ((database, cases.APPEND), (publishing, cases.APPEND_PUBLISHED)):
            rate = results.rate(site, case)
            if rate is not None:
                yield Target(f"{case.key}, {database}", rate, 2000, "a second")


def _size(results: Results) -> Iterator[Target]:
    for database in ("sqlite", "postgresql"):
        for case in (cases.commit(), cases.load(10)):
            small, large = results.rate(database, case), results.rate(large_of(database), case)
            yield from _share(f"{case.key}, {database}: the large catalog against the small one", large, small, 0.85)


def _start(results: Results) -> Iterator[Target]:
    for site, starts in results.starts.items():
        yield Target(f"start, {site}: to the first 200", starts["again_seconds"], 1, "s", at_least=False)
        yield Target(f"start, {site}: idle memory", starts["idle_rss_bytes"] / 1e6, 120, "MB", at_least=False)
