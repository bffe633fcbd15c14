"""Commits that go inline, and appends that leave their version open: bounds, fallbacks, lost answers, and reading."""

from __future__ import annotations

import itertools
import json
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.python_client.conftest import COLUMNS, QUICK, log_of
from tests.python_client.faces import close_face, open_face
from tests.python_client.proxy import Fault, made, proxy_to
from tests.python_client.test_append import (
    MAPPED,
    TRACKED,
    Meanwhile,
    changed_columns,
    check_rows,
    data_files,
    read,
    with_property,
)
from tests.python_client.test_commits import metadata_of, staged_in
from tests.python_client.test_faults import IMPATIENT, QUICK_AND_PATIENT, die, is_commit, txn_ids
from tests.servers import ServerProcess
from tests.waiting import wait_until
from tidegate import client
from tidegate.client.inline_limits import INLINE_BYTES_MAX

OLDER = made("404 Not Found", b'{"error_code":"ENDPOINT_NOT_FOUND","message":"No such endpoint."}')
"""What a server says that does not know the calls."""


def padding(size: int) -> dict[str, Any]:
    return {"commitInfo": {"operation": "x" * size}}


def asked(lines: list[str]) -> list[str]:
    """`POST commits` for inline commits, `POST table` for staged ones."""
    return [f"{line.split()[0]} {'commits' if '/api/tidegate/' in line else 'table'}" for line in lines]


@pytest.fixture
def other(server: ServerProcess) -> Iterator[client.Catalog]:
    with client.connect(server.url, token=server.token) as lake:
        yield lake


# Which commits go inline


def test_a_commit_goes_inline_and_leaves_no_file(table: Any) -> None:
    response = table.commit(1, [{"txn": {"appId": "a", "version": 7}}])
    assert (response.version, response.path, staged_in(table)) == (1, None, [])
    (kept,) = table.get_ratified_commits().commits
    assert kept.inline
    assert len(kept.content) == kept.file_size == response.size
    info = json.loads(kept.content.splitlines()[0])["commitInfo"]
    assert (info["txnId"], info["inCommitTimestamp"]) == (response.txn_id, response.timestamp)
    assert table.snapshot().transactions["a"].version == 7


def test_larger_commits_are_staged(catalog: Any, table: Any) -> None:
    small, large = table.commit(1, [padding(1000)]), table.commit(2, [padding(INLINE_BYTES_MAX)])
    assert (small.path, Path(large.path).name) == (None, staged_in(table)[-1])
    assert [one.inline for one in table.get_ratified_commits().commits] == [True, False]
    assert catalog.table(table.name).commit(3, []).path is None
    assert table.snapshot().version == 3


@pytest.mark.parametrize("txn_id", ["mine", "6F1C0D0E-0000-4000-8000-000000000000"])
def test_a_commit_whose_transaction_is_no_uuid_is_staged(table: Any, txn_id: str) -> None:
    response = table.commit(1, [{"commitInfo": {"txnId": txn_id}}])
    assert response.txn_id == txn_id
    assert [Path(response.path).name] == staged_in(table)


@pytest.mark.parametrize("bytes_max", [-1, 1.5, "5", None, True])
def test_a_bound_is_a_number_of_bytes(bytes_max: Any) -> None:
    with pytest.raises(client.InvalidRequest, match="inline_bytes_max"):
        client.connect("http://127.0.0.1:1", inline_bytes_max=bytes_max)


def test_a_transaction_that_is_used_twice_is_not_taken_for_the_first_one(table: Any, other: client.Catalog) -> None:
    same = {"commitInfo": {"txnId": "11111111-2222-3333-4444-555555555555"}}
    second = other.table(table.name)
    second.load()
    table.commit(1, [same])
    with pytest.raises(client.CommitConflict):
        second.commit(1, [same, {"txn": {"appId": "a", "version": 1}}])
    assert table.snapshot().transactions == {}


# Servers that do not take them


