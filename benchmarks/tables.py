"""Tables that the driver works on: found in the catalog or made there, and what it knows of each.

Everything is asked of the catalog at the start of a run, so runs follow each other without handing anything over.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.lake import COLUMNS, Draft

from benchmarks.delta_log import DeltaLog, StagedCommit
from benchmarks.driver import Answer, Driver, Step, UnexpectedAnswer, require
from benchmarks.wire import Target, encode


@dataclass(frozen=True, slots=True)
class Proposal:
    """A commit whose staged file is written, and the request that proposes it."""

    commit: StagedCommit
    request: bytes


@dataclass(slots=True)
class BenchTable:
    name: str
    id: str
    log: DeltaLog
    latest: int
    timestamp: int
    """Of the latest commit, ratified or staged: the next one is later."""
    pending: dict[int, str]
    """The staged files of the commits that the catalog listed as unpublished, by version."""
    proposals: deque[Proposal] = field(default_factory=deque)

    def stage(self, target: Target, *, ahead: int, reporting: bool) -> None:
        """Writes staged files until there are proposals for the next `ahead` versions."""
        while len(self.proposals) < ahead:
            version = self.latest + len(self.proposals) + 1
            report = version - 1 if reporting else 0
            self.proposals.append(self.propose(target, version, report=report))

    def propose(self, target: Target, version: int, *, report: int) -> Proposal:
        """A commit, with the report riding along that everything up to `report` is published."""
        commit = self.log.stage(version, self.next_timestamp())
        return Proposal(commit, self.proposal_of(target, commit, report=report))

    def next_timestamp(self) -> int:
        self.timestamp = max(self.timestamp + 1, time.time_ns() // 1_000_000)
        return self.timestamp

    def proposal_of(self, target: Target, commit: StagedCommit, *, report: int) -> bytes:
        updates: list[dict[str, Any]] = [{"action": "add-commit", "commit": commit.described()}]
        if report > 0:
            updates.append({"action": "set-latest-backfilled-version", "latest-published-version": report})
        return target.update(self.name, self._update(updates))

    def publish_pending(self) -> None:
        """In order: what an earlier run left behind counts as published with the next report."""
        for version, file_name in sorted(self.pending.items()):
            self.log.publish(version, file_name)
        self.pending = {}

    def ratified(self, *, publish: bool) -> None:
        """The next proposal has won."""
        commit = self.proposals.popleft().commit
        self.latest = commit.version
        if publish:
            self.log.publish(commit.version, commit.file_name)
        else:
            self.pending[commit.version] = commit.file_name

    def discard_proposals(self) -> None:
        while self.proposals:
            self.log.discard(self.proposals.pop().commit)

    def _update(self, updates: Sequence[dict[str, Any]]) -> bytes:
        return encode({"requirements": [{"type": "assert-table-uuid", "uuid": self.id}], "updates": updates})


def find_or_make(driver: Driver, target: Target, names: Iterable[str]) -> list[BenchTable]:
    """The tables of these names, as the catalog describes them now."""
    found: dict[str, BenchTable] = {}

    def step(name: str) -> Step:
        answer = yield target.load(name)
        if answer[0] == 404:
            yield from make(target, name)
            answer = yield target.load(name)
        found[name] = _read(json.loads(require(answer, 200, f"loading {name}")), name)

    driver.complete([step(name) for name in names])
    return [found[name] for name in names]


def make(target: Target, name: str) -> Generator[bytes, Answer, None]:
    """Stages the table, writes its version 0 and creates it."""
    staged = json.loads(require((yield target.stage(name)), 200, f"staging {name}"))
    request = _creation(name, staged)
    DeltaLog(staged["location"]).write_first(Draft(staged["table-id"], staged["location"], request).actions())
    require((yield target.create(request)), 200, f"creating {name}")


def make_schema(driver: Driver, target: Target) -> None:
    def step() -> Step:
        answer = yield target.create_schema()
        if answer[0] not in {200, 400, 409}:  # the last two: it is there already
            raise UnexpectedAnswer(f"creating schema {target.schema}", *answer)

    driver.complete([step()])


def _read(loaded: dict[str, Any], name: str) -> BenchTable:
    log = DeltaLog(loaded["metadata"]["location"])
    log.make()
    latest, commits = loaded["latest-table-version"], loaded["commits"]
    timestamps = {commit["version"]: commit["timestamp"] for commit in commits}
    return BenchTable(
        name=name,
        id=loaded["metadata"]["table-uuid"],
        log=log,
        latest=latest,
        timestamp=timestamps.get(latest) or log.timestamp_of(latest),
        pending={commit["version"]: commit["file-name"] for commit in commits},
    )


def _creation(name: str, staged: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "location": staged["location"],
        "table-type": "MANAGED",
        "columns": COLUMNS,
        "partition-columns": [],
        "protocol": staged["required-protocol"],
        "properties": staged["required-properties"],
        "last-commit-timestamp-ms": time.time_ns() // 1_000_000,
    }
