"""Drives one workload against any server of Delta REST v1.0 whose tables lie on a local disk.

    python -m benchmarks.drive commit --url http://127.0.0.1:8080 --token="$(cat ~/tidegate/admin.token)" --clients 32

Prints one JSON object. Whatever is unexpected is told on stderr and ends with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.arguments import positive
from benchmarks.driver import Driver, DriverError, Lap
from benchmarks.guarded_workloads import GUARDED_WORKLOADS
from benchmarks.inline_workloads import INLINE_WORKLOADS
from benchmarks.processes import Cost, cost
from benchmarks.samples import Samples, summarize
from benchmarks.wire import Target
from benchmarks.workloads import WORKLOADS, Options, Record, Workload

TOKEN_VARIABLE = "BENCHMARK_TOKEN"
ALL_WORKLOADS = WORKLOADS | INLINE_WORKLOADS | GUARDED_WORKLOADS
_ABOUT = "Drives one workload against any server of Delta REST v1.0 whose tables lie on a local disk."


@dataclass(frozen=True, slots=True)
class Timing:
    seconds: float
    warm_up_seconds: float


@dataclass(frozen=True, slots=True)
class Watched:
    """Processes whose cost is reported, by their ids."""

    server: Sequence[int] = ()
    database: Sequence[int] = ()

    def cost(self) -> dict[str, Cost]:
        return {role: cost(pids) for role, pids in asdict(self).items() if pids}


def drive(name: str, target: Target, options: Options, timing: Timing, watched: Watched) -> dict[str, Any]:
    """Prepares, warms up and measures. What the warm-up did also tells how much to have ready for the clock."""
    workload = ALL_WORKLOADS[name](Driver(target.addresses, options.clients), target, options)
    workload.prepare()
    try:
        warm = _measure(workload, timing.warm_up_seconds, None, Watched())
        measured = _measure(workload, timing.seconds, warm["per_second"], watched)
        workload.verify()
    finally:
        workload.finish()
    return {"workload": name, **asdict(options), "body_bytes": workload.body_bytes, "warm_up": warm, **measured}


def _measure(workload: Workload, seconds: float, per_second: float | None, watched: Watched) -> dict[str, Any]:
    record = {kind: Samples() for kind in (*workload.headline, *workload.details)}
    workload.done = [0] * workload.options.clients
    workload.spent.clear()
    steps = workload.steps(record, seconds=seconds, per_second=per_second)
    before = watched.cost()
    lap = workload.driver.lap(steps, seconds=seconds)
    after = watched.cost()
    return {
        "seconds": lap.seconds,
        **_summarize(workload, record, lap),
        **({"spent": dict(workload.spent)} if workload.spent else {}),
        "driver_cpu_share": lap.cpu_share,
        **{f"{role}_cpu_seconds": after[role].cpu_seconds - before[role].cpu_seconds for role in after},
        **{f"{role}_rss_bytes": after[role].rss_bytes for role in after},
    }


def _summarize(workload: Workload, record: Record, lap: Lap) -> dict[str, Any]:
    took = {kind: samples.until(lap.ended) for kind, samples in record.items()}
    headline = [seconds for kind in workload.headline for seconds in took[kind]]
    return {
        **summarize(headline, seconds=lap.seconds, waiting=workload.waiting(lap.ended)),
        "kinds": {kind: summarize(values, seconds=lap.seconds) for kind, values in sorted(took.items())},
        "done_by_client": workload.done,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    target = Target(given.url, given.token, given.catalog, given.schema)
    options = Options(clients=given.clients, tables=given.tables, pending=given.pending)
    timing = Timing(seconds=given.seconds, warm_up_seconds=given.warm_up)
    watched = Watched(server=given.server_pid, database=given.database_pid)
    try:
        result = drive(given.workload, target, options, timing, watched)
    except (DriverError, OSError, ValueError) as error:
        print(f"{given.workload} on {' and '.join(given.url)} failed. {error}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drive", description=_ABOUT)
    parser.add_argument("workload", choices=sorted(ALL_WORKLOADS))
    parser.add_argument("--url", action="append", required=True, help="base URL; several: clients take turns")
    parser.add_argument("--token", default=os.environ.get(TOKEN_VARIABLE, ""), help=f"default: ${TOKEN_VARIABLE}")
    parser.add_argument("--catalog", default="main")
    parser.add_argument("--schema", default="default")
    parser.add_argument("--clients", type=positive(int), default=32, help="how many wait for an answer at any time")
    parser.add_argument("--tables", type=positive(int), default=64, help="to work on; as many as clients at least")
    parser.add_argument("--pending", type=int, default=0, help="load: unpublished commits of each table")
    parser.add_argument("--seconds", type=positive(float), default=2.0)
    parser.add_argument("--warm-up", type=positive(float), default=0.5, help="seconds before the clock starts")
    parser.add_argument("--server-pid", type=int, action="append", default=[], help="report this process's CPU, memory")
    parser.add_argument("--database-pid", type=int, action="append", default=[], help="report this process's CPU")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
