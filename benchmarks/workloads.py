"""What clients do all day: each workload finds or makes its tables, and gives every client its steps for a lap.

Commits own their tables: a client goes round those that are its own, publishes each version as soon as it is ratified
and reports that with the table's next commit. Their staged files are written before the clock starts, since a
writer's own I/O is not the catalog's work. Two workloads cannot know their files ahead, and write them on the way:
contending writers (which version they propose follows from what they load) and creations (the catalog says where).
"""

from __future__ import annotations

import math
import os
import random
import re
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, cycle
from time import perf_counter

from benchmarks.delta_log import StagedCommit
from benchmarks.driver import Driver, DriverError, Step, UnexpectedAnswer, require
from benchmarks.samples import Samples
from benchmarks.tables import BenchTable, find_or_make, make, make_schema
from benchmarks.wire import Target

LOADS_PER_COMMIT = 5
PAGE_SIZE = 1000
_UNMEASURED_PER_SECOND = 5_000
"""Commits per second to be ready for, as long as nothing was measured."""
_LATEST = re.compile(rb'"latest-table-version"\s*:\s*(\d+)')
_NEXT_PAGE = re.compile(rb'"next_page_token"\s*:\s*"([^"]+)"')

Record = dict[str, Samples]


@dataclass(frozen=True, slots=True)
class Options:
    clients: int
    tables: int = 64
    pending: int = 0
    """Unpublished commits of each table that is loaded."""


class Workload(ABC):
    """`prepare` once, then for each lap `steps`, and `finish`."""

    headline: tuple[str, ...]
    """The kinds of samples that make up what the workload is about."""
    details: tuple[str, ...] = ()
    """The kinds that are kept beside them."""

    def __init__(self, driver: Driver, target: Target, options: Options) -> None:
        self.driver = driver
        self.target = target
        self.options = options
        self.body_bytes = 0
        """Of an answer to what the workload is about, if that is a load."""
        self.done = [0] * options.clients
        """How often each client has reached what it wanted, in this lap; with what was still in flight at its end."""
        self.spent: Counter[str] = Counter()
        """Commits of this lap and what they took their writers: requests, files, syncs; where that is counted."""

    @abstractmethod
    def prepare(self) -> None: ...

    @abstractmethod
    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        """One for each client. `per_second` is what the last lap did, if there was one."""

    def waiting(self, ended: float) -> list[float]:
        """How long clients had been at what they had not reached when the clock stopped, where that can be long."""
        return []

    def verify(self) -> None:  # noqa: B027
        """After the last lap: whatever was counted and is not in the catalog ends the run."""

    def finish(self) -> None:  # noqa: B027
        """After the clock: takes back what was not used."""


class Ask(Workload):
    """Sends one request again and again, to servers that answer anything."""

    headline = ("request",)

    def prepare(self) -> None:
        pass

    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        return [self._step(record, number) for number in range(self.options.clients)]

    def _step(self, record: Record, number: int) -> Step:
        add, request = record["request"].add, self.target.load("load_10_00")
        while True:
            started = perf_counter()
            require((yield request), 200, "asking")
            add(started)
            self.done[number] += 1


