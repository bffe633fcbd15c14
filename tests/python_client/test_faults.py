"""Writers and a server with a bad network in between, and a server that is killed: no commit is lost or doubled.

What is checked in the end: every version of the log is the one commit whose writer was told of it, and every writer
was told of each commit that it made.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.python_client.conftest import COLUMNS, QUICK, log_of
from tests.python_client.faces import close_face, open_face
from tests.python_client.proxy import Fault, Proxy, made, proxy_to
from tests.python_client.test_commits import staged_in
from tests.servers import ServerProcess
from tidegate import client
from tidegate.client.inline_limits import INLINE_BYTES_MAX

COMMITS = 12
IMPATIENT = client.Patience(attempts_max=2, first_seconds=0.01)
QUICK_AND_PATIENT = client.Patience(attempts_max=1000, first_seconds=0.02, seconds_max=0.1)
"""Outlives the start of a server."""
FAULTS = (*[Fault.PASS] * 4, *(fault for fault in Fault if fault is not Fault.SILENT))
"""Hardly more than every second request gets through unharmed."""


@pytest.fixture(params=[0, INLINE_BYTES_MAX], ids=["staged", "inline"])
def inline_bytes_max(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that may be killed."""
    process = ServerProcess(tmp_path_factory.mktemp("mortal")).start()
    yield process
    process.stop()


def txn_ids(table: Any, latest: int) -> list[str]:
    """Of every version, as readers see it: the catalog's commits first, then the log."""
    ratified = {one.version: one for one in table.get_ratified_commits().commits}
    log = log_of(table)
    return [first_line(log, version, ratified.get(version))["commitInfo"]["txnId"] for version in range(1, latest + 1)]


def first_line(log: Path, version: int, kept: client.Commit | None) -> dict[str, Any]:
    if kept is not None and kept.content is not None:
        return json.loads(kept.content.splitlines()[0])
    path = log / f"{version:020}.json" if kept is None else log / "_staged_commits" / kept.file_name
    return json.loads(path.read_text().splitlines()[0])


def is_commit(line: str, table: str) -> bool:
    return line.startswith("POST") and line.split()[1].endswith((f"/tables/{table}", f".{table}/commits"))


def write(table: Any, count: int) -> dict[int, str]:
    """Commits so many times, each time at the next free version; what it was told, by version."""
    told: dict[int, str] = {}
    version = table.load().latest_table_version + 1
    while len(told) < count:
        try:
            response = table.commit(version, [])
        except client.CommitConflict as lost:
            version = lost.latest + 1
            continue
        told[response.version] = response.txn_id
        version = response.version + 1
    return told


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.PASS])
def test_each_fault_on_its_own_costs_nothing_but_time(
    server: ServerProcess, catalog: Any, face: str, unique: str, fault: Fault, inline_bytes_max: int
) -> None:
    name = f"main.default.{unique}"
    table = catalog.create_table(name, COLUMNS)
    turn = iter([Fault.PASS, fault] if fault is Fault.SILENT else [Fault.PASS, fault, fault, fault])
    with proxy_to(server.url, lambda line: next(turn, Fault.PASS)) as proxy:
        writer = open_face(
            face,
            proxy.url,
            token=server.token,
            patience=replace(QUICK, answer_seconds_max=0.5),
            inline_bytes_max=inline_bytes_max,
        )
        told = write(writer.table(name), 3)
        close_face(writer)
        assert next(turn, None) is None, "all faults were met"
    assert list(told) == [1, 2, 3]
    assert txn_ids(table, 3) == list(told.values())
    assert len(staged_in(table)) == (0 if inline_bytes_max else 3)


@pytest.mark.parametrize("seed", range(3))
def test_writers_that_race_through_a_bad_network_lose_and_double_nothing(
    server: ServerProcess, catalog: Any, face: str, unique: str, seed: int, inline_bytes_max: int
) -> None:
    name = f"main.default.{unique}"
    table = catalog.create_table(name, COLUMNS)
    dice = random.Random(seed)
    with proxy_to(server.url, lambda _: dice.choice(FAULTS)) as proxy:

        def run(_: int) -> dict[int, str]:
            writer = open_face(face, proxy.url, token=server.token, patience=QUICK, inline_bytes_max=inline_bytes_max)
            try:
                return write(writer.table(name), COMMITS // 3)
            finally:
                close_face(writer)

        with ThreadPoolExecutor(3) as threads:
            told = list(threads.map(run, range(3)))
    together = {version: id for one in told for version, id in one.items()}
    assert sum(map(len, told)) == len(together) == table.load().latest_table_version == COMMITS, f"seed {seed}"
    assert txn_ids(table, COMMITS) == [together[version] for version in range(1, COMMITS + 1)]


def test_a_server_that_is_killed_again_and_again_loses_and_doubles_nothing(
    mortal: ServerProcess, face: str, unique: str, inline_bytes_max: int
) -> None:
    name = f"main.default.{unique}"
    dice = random.Random(7)
    with proxy_to(mortal.url, lambda _: dice.choice((Fault.PASS, Fault.PASS, Fault.DROP_ANSWER))) as proxy:
        writer = open_face(
            face, proxy.url, token=mortal.token, patience=QUICK_AND_PATIENT, inline_bytes_max=inline_bytes_max
        )
        table = writer.create_table(name, COLUMNS)
        written, over = threading.Event(), threading.Event()
        deaths = threading.Thread(target=die, args=(mortal, proxy, written, over), daemon=True)
        deaths.start()
        told: dict[int, str] = {}
        while not over.is_set():
            told |= write(table, 1)
            written.set()
        deaths.join()
        told |= write(table, 1)
        assert txn_ids(table, len(told)) == [told[version] for version in range(1, len(told) + 1)]
        assert table.load().latest_table_version == len(told)
        close_face(writer)


def die(mortal: ServerProcess, proxy: Proxy, written: threading.Event, over: threading.Event) -> None:
    """Twice, each time after something was written."""
    try:
        for _ in range(2):
            written.clear()
            assert written.wait(60)
            mortal.kill()
            mortal.start()
            proxy.target = mortal.url
    finally:
        over.set()


def test_a_commit_that_stays_unknown_is_settled_later(
    server: ServerProcess, face: str, unique: str, inline_bytes_max: int
) -> None:
    name = f"main.default.{unique}"
    broken = [True]

    def fault(line: str) -> Fault:
        return Fault.DROP_ANSWER if broken[0] and is_commit(line, unique) else Fault.PASS

    with proxy_to(server.url, fault) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=IMPATIENT, inline_bytes_max=inline_bytes_max)
        table = writer.create_table(name, COLUMNS)
        with pytest.raises(client.CommitOutcomeUnknown, match="resend") as unknown:
            table.commit(1, [])
        broken[0] = False
        settled = table.resend(unknown.value)
        assert (settled.version, settled.txn_id) == (1, unknown.value.txn_id)
        assert txn_ids(table, 1) == [settled.txn_id]
        assert table.commit(2, []).version == 2
        close_face(writer)


