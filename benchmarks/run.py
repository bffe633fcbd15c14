"""`make bench`: commits and loads per second, as a share of what this machine can do at all.

In one run, on one machine, for the embedded database:

    sync limit    one-row transactions per second, each synced, without a server: the most without groups
    echo limit    /health per second over the same connections: what HTTP alone costs
    commits       ratified per second over 16 tables, real staged files
    loads         per second, with 10 unpublished commits

Machines are noisy: trust the ratios, not the numbers.
"""

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlparse

from tests.lake import Lake, LakeTable, add_commit
from tests.servers import ServerProcess

CLIENTS = int(os.environ.get("BENCH_CLIENTS", "16"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "3"))
REPEATS = int(os.environ.get("BENCH_REPEATS", "3"))

Step = Callable[[http.client.HTTPConnection], None]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
        server = ServerProcess(Path(folder) / "home").start()
        try:
            report(measure_all(server, Path(folder)))
        finally:
            server.stop()
    return 0


def measure_all(server: ServerProcess, folder: Path) -> dict[str, float]:
    with server.http() as client:
        lake = Lake(client)
        committing = [lake.new_table(f"bench_{number}") for number in range(CLIENTS)]
        loaded = lake.new_table("bench_load")
        for version in range(1, 11):
            loaded.commit(version)
    steps: dict[str, list[Step]] = {
        "echo limit": [getter("/health", {}) for _ in range(CLIENTS)],
        "commits": [committer(server, table) for table in committing],
        "loads": [getter(f"{loaded.lake.tables_url()}/bench_load", authorized(server)) for _ in range(CLIENTS)],
    }
    rates: dict[str, list[float]] = {"sync limit": [], **{name: [] for name in steps}}
    for repeat in range(1, REPEATS + 1):
        print(f"repeat {repeat} of {REPEATS}", file=sys.stderr)
        rates["sync limit"].append(sync_limit(folder / f"limit{repeat}.db"))
        for name, clients in steps.items():
            rates[name].append(drive(server.url, clients))
    return {name: statistics.median(found) for name, found in rates.items()}


def report(rates: dict[str, float]) -> None:
    print(f"\n{CLIENTS} clients, {SECONDS:g} s a case, median of {REPEATS}\n")
    print("| case | per second | of its limit |\n|---|---:|---:|")
    for name, limit in (("sync limit", None), ("echo limit", None), ("commits", "sync limit"), ("loads", "echo limit")):
        share = "" if limit is None else f"{rates[name] / rates[limit]:.2f} x {limit}"
        print(f"| {name} | {rates[name]:,.0f} | {share} |")


def sync_limit(path: Path) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE commits (version INTEGER PRIMARY KEY, file_name TEXT)")
    done, deadline = 0, time.perf_counter() + SECONDS / 2
    while time.perf_counter() < deadline:
        connection.execute("INSERT INTO commits VALUES (?, 'file')", (done,))
        done += 1
    return done / (SECONDS / 2)


def drive(url: str, clients: list[Step]) -> float:
    """Each step in a thread and on a connection of its own, again and again until the time is over."""
    counts = [0] * len(clients)
    failures: list[BaseException] = []
    deadline = time.perf_counter() + SECONDS

    def run(number: int) -> None:
        connection = http.client.HTTPConnection(urlparse(url).netloc)
        try:
            while time.perf_counter() < deadline:
                clients[number](connection)
                counts[number] += 1
        except BaseException as failure:
            failures.append(failure)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts) / SECONDS


def authorized(server: ServerProcess) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}"}


def getter(path: str, headers: dict[str, str]) -> Step:
    def step(connection: http.client.HTTPConnection) -> None:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body

    return step


def committer(server: ServerProcess, table: LakeTable) -> Step:
    """Proposes one version after the other, publishing each with the next so that no backlog gathers."""
    version = 0
    headers = {**authorized(server), "Content-Type": "application/json"}

    def step(connection: http.client.HTTPConnection) -> None:
        nonlocal version
        version += 1
        commit = table.stage_commit(version)
        table.staged[version] = commit["file-name"]
        updates = [add_commit(commit)]
        if version > 1:
            table.publish(version - 1)
            updates.append({"action": "set-latest-backfilled-version", "latest-published-version": version - 1})
        connection.request(
            "POST", f"{table.lake.tables_url()}/{table.name}", json.dumps(table.request(*updates)), headers
        )
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body

    return step


if __name__ == "__main__":
    raise SystemExit(main())
