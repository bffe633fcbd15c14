"""Publishing by the catalog: what writers leave behind gets into the log, in order, with the ratified bytes.

Faults to survive: a server killed at any step, two servers on one table and a writer beside them, a store that fails or
hangs, a file in the log that is not ours. Nothing ratified is lost, and everything is published once the fault is over.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import DATABASES
from tests.lake import Lake, LakeTable, report
from tests.owned import Owned
from tests.postgres import PostgresServer
from tests.servers import PUBLISHING, ServerProcess
from tests.test_ownership import Plain, allow
from tests.waiting import PATIENCE_SECONDS, wait_until
from tidegate.domain.log_files import COPY_SUFFIX
from tidegate.steps import STEPS
from tidegate.worker.publisher import TABLES_AT_ONCE

PUBLISH_STEPS = [step for step in STEPS if step.startswith("publish.")]
SOON = {**PUBLISHING, "publish_after_ms": "50"}


@contextmanager
def running(server: ServerProcess) -> Iterator[ServerProcess]:
    server.start()
    try:
        yield server
    finally:
        assert server.stop() == 0, "".join(server.log[-50:])


@pytest.fixture(scope="module", params=DATABASES)
def publisher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    with running(ServerProcess(tmp_path_factory.mktemp("home"), database, settings=SOON)) as server:
        yield server


@pytest.fixture
def table(publisher: ServerProcess, unique: str) -> Iterator[LakeTable]:
    with publisher.lake() as lake:
        yield lake.new_table(unique)


def published(table: LakeTable, version: int) -> Path:
    return table.log / f"{version:020}.json"


def staged(table: LakeTable, version: int) -> Path:
    return table.log / "_staged_commits" / table.staged[version]


def commit_all(table: LakeTable, versions: range) -> None:
    for version in versions:
        response = table.commit(version)
        assert response.status_code == 200, response.text


def timeline(lake: Lake, name: str) -> dict[str, Any]:
    response = lake.http.get(f"/api/tidegate/v1/tables/main.default.{name}/timeline")
    assert response.status_code == 200, response.text
    return response.json()


def assert_published(table: LakeTable, up_to: int) -> None:
    wait_until(lambda: table.versions() == [], f"{table.name} is published")
    assert table.load()["latest-table-version"] == up_to
    for version in range(1, up_to + 1):
        assert published(table, version).read_bytes() == staged(table, version).read_bytes()
    assert not [file for file in table.log.iterdir() if file.name.endswith(COPY_SUFFIX)]


# The ordinary case


def test_what_a_writer_leaves_unpublished_is_published_with_the_ratified_bytes(table: LakeTable) -> None:
    commit_all(table, range(1, 6))
    assert_published(table, 5)
    assert timeline(table.lake, table.name)["verified_version"] == 5


def test_what_the_writer_published_itself_stays_as_it_is(table: LakeTable) -> None:
    commit_all(table, range(1, 2))
    if not published(table, 1).exists():  # else the server was faster, which is as good
        table.publish(1)
    before = published(table, 1).stat()
    commit_all(table, range(2, 3))
    assert_published(table, 2)
    assert published(table, 1).stat().st_ino == before.st_ino


def test_a_commit_waits_for_its_writer_before_the_server_publishes_it(tmp_path: Path) -> None:
    settings = {**PUBLISHING, "publish_after_ms": "3000"}
    with running(ServerProcess(tmp_path / "home", settings=settings)) as server, server.lake() as lake:
        table = lake.new_table("t")
        started = time.monotonic()
        commit_all(table, range(1, 3))
        wait_until(lambda: table.versions() == [], "published")
        assert time.monotonic() - started >= 3.0


def test_a_table_far_behind_is_published_without_waiting_and_no_writer_meets_the_limit(
    tmp_path: Path, database_url: str
) -> None:
    """5,000 commits as fast as they come, published by nobody but the server, with room for 100."""
    settings = {**PUBLISHING, "unpublished_commits_max": "100", "publish_after_ms": "60000"}
    with running(ServerProcess(tmp_path / "home", database_url, settings=settings)) as server, server.lake() as lake:
        tables = [lake.new_table(f"t{number}") for number in range(2)]

        def write(table: LakeTable) -> set[int]:
            with server.lake() as own:
                mine = LakeTable(own, table.name, table.id, table.location, table.timestamp)
                answers = {mine.commit(version).status_code for version in range(1, 2501)}
                table.staged = mine.staged
                return answers

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(write, tables)) == [{200}, {200}]
    with running(ServerProcess(tmp_path / "home", database_url, settings=SOON)) as server, server.lake() as lake:
        for table in tables:
            table.lake = lake
            assert_published(table, 2500)


def test_writers_of_other_kinds_meet_no_limit_either(tmp_path: Path) -> None:
    """Commits with their content, appends that leave their version open, and commits through the commit owner."""
    settings = {**PUBLISHING, "unpublished_commits_max": "60", "publish_after_ms": "60000"}
    with running(ServerProcess(tmp_path / "home", settings=settings)) as server:

        def send(name: str, content: Callable[[LakeTable, int], dict[str, Any]]) -> set[int]:
            with server.lake() as lake:
                table = lake.new_table(name)
                url = f"/api/tidegate/v1/tables/main.default.{name}/commits"
                bodies = ({"table_id": table.id, **content(table, version)} for version in range(1, 401))
                return {lake.http.post(url, json=body).status_code for body in bodies}

        def info(**others: int) -> str:
            return json.dumps({"commitInfo": {"txnId": str(uuid.uuid4()), "operation": "WRITE", **others}}) + "\n"

        def versioned(table: LakeTable, version: int) -> dict[str, Any]:
            return {"version": version, "content": info(inCommitTimestamp=table.timestamp + version)}

        def opened(_: LakeTable, version: int) -> dict[str, Any]:
            stats = json.dumps({"numRecords": 1})
            file = {"path": f"{version}.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
            add = {"add": {**file, "dataChange": True, "stats": stats}}
            return {"metadata_version": 0, "content": info() + json.dumps(add) + "\n"}

        def through_the_owner() -> set[int]:
            with server.http() as http:
                allow(http, tmp_path)
                owned = Owned(http, Plain(tmp_path / "owned").create()).taken_over()
                return {owned.commit(version).status_code for version in range(3, 403)}

        with ThreadPoolExecutor(3) as pool:
            answers = [pool.submit(send, "versioned", versioned), pool.submit(send, "opened", opened)]
            answers.append(pool.submit(through_the_owner))
            assert [one.result() for one in answers] == [{200}] * 3


# Files that are not what was ratified


def test_a_published_file_with_other_bytes_raises_an_alarm_and_the_ratified_commit_is_served(table: LakeTable) -> None:
    published(table, 2).write_text("something else\n")
    commit_all(table, range(1, 5))
    wait_until(lambda: timeline(table.lake, table.name)["alarms"] != [], "an alarm")
    (alarm,) = timeline(table.lake, table.name)["alarms"]
    assert (alarm["version"], alarm["reason"]) == (2, "other_bytes")
    assert table.staged[2] in alarm["message"]
    wait_until(lambda: table.versions() == [4, 3, 2], "what comes before it is published")
    assert published(table, 2).read_text() == "something else\n"
    assert not published(table, 3).exists()

    published(table, 2).unlink()
    assert_published(table, 4)
    assert timeline(table.lake, table.name)["alarms"] == []


@pytest.mark.parametrize("happened", ["gone", "shorter"])
def test_a_staged_file_that_is_not_what_was_ratified_raises_an_alarm_and_nothing_is_invented(
    table: LakeTable, happened: str
) -> None:
    commit = table.trusted().stage_commit(1)
    file = table.log / "_staged_commits" / commit["file-name"]
    kept = file.read_bytes()
    if happened == "gone":
        file.unlink()
    else:
        file.write_bytes(kept[:-1])
    assert table.update({"action": "add-commit", "commit": commit}).status_code == 200
    wait_until(lambda: timeline(table.lake, table.name)["alarms"] != [], "an alarm")
    (alarm,) = timeline(table.lake, table.name)["alarms"]
    assert alarm["reason"] == {"gone": "staged_file_gone", "shorter": "staged_file_changed"}[happened]
    assert not published(table, 1).exists()
    assert table.versions() == [1]

    file.write_bytes(kept)
    wait_until(lambda: table.versions() == [], "published once the file is restored")
    assert published(table, 1).read_bytes() == kept


def test_an_alarm_whose_reason_is_another_one_now_is_raised_anew(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    commit_all(table.trusted(), range(1, 2))
    content = staged(table, 1).read_bytes()
    staged(table, 1).unlink()
    published(table, 1).write_bytes(content)
    for _ in range(2):
        assert table.report(1).status_code == 200
    staged(table, 1).write_bytes(content)
    published(table, 1).write_text("something else\n")
    for _ in range(2):
        assert table.report(1).status_code == 200
    (alarm,) = timeline(lake, unique)["alarms"]
    assert (alarm["version"], alarm["reason"]) == (1, "other_bytes")
    assert "does not hold what was ratified" in alarm["message"]
    told = lake.http.get("/api/tidegate/v1/events", params={"table": table.id, "kind": "table.alarm"}).json()["events"]
    assert [event["data"]["reason"] for event in told] == ["staged_file_gone", "other_bytes"]


@pytest.mark.parametrize("happened", ["gone", "changed"])
def test_what_a_writer_has_published_counts_whatever_has_become_of_its_staged_file(
    lake: Lake, unique: str, happened: str
) -> None:
    """The server finds the published file itself, as after a writer that died before it could report it."""
    table = lake.new_table(unique)
    commit_all(table, range(1, 2))
    table.publish(1)
    content = staged(table, 1).read_bytes()
    if happened == "gone":
        staged(table, 1).unlink()
    else:
        staged(table, 1).write_bytes(content.replace(b"WRITE", b"WRITF"))
    name = f"main.default.{unique}"
    assert lake.http.post(f"/api/tidegate/v1/doctor/tables/{name}").json()["findings"][0]["fixable"]
    assert table.versions() == []
    assert timeline(lake, unique)["alarms"] == []
    assert published(table, 1).read_bytes() == content


def test_a_false_report_raises_the_alarm_also_where_writers_alone_publish(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    commit_all(table, range(1, 3))
    table.publish(1)
    assert table.report(2).status_code == 200
    assert timeline(lake, unique)["alarms"] == []  # what is missing is a mistake
    published(table, 2).write_text("something else\n")
    for _ in range(2):
        assert table.report(2).status_code == 200
    assert [alarm["version"] for alarm in timeline(lake, unique)["alarms"]] == [2]
    assert table.versions() == [2]


# Stores that fail or hang


def test_a_table_whose_store_fails_holds_up_nobody_and_is_published_when_it_works_again(
    publisher: ServerProcess, table: LakeTable, unique: str
) -> None:
    published(table, 1).mkdir()
    commit_all(table, range(1, 3))
    with publisher.lake() as lake:
        other = lake.new_table(f"{unique}_other")
        commit_all(other, range(1, 3))
        assert_published(other, 2)
    assert table.versions() == [2, 1]
    wait_until(lambda: any("tried again" in line for line in publisher.log), "the log says what is wrong")
    published(table, 1).rmdir()
    assert_published(table, 2)


@contextmanager
def fault(text: str) -> Iterator[None]:
    """For servers that are started inside."""
    os.environ["TIDEGATE_FAULT"] = text
    try:
        yield
    finally:
        del os.environ["TIDEGATE_FAULT"]


@pytest.mark.parametrize("step", PUBLISH_STEPS)
def test_a_store_that_fails_or_loses_its_answer_delays_publishing_and_nothing_else(tmp_path: Path, step: str) -> None:
    """Before the copy is there, and after it has its name in the log: the next attempt finds what is there."""
    server = ServerProcess(tmp_path / "home", settings=SOON)
    with fault(f"{step}:fail:2"), running(server), server.lake() as lake:
        table = lake.new_table("t")
        commit_all(table, range(1, 4))
        assert_published(table, 3)
        assert any("No space left" in line for line in server.log)


def test_a_store_that_hangs_delays_publishing_and_nothing_else(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings=SOON)
    with fault("publish.copied:hang:6"), running(server), server.lake() as lake:
        table = lake.new_table("t")
        commit_all(table, range(1, 2))
        wait_until(lambda: has_copy(table), "it hangs")
        commit_all(table, range(2, 4))
        assert table.versions() == [3, 2, 1]
        assert has_copy(table), "commits and loads wait for the store"
        assert_published(table, 3)


def test_more_tables_with_hanging_stores_than_are_published_at_once_hold_up_no_other(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings=SOON)
    hanging = TABLES_AT_ONCE + 1
    with fault(f"publish.copied:hang:10:{hanging}"), running(server), server.lake() as lake:
        tables = [lake.new_table(f"t{number}") for number in range(hanging)]
        for table in tables:
            commit_all(table, range(1, 2))
        wait_until(lambda: sum(has_copy(table) for table in tables) >= TABLES_AT_ONCE, "they hang")
        other = lake.new_table("other")
        commit_all(other, range(1, 2))
        wait_until(lambda: other.versions() == [], "the other one is published")
        assert [table.versions() for table in tables] == [[1]] * hanging, "published when the others are"
        for table in [*tables, other]:
            assert_published(table, 1)


def has_copy(table: LakeTable) -> bool:
    return any(file.name.endswith(COPY_SUFFIX) for file in table.log.iterdir())


def test_a_store_that_hangs_while_a_report_is_looked_at_holds_up_that_writer_alone(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={"publishing": "off"})
    with fault("report.started:hang:3"), running(server), server.lake() as lake, server.lake() as own:
        table, other = lake.new_table("t"), lake.new_table("other")
        commit_all(table, range(1, 2))
        table.publish(1)
        table.lake = own
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(table.commit, 2, report(1))
            answered = 0
            for version in range(1, 51):
                commit_all(other, range(version, version + 1))
                answered += not waiting.done()
        assert answered > 3, "commits to other tables wait for the store"
        assert waiting.result().status_code == 200
        assert table.versions() == [2], "what was reported counts when the store answers late"


def test_a_file_that_nobody_can_read_to_the_end_holds_up_no_reader_of_events_and_no_other_table(tmp_path: Path) -> None:
    """A pipe without a writer: who opens it waits for ever, as with a store that hangs."""
    with running(ServerProcess(tmp_path / "home", settings=SOON)) as server, server.lake() as lake:
        table, other = lake.new_table("t"), lake.new_table("other")
        commit = table.trusted().stage_commit(1)
        file = table.log / "_staged_commits" / commit["file-name"]
        file.unlink()
        os.mkfifo(file)
        assert table.update({"action": "add-commit", "commit": commit}).status_code == 200
        commit_all(other, range(1, 2))
        for _ in range(5):
            asked = {"kind": "table.committed"}
            told = lake.http.get("/api/tidegate/v1/events", params=asked).json()["events"]
            assert [(event["table_id"], event["data"].get("operation")) for event in told] == [
                (table.id, None),
                (other.id, "WRITE"),
            ]
        assert_published(other, 1)


# Servers that die, and servers that compete


@pytest.mark.parametrize("step", PUBLISH_STEPS)
def test_a_server_killed_at_any_step_loses_nothing(tmp_path: Path, database_url: str, step: str) -> None:
    server = ServerProcess(tmp_path / "home", database_url, settings={**PUBLISHING, "publish_after_ms": "300"})
    with fault(f"{step}:kill"):
        server.start()
    with server.lake() as lake:
        table = lake.new_table("t")
        commit_all(table, range(1, 4))
    assert server.process is not None
    assert server.process.wait(timeout=PATIENCE_SECONDS) == -9, "the step was not reached"
    in_log = sorted(int(file.stem) for file in table.log.glob("[0-9]*.json"))
    assert in_log == list(range(len(in_log))), "published without a gap"
    server.settings = SOON
    with running(server), server.lake() as lake:
        table.lake = lake
        wait_until(lambda: table.versions() == [], "published by the server that comes after")
        for version in range(1, 4):
            assert published(table, version).read_bytes() == staged(table, version).read_bytes()
        commit_all(table, range(4, 5))
        wait_until(lambda: table.versions() == [], "and it goes on")


def test_a_server_killed_while_it_looks_at_a_report_can_be_asked_again(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={"publishing": "off"})
    with fault("report.started:kill"):
        server.start()
    with server.lake() as lake:
        table = lake.new_table("t")
        commit_all(table, range(1, 2))
        table.publish(1)
        with pytest.raises(httpx.TransportError):
            table.commit(2, report(1))
    assert server.process is not None
    assert server.process.wait(timeout=PATIENCE_SECONDS) == -9
    with running(server), server.lake() as lake:
        table.lake = lake
        assert table.versions() == [1]
        assert table.commit(2, report(1)).status_code == 200
        assert table.versions() == [2]


def test_two_servers_and_a_writer_publish_one_table_and_nobody_is_in_the_way(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    database = postgres.create_database()
    homes = [
        ServerProcess(tmp_path / "home", database, settings={**PUBLISHING, "publish_after_ms": "0"}) for _ in range(2)
    ]
    with running(homes[0]) as one, running(homes[1]) as two, one.lake() as first, two.lake() as second:
        table = first.new_table("t")
        stop = threading.Event()

        def publish_too() -> None:
            while not stop.is_set():
                for version in list(table.staged):
                    if not published(table, version).exists():
                        try:
                            table.publish(version)
                        except FileExistsError:
                            continue

        rival = threading.Thread(target=publish_too)
        rival.start()
        try:
            for version in range(1, 201):
                table.lake = (first, second)[version % 2]
                assert table.commit(version).status_code == 200
        finally:
            stop.set()
            rival.join()
        assert_published(table, 200)
        assert timeline(first, "t")["alarms"] == []


def test_what_a_dead_server_left_is_published_by_another(tmp_path: Path, postgres: PostgresServer) -> None:
    database = postgres.create_database()
    dead = ServerProcess(tmp_path / "home", database, settings={**PUBLISHING, "publish_after_ms": "60000"}).start()
    with dead.lake() as lake:
        table = lake.new_table("t")
        commit_all(table, range(1, 4))
    dead.kill()
    with running(ServerProcess(tmp_path / "home", database, settings=SOON)) as other, other.lake() as lake:
        table.lake = lake
        assert_published(table, 3)
