"""Commits with all that their writers do for them, staged and inline; and appends that leave their version open.

    staged    write the staged file, propose it with the report of the one before, write the published file
    inline    send the content

Both take place where the server publishes: it has to do so for inline commits, beside what it is asked, and of staged
ones only those are left to it that nobody has reported yet when the clock stops. A run ends when all that the server
keeps is published, so that the next one finds it idle, or with the table dropped that it appended to.
"""

from __future__ import annotations

import json
import time
import uuid
from abc import abstractmethod
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from time import perf_counter
from typing import Any

from benchmarks.delta_log import StagedCommit, commit_content
from benchmarks.driver import Answer, DriverError, Step, require
from benchmarks.tables import BenchTable, find_or_make, make
from benchmarks.wire import encode
from benchmarks.workloads import Record, Workload
from benchmarks.writing import counting_syncs, write_new
from tidegate.client.files import published_path, staged_path

PUBLISHED_SECONDS_MAX = 120
_POLL_SECONDS = 0.05


class _Committing(Workload):
    """What these workloads share: asking the catalog what has become of their tables."""

    headline = ("commit",)

    def _ask(self, request: bytes, spent: Counter[str]) -> Generator[bytes, Answer, bytes]:
        spent["requests"] += 1
        return require((yield request), 200, "committing")

    def _kept(self, tables: Sequence[BenchTable]) -> list[dict[str, Any]]:
        """What the catalog says of each, without any file being made for it."""
        found: dict[str, dict[str, Any]] = {}

        def step(table: BenchTable) -> Step:
            answer = yield self.target.kept(table.name, start=table.latest)
            found[table.name] = json.loads(require(answer, 200, f"asking for the commits of {table.name}"))

        self.driver.complete([step(table) for table in tables])
        return [found[table.name] for table in tables]

    def _verify_latest(self, tables: Sequence[BenchTable]) -> None:
        for table, kept in zip(tables, self._kept(tables), strict=True):
            if kept["latest_version"] != table.latest:
                told = f"{table.name} is at version {kept['latest_version']}, but {table.latest} commits were counted."
                raise DriverError(told)

    def _wait_until_published(self, tables: Sequence[BenchTable]) -> None:
        """Versions are published in order: once the latest is, all are."""
        deadline = perf_counter() + PUBLISHED_SECONDS_MAX
        waiting = list(tables)
        while waiting:
            if perf_counter() > deadline:
                raise DriverError(f"The server has not published {waiting[0].name} in {PUBLISHED_SECONDS_MAX} s.")
            waiting = [table for table, kept in zip(waiting, self._kept(waiting), strict=True) if kept["commits"]]
            time.sleep(_POLL_SECONDS if waiting else 0)


class _Whole(_Committing):
    """A client goes round the tables that are its own."""

    prefix: str

    def prepare(self) -> None:
        wanted = max(self.options.tables, self.options.clients)
        names = [f"{self.prefix}_{number:03}" for number in range(wanted)]
        self.tables = find_or_make(self.driver, self.target, names)
        self._undo = ExitStack()
        self._undo.enter_context(counting_syncs())

    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        for table in self.tables:
            table.publish_pending()  # which the clock has kept its writer from
        clients = self.options.clients
        return [self._step(record, self.tables[number::clients], number) for number in range(clients)]

    def _step(self, record: Record, tables: Sequence[BenchTable], number: int) -> Step:
        for table in cycle(tables):
            spent = Counter(commits=1)
            started = perf_counter()
            yield from self._commit(table, number, spent)
            record["commit"].add(started)
            self.spent.update(spent)

    @abstractmethod
    def _commit(self, table: BenchTable, number: int, spent: Counter[str]) -> Step: ...

    def verify(self) -> None:
        self._verify_latest(self.tables)

    def finish(self) -> None:
        self._undo.close()


class WholeStaged(_Whole):
    prefix = "whole_staged"

    def _commit(self, table: BenchTable, number: int, spent: Counter[str]) -> Step:
        version, timestamp = table.latest + 1, table.next_timestamp()
        content = commit_content(timestamp)
        name = f"{version:020}.{uuid.uuid4()}.json"
        yield partial(write_new, staged_path(table.log.location, name), content, spent)
        staged = StagedCommit(version, timestamp, name, len(content), time.time_ns() // 1_000_000)
        yield from self._ask(table.proposal_of(self.target, staged, report=table.latest), spent)
        table.latest = version
        table.pending = {version: name}
        self.done[number] += 1
        yield partial(write_new, published_path(table.log.location, version), content, spent)
        table.pending = {}


class WholeInline(_Whole):
    prefix = "whole_inline"

    def _commit(self, table: BenchTable, number: int, spent: Counter[str]) -> Step:
        version = table.latest + 1
        content = commit_content(table.next_timestamp()).decode()
        body = encode({"table_id": table.id, "content": content, "version": version})
        yield from self._ask(self.target.commit_inline(table.name, body), spent)
        table.latest = version
        self.done[number] += 1

    def verify(self) -> None:
        super().verify()
        self._wait_until_published(self.tables)


class AppendOpen(_Committing):
    """Everybody appends to one table, which is made for the run: with all that is kept of it, it would only grow."""

    def prepare(self) -> None:
        self._name = f"appended_{uuid.uuid4().hex[:8]}"
        self.driver.complete([make(self.target, self._name)])
        self.table = find_or_make(self.driver, self.target, [self._name])[0]
        self._metadata_version = self._kept([self.table])[0]["metadata_version"]
        self._versions: set[int] = set()

    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        return [self._step(record, number) for number in range(self.options.clients)]

    def _step(self, record: Record, number: int) -> Step:
        table = self.table
        while True:
            started = perf_counter()
            content = commit_content(table.timestamp).decode()
            body = {"table_id": table.id, "content": content, "metadata_version": self._metadata_version}
            spent = Counter(commits=1)
            answer = yield from self._ask(self.target.commit_inline(table.name, encode(body)), spent)
            record["commit"].add(started)
            self.spent.update(spent)
            self.done[number] += 1
            self._assigned(json.loads(answer)["version"])

    def _assigned(self, version: int) -> None:
        if version in self._versions:
            raise DriverError(f"Two appends were told that they are version {version}.")
        self._versions.add(version)

    def verify(self) -> None:
        self.table.latest = len(self._versions)
        self._verify_latest([self.table])
        if self._versions != set(range(1, self.table.latest + 1)):
            raise DriverError("The versions that were told to appends have gaps.")
        self._settle()
        self.driver.complete([self._drop()])

    def _settle(self) -> None:
        """Where the server does not publish, there is nothing to wait for."""

    def _drop(self) -> Step:
        require((yield self.target.drop(self._name)), 204, f"dropping {self._name}")


class AppendPublished(AppendOpen):
    """The server publishes what it keeps, and lets appends wait once it keeps too much."""

    def _settle(self) -> None:
        self._wait_until_published([self.table])


INLINE_WORKLOADS: dict[str, type[Workload]] = {
    "whole-staged": WholeStaged,
    "whole-inline": WholeInline,
    "append": AppendOpen,
    "append-published": AppendPublished,
}
