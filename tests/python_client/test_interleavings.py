"""Writers in any order, against a serial model: the rows of every version are those of the model at that version.

Several clients write one table: some stage their commits, others send them inline and leave the versions of their
appends open. The table is switched along the way between commits that are ratified and commits that are put into the
log; while they are put, a writer that asks no catalog puts its own. Each client remembers what it was told last, so
most of them know an old state most of the time. A write may happen while another one is in the middle, between its look
at the table and its commit. Answers get lost on the way, sometimes all of them, so that a commit is settled only later,
when the table may have been switched. The server publishes meanwhile.

A model is the list of a table's states. A write that was told to be version v made state v out of state v - 1.
"""

from __future__ import annotations

import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.python_client.conftest import COLUMNS, QUICK
from tests.python_client.proxy import Fault, Proxy, proxy_to
from tests.python_client.test_append import MAPPED, TRACKED
from tests.python_client.test_faults import IMPATIENT
from tests.servers import ServerProcess
from tidegate import client
from tidegate.client.inline_limits import INLINE_BYTES_MAX

COMMITS = "tidegate.commits"
TABLES: dict[str, dict[str, Any]] = {
    "plain": {},
    "tracked": {"properties": TRACKED},
    "mapped and partitioned": {"properties": MAPPED, "partition_by": ["name"]},
    "put if absent": {"properties": {COMMITS: "put-if-absent"}},
    "put if absent and tracked": {"properties": {**TRACKED, COMMITS: "put-if-absent"}},
}
"""What a table may be, as `create_table` takes it."""
PLAIN = ("plain", "put if absent")
"""Tables whose data files anybody can write."""
CLIENTS = {"staged": 0, "inline": INLINE_BYTES_MAX, "also inline": INLINE_BYTES_MAX}
"""How large commits may be that a client sends inline."""
BY_HAND = "by hand"
"""The writer that puts files into the log, where the table is for it; elsewhere there is no such writer."""
FAULTS = (Fault.DROP_ANSWER, Fault.CUT_ANSWER, Fault.DROP_REQUEST, Fault.UNKNOWN, Fault.BUSY, Fault.DELAY)
PENDING_MAX = 2
_names = itertools.count(1)


@dataclass(frozen=True)
class State:
    rows: frozenset[int] = frozenset()
    progress: int | None = None
    """Of the application `tide`."""
    color: str | None = None
    """A property in the log: metadata."""
    puts: bool = False
    """The next version is whichever file comes first."""
    files_touched_at: int = 0
    metadata_changed_at: int = 0


@dataclass(frozen=True)
class Write:
    """What one writer does: state `version - 1` -> state `version`."""

    kind: str
    value: int

    def apply(self, before: State, version: int) -> State:
        match self.kind:
            case "append":
                return replace(before, rows=before.rows | {self.value}, files_touched_at=version)
            case "overwrite":
                return replace(before, rows=frozenset({self.value}), files_touched_at=version)
            case "progress":
                return replace(before, progress=self.value)
            case "switch":
                return replace(before, puts=not before.puts, metadata_changed_at=version)
            case _:
                return replace(before, color=str(self.value), metadata_changed_at=version)

    def stands(self, read: int, now: State, *, has_written: bool) -> bool | None:
        """Whether it goes ahead, having read version `read`, beside what others have done since.

        None: an append beside other metadata goes ahead if the writer still remembered the table from its last write.
        """
        match self.kind:
            case "overwrite":
                return max(now.files_touched_at, now.metadata_changed_at) <= read
            case "append":
                return now.metadata_changed_at <= read or (None if has_written else False)
            case _:
                return True


@dataclass
class Pending:
    write: Write
    by: str
    error: client.CommitOutcomeUnknown
    version: int | None
    """None: it has not happened yet."""


@dataclass
class Lake:
    """One server behind a proxy, and a client of each kind; the truth is asked for without the proxy."""

    server: ServerProcess
    proxy: Proxy
    truth: client.Catalog
    writers: dict[str, client.Catalog]
    hasty: dict[str, client.Catalog]
    """As `writers`, but they give up soon."""
    faults: list[Fault] = field(default_factory=list)
    """What the next commits meet."""
    deaf: bool = False
    """Nobody is told of any commit."""

    def fault(self, line: str) -> Fault:
        if not line.startswith("POST"):
            return Fault.PASS
        if self.deaf:
            return Fault.DROP_ANSWER
        return self.faults.pop(0) if self.faults else Fault.PASS