@pytest.fixture(params=["0", "600"])
def frugal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    """Takes no inline commits, or hardly any."""
    process = ServerProcess(tmp_path / "home", settings={"inline_bytes_max": request.param}).start()
    yield process
    process.stop()


def test_a_server_that_takes_none_is_not_asked_each_time(frugal: ServerProcess, face: str) -> None:
    with proxy_to(frugal.url, lambda _: Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=frugal.token, patience=QUICK)
        table = lake.create_table("main.default.t", COLUMNS)
        rows = [{"id": number, "name": "n" * 600} for number in range(3)]
        proxy.heard.clear()
        assert [table.append([row]).version for row in rows] == [1, 2, 3]
        told = asked(proxy.heard)
        assert told.count("POST commits") == 1
        assert told.count("POST table") == 3
        proxy.heard.clear()
        second = lake.create_table("main.default.u", COLUMNS)
        assert second.overwrite(rows[:1]).version == 1
        assert "POST commits" not in asked(proxy.heard)
        assert read(table) == rows
        close_face(lake)


def test_a_tracked_table_keeps_its_ids_without_inline_commits(frugal: ServerProcess, face: str) -> None:
    lake = open_face(face, frugal.url, token=frugal.token, patience=QUICK)
    table = lake.create_table("main.default.t", COLUMNS, properties=TRACKED)
    for start in (0, 3, 6):
        table.append([{"id": start + row, "name": "n" * 600} for row in range(3)])
    check_rows(table, 9, tracked=True)
    close_face(lake)


