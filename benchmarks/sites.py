"""Where cases are driven: a catalog of a certain size on a certain database, and the servers in front of it.

A catalog is made in two starts: on the first, the tables that the cases commit to are created through the API; then,
with the server stopped, the database is filled with copies of them and put aside for the database limit.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy.engine import make_url
from tests.postgres import PostgresServer

from benchmarks.cases import Case
from benchmarks.drive import TOKEN_VARIABLE
from benchmarks.fill import Filling, fill, settle
from benchmarks.processes import cost
from benchmarks.servers import RunningServer, start_tidegate

RESTARTS = 3
TEMPLATE = "commit_000"


class CaseFailed(Exception):
    """A server answered what it should not have; there is nothing to report."""


@dataclass(frozen=True, slots=True)
class Site:
    """`server_pids` and `database_pids` are the processes whose cost is part of the report, where they are known."""

    name: str
    urls: Sequence[str]
    token: str = ""
    catalog: str = "main"
    server_pids: Sequence[int] = ()
    database_pids: Sequence[int] = ()

    def drive(self, case: Case, *, seconds: float, warm_up: float) -> dict[str, Any]:
        """Runs the driver in a process of its own."""
        command = [sys.executable, "-m", "benchmarks.drive", case.workload]
        command += ["--catalog", self.catalog, "--schema", case.schema]
        command += ["--clients", str(case.clients), "--tables", str(case.tables), "--pending", str(case.pending)]
        command += ["--seconds", str(seconds), "--warm-up", str(warm_up)]
        for url in self.urls:
            command += ["--url", url]
        for pid in self.server_pids:
            command += ["--server-pid", str(pid)]
        for pid in self.database_pids:
            command += ["--database-pid", str(pid)]
        ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, TOKEN_VARIABLE: self.token})
        if ended.returncode != 0:
            raise CaseFailed(f"{self.name}, {case.key}: {ended.stderr.strip()}")
        return json.loads(ended.stdout)


@dataclass(slots=True)
class Starts:
    """How long a server takes to its first 200, and what it weighs then."""

    first_seconds: float
    again_seconds: list[float] = field(default_factory=list)
    idle_rss_bytes: int = 0

    def described(self) -> dict[str, Any]:
        return {
            "first_seconds": self.first_seconds,
            "again_seconds": statistics.median(self.again_seconds),
            "idle_rss_bytes": self.idle_rss_bytes,
        }


@dataclass(slots=True)
class Catalog:
    """A home and a database, with a server on it while the cases run."""

    name: str
    home: Path
    database: str | None
    """None: the embedded one, in the home."""
    postgres: PostgresServer | None
    publishing: bool
    """Whether its servers publish."""
    starts: Starts
    servers: list[RunningServer] = field(default_factory=list)

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.home}/catalog.db"

    def site(self, servers: int = 1) -> Site:
        """With so many of its servers, which are started when they are first wanted."""
        while len(self.servers) < servers:
            self.servers.append(self.start())
        used = self.servers[:servers]
        return Site(
            name=self.name if servers == 1 else f"{self.name}, {servers} servers",
            urls=[server.url for server in used],
            token=(self.home / "admin.token").read_text().strip(),
            server_pids=[server.pid for server in used],
            database_pids=[self.postgres.pid] if self.postgres else [],
        )

    def start(self) -> RunningServer:
        return start_tidegate(self.home, self.database, publishing=self.publishing)

    def stop(self) -> None:
        for server in self.servers:
            server.stop()
        self.servers = []


def make_catalog(
    name: str,
    folder: Path,
    postgres: PostgresServer | None,
    *,
    tables: int,
    fillings: Sequence[Filling],
    publishing: bool,
    keep: Callable[[Catalog], None],
) -> Catalog:
    """A catalog with so many tables, filled with more, and one server on it. `keep` sees it between the two starts,
    while nobody uses it."""
    home = folder / name.replace(",", "").replace(" ", "-")
    database = postgres.create_database() if postgres else None
    first = start_tidegate(home, database, publishing=publishing)
    catalog = Catalog(name, home, database, postgres, publishing, Starts(first.start_seconds), [first])
    with ExitStack() as undo:
        undo.callback(catalog.stop)
        # With a few commits, so that there is something to copy.
        seed = Case("setup", "set-up", "commit", clients=min(8, tables), tables=tables)
        catalog.site().drive(seed, seconds=0.2, warm_up=0.1)
        catalog.stop()
        keep(catalog)
        for filling in fillings:
            fill(catalog.database_url, TEMPLATE, filling)
        settle(catalog.database_url)
        for _ in range(RESTARTS):
            catalog.stop()
            catalog.servers = [catalog.start()]
            catalog.starts.again_seconds.append(catalog.servers[0].start_seconds)
        catalog.starts.idle_rss_bytes = cost(catalog.site().server_pids).rss_bytes
        undo.pop_all()
    return catalog


def copy_database(catalog: Catalog) -> str:
    """The URL of a copy of the database, on which no server will ever run."""
    if catalog.database is None:
        copy = catalog.home / "limit.db"
        shutil.copy(catalog.home / "catalog.db", copy)
        return f"sqlite:///{copy}"
    url = make_url(catalog.database)
    copied = url.set(database=f"{url.database}_limit")
    administration = url.set(drivername="postgresql", database="postgres").render_as_string()
    with psycopg.connect(administration, autocommit=True) as connection:
        names = [sql.Identifier(name or "") for name in (copied.database, url.database)]
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
    return copied.render_as_string()