class Rows:
    """One row, during whose reading something else happens."""

    def __init__(self, value: int, meanwhile: Callable[[], None]) -> None:
        self._table = pa.table({"id": [value], "name": ["ab"[value % 2]]})
        self._meanwhile = meanwhile

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self._meanwhile()
        return self._table.__arrow_c_stream__(requested_schema)


writers = st.sampled_from(sorted(CLIENTS))
meanwhile_writers = st.sampled_from([*sorted(CLIENTS), BY_HAND, BY_HAND])
kinds = st.sampled_from(["append", "append", "append", "overwrite", "progress", "color", "switch", "switch"])


class Interleavings(RuleBasedStateMachine):
    lake: Lake

    def __init__(self) -> None:
        super().__init__()
        self.states: list[State] = []
        self.pending: list[Pending] = []
        self.values = itertools.count(1)
        self.tracked = False

    @initialize(kind=st.sampled_from(sorted(TABLES)))
    def create(self, kind: str) -> None:
        self.lake.faults.clear()
        self.kind, self.states = kind, [State(puts=kind.startswith("put if absent"))]
        self.name = f"main.default.i{next(_names)}"
        self.truth = self.lake.truth.create_table(self.name, COLUMNS, **TABLES[kind])
        self.tracked = TRACKED.items() <= TABLES[kind].get("properties", {}).items()
        self.tables = {by: lake.table(self.name) for by, lake in self.lake.writers.items()}
        self.hasty = {by: lake.table(self.name) for by, lake in self.lake.hasty.items()}

    @rule(by=writers, kind=kinds)
    def write(self, by: str, kind: str) -> None:
        self._write(self.tables[by], Write(kind, next(self.values)))

    @rule(by=writers, kind=kinds, other=meanwhile_writers, inner=kinds)
    def write_while_another_one_writes(self, by: str, kind: str, other: str, inner: str) -> None:
        within = Write(inner, next(self.values))
        if other == BY_HAND and not self.states[-1].puts:
            other = by

        def meanwhile() -> None:
            if other == BY_HAND:
                self._put(within)
            else:
                self._write(self.tables[other], within)

        self._write(self.tables[by], Write(kind, next(self.values)), meanwhile)

    @precondition(lambda self: self.states[-1].puts)
    @rule(kind=kinds)
    def put_by_hand(self, kind: str) -> None:
        self._put(Write(kind, next(self.values)))

    @rule(faults=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=3))
    def disturb(self, faults: list[Fault]) -> None:
        self.lake.faults[:] = faults

    @precondition(lambda self: len(self.pending) < PENDING_MAX)
    @rule(by=writers, kind=st.sampled_from(["append", "append", "progress"]))
    def write_and_never_hear_of_it(self, by: str, kind: str) -> None:
        write = Write(kind, next(self.values))
        self.lake.deaf = True
        try:
            with pytest.raises(client.CommitOutcomeUnknown) as unknown:
                self._propose(self.hasty[by], write)
        finally:
            self.lake.deaf = False
        happened = self.truth.get_ratified_commits().latest == len(self.states)
        if happened:
            self.states.append(write.apply(self.states[-1], len(self.states)))
        self.pending.append(Pending(write, by, unknown.value, len(self.states) - 1 if happened else None))

    @precondition(lambda self: self.pending)
    @rule(pick=st.integers(0, PENDING_MAX - 1))
    def settle(self, pick: int) -> None:
        pending = self.pending.pop(pick % len(self.pending))
        table = self.tables[pending.by]
        if pending.version is not None:
            assert table.resend(pending.error).version == pending.version
        else:
            # Its version was taken, or the metadata that an open append was made for was no longer the table's.
            with pytest.raises((client.CommitConflict, client.RequirementConflict)):
                table.resend(pending.error)

    @invariant()
    def the_latest_version_is_the_models(self) -> None:
        self._check(self.truth.scan(), len(self.states) - 1)

    def teardown(self) -> None:
        if not hasattr(self, "truth"):
            return
        for version in range(len(self.states)):
            self._check(self.truth.scan(version=version), version)
        if self.tracked:
            snapshots = [self.truth.snapshot(version=version) for version in range(1, len(self.states))]
            files = {file.path: file.base_row_id for snapshot in snapshots for file in snapshot.files}
            assert None not in files.values()
            assert len(set(files.values())) == len(files), "each row has an id of its own"

    def _write(self, table: client.Table, write: Write, meanwhile: Callable[[], None] = lambda: None) -> None:
        read, has_written = -1, table._handle.written is not None

        def happens() -> None:
            nonlocal read
            read = len(self.states) - 1
            meanwhile()

        try:
            response = self._propose(table, write, happens)
        except client.ConcurrentChange:
            assert write.stands(read, self.states[-1], has_written=has_written) is not True
            return
        assert write.stands(read, self.states[-1], has_written=has_written) is not False
        assert response.version == len(self.states)
        self.states.append(write.apply(self.states[-1], response.version))

    def _propose(
        self, table: client.Table, write: Write, meanwhile: Callable[[], None] = lambda: None
    ) -> client.CommitResponse:
        match write.kind:
            case "append":
                return table.append(Rows(write.value, meanwhile))
            case "overwrite":
                return table.overwrite(Rows(write.value, meanwhile))
        meanwhile()
        actions = [self._action(write)]
        try:
            return table.commit(len(self.states), actions)
        except client.CommitConflict as lost:
            raise AssertionError("nobody else commits now") from lost

    def _put(self, write: Write) -> None:
        """Into the log, without a word to the catalog. Rows and their removal only where they take nothing special."""
        if write.kind == "overwrite" or (write.kind == "append" and self.kind not in PLAIN):
            write = replace(write, kind="progress")
        version, before = len(self.states), self.truth.snapshot()
        info = {"inCommitTimestamp": before.timestamp + 1, "txnId": str(uuid.uuid4()), "operation": "WRITE"}
        place = Path(before.location.removeprefix("file://"))
        action = self._data_file(place, write) if write.kind == "append" else self._action(write)
        put_whole(place / "_delta_log" / f"{version:020}.json", [{"commitInfo": info}, action])
        self.states.append(write.apply(self.states[-1], version))

    def _data_file(self, place: Path, write: Write) -> dict[str, Any]:
        path = place / f"{write.value}.parquet"
        pq.write_table(pa.table({"id": [write.value], "name": ["by hand"]}), path)
        facts = {"size": path.stat().st_size, "modificationTime": 0, "dataChange": True}
        return {"add": {"path": path.name, "partitionValues": {}, **facts, "stats": '{"numRecords":1}'}}

    def _action(self, write: Write) -> dict[str, Any]:
        if write.kind == "progress":
            return {"txn": {"appId": "tide", "version": write.value}}
        before = self._metadata()
        if write.kind == "switch":
            changed = {COMMITS: "ratified" if self.states[-1].puts else "put-if-absent"}
        else:
            changed = {"color": str(write.value)}
        return {"metaData": {**before, "configuration": {**before["configuration"], **changed}}}

    def _metadata(self) -> dict[str, Any]:
        metadata = self.truth.snapshot().metadata
        return {
            "id": metadata.id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": metadata.schema_string,
            "partitionColumns": list(metadata.partition_columns),
            "configuration": dict(metadata.configuration),
        }

    def _check(self, scan: Any, version: int) -> None:
        state, snapshot = self.states[version], scan.snapshot
        assert snapshot.version == version
        assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(state.rows)
        progress = snapshot.transactions.get("tide")
        assert (None if progress is None else progress.version) == state.progress
        assert snapshot.properties.get("color") == state.color
        assert (snapshot.properties.get(COMMITS) == "put-if-absent") == state.puts