def test_an_older_server_is_spoken_to_in_its_own_words(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    catalog.create_table(f"main.default.{unique}", COLUMNS, properties=TRACKED)

    def fault(line: str) -> Fault | bytes:
        return OLDER if "/api/tidegate/" in line else Fault.PASS

    with proxy_to(server.url, fault) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        table = lake.table(f"main.default.{unique}")
        for start in (0, 3):
            table.append([{"id": start + row} for row in range(3)])
        assert [one.version for one in table.get_ratified_commits().commits] == [2]
        assert table.snapshot().version == 2
        assert len([line for line in proxy.heard if "/api/tidegate/" in line]) == 1
        close_face(lake)
    check_rows(catalog.table(f"main.default.{unique}"), 6, tracked=True)


def test_a_server_that_grew_old_between_two_requests_still_takes_the_commit(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    with proxy_to(
        server.url, lambda line: OLDER if is_commit(line, unique) and "tidegate" in line else Fault.PASS
    ) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        assert lake.table(table.name).append([{"id": 1}]).version == 1
        assert lake.table(table.name).commit(2, []).path is not None
        close_face(lake)
    assert len(read(table)) == 1


# Lost answers


@pytest.mark.parametrize("fault", [Fault.DROP_ANSWER, Fault.CUT_ANSWER, Fault.LATE, Fault.UNKNOWN, Fault.DROP_REQUEST])
@pytest.mark.parametrize("properties", [{}, TRACKED], ids=["plain", "row ids"])
def test_an_open_append_whose_answers_are_lost_happens_once(
    server: ServerProcess, catalog: Any, face: str, unique: str, fault: Fault, properties: dict[str, str]
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, properties=properties)
    turn = iter([fault] * 3)
    with proxy_to(server.url, lambda line: next(turn, Fault.PASS) if is_commit(line, unique) else Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        mine = lake.table(table.name)
        first = mine.append([{"id": row} for row in range(3)])
        assert next(turn, None) is None, "all faults were met"
        second = mine.append([{"id": row} for row in range(3, 6)])
        close_face(lake)
    assert (first.version, second.version) == (1, 2)
    assert txn_ids(table, 2) == [first.txn_id, second.txn_id]
    check_rows(table, 6, tracked=bool(properties))


def test_an_open_append_that_stays_unknown_is_settled_later_whatever_others_did(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    """The error travels, and says all that is needed."""
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    broken = [Fault.DROP_ANSWER]
    with proxy_to(server.url, lambda line: broken[0] if is_commit(line, unique) else Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=IMPATIENT)
        mine = lake.table(table.name)
        with pytest.raises(client.CommitOutcomeUnknown, match="An append to") as unknown:
            mine.append([{"id": 0}])
        assert unknown.value.version is None
        table.append([{"id": 1}])
        broken[0] = Fault.PASS
        again = pickle.loads(pickle.dumps(unknown.value))
        settled = [mine.resend(again) for _ in range(2)]
        assert [one.version for one in settled] == [1, 1]
        assert mine.append([{"id": 2}]).version == 3
        close_face(lake)
    check_rows(table, 3, tracked=False)


def test_an_open_append_that_never_arrived_is_made_good_by_resending(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    broken = [Fault.DROP_REQUEST]
    with proxy_to(server.url, lambda line: broken[0] if is_commit(line, unique) else Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=IMPATIENT)
        mine = lake.table(table.name)
        with pytest.raises(client.CommitOutcomeUnknown) as unknown:
            mine.append([{"id": 1}])
        table.append([{"id": 0}])
        broken[0] = Fault.PASS
        assert mine.resend(unknown.value).version == 2
        close_face(lake)
    check_rows(table, 2, tracked=False)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("mortal"), settings={"publish_after_ms": "20"}).start()
    yield process
    process.stop()


def test_open_appends_to_a_server_that_is_killed_are_there_once(mortal: ServerProcess, face: str, unique: str) -> None:
    faults = itertools.cycle([Fault.PASS, Fault.DROP_ANSWER, Fault.PASS])
    with proxy_to(mortal.url, lambda _: next(faults)) as proxy:
        lake = open_face(face, proxy.url, token=mortal.token, patience=QUICK_AND_PATIENT)
        table = lake.create_table(f"main.default.{unique}", COLUMNS, properties=TRACKED)
        written, over = threading.Event(), threading.Event()
        deaths = threading.Thread(target=die, args=(mortal, proxy, written, over), daemon=True)
        deaths.start()
        count = 0
        while not over.is_set() or count == 0:
            assert table.append([{"id": count}]).version == count + 1
            count += 1
            written.set()
        deaths.join()
        assert table.append([{"id": count}]).version == count + 1
        check_rows(table, count + 1, tracked=True)
        close_face(lake)


# Open appends


@pytest.mark.parametrize("properties", [{}, TRACKED, MAPPED], ids=["plain", "row ids", "mapped"])
def test_eight_writers_that_leave_the_version_open_never_fight(
    server: ServerProcess, catalog: Any, face: str, unique: str, properties: dict[str, str]
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, partition_by=["name"], properties=properties)
    with proxy_to(server.url, lambda _: Fault.PASS) as proxy:

        def run(writer: int) -> list[int]:
            lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
            mine = lake.table(table.name)
            told = [
                mine.append([{"id": (writer * 5 + n) * 2 + row, "name": "ab"[row]} for row in range(2)])
                for n in range(5)
            ]
            close_face(lake)
            return [one.version for one in told]

        with ThreadPoolExecutor(8) as threads:
            versions = [version for told in threads.map(run, range(8)) for version in told]
        commits = [line for line in proxy.heard if is_commit(line, unique)]
    assert sorted(versions) == list(range(1, 41))
    assert len(commits) == 40, "none was sent twice"
    check_rows(table, 80, tracked=properties is TRACKED)


def test_one_table_may_be_appended_to_by_several_threads(table: Any, other: client.Catalog) -> None:
    same = other.table(table.name)
    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(lambda number: same.append([{"id": number}]).version, range(24)))
    assert sorted(told) == list(range(1, 25))
    check_rows(table, 24, tracked=False)


def test_an_append_to_a_tracked_table_asks_for_nothing_but_the_commit(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, properties=TRACKED)
    with proxy_to(server.url, lambda _: Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        mine = lake.table(table.name)
        mine.append([{"id": 0}, {"id": 1}])
        assert asked(proxy.heard) == ["GET commits", "POST commits"]
        table.append([{"id": 2}, {"id": 3}])
        proxy.heard.clear()
        assert mine.append([{"id": 4}, {"id": 5}]).version == 3
        assert asked(proxy.heard) == ["POST commits"]
        close_face(lake)
    check_rows(table, 6, tracked=True)


def test_an_open_append_looks_again_when_the_metadata_has_changed(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, properties=TRACKED)
    metadata = metadata_of(table)
    changed = {**metadata, "configuration": {**metadata["configuration"], "color": "blue"}}
    with proxy_to(server.url, lambda _: Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        mine = lake.table(table.name)
        mine.append([{"id": 0}])
        table.commit(2, [{"metaData": changed}])
        proxy.heard.clear()
        assert mine.append([{"id": 1}]).version == 3
        assert asked(proxy.heard) == ["POST commits", "GET commits", "POST commits"]
        proxy.heard.clear()
        assert mine.append([{"id": 2}]).version == 4
        close_face(lake)
    check_rows(table, 3, tracked=True)


def test_an_answer_that_is_lost_and_columns_that_change_after_it_append_once(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    """The server knows the append again before it looks at the metadata."""
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    first = [True]

    def fault(line: str) -> Fault:
        if first[0] and is_commit(line, unique):
            first[0] = False
            return Fault.DROP_ANSWER
        if not first[0] and is_commit(line, unique) and not changed:
            changed.append(other.table(table.name).commit(2, [changed_columns(table)]))
        return Fault.PASS

    changed: list[Any] = []
    with client.connect(server.url, token=server.token) as other, proxy_to(server.url, fault) as proxy:
        table = other.table(table.name)
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        assert lake.table(table.name).append([{"id": 0}]).version == 1
        close_face(lake)
        assert (len(changed), table.snapshot().version) == (1, 2)
        check_rows(table, 1, tracked=False)


@pytest.mark.parametrize(("key", "stands"), [("delta.enableDeletionVectors", True), ("color", False)])
@pytest.mark.parametrize("remembered", [False, True], ids=["new", "remembered"])
def test_a_lost_refusal_of_an_open_append_is_asked_for_again_and_judged_by_what_changed(
    server: ServerProcess, catalog: Any, face: str, unique: str, key: str, stands: bool, remembered: bool
) -> None:
    """What an append did not know of when it began does not stand in its way, as long as its files fit."""
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    table.append([{"id": 0}, {"id": 1}])
    changed, faults = with_property(table, key, "true"), [Fault.DROP_ANSWER, Fault.UNKNOWN]

    def fault(line: str) -> Fault:
        return faults.pop() if faults and changes and is_commit(line, unique) else Fault.PASS

    changes: list[Any] = []
    with client.connect(server.url, token=server.token) as other, proxy_to(server.url, fault) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        mine = lake.table(table.name)
        if remembered:
            mine.append([{"id": 2}])
        before = mine.snapshot().version
        meanwhile = Meanwhile(lambda: changes.append(other.table(table.name).commit(before + 1, [changed])))
        if stands or remembered:
            assert mine.append(meanwhile).version == before + 2
        else:
            with pytest.raises(client.MetadataChanged, match="properties") as refused:
                mine.append(meanwhile)
            assert (refused.value.version, refused.value.doubtful) == (before + 1, True)
        assert faults == []
        close_face(lake)
    assert len(table.snapshot().files) == 1 + remembered + (stands or remembered)
    assert len(data_files(table)) == 2 + remembered, "what may have been heard of is kept"


def test_open_appends_do_not_stand_beside_columns_that_changed_while_they_were_written(
    table: Any, other: client.Catalog
) -> None:
    table.append([{"id": 1}])
    changed = changed_columns(table)
    with pytest.raises(client.ConcurrentChange, match="columns"):
        table.append(Meanwhile(lambda: other.table(table.name).commit(2, [changed])))
    assert len(data_files(table)) == 1


def test_an_append_that_is_too_large_is_staged_at_a_version_of_its_own(catalog: Any, unique: str) -> None:
    columns = {f"c{number}": "string" for number in range(200)}
    table = catalog.create_table(
        f"main.default.{unique}", {"id": "long", **columns}, partition_by=["id"], properties=TRACKED
    )
    table.append([{"id": 0}])
    large = table.append([{"id": number, **dict.fromkeys(columns, "some text")} for number in range(1, 31)])
    assert large.path is not None
    assert large.size > INLINE_BYTES_MAX
    assert table.append([{"id": 31}]).path is None
    check_rows(table, 32, tracked=True)


# Reading, and publishing


def test_what_is_kept_is_read_with_one_question(server: ServerProcess, catalog: Any, face: str, unique: str) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    for number in range(5):
        table.append([{"id": number}])
    with proxy_to(server.url, lambda _: Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        assert len(read(lake.table(table.name))) == 5
        assert asked(proxy.heard) == ["GET commits"]
        close_face(lake)
    assert staged_in(table) == []
    ranged = table.get_ratified_commits(2, 3)
    assert ([one.version for one in ranged.commits], ranged.latest) == ([2, 3], 5)
    assert all(one.inline and len(one.content) == one.file_size for one in ranged.commits)
    assert table.snapshot(version=3).version == 3
    assert table.scan(version=2).to_arrow().num_rows == 2


@pytest.fixture
def paging(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "home", settings={"commits_page_size_max": "3"}).start()
    yield process
    process.stop()


def test_commits_come_in_pages(paging: ServerProcess, face: str) -> None:
    with proxy_to(paging.url, lambda _: Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=paging.token, patience=QUICK)
        table = lake.create_table("main.default.t", COLUMNS)
        for number in range(8):
            table.append([{"id": number}])
        proxy.heard.clear()
        check_rows(table, 8, tracked=False)
        assert asked(proxy.heard)[:3] == ["GET commits"] * 3
        assert [one.version for one in table.get_ratified_commits().commits] == list(range(1, 9))
        close_face(lake)


def test_commits_that_are_published_between_two_pages_are_read_from_the_log(paging: ServerProcess, face: str) -> None:
    pages = [0]

    def fault(line: str) -> Fault:
        if "start_version=" in line:
            pages[0] += 1
            if pages[0] == 1:
                assert publisher.table("main.default.t").publish() == 8
                publisher.table("main.default.t").append([{"id": 8}])
        return Fault.PASS

    with (
        client.connect(paging.url, token=paging.token) as publisher,
        proxy_to(paging.url, fault) as proxy,
    ):
        lake = open_face(face, proxy.url, token=paging.token, patience=QUICK)
        table = lake.create_table("main.default.t", COLUMNS)
        for number in range(8):
            table.append([{"id": number}])
        assert [row["id"] for row in read(table)] == list(range(8))
        assert pages[0] == 1
        assert len(read(table)) == 9
        assert table.append([{"id": 9}]).version == 10
        close_face(lake)


def test_readers_do_not_notice_when_the_server_publishes(mortal: ServerProcess, face: str, unique: str) -> None:
    lake = open_face(face, mortal.url, token=mortal.token, patience=QUICK)
    table, reader = (lake.create_table(f"main.default.{unique}", COLUMNS), lake.table(f"main.default.{unique}"))
    for number in range(30):
        table.append([{"id": number}])
        assert [row["id"] for row in read(reader)] == list(range(number + 1))
    wait_until(lambda: reader.get_ratified_commits().commits == [], "all is published")
    assert [row["id"] for row in read(reader)] == list(range(30))
    assert table.commit(31, []).timestamp > table.snapshot(version=30).timestamp
    close_face(lake)


def test_what_others_staged_is_published_and_what_is_inline_is_left_to_the_server(
    server: ServerProcess, table: Any
) -> None:
    with client.connect(server.url, token=server.token, inline_bytes_max=0) as lake:
        staged = lake.table(table.name)
        staged.commit(1, [])
        table.load()
        assert table.append([{"id": 0}]).published == 1
        assert [one.version for one in table.get_ratified_commits().commits] == [2]
        assert lake.table(table.name).commit(3, []).published is None
        assert table.append([{"id": 1}]).published is None
    assert not (log_of(table) / f"{3:020}.json").exists(), "published in order"
    assert [one.inline for one in table.get_ratified_commits().commits] == [True, False, True]
    assert table.publish() == 4
    assert table.get_ratified_commits().commits == []
    check_rows(table, 2, tracked=False)


def test_a_large_change_of_metadata_finds_the_one_before_in_an_inline_commit(table: Any) -> None:
    before = metadata_of(table)
    blue = {**before, "configuration": {**before["configuration"], "color": "blue"}}
    large = {**before, "configuration": {**before["configuration"], "large": "x" * INLINE_BYTES_MAX}}
    assert table.commit(1, [{"metaData": blue}]).path is None
    assert table.commit(2, [{"metaData": large}]).path is not None
    properties = table.load().metadata.properties
    assert "color" not in properties
    assert len(properties["large"]) == INLINE_BYTES_MAX


def test_what_is_remembered_does_not_grow(server: ServerProcess, unique: str) -> None:
    with client.connect(server.url, token=server.token) as lake:
        table = lake.create_table(f"main.default.{unique}", COLUMNS)
        for number in range(10):
            table.append([{"id": number}])
        known = table._handle.known
        assert known is not None
        assert (known.latest, len(known.unpublished)) == (10, 1)


# Answers that change between two attempts


TOO_LARGE = made("400 Bad Request", b'{"error_code":"COMMIT_TOO_LARGE","message":"Stage it."}')
NO_IDS = made("400 Bad Request", b'{"error_code":"INVALID_PARAMETER_VALUE","message":"Append with a version."}')


def test_a_commit_that_was_taken_and_then_refused_for_its_size_is_still_one_commit(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    """Its staged file has the name by which the catalog knows it."""
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    turn = iter([Fault.DROP_ANSWER, TOO_LARGE])
    with proxy_to(server.url, lambda line: next(turn, Fault.PASS) if is_commit(line, unique) else Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        response = lake.table(table.name).commit(1, [{"txn": {"appId": "a", "version": 1}}])
        close_face(lake)
    assert (response.version, table.snapshot().version) == (1, 1)
    assert txn_ids(table, 1) == [response.txn_id]


def test_the_files_of_an_open_append_that_may_have_been_taken_stay(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    turn = iter([Fault.DROP_ANSWER, TOO_LARGE])
    with proxy_to(server.url, lambda line: next(turn, Fault.PASS) if is_commit(line, unique) else Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        with pytest.raises(client.InvalidRequest) as refused:
            lake.table(table.name).append([{"id": 0}])
        assert refused.value.doubtful
        assert lake.table(table.name).append([{"id": 1}]).path is not None
        close_face(lake)
    check_rows(table, 2, tracked=False)


def test_where_the_server_cannot_give_row_ids_the_client_does(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, properties=TRACKED)
    table.append([{"id": 0}])
    turn: Iterator[Fault | bytes] = iter([NO_IDS, Fault.PASS, NO_IDS])
    with proxy_to(server.url, lambda line: next(turn, Fault.PASS) if is_commit(line, unique) else Fault.PASS) as proxy:
        lake = open_face(face, proxy.url, token=server.token, patience=QUICK)
        mine = lake.table(table.name)
        assert mine.append([{"id": 1}]).version == 2
        table.append([{"id": 2}])
        assert mine.append([{"id": 3}]).version == 4
        assert next(turn, None) is None, "both were refused"
        close_face(lake)
    check_rows(table, 4, tracked=True)