class Commit(Workload):
    headline = ("commit",)
    publishes = True
    prefix = "commit"

    def prepare(self) -> None:
        wanted = max(self.options.tables, self.options.clients)
        self.tables = find_or_make(self.driver, self.target, [f"{self.prefix}_{number:03}" for number in range(wanted)])
        if self.publishes:
            for table in self.tables:
                table.publish_pending()

    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        # Half as much again as the last lap would have needed: clients are not equally fast.
        expected = (per_second or _UNMEASURED_PER_SECOND) * 1.5 * seconds * self._commits_per_request()
        for table in self.tables:
            table.stage(self.target, ahead=8 + math.ceil(expected / len(self.tables)), reporting=self.publishes)
        os.sync()  # else the staged files are written out while the clock runs, at the cost of the database's syncs
        clients = self.options.clients
        return [self._step(record, self.tables[number::clients], number) for number in range(clients)]

    def _commits_per_request(self) -> float:
        return 1

    def _step(self, record: Record, tables: Sequence[BenchTable], number: int) -> Step:
        for table in cycle(tables):
            if not table.proposals:
                return
            yield from self._commit(record, table, number)

    def _commit(self, record: Record, table: BenchTable, number: int) -> Step:
        started = perf_counter()
        answer = yield table.proposals[0].request
        require(answer, 200, f"committing to {table.name}")
        record["commit"].add(started)
        table.ratified(publish=self.publishes)
        self.done[number] += 1

    def finish(self) -> None:
        for table in self.tables:
            table.discard_proposals()


class Leave(Commit):
    """Publishing is left to the server."""

    publishes = False


class Mix(Commit):
    """Five loads, then a commit: what the stock client does for one SQL statement."""

    headline = ("load", "commit")

    def _commits_per_request(self) -> float:
        return 1 / (LOADS_PER_COMMIT + 1)

    def _step(self, record: Record, tables: Sequence[BenchTable], number: int) -> Step:
        for table in cycle(tables):
            load = self.target.load(table.name)
            for _ in range(LOADS_PER_COMMIT):
                started = perf_counter()
                require((yield load), 200, f"loading {table.name}")
                record["load"].add(started)
            if not table.proposals:
                return
            yield from self._commit(record, table, number)


class Load(Workload):
    headline = ("load",)
    _last = b""

    def prepare(self) -> None:
        pending = self.options.pending
        names = [f"load_{pending}_{number:02}" for number in range(self.options.tables)]
        self.tables = find_or_make(self.driver, self.target, names)
        self.driver.complete([self._fill(table) for table in self.tables])

    def _fill(self, table: BenchTable) -> Step:
        while len(table.pending) < self.options.pending:
            table.stage(self.target, ahead=1, reporting=False)
            require((yield table.proposals[0].request), 200, f"committing to {table.name}")
            table.ratified(publish=False)

    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        requests = [self.target.load(table.name) for table in self.tables]
        return [self._step(record, requests, number) for number in range(self.options.clients)]

    def _step(self, record: Record, requests: Sequence[bytes], number: int) -> Step:
        add = record["load"].add
        first = number % len(requests)
        for request in cycle([*requests[first:], *requests[:first]]):
            started = perf_counter()
            body = require((yield request), 200, "loading")
            add(started)
            self.done[number] += 1
            self.body_bytes, self._last = len(body), body

    def finish(self) -> None:
        pending = self._last.count(b'"file-name"')
        if pending != self.options.pending:
            raise DriverError(f"A load shows {pending} unpublished commits, not {self.options.pending}.")


class Browse(Load):
    """Loads any of many tables that are there already, in no order."""

    def prepare(self) -> None:
        names = [f"filled_{number:06}" for number in range(self.options.tables)]
        self._requests = [self.target.load(name) for name in names]

    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        orders = [random.Random(number) for number in range(self.options.clients)]
        some = [order.sample(self._requests, min(len(self._requests), 10_000)) for order in orders]
        return [self._step(record, requests, number) for number, requests in enumerate(some)]

    def finish(self) -> None:
        pass  # whatever is pending