def put_whole(path: Path, actions: list[dict[str, Any]]) -> None:
    """As a file that nobody sees half of, and only where none is."""
    written = path.with_name(f".{uuid.uuid4()}")
    written.write_text("".join(json.dumps(action) + "\n" for action in actions))
    os.link(written, path)
    written.unlink()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    server = ServerProcess(tmp_path_factory.mktemp("home"), settings={"publish_after_ms": "5"}).start()
    with proxy_to(server.url, lambda line: made.fault(line)) as proxy:

        def connect(url: str, bytes_max: int, patience: client.Patience) -> client.Catalog:
            return client.connect(url, token=server.token, patience=patience, inline_bytes_max=bytes_max)

        made = Lake(
            server,
            proxy,
            truth=connect(server.url, INLINE_BYTES_MAX, QUICK),
            writers={by: connect(proxy.url, bytes_max, QUICK) for by, bytes_max in CLIENTS.items()},
            hasty={by: connect(proxy.url, bytes_max, IMPATIENT) for by, bytes_max in CLIENTS.items()},
        )
        yield made
        for opened in (made.truth, *made.writers.values(), *made.hasty.values()):
            opened.close()
    server.stop()


def test_any_order_of_writes_leaves_the_rows_of_the_serial_model(lake: Lake) -> None:
    machine = type("OnThisLake", (Interleavings,), {"lake": lake})
    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=12, deadline=None))
