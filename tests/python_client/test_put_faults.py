"""Faults between writers and a table whose commits are put into the log: none is lost, none is there twice.

A commit that stands in the log has happened, whether its writer was told or not, whether the catalog could record it or
not. So the one check is that of the log: every version is one commit, and the one whose writer was told of it.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.python_client.conftest import COLUMNS, QUICK, log_of
from tests.python_client.faces import close_face, open_face
from tests.python_client.proxy import Fault, proxy_to
from tests.python_client.test_faults import FAULTS, IMPATIENT, QUICK_AND_PATIENT, die, is_commit, mortal, write
from tests.python_client.test_interleavings import put_whole
from tests.servers import ServerProcess
from tidegate import client
from tidegate.client.inline_limits import INLINE_BYTES_MAX

__all__ = ["mortal"]

PUTTING = {"tidegate.commits": "put-if-absent"}
COMMITS_EACH = 4
Told = dict[int, str]
"""The transactions that a writer was told of, by version."""
_rows = itertools.count(1)


def append(table: Any, count: int) -> Told:
    """Rows, whose commits leave their version open where they go inline."""
    responses = [table.append([{"id": next(_rows)}]) for _ in range(count)]
    return {response.version: response.txn_id for response in responses}


@dataclass(frozen=True)
class Way:
    """How a commit is made: by which face, how large it may be to go inline, and of what."""

    face: str
    inline_bytes_max: int
    write: Callable[[Any, int], Told]


WAYS = {
    "staged": Way("sync", 0, write),
    "inline": Way("async", INLINE_BYTES_MAX, write),
    "rows staged": Way("async", 0, append),
    "rows with an open version": Way("sync", INLINE_BYTES_MAX, append),
}


@pytest.fixture
def table(server: ServerProcess, unique: str) -> Iterator[client.Table]:
    """Without a bad network."""
    with client.connect(server.url, token=server.token, patience=QUICK) as lake:
        yield lake.create_table(f"main.default.{unique}", COLUMNS, properties=PUTTING)


@contextmanager
def written_by(way: Way, name: str, url: str, token: str, patience: client.Patience = QUICK) -> Iterator[Any]:
    """The table as its writer has it."""
    made = open_face(way.face, url, token=token, patience=patience, inline_bytes_max=way.inline_bytes_max)
    try:
        yield made.table(name)
    finally:
        close_face(made)


def in_log(table: Any) -> Told:
    """All that happened: version 0 has no writer here."""
    files = sorted(log_of(table).glob("*.json"))[1:]
    infos = {int(file.stem): json.loads(file.read_text().splitlines()[0])["commitInfo"] for file in files}
    stamps = [info["inCommitTimestamp"] for info in infos.values()]
    assert stamps == sorted(set(stamps)), "timestamps rise"
    return {version: info["txnId"] for version, info in infos.items()}


def assert_told(table: Any, *told: Told) -> None:
    """The log, the catalog and the writers say the same."""
    together = {version: id for one in told for version, id in one.items()}
    assert sum(map(len, told)) == len(together), "no version was given twice"
    assert in_log(table) == together
    assert sorted(together) == list(range(1, len(together) + 1))
    assert (table.load().latest_table_version, table.load().commits) == (len(together), [])
    files = table.snapshot().files
    assert len({file.path for file in files}) == len(files)


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.PASS])
def test_each_fault_on_its_own_costs_nothing_but_time(
    server: ServerProcess, table: client.Table, unique: str, fault: Fault
) -> None:
    turn: list[Fault] = []
    patience = replace(QUICK, answer_seconds_max=1.0)
    told: list[Told] = []
    with proxy_to(server.url, lambda line: turn.pop() if turn and is_commit(line, unique) else Fault.PASS) as proxy:
        for way in WAYS.values():
            turn.extend([fault] if fault is Fault.SILENT else [fault, fault])
            with written_by(way, table.name, proxy.url, server.token, patience) as writing:
                told.append(way.write(writing, 2))
            assert not turn, "all faults were met"
    assert_told(table, *told)


@pytest.mark.parametrize("seed", range(2))
def test_writers_of_every_kind_race_through_a_bad_network(
    server: ServerProcess, table: client.Table, seed: int
) -> None:
    """And one beside them that puts its commits by itself."""
    dice = random.Random(seed)
    with proxy_to(server.url, lambda _: dice.choice(FAULTS)) as proxy:

        def run(way: Way) -> Told:
            with written_by(way, table.name, proxy.url, server.token) as writing:
                return way.write(writing, COMMITS_EACH)

        with ThreadPoolExecutor(len(WAYS) + 1) as threads:
            by_hand = threads.submit(put_by_hand, table, COMMITS_EACH)
            told = [*threads.map(run, WAYS.values()), by_hand.result()]
    assert [len(one) for one in told] == [COMMITS_EACH] * (len(WAYS) + 1), f"seed {seed}"
    assert_told(table, *told)


def put_by_hand(table: client.Table, count: int) -> Told:
    told: Told = {}
    for _ in range(1000):
        if len(told) == count:
            return told
        before = table.snapshot()
        txn = str(uuid.uuid4())
        assert before.timestamp is not None
        info = {"inCommitTimestamp": before.timestamp + 1, "txnId": txn, "operation": "WRITE"}
        log = Path(before.location.removeprefix("file://")) / "_delta_log"
        try:
            put_whole(log / f"{before.version + 1:020}.json", [{"commitInfo": info}])
        except FileExistsError:
            continue
        told[before.version + 1] = txn
    raise AssertionError(f"got {len(told)} commits through")


def test_a_server_that_is_killed_again_and_again_loses_and_doubles_nothing(mortal: ServerProcess, unique: str) -> None:
    dice, name = random.Random(11), f"main.default.{unique}"
    with (
        proxy_to(mortal.url, lambda _: dice.choice((Fault.PASS, Fault.PASS, Fault.DROP_ANSWER))) as proxy,
        client.connect(proxy.url, token=mortal.token, patience=QUICK_AND_PATIENT) as lake,
        ExitStack() as open_writers,
    ):
        table = lake.create_table(name, COLUMNS, properties=PUTTING)
        entered = open_writers.enter_context
        writers = [
            (way.write, entered(written_by(way, name, proxy.url, mortal.token, QUICK_AND_PATIENT)))
            for way in WAYS.values()
        ]
        written, over = threading.Event(), threading.Event()
        deaths = threading.Thread(target=die, args=(mortal, proxy, written, over), daemon=True)
        deaths.start()
        told: list[Told] = []
        for write_with, writing in itertools.cycle(writers):
            told.append(write_with(writing, 1))
            written.set()
            if over.is_set():
                break
        deaths.join()
        assert_told(table, *told)


@pytest.mark.parametrize("way", WAYS)
def test_a_commit_that_stays_unknown_is_settled_after_others_have_gone_on(
    server: ServerProcess, table: client.Table, unique: str, way: str
) -> None:
    """By then the catalog has recorded what came after it, and the table's commits are ratified again."""
    broken = [True]
    meets = lambda line: Fault.DROP_ANSWER if broken[0] and is_commit(line, unique) else Fault.PASS  # noqa: E731
    with (
        proxy_to(server.url, meets) as proxy,
        written_by(WAYS[way], table.name, proxy.url, server.token, IMPATIENT) as unsure,
    ):
        with pytest.raises(client.CommitOutcomeUnknown) as unknown:
            WAYS[way].write(unsure, 1)
        told = append(table, 1)
        told[3] = table.commit(3, [ratified_again(table)]).txn_id
        broken[0] = False
        settled = [unsure.resend(unknown.value) for _ in range(2)]
    assert [one.version for one in settled] == [1, 1]
    table.publish()
    assert in_log(table) == {1: settled[0].txn_id, **told}
    assert append(table, 1).keys() == {4}


def ratified_again(table: client.Table) -> dict[str, Any]:
    lines = (log_of(table) / f"{0:020}.json").read_text().splitlines()
    before = next(json.loads(line)["metaData"] for line in lines if "metaData" in line)
    return {"metaData": {**before, "configuration": {**before["configuration"], "tidegate.commits": "ratified"}}}