class Contend(Workload):
    """Everybody wants the next version of one table: load, propose, and when it is taken load again."""

    headline = ("win",)
    details = ("load", "lost")

    def prepare(self) -> None:
        self.table = find_or_make(self.driver, self.target, ["contended"])[0]
        self.table.publish_pending()
        self._published = self.table.latest
        self._ahead: set[int] = set()
        self._since = [0.0] * self.options.clients

    def waiting(self, ended: float) -> list[float]:
        return [ended - since for since in self._since if since < ended]

    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        return [self._step(record, number) for number in range(self.options.clients)]

    def _step(self, record: Record, number: int) -> Step:
        load = self.target.load(self.table.name)
        while True:
            self._since[number] = started = perf_counter()
            while True:
                asked = perf_counter()
                latest = latest_version(require((yield load), 200, "loading"))
                record["load"].add(asked)
                proposal = self.table.propose(self.target, latest + 1, report=self._published)
                asked = perf_counter()
                answer = yield proposal.request
                if answer[0] == 200:
                    break
                if answer[0] != 409:
                    raise UnexpectedAnswer("contending", *answer)
                record["lost"].add(asked)
            record["win"].add(started)
            self.done[number] += 1
            self._publish(proposal.commit)

    def _publish(self, commit: StagedCommit) -> None:
        """Answers may come in another order than wins happened; what is reported has no gap."""
        self.table.log.publish(commit.version, commit.file_name)
        self._ahead.add(commit.version)
        while self._published + 1 in self._ahead:
            self._published += 1
            self._ahead.remove(self._published)


class CreateAndDrop(Workload):
    headline = ("create and drop",)
    details = ("create", "drop")

    def prepare(self) -> None:
        self._run = uuid.uuid4().hex[:8]
        self._numbers = count()

    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        return [self._step(record, number) for number in range(self.options.clients)]

    def _step(self, record: Record, number: int) -> Step:
        while True:
            name = f"made_{self._run}_{next(self._numbers)}"
            started = perf_counter()
            yield from make(self.target, name)
            record["create"].add(started)
            asked = perf_counter()
            require((yield self.target.drop(name)), 204, f"dropping {name}")
            record["drop"].add(asked)
            record["create and drop"].add(started)
            self.done[number] += 1


class List(Workload):
    """Pages through a schema of many tables, again and again."""

    headline = ("page",)
    details = ("listing",)

    def prepare(self) -> None:
        make_schema(self.driver, self.target)
        wanted = {f"listed_{number:06}" for number in range(self.options.tables)}
        missing = sorted(wanted - set(self._names()))
        self.driver.complete([make(self.target, name) for name in missing])

    def _names(self) -> list[str]:
        found: list[bytes] = []

        def step() -> Step:
            token = None
            while True:
                body = require((yield self.target.list(token, page_size=PAGE_SIZE)), 200, "listing")
                found.extend(re.findall(rb'"(listed_\d{6})"', body))
                token = next_page(body)
                if token is None:
                    return

        self.driver.complete([step()])
        return [name.decode() for name in found]

    def steps(self, record: Record, *, seconds: float, per_second: float | None) -> list[Step]:
        return [self._step(record, number) for number in range(self.options.clients)]

    def _step(self, record: Record, number: int) -> Step:
        while True:
            started, seen, token = perf_counter(), 0, None
            while seen == 0 or token is not None:
                asked = perf_counter()
                body = require((yield self.target.list(token, page_size=PAGE_SIZE)), 200, "listing")
                record["page"].add(asked)
                self.done[number] += 1
                seen += body.count(b'"table_id"')
                token = next_page(body)
            record["listing"].add(started)
            if seen != self.options.tables:
                raise DriverError(f"The listing shows {seen} tables, not {self.options.tables}.")


def latest_version(body: bytes) -> int:
    found = _LATEST.search(body)
    if found is None:
        raise DriverError(f"An answer to a load has no latest-table-version: {body[:300]!r}")
    return int(found[1])


def next_page(body: bytes) -> str | None:
    found = _NEXT_PAGE.search(body, max(0, body.rfind(b'"next_page_token"')))
    return None if found is None else found[1].decode()


WORKLOADS: dict[str, type[Workload]] = {
    "ask": Ask,
    "commit": Commit,
    "leave": Leave,
    "load": Load,
    "browse": Browse,
    "mix": Mix,
    "contend": Contend,
    "create": CreateAndDrop,
    "list": List,
}
