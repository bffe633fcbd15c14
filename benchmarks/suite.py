"""All cases in one run, on one machine: repeats go round all of them, so that a noisy minute hits all alike."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.postgres import PostgresServer

from benchmarks import cases, database_limit
from benchmarks.cases import Case, chosen
from benchmarks.fill import Filling
from benchmarks.machine import machine_facts, postgres_version
from benchmarks.results import DRIVER, ECHO, ECHO_LARGE, Results, large_of, limit_of, publishing_of
from benchmarks.servers import RunningServer, start_echo, start_responder
from benchmarks.sites import Catalog, Site, copy_database, make_catalog

Progress = Callable[[str], None]
ANY_BODY_BYTES = 3000


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, and for how long."""

    databases: tuple[str, ...]
    groups: tuple[str, ...]
    seconds: float
    warm_up_seconds: float
    repeats: int
    large_tables: int
    large_commits_each: int


@dataclass(frozen=True, slots=True)
class Run:
    site: str
    case: Case
    measure: Callable[[], dict[str, Any]]


def run_suite(plan: Plan, progress: Progress) -> Results:
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder, ExitStack() as stack:
        suite = _Suite(plan, Path(folder), stack, progress)
        runs = suite.ours()
        runs += suite.limits() if runs else []
        return _measure(plan, runs, suite.results, progress)


