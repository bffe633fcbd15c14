"""The timeline: when commits were proposed, ratified and published, and what was met on the way.

Moments are compared with the test's own clock, which is that of the server: both run on one machine.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from alembic import command

from tests.lake import COLUMNS, Lake, LakeTable, add_commit, error_of, report, set_properties
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tests.waiting import wait_until
from tidegate.auth.tokens import ADMIN
from tidegate.compose import build_server
from tidegate.db.database import SqlDatabase
from tidegate.db.engines import parse_url, writing_engine
from tidegate.db.migrate import alembic_config
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.publishing import PublishedFile
from tidegate.services import timeline as service
from tidegate.services.outcomes import OutcomeCounts
from tidegate.services.paging import PageRequest
from tidegate.settings import Settings

Answer = dict[str, Any]
MOMENTS = ("proposed_at", "ratified_at", "published_at")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def ask(table: LakeTable, **query: object) -> httpx.Response:
    lake = table.lake
    url = f"/api/tidegate/v1/tables/{lake.catalog}.{lake.schema}.{table.name}/timeline"
    return lake.http.get(url, params={key: str(value) for key, value in query.items()})


def timeline(table: LakeTable, **query: object) -> Answer:
    response = ask(table, **query)
    assert response.status_code == 200, response.text
    return response.json()


def entries(table: LakeTable) -> dict[int, Answer]:
    return {entry["version"]: entry for entry in timeline(table)["commits"]}


def met(table: LakeTable) -> tuple[int, int]:
    answer = timeline(table)
    return answer["conflicts"], answer["replays"]


def modified_at(table: LakeTable, version: int) -> int:
    return (table.log / f"{version:020}.json").stat().st_mtime_ns // 1_000_000


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    return lake.new_table(unique)


# What it tells about commits


def test_a_table_that_was_just_made_has_version_0_and_nothing_else(table: LakeTable) -> None:
    created_at = table.load()["metadata"]["created-time"]
    answer = timeline(table)
    since = answer.pop("since")
    assert since <= now_ms()
    assert answer == {
        "full_name": f"main.default.{table.name}",
        "table_id": table.id,
        "table_type": "MANAGED",
        "latest_version": 0,
        "verified_version": 0,
        "conflicts": 0,
        "replays": 0,
        "alarms": [],
        "commits": [
            {
                "version": 0,
                "timestamp": table.timestamp,
                "proposed_at": None,
                "ratified_at": created_at,
                "published_at": modified_at(table, 0),
                "verified": True,
                "file_name": f"{0:020}.json",
                "file_size": (table.log / f"{0:020}.json").stat().st_size,
            }
        ],
        "next_page_token": None,
    }


def test_a_commit_tells_when_it_was_proposed_ratified_and_published(table: LakeTable) -> None:
    asked_at = now_ms()
    commit = table.stage_commit(1)
    assert table.update(add_commit(commit)).status_code == 200
    answered_at = now_ms()
    entry = entries(table)[1]
    assert asked_at <= entry["proposed_at"] <= entry["ratified_at"] <= answered_at
    assert entry["published_at"] is None
    assert {key: entry[key] for key in entry if key not in MOMENTS} == {
        "version": 1,
        "timestamp": commit["timestamp"],
        "verified": False,
        "file_name": commit["file-name"],
        "file_size": commit["file-size"],
    }
    table.staged[1] = commit["file-name"]
    table.publish(1)
    published = entries(table)[1]
    assert published == {**entry, "published_at": modified_at(table, 1)}
    assert table.report(1).status_code == 200
    assert entries(table)[1] == {**published, "verified": True}


def test_published_is_what_lies_in_the_log_and_verified_what_the_catalog_has_checked(table: LakeTable) -> None:
    for version in range(1, 5):
        assert table.commit(version).status_code == 200
    table.publish(1)
    table.publish(2)
    # A claim about files that are not there, and one that was never reported.
    assert table.report(1).status_code == 200
    answer = timeline(table)
    assert (answer["latest_version"], answer["verified_version"]) == (4, 1)
    seen = [(entry["version"], entry["published_at"] is not None, entry["verified"]) for entry in answer["commits"]]
    assert seen == [(4, False, False), (3, False, False), (2, True, False), (1, True, True), (0, True, True)]
    assert table.report(4).status_code == 200
    assert timeline(table)["verified_version"] == 2
    # Old log files are cleaned up by clients: what was verified stays so.
    (table.log / f"{1:020}.json").unlink()
    assert (entries(table)[1]["published_at"], entries(table)[1]["verified"]) == (None, True)


def test_the_timestamp_of_version_0_is_told_until_a_later_version_changes_the_metadata(table: LakeTable) -> None:
    assert table.commit(1).status_code == 200
    assert entries(table)[0]["timestamp"] == table.load()["metadata"]["last-commit-timestamp-ms"]
    assert table.commit(2, set_properties(depth="7")).status_code == 200
    assert entries(table)[0]["timestamp"] is None


def test_a_table_keeps_its_timeline_when_it_is_renamed_and_a_new_one_of_its_name_starts_anew(
    lake: Lake, table: LakeTable
) -> None:
    old_name = table.name
    assert table.commit(1).status_code == 200
    assert table.commit(1).status_code == 409
    before = timeline(table)
    assert lake.http.post(f"{lake.tables_url()}/{old_name}/rename", json={"new-name": f"{old_name}_b"}).is_success
    renamed = replace(table, name=f"{old_name}_b")
    assert timeline(renamed) == {**before, "full_name": f"main.default.{renamed.name}"}
    assert error_of(ask(table)) == (404, "TABLE_DOES_NOT_EXIST")
    anew = timeline(lake.new_table(old_name))
    assert (anew["latest_version"], anew["conflicts"], len(anew["commits"])) == (0, 0, 1)


def test_the_commits_of_an_external_table_are_not_the_catalogs(lake: Lake, unique: str, tmp_path: Path) -> None:
    request = {
        "name": unique,
        "location": f"file://{tmp_path}",
        "table-type": "EXTERNAL",
        "columns": COLUMNS,
        "protocol": {"min-reader-version": 1, "min-writer-version": 2},
        "properties": {},
        "last-commit-timestamp-ms": now_ms(),
    }
    assert lake.create(request).status_code == 200
    answer = timeline(LakeTable(lake, unique, "", ""))
    assert (answer["table_type"], answer["commits"], answer["next_page_token"]) == ("EXTERNAL", [], None)
    assert (answer["latest_version"], answer["verified_version"]) == (None, None)


# Conflicts and replays


def _lost_race(table: LakeTable) -> httpx.Response:
    return table.commit(1)


def _gap(table: LakeTable) -> httpx.Response:
    return table.commit(7)


def _sent_again(table: LakeTable) -> httpx.Response:
    return table.update(add_commit({**table.stage_commit(1), "file-name": table.staged[1]}))


def _broken_rule(table: LakeTable) -> httpx.Response:
    return table.update(add_commit({**table.stage_commit(2), "timestamp": 1}))


def _stale_etag(table: LakeTable) -> httpx.Response:
    return table.update(set_properties(a="b"), etag="old")


@pytest.mark.parametrize(
    ("send", "status", "counted"),
    [
        (_lost_race, 409, (2, 0)),
        (_gap, 409, (2, 0)),
        (_sent_again, 200, (0, 2)),
        (_broken_rule, 400, (0, 0)),
        (_stale_etag, 409, (0, 0)),
    ],
)
def test_conflicts_and_replays_are_counted_and_nothing_else(
    lake: Lake, table: LakeTable, send: Callable[[LakeTable], httpx.Response], status: int, counted: tuple[int, int]
) -> None:
    assert table.commit(1).status_code == 200
    neighbour = lake.new_table(f"{table.name}_b")
    assert met(table) == (0, 0)
    assert [send(table).status_code for _ in range(2)] == [status, status]
    assert met(table) == counted
    assert met(neighbour) == (0, 0)


def test_counts_start_anew_with_the_server_and_commits_do_not(tmp_path: Path, database_url: str) -> None:
    before = now_ms()
    server = ServerProcess(tmp_path / "home", database_url).start()
    with server.lake() as lake:
        table = lake.new_table("t")
        assert table.commit(1).status_code == 200
        assert table.commit(1).status_code == 409
        first = timeline(table)
    assert server.stop() == 0
    stopped_at = now_ms()
    server.start()
    with server.lake() as lake:
        second = timeline(replace(table, lake=lake))
    assert server.stop() == 0
    assert before <= first["since"] <= stopped_at <= second["since"] <= now_ms()
    assert (first["conflicts"], second["conflicts"]) == (1, 0)
    assert second["commits"] == first["commits"]


def test_racing_servers_count_apart_and_ratify_in_the_order_of_versions(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    database = postgres.create_database()
    servers = [ServerProcess(tmp_path / name, database).start() for name in ("a", "b")]
    with servers[0].lake() as lake:
        table = lake.new_table("t")

    def win_often(server: ServerProcess) -> int:
        """Ten wins; how often it lost."""
        lost = 0
        with server.lake() as lake:
            mine = LakeTable(lake, "t", table.id, table.location)
            for _ in range(10):
                # It loses only to somebody who wins, and the others win 30 times.
                for _ in range(31):
                    loaded = mine.load()
                    mine.timestamp = max([commit["timestamp"] for commit in loaded["commits"]], default=0)
                    status = mine.commit(loaded["latest-table-version"] + 1).status_code
                    assert status in {200, 409}
                    if status == 200:
                        break
                    lost += 1
        return lost

    with ThreadPoolExecutor(4) as pool:
        lost = list(pool.map(win_often, servers * 2))
    for number, server in enumerate(servers):
        with server.lake() as lake:
            answer = timeline(replace(table, lake=lake))
            assert answer["conflicts"] == lost[number] + lost[number + 2]
            assert answer["latest_version"] == 40
            ratified = [entry["ratified_at"] for entry in answer["commits"]]
            assert ratified == sorted(ratified, reverse=True)
            assert all(entry["proposed_at"] <= entry["ratified_at"] for entry in answer["commits"][:-1])
        assert server.stop() == 0


A, B, C, D = (TableId(name) for name in "ABCD")


def count(tables_max: int, *conflicts: TableId) -> OutcomeCounts:
    """Started at 0, then a conflict at 1, the next at 2 and so on."""
    moment = 0
    counts = OutcomeCounts(lambda: moment, tables_max=tables_max)
    for id in conflicts:
        moment += 1
        counts.count_conflict(id)
    return counts


@pytest.mark.parametrize(
    ("conflicts", "expected"),
    [
        ([A, B], {A: (1, 0), B: (1, 0), C: (0, 0)}),
        ([A, B, C], {A: (0, 3), B: (1, 0), C: (1, 0)}),
        ([A, B, A, C], {A: (2, 0), B: (0, 4), C: (1, 0)}),
        # What is counted anew does not claim to know what was forgotten.
        ([A, B, C, A, A], {A: (2, 3), B: (0, 4), C: (1, 0), D: (0, 4)}),
    ],
)
def test_of_two_tables_at_most_the_one_counted_least_recently_is_forgotten(
    conflicts: list[TableId], expected: dict[TableId, tuple[int, int]]
) -> None:
    counts = count(2, *conflicts)
    assert {id: (counts.of(id).conflicts, counts.of(id).since) for id in expected} == expected


def test_counts_from_many_threads_are_all_there() -> None:
    counts = OutcomeCounts(now_ms, tables_max=10)
    ids = [TableId(str(number)) for number in range(10)]

    def work(_: int) -> None:
        for id in ids * 200:
            counts.count_conflict(id)
            counts.count_replay(id)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert {(counts.of(id).conflicts, counts.of(id).replays) for id in ids} == {(1600, 1600)}


# Pages


def pages(table: LakeTable, size: int) -> Iterator[list[int]]:
    token = None
    for _ in range(100):
        answer = timeline(table, max_results=size, **({"page_token": token} if token else {}))
        yield [entry["version"] for entry in answer["commits"]]
        token = answer["next_page_token"]
        if token is None:
            return
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, [[4], [3], [2], [1], [0]]),
        (2, [[4, 3], [2, 1], [0]]),
        (4, [[4, 3, 2, 1], [0]]),
        (5, [[4, 3, 2, 1, 0]]),
        (0, [[4, 3, 2, 1, 0]]),
        (2**31 - 1, [[4, 3, 2, 1, 0]]),
    ],
)
def test_pages_hold_every_version_once_newest_first(table: LakeTable, size: int, expected: list[list[int]]) -> None:
    for version in range(1, 5):
        assert table.commit(version).status_code == 200
    assert list(pages(table, size)) == expected


def test_commits_that_arrive_between_two_pages_move_nothing(table: LakeTable) -> None:
    for version in range(1, 4):
        assert table.commit(version).status_code == 200
    walk = pages(table, 2)
    assert next(walk) == [3, 2]
    assert table.commit(4).status_code == 200
    assert list(walk) == [[1, 0]]


def test_nothing_comes_before_version_0(table: LakeTable) -> None:
    answer = timeline(table, page_token=base64.b64encode(b"0").decode())
    assert (answer["commits"], answer["next_page_token"]) == ([], None)


def test_a_page_has_100_commits_unless_more_are_asked_for(table: LakeTable) -> None:
    for first in range(1, 102):
        assert table.commit(first).status_code == 200
    assert [len(page) for page in pages(table, 0)] == [100, 2]
    assert [len(page) for page in pages(table, 1000)] == [102]


@pytest.mark.parametrize(
    "query",
    [
        {"page_token": "!"},
        {"page_token": base64.b64encode(b"orders").decode()},
        {"page_token": base64.b64encode(b"9" * 30).decode()},
        {"page_token": base64.b64encode(b"-1").decode()},
        {"max_results": -1},
        {"max_results": "many"},
        {"max_results": 2**31},
    ],
)
def test_a_page_that_cannot_be_is_refused(table: LakeTable, query: dict[str, object]) -> None:
    assert error_of(ask(table, **query)) == (400, "INVALID_PARAMETER_VALUE")


# One state


def test_a_timeline_read_beside_a_writer_is_one_state(server: ServerProcess, table: LakeTable) -> None:
    done = threading.Event()
    failures: list[BaseException] = []
    seen: list[int] = []

    def check(answer: Answer) -> None:
        latest, verified = answer["latest_version"], answer["verified_version"]
        assert [entry["version"] for entry in answer["commits"]] == list(range(latest, -1, -1))
        assert [entry["verified"] for entry in answer["commits"]] == [v <= verified for v in range(latest, -1, -1)]
        # The writer reports every version together with the next one.
        assert verified == max(latest - 1, 0)
        seen.append(latest)

    def read() -> None:
        try:
            with server.lake() as lake:
                while not done.is_set():
                    check(timeline(replace(table, lake=lake)))
        except BaseException as failure:
            failures.append(failure)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for version in range(1, 40):
            assert table.commit(version, *([report(version - 1)] if version > 1 else [])).status_code == 200
            table.publish(version)
            if version % 13 == 0:  # However fast the writer is, the reader meets it a few times.
                wait_until(lambda version=version: bool(failures) or version in seen, "it is read")
    finally:
        done.set()
        reader.join()
    assert not failures, failures[0]
    assert seen == sorted(seen)
    assert len(set(seen)) > 2


# The store


def test_a_store_that_fails_costs_the_moments_of_publication_and_nothing_else(table: LakeTable) -> None:
    assert table.commit(1).status_code == 200
    table.publish(1)
    sound = timeline(table)
    kept = table.log.with_name("kept")
    table.log.rename(kept)
    table.log.symlink_to(table.log)
    try:
        broken = timeline(table)
    finally:
        table.log.unlink()
        kept.rename(table.log)
    assert [entry["published_at"] for entry in broken["commits"]] == [None, None]
    lost = {entry["version"]: {"published_at": None} for entry in sound["commits"]} | {
        0: {"published_at": None, "file_size": None}
    }
    assert broken == {**sound, "commits": [{**entry, **lost[entry["version"]]} for entry in sound["commits"]]}
    assert timeline(table) == sound


def test_a_table_whose_files_are_gone_still_has_its_timeline(table: LakeTable) -> None:
    assert table.commit(1).status_code == 200
    shutil.rmtree(table.log.parent)
    assert [entry["published_at"] for entry in timeline(table)["commits"]] == [None, None]


class SlowLogs:
    """A store that knows about versions up to `known` at once, and about others never says anything."""

    def __init__(self, known: int) -> None:
        self._known = known

    async def find_published(self, location: str, version: Version) -> PublishedFile | None:
        if version > self._known:
            await asyncio.Event().wait()
        return PublishedFile(size=1, modified_at=7)


def test_a_store_that_does_not_answer_in_time_is_not_waited_for(
    server: ServerProcess, table: LakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in range(1, 5):
        assert table.commit(version).status_code == 200
    monkeypatch.setattr(service, "LOOK_SECONDS_MAX", 0.2)
    database = server.database or f"sqlite:///{server.home}/catalog.db"
    env = build_server(Settings(home=server.home, database=database)).env
    assert isinstance(env.database, SqlDatabase)
    env.database.start()
    try:
        slow = replace(env, delta_logs=SlowLogs(known=2))  # type: ignore[arg-type]
        name = TableName("main", "default", table.name)
        found = asyncio.run(service.read_timeline(slow, ADMIN, name, PageRequest()))
    finally:
        env.database.stop()
    assert [entry.published_at for entry in found.entries] == [None, None, 7, 7, 7]


# Older databases


def test_commits_from_before_the_moments_were_kept_are_there_without_them(tmp_path: Path, database_url: str) -> None:
    server = ServerProcess(tmp_path / "home", database_url).start()
    with server.lake() as lake:
        table = lake.new_table("t")
        assert table.commit(1).status_code == 200
        before = entries(table)[1]
    assert server.stop() == 0
    with writing_engine(parse_url(database_url)).begin() as connection:
        command.downgrade(alembic_config(connection), "0001")
    server.start()
    with server.lake() as lake:
        table = replace(table, lake=lake)
        assert table.commit(2).status_code == 200
        after = entries(table)
        assert table.update(add_commit({**table.stage_commit(1), "file-name": table.staged[1]})).status_code == 200
    assert server.stop() == 0
    assert after[1] == {**before, "proposed_at": None, "ratified_at": None}
    assert None not in (after[2]["proposed_at"], after[2]["ratified_at"])