def test_a_commit_that_stays_unknown_may_turn_out_to_have_lost(
    server: ServerProcess, catalog: Any, face: str, unique: str, inline_bytes_max: int
) -> None:
    name = f"main.default.{unique}"
    winner = catalog.create_table(name, COLUMNS)
    broken = [True]
    with proxy_to(server.url, lambda line: Fault.DROP_REQUEST if broken[0] and "POST" in line else Fault.PASS) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=IMPATIENT, inline_bytes_max=inline_bytes_max)
        table = writer.table(name)
        with pytest.raises(client.CommitOutcomeUnknown) as unknown:
            table.commit(1, [])
        won = winner.commit(1, [])
        broken[0] = False
        with pytest.raises(client.CommitConflict):
            table.resend(unknown.value)
        close_face(writer)
    assert txn_ids(winner, 1) == [won.txn_id]


def test_a_commit_that_stays_unknown_stays_so_while_the_server_is_away(
    server: ServerProcess, face: str, unique: str, inline_bytes_max: int
) -> None:
    name = f"main.default.{unique}"
    broken = [Fault.PASS]
    with proxy_to(server.url, lambda line: broken[0] if "POST" in line else Fault.PASS) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=IMPATIENT, inline_bytes_max=inline_bytes_max)
        table = writer.create_table(name, COLUMNS)
        broken[0] = Fault.DROP_ANSWER
        with pytest.raises(client.CommitOutcomeUnknown) as unknown:
            table.commit(1, [])
    with pytest.raises(client.CommitOutcomeUnknown) as still:
        table.resend(unknown.value)
    assert still.value.proposal == unknown.value.proposal
    close_face(writer)


def test_a_commit_that_never_left_leaves_nothing_behind(
    server: ServerProcess, catalog: Any, face: str, unique: str, inline_bytes_max: int
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    with proxy_to(server.url, lambda _: Fault.PASS) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=IMPATIENT, inline_bytes_max=inline_bytes_max)
        cut_off = writer.table(table.name)
        cut_off.load()
    with pytest.raises(client.Unreachable):
        cut_off.commit(1, [])
    assert staged_in(table) == []
    close_face(writer)


@pytest.mark.parametrize(
    "answer",
    [
        made("200 OK", b"<html>Please log in</html>"),
        made("403 Forbidden", b"<html>Not through this proxy</html>"),
        made(
            "500 Internal Server Error", b'{"error":{"type":"InternalServerErrorException","code":500,"message":"?"}}'
        ),
    ],
    ids=["portal", "gateway", "defect"],
)
def test_who_answers_in_the_name_of_the_server_does_not_decide_on_a_commit(
    server: ServerProcess, catalog: Any, face: str, unique: str, answer: bytes, inline_bytes_max: int
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    with proxy_to(server.url, lambda line: answer if "POST" in line else Fault.PASS) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=IMPATIENT, inline_bytes_max=inline_bytes_max)
        with pytest.raises(client.CommitOutcomeUnknown) as unknown:
            writer.table(table.name).commit(1, [])
        close_face(writer)
    assert len(staged_in(table)) == (0 if inline_bytes_max else 1)
    assert table.resend(unknown.value).version == 1


def test_a_table_whose_creation_was_answered_to_nobody_is_there_once(
    server: ServerProcess, catalog: Any, face: str, unique: str, inline_bytes_max: int
) -> None:
    name = f"main.default.{unique}"
    turn = iter([Fault.DROP_ANSWER])
    with proxy_to(server.url, lambda line: next(turn, Fault.PASS) if "/tables HTTP" in line else Fault.PASS) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=QUICK, inline_bytes_max=inline_bytes_max)
        table = writer.create_table(name, COLUMNS)
        assert next(turn, None) is None, "the answer was lost"
        assert table.commit(1, []).version == 1
        close_face(writer)
    assert [one.full_name for one in catalog.list_tables("main.default") if one.full_name == name] == [name]