def run_elsewhere(plan: Plan, site: Site, progress: Progress) -> Results:
    """The cases that need nothing but HTTP, on a server that is there already; and what the driver itself can do."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder, ExitStack() as stack:
        results = Results(machine_facts(Path(folder)), asdict(plan))
        responder = start_responder(ANY_BODY_BYTES, Path(folder))
        stack.callback(responder.stop)
        runs = _runs(site, chosen(cases.SMALL, plan.groups), plan)
        runs += _runs(_bare(DRIVER, responder), cases.LIMITS, plan)
        return _measure(plan, runs, results, progress)


def _measure(plan: Plan, runs: Sequence[Run], results: Results, progress: Progress) -> Results:
    number, begun = 0, time.monotonic()
    runs = in_order(runs)
    for repeat in range(1, plan.repeats + 1):
        for run in runs:
            number += 1
            found = run.measure()
            results.add(run.site, run.case, found)
            told = f"{found['per_second']:,.0f}/s, p99 {found['p99_ms'] or 0:,.1f} ms"
            progress(f"[{number}/{plan.repeats * len(runs)}] repeat {repeat}, {run.site}, {run.case.key}: {told}")
    progress(f"measured in {time.monotonic() - begun:.0f} s; cleaning up")
    return results


def in_order(runs: Sequence[Run]) -> list[Run]:
    """The same case on all sites in a row, and the limits beside the first case of as many clients: a machine is not
    the same from minute to minute, and what is compared should be measured in the same one.
    """
    keys = list(dict.fromkeys(run.case.key for run in runs if run.case not in cases.LIMITS))
    first: dict[int, int] = {}
    for run in runs:
        if run.case not in cases.LIMITS:
            first.setdefault(run.case.clients, keys.index(run.case.key))

    def place(run: Run) -> int:
        if run.case in cases.LIMITS:
            return first.get(run.case.clients, len(keys))
        return keys.index(run.case.key)

    return sorted(runs, key=place)


class _Suite:
    """Sets everything up; whatever it starts is stopped by the stack."""

    def __init__(self, plan: Plan, folder: Path, stack: ExitStack, progress: Progress) -> None:
        self._plan = plan
        self._folder = folder
        self._stack = stack
        self._progress = progress
        self._postgres: PostgresServer | None = None
        self._catalogs: dict[str, Catalog] = {}
        self._limits: dict[str, str] = {}
        self.results = Results(machine_facts(folder), asdict(plan))

    def ours(self) -> list[Run]:
        """The cases on our own servers."""
        runs: list[Run] = []
        for database in self._plan.databases:
            small = self._small_catalog(database)
            runs += _runs(small.site(), chosen((*cases.SMALL, *cases.KEPT), self._plan.groups), self._plan)
            published = chosen(cases.PUBLISHED, self._plan.groups)
            if published:
                publishing = self._catalog(publishing_of(database), database, [])
                runs += _runs(publishing.site(), published, self._plan)
            if "large" in self._plan.groups:
                large = self._large_catalog(database)
                runs += _runs(large.site(), cases.large(self._plan.large_tables), self._plan)
            if "servers" in self._plan.groups and database == "postgresql":
                runs += _runs(small.site(servers=2), cases.SERVERS, self._plan)
        return runs

    def limits(self) -> list[Run]:
        """What the driver, the HTTP stack and the databases can do at all, with answers as large as ours."""
        site = self._catalogs[self._plan.databases[0]].site()
        size = self._body_bytes(site, pending=10)
        runs = _runs(_bare(DRIVER, self._keep(start_responder(size, self._folder))), cases.LIMITS, self._plan)
        runs += _runs(_bare(ECHO, self._keep(start_echo(size, self._folder))), cases.LIMITS, self._plan)
        if {"load", "large"} & set(self._plan.groups):
            large = self._keep(start_echo(self._body_bytes(site, pending=1000), self._folder))
            runs += _runs(_bare(ECHO_LARGE, large), [cases.LIMIT], self._plan)
        for database, url in self._limits.items():
            runs += [_limit_run(database, url, case, self._plan) for case in cases.COMMITS]
        return runs

    def _small_catalog(self, database: str) -> Catalog:
        listed = Filling(cases.LISTED_SCHEMA, "listed", cases.LISTED_TABLES, commits_each=0)
        return self._catalog(database, database, [listed] if "list" in self._plan.groups else [])

    def _large_catalog(self, database: str) -> Catalog:
        plan = self._plan
        filling = Filling("default", "filled", plan.large_tables, commits_each=plan.large_commits_each)
        return self._catalog(large_of(database), database, [filling])

    def _catalog(self, name: str, database: str, fillings: Sequence[Filling]) -> Catalog:
        self._progress(f"making the catalog: {name}")
        postgres = self._start_postgres() if database == "postgresql" else None

        def keep(catalog: Catalog) -> None:
            if name == database and "commit" in self._plan.groups:
                self._limits[database] = copy_database(catalog)

        tables = 1 if self._plan.groups == ("start",) else max(cases.CONCURRENCY)
        publishing = name == publishing_of(database)
        catalog = make_catalog(
            name, self._folder, postgres, tables=tables, fillings=fillings, publishing=publishing, keep=keep
        )
        self._stack.callback(catalog.stop)
        self._catalogs[name] = catalog
        self.results.starts[name] = catalog.starts.described()
        if postgres and catalog.database:
            self.results.machine["postgresql"] = postgres_version(catalog.database)
        return catalog

    def _start_postgres(self) -> PostgresServer:
        if self._postgres is None:
            self._postgres = self._stack.enter_context(PostgresServer())
        return self._postgres

    def _body_bytes(self, site: Site, *, pending: int) -> int:
        return site.drive(cases.load(pending), seconds=0.1, warm_up=0.1)["body_bytes"]

    def _keep(self, server: RunningServer) -> RunningServer:
        self._stack.callback(server.stop)
        return server


def _bare(name: str, server: RunningServer) -> Site:
    return Site(name, [server.url], server_pids=[server.pid])


def _runs(site: Site, wanted: Sequence[Case], plan: Plan) -> list[Run]:
    def measure(case: Case) -> Callable[[], dict[str, Any]]:
        return lambda: site.drive(case, seconds=plan.seconds, warm_up=plan.warm_up_seconds)

    return [Run(site.name, case, measure(case)) for case in wanted]


def _limit_run(database: str, url: str, case: Case, plan: Plan) -> Run:
    def measure() -> dict[str, Any]:
        return database_limit.measure(url, group=case.clients, seconds=plan.seconds)

    return Run(limit_of(database), case, measure)
