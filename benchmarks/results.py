"""What was measured: every repeat of every case, and their medians."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.cases import Case

ECHO = "echo limit"
ECHO_LARGE = "echo limit, 1000 pending"
DRIVER = "driver"


def limit_of(database: str) -> str:
    return f"{database} limit"


def large_of(database: str) -> str:
    return f"{database}, large catalog"


def publishing_of(database: str) -> str:
    return f"{database}, publishing"


@dataclass(frozen=True, slots=True)
class Result:
    """One case on one site. What is not measured there is None."""

    site: str
    case: Case
    repeats: Sequence[Mapping[str, Any]]

    @property
    def per_second(self) -> float:
        return statistics.median(repeat["per_second"] for repeat in self.repeats)

    def median(self, field: str) -> float | None:
        values = [repeat[field] for repeat in self.repeats if repeat.get(field) is not None]
        return statistics.median(values) if values else None

    def cost_ms(self, role: str) -> float | None:
        """CPU milliseconds of the server or the database for each thing done."""
        field = f"{role}_cpu_seconds"
        costs = [1000 * repeat[field] / max(1, repeat["count"]) for repeat in self.repeats if field in repeat]
        return statistics.median(costs) if costs else None

    def each(self, what: str) -> float | None:
        """How many requests, files or syncs a commit took its writer."""
        spent = [repeat["spent"] for repeat in self.repeats if repeat.get("spent")]
        return statistics.median(one.get(what, 0) / one["commits"] for one in spent) if spent else None

    @property
    def shares(self) -> tuple[float, float]:
        """What the least and the most successful client got, each as a share of the mean; the median of the repeats."""
        fewest, most = [], []
        for repeat in self.repeats:
            mean = max(statistics.mean(repeat["done_by_client"]), 1e-9)
            fewest.append(min(repeat["done_by_client"]) / mean)
            most.append(max(repeat["done_by_client"]) / mean)
        return statistics.median(fewest), statistics.median(most)

    def described(self) -> dict[str, Any]:
        return {
            "site": self.site,
            "case": self.case.key,
            **asdict(self.case),
            "per_second": self.per_second,
            "p50_ms": self.median("p50_ms"),
            "p99_ms": self.median("p99_ms"),
            "server_cpu_ms_each": self.cost_ms("server"),
            "database_cpu_ms_each": self.cost_ms("database"),
            "server_rss_bytes": self.median("server_rss_bytes"),
            "driver_cpu_share": self.median("driver_cpu_share"),
            "repeats": list(self.repeats),
        }


@dataclass(slots=True)
class Results:
    machine: dict[str, Any]
    settings: dict[str, Any]
    found: dict[tuple[str, str], Result] = field(default_factory=dict)
    starts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, site: str, case: Case, repeat: Mapping[str, Any]) -> None:
        known = self.found.get((site, case.key))
        self.found[site, case.key] = Result(site, case, [*(known.repeats if known else ()), repeat])

    def get(self, site: str, case: Case) -> Result | None:
        return self.found.get((site, case.key))

    def rate(self, site: str, case: Case) -> float | None:
        result = self.get(site, case)
        return None if result is None else result.per_second

    def rss_max(self, site: str) -> int | None:
        """The most memory that a server of the site was seen with."""
        seen = [
            repeat["server_rss_bytes"]
            for result in self.found.values()
            if result.site == site
            for repeat in result.repeats
            if "server_rss_bytes" in repeat
        ]
        return max(seen, default=None)
