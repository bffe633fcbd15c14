"""Tables with tidegate.commits=put-if-absent: the file in the log is the commit, and the catalog knows of each one.

Faults to survive: a server killed at any step, an answer that is lost, a store that fails, two servers and a writer
that puts files itself on one table, a file in the log that is no commit. Every file that stands is a version exactly
once.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tests.conftest import DATABASES
from tests.lake import Lake, LakeTable, add_commit, error_of, report, set_properties
from tests.old_lake import OldLake
from tests.postgres import PostgresServer
from tests.servers import PUBLISHING, ServerProcess
from tests.test_events import last, read_all, told
from tests.test_inline_commits import PLAIN, Inline, add, content
from tests.test_ownership import Plain, adopted, allow, release
from tests.waiting import PATIENCE_SECONDS, wait_until
from tidegate.db.engines import parse_url, writing_engine
from tidegate.domain.log_files import COPY_SUFFIX
from tidegate.domain.put_if_absent import COMMITS_PROPERTY, PUT_IF_ABSENT, RATIFIED
from tidegate.steps import STEPS

PUTTING = {COMMITS_PROPERTY: PUT_IF_ABSENT}
PUT_STEPS = [step for step in STEPS if step.startswith("put.")]
LEARN_STEPS = [step for step in STEPS if step.startswith("learn.")]
SELDOM = {"learning_seconds": "86400"}
"""The sweep stays away: what is learned is learned because somebody asked."""
INVALID = (400, "InvalidParameterValueException")
CONFLICT = (409, "CommitVersionConflictException")
UNKNOWN = (500, "CommitStateUnknownException")


@pytest.fixture(scope="module", params=DATABASES)
def quiet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that does nothing by itself: neither publishes nor sweeps."""
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    server = ServerProcess(tmp_path_factory.mktemp("home"), database, settings=SELDOM).start()
    yield server
    assert server.stop() == 0, "".join(server.log[-50:])


@pytest.fixture
def lake(quiet: ServerProcess) -> Iterator[Lake]:
    with quiet.lake() as lake:
        yield lake


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    return lake.new_table(unique, properties=PUTTING)


# A writer's hands


def published(table: LakeTable, version: int) -> Path:
    return table.log / f"{version:020}.json"


def staged(table: LakeTable, version: int) -> Path:
    return table.log / "_staged_commits" / table.staged[version]


def content_of(timestamp: int, *actions: dict[str, Any], txn: str | None = None) -> bytes:
    info = {"inCommitTimestamp": timestamp, "txnId": txn or str(uuid.uuid4()), "operation": "WRITE"}
    return b"".join(json.dumps(action).encode() + b"\n" for action in ({"commitInfo": info}, *actions))


def put_file(table: LakeTable, version: int, content: bytes) -> bool:
    """As a writer does that puts its commits itself: whole, and only where nothing is. Whether it was the first."""
    written = table.log / f".{uuid.uuid4()}"
    written.write_bytes(content)
    try:
        os.link(written, published(table, version))
    except FileExistsError:
        return False
    finally:
        written.unlink()
    return True


def put_next(table: LakeTable, version: int, *actions: dict[str, Any]) -> None:
    table.timestamp += 1
    assert put_file(table, version, content_of(table.timestamp, *actions))


def metadata_action(table: LakeTable, *, columns: Sequence[str] = (), without: Sequence[str] = (), **properties: str):
    """That of version 0, with more columns, and with other properties."""
    lines = map(json.loads, published(table, 0).read_text().splitlines())
    action = next(line["metaData"] for line in lines if "metaData" in line)
    schema = json.loads(action["schemaString"])
    schema["fields"] += [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in columns]
    configuration = {k: v for k, v in action["configuration"].items() if k not in without}
    changed = {key.replace("__", "."): value for key, value in properties.items()}
    return {
        "metaData": {
            **action,
            "schemaString": json.dumps(schema),
            "configuration": configuration | changed,
        }
    }


def propose(table: LakeTable, version: int, *actions: dict[str, Any]) -> dict[str, Any]:
    """A staged file with these actions, and the update that proposes it."""
    table.timestamp += 1
    content = content_of(table.timestamp, *actions)
    commit = table.stage_commit(version, timestamp=table.timestamp, content=content)
    table.staged[version] = commit["file-name"]
    return add_commit(commit)


def timeline(lake: Lake, name: str) -> dict[str, Any]:
    response = lake.http.get(f"/api/tidegate/v1/tables/main.default.{name}/timeline")
    assert response.status_code == 200, response.text
    return response.json()


def findings(table: LakeTable) -> list[str]:
    response = table.lake.http.get(f"/api/tidegate/v1/doctor/tables/main.default.{table.name}")
    assert response.status_code == 200, response.text
    return [finding["problem"] for finding in response.json()["findings"]]


def assert_whole(table: LakeTable, latest: int) -> None:
    """The catalog is where the log is, nothing waits, nothing is left over, nothing is wrong."""
    loaded = table.load()
    assert (loaded["latest-table-version"], loaded["commits"]) == (latest, [])
    assert [published(table, version).exists() for version in range(latest + 2)] == [*[True] * (latest + 1), False]
    assert findings(table) == []


# A commit


def test_a_commit_is_in_the_log_when_it_is_answered_and_never_listed_as_unpublished(table: LakeTable) -> None:
    for version in (1, 2, 3):
        answer = table.commit(version)
        assert answer.status_code == 200, answer.text
        assert answer.json()["commits"] == []
        assert answer.json()["latest-table-version"] == version
        assert published(table, version).read_bytes() == staged(table, version).read_bytes()
    assert_whole(table, 3)
    assert not [file for file in table.log.iterdir() if file.name.endswith(COPY_SUFFIX)]


def test_a_commit_its_metadata_and_its_publication_are_told_together(table: LakeTable) -> None:
    before = last(table.lake.http)
    assert table.update(propose(table, 1)).status_code == 200
    changing = propose(table, 2, metadata_action(table, team="sea"))
    assert table.update(changing, set_properties(team="sea")).status_code == 200
    events = read_all(table.lake.http, before, table=table.id)
    assert told(events, table) == [
        ("table.committed", 1),
        ("table.published", 1),
        ("table.committed", 2),
        ("table.metadata_changed", 2),
        ("table.published", 2),
    ]
    assert {event["by"] for event in events} == {"admin"}
    assert table.load()["metadata"]["properties"]["team"] == "sea"
    assert_whole(table, 2)


def test_a_commit_that_is_sent_again_succeeds_and_changes_nothing(table: LakeTable) -> None:
    proposed = propose(table, 1)
    assert [table.update(proposed).status_code for _ in range(3)] == [200, 200, 200]
    assert table.commit(2).status_code == 200
    assert table.update(proposed).status_code == 200
    assert_whole(table, 2)


def test_who_comes_late_is_told_the_latest_version_and_leaves_no_trace(table: LakeTable) -> None:
    assert table.commit(1).status_code == 200
    before = published(table, 1).read_bytes()
    answer = table.commit(1)
    assert error_of(answer) == CONFLICT
    assert answer.json()["conflict"]["latest-table-version"] == 1
    assert published(table, 1).read_bytes() == before
    assert error_of(table.commit(3)) == CONFLICT
    assert_whole(table, 1)


def test_what_a_rule_is_against_is_never_put(table: LakeTable) -> None:
    missing = {**table.stage_commit(1), "file-name": f"{1:020}.{uuid.uuid4()}.json"}
    longer = table.stage_commit(1)
    longer = {**longer, "file-size": longer["file-size"] + 1}
    later = table.stage_commit(1)
    later = {**later, "timestamp": later["timestamp"] + 1}
    unsaid = propose(table, 1)
    refused = {
        "is not there": (add_commit(missing),),
        "bytes": (add_commit(longer),),
        "is proposed": (add_commit(later),),
        "no such metaData": (unsaid, set_properties(team="sea")),
        "metaData.schemaString, is not what": (propose(table, 1, metadata_action(table, columns=["more"])),),
        "tidegate.commits']": (propose(table, 1, metadata_action(table, without=[COMMITS_PROPERTY])),),
    }
    for reason, updates in refused.items():
        answer = table.update(*updates)
        assert error_of(answer) == INVALID, reason
        assert reason in answer.json()["error"]["message"]
    assert error_of(table.update(propose(table, 1), etag="stale"))[0] == 409
    assert_whole(table, 0)
    assert table.commit(1).status_code == 200


def test_many_clients_of_one_table_get_every_version_once(quiet: ServerProcess, table: LakeTable) -> None:
    won = race([quiet], table, writers=4, commits=5)
    assert_every_commit_is_there_once(table, won)
    assert_whole(table, len(won))


# The property


@pytest.mark.parametrize("value", ["", "Put-If-Absent", "always"])
def test_another_value_of_the_property_is_refused_and_changes_nothing(lake: Lake, unique: str, value: str) -> None:
    draft = lake.draft(unique, properties={COMMITS_PROPERTY: value})
    draft.write_version_0()
    refused = lake.create(draft.request)
    assert error_of(refused) == INVALID
    assert "ratified or put-if-absent" in refused.json()["error"]["message"]
    assert lake.load(unique).status_code == 404

    table = lake.new_table(unique)
    before = table.load()
    for updates in (
        [propose(table, 1), set_properties(tidegate__commits=value)],
        [set_properties(tidegate__commits=value)],
    ):
        assert error_of(table.update(*updates)) == INVALID
    assert table.load() == before


def test_the_property_does_not_change_without_a_commit(lake: Lake, table: LakeTable, unique: str) -> None:
    ordinary = lake.new_table(f"{unique}_ordinary")
    assert error_of(ordinary.update(set_properties(**PUTTING))) == INVALID
    assert error_of(table.update(set_properties(**{COMMITS_PROPERTY: RATIFIED}))) == INVALID
    assert error_of(table.update({"action": "remove-properties", "removals": [COMMITS_PROPERTY]})) == INVALID
    assert table.commit(1).json()["commits"] == []
    assert [commit["version"] for commit in ordinary.commit(1).json()["commits"]] == [1]


def test_the_property_is_set_and_taken_away_again_on_a_table_with_unpublished_commits(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    for version in (1, 2):
        assert table.commit(version).status_code == 200
    begins = propose(table, 3, metadata_action(table, **PUTTING))
    answer = table.update(begins, set_properties(**PUTTING))
    assert [commit["version"] for commit in answer.json()["commits"]] == [3, 2, 1]
    assert not published(table, 1).exists()

    assert table.commit(4).json()["commits"] == []
    for version in (1, 2, 3, 4):
        assert published(table, version).read_bytes() == staged(table, version).read_bytes()
    assert_whole(table, 4)

    ends = propose(table, 5, metadata_action(table))
    answer = table.update(ends, {"action": "remove-properties", "removals": [COMMITS_PROPERTY]})
    assert (answer.status_code, answer.json()["commits"]) == (200, [])
    assert_whole(table, 5)

    assert table.commit(6).status_code == 200
    assert table.versions() == [6]
    assert not published(table, 6).exists()
    assert table.update(begins).status_code == 200, "sent again"


def test_a_table_that_ratifies_learns_nothing_from_its_log(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique, properties={COMMITS_PROPERTY: RATIFIED})
    put_next(table, 1)
    assert table.load()["latest-table-version"] == 0
    assert findings(table) == ["published_file_never_ratified"]


# Files that somebody else has put


def test_what_a_writer_puts_itself_is_learned_by_the_next_load(table: LakeTable) -> None:
    before = last(table.lake.http)
    put_next(table, 1, {"add": {"path": "x.parquet"}})
    put_next(table, 2)
    assert_whole(table, 2)
    assert table.commit(3).status_code == 200
    assert_whole(table, 3)
    events = read_all(table.lake.http, before, table=table.id)
    assert told(events, table) == [(f"table.{kind}", v) for v in (1, 2, 3) for kind in ("committed", "published")]
    assert [event["by"] for event in events] == ["tidegate"] * 4 + ["admin"] * 2
    (first, *_) = events
    assert (first["data"]["operation"], first["data"]["files_added"]) == ("WRITE", 1)
    assert [entry["version"] for entry in timeline(table.lake, table.name)["commits"]] == [3, 2, 1, 0]


def test_what_a_writer_puts_itself_is_learned_by_the_next_commit(table: LakeTable) -> None:
    put_next(table, 1)
    late = table.commit(1)
    assert error_of(late) == CONFLICT
    assert late.json()["conflict"]["latest-table-version"] == 1
    put_next(table, 2)
    assert table.commit(3).status_code == 200, "it knew of 2, and the catalog did not"
    assert_whole(table, 3)


def test_what_a_writer_puts_itself_is_learned_by_who_reads_with_one_question(table: LakeTable) -> None:
    put_next(table, 1)
    put_next(table, 2, metadata_action(table, columns=["height"]))
    kept = Inline(table).kept()
    assert (kept["latest_version"], kept["metadata_version"], kept["commits"]) == (2, 2, [])
    assert_whole(table, 2)


def test_the_doctor_does_not_hold_a_file_that_was_just_put_against_the_table(table: LakeTable) -> None:
    put_next(table, 1)
    assert findings(table) == []
    assert_whole(table, 1)


def test_metadata_that_a_writer_changed_in_the_log_is_that_of_the_catalog(table: LakeTable) -> None:
    before = last(table.lake.http)
    etag = table.load()["metadata"]["etag"]
    put_next(table, 1, metadata_action(table, columns=["height"], team="sea"))
    loaded = table.load()
    assert [field["name"] for field in loaded["metadata"]["columns"]["fields"]] == ["id", "name", "height"]
    assert loaded["metadata"]["properties"]["team"] == "sea"
    assert loaded["metadata"]["properties"]["delta.lastUpdateVersion"] == "1"
    assert loaded["metadata"]["etag"] != etag
    events = read_all(table.lake.http, before, table=table.id)
    assert told(events, table) == [("table.committed", 1), ("table.metadata_changed", 1), ("table.published", 1)]
    assert_whole(table, 1)


def test_a_writer_that_takes_the_property_away_in_the_log_ends_it(table: LakeTable) -> None:
    put_next(table, 1, metadata_action(table, without=[COMMITS_PROPERTY]))
    put_next(table, 2)
    assert table.load()["latest-table-version"] == 1, "2 is not the log's to decide"
    assert findings(table) == ["published_file_never_ratified"]


def test_a_table_that_gets_its_first_files_before_its_ratified_commits_are_published(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    assert (
        table.update(propose(table, 1, metadata_action(table, **PUTTING)), set_properties(**PUTTING)).status_code == 200
    )
    put_next(table, 2)
    assert_whole(table, 2)
    assert published(table, 1).read_bytes() == staged(table, 1).read_bytes()


def test_a_writer_that_puts_its_file_and_then_proposes_it_succeeds(lake: Lake, unique: str) -> None:
    """Also where what was ratified before is not published yet."""
    table = lake.new_table(unique)
    begins = propose(table, 1, metadata_action(table, **PUTTING))
    assert table.update(begins, set_properties(**PUTTING)).status_code == 200
    before = last(lake.http)
    for version in (2, 3):
        proposed = propose(table, version)
        assert put_file(table, version, staged(table, version).read_bytes())
        assert table.update(proposed).status_code == 200
    assert_whole(table, 3)
    assert {event["by"] for event in read_all(lake.http, before, table=table.id, kind="table.committed")} == {"admin"}


def test_what_a_request_says_of_a_file_that_stands_already_counts_only_if_the_file_says_so(table: LakeTable) -> None:
    proposed = propose(table, 1)
    assert put_file(table, 1, staged(table, 1).read_bytes())
    assert table.update(proposed, set_properties(team="sea")).status_code == 200, "the commit has happened"
    assert "team" not in table.load()["metadata"]["properties"]
    assert_whole(table, 1)


def test_a_name_in_the_log_that_is_taken_by_no_file_is_told(table: LakeTable) -> None:
    published(table, 1).mkdir()
    answer = table.commit(1)
    assert answer.status_code == 503, answer.text
    assert "no file" in answer.json()["error"]["message"]
    published(table, 1).rmdir()
    assert table.commit(1).status_code == 200
    assert_whole(table, 1)


def test_the_sweep_learns_what_nobody_asks_for(tmp_path: Path, database_url: str) -> None:
    server = ServerProcess(tmp_path / "home", database_url, settings={"learning_seconds": "1"}).start()
    with server.lake() as lake:
        tables = [lake.new_table(f"t{number}", properties=PUTTING) for number in range(3)]
        before = last(lake.http)
        for table in tables:
            put_next(table, 1)
        both = [("table.committed", 1), ("table.published", 1)]
        wait_until(
            lambda: all(told(read_all(lake.http, before), table) == both for table in tables),
            "events tell of the files",
        )
        metrics = lake.http.get("/metrics").text
        assert "tidegate_learned_commits_total 3" in metrics
    assert server.stop() == 0


BAD_FILES = {
    "no commit at all": lambda table: b"something else\n",
    "without a commitInfo": lambda table: b'{"add":{"path":"x"}}\n',
    "a timestamp that does not rise": lambda table: content_of(1),
    "metadata without the table's id": lambda table: content_of(
        table.timestamp + 1, metadata_action(table, without=["io.unitycatalog.tableId"])
    ),
    "an unknown way to commit": lambda table: content_of(
        table.timestamp + 1, metadata_action(table, tidegate__commits="x")
    ),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_file_that_is_no_commit_raises_an_alarm_and_the_table_stays_as_it_was(table: LakeTable, kind: str) -> None:
    assert table.commit(1).status_code == 200
    before, state = last(table.lake.http), table.load()
    assert put_file(table, 2, BAD_FILES[kind](table))
    for _ in range(2):
        assert table.load() == state
    assert told(read_all(table.lake.http, before), table) == [("table.alarm", 2)], "once"
    (alarm,) = timeline(table.lake, table.name)["alarms"]
    assert (alarm["version"], alarm["reason"]) == (2, "unsound_commit")
    answer = table.commit(2)
    assert error_of(answer) == INVALID
    assert "Move that file away" in answer.json()["error"]["message"]
    assert findings(table) == ["published_file_never_ratified"]

    published(table, 2).unlink()
    assert table.commit(2).status_code == 200
    assert timeline(table.lake, table.name)["alarms"] == []
    assert_whole(table, 2)


def test_a_file_that_is_replaced_by_a_sound_one_is_learned_after_all(table: LakeTable) -> None:
    assert put_file(table, 1, b"{")
    assert table.load()["latest-table-version"] == 0
    published(table, 1).unlink()
    put_next(table, 1)
    assert_whole(table, 1)
    assert timeline(table.lake, table.name)["alarms"] == []


def test_a_file_larger_than_the_server_reads_raises_an_alarm(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={**SELDOM, "commit_bytes_max": "4096"}).start()
    with server.lake() as lake:
        table = lake.new_table("t", properties=PUTTING)
        put_next(table, 1, {"add": {"path": "x" * 5000}})
        assert table.load()["latest-table-version"] == 0
        (alarm,) = timeline(lake, "t")["alarms"]
        assert alarm["reason"] == "unsound_commit"
        large = content_of(table.timestamp + 1, {"add": {"path": "x" * 5000}})
        published(table, 1).unlink()
        answer = table.update(add_commit(table.stage_commit(1, timestamp=table.timestamp + 1, content=large)))
        assert error_of(answer) == INVALID
        assert not published(table, 1).exists()
    assert server.stop() == 0


# The old API, on the same tables


def test_both_apis_put_and_learn(lake: Lake, unique: str) -> None:
    old = OldLake(lake.http).new_table(unique, properties=PUTTING)
    assert old.commit(1).status_code == 200
    assert published(old.files, 1).read_bytes() == staged(old.files, 1).read_bytes()
    assert old.versions() == ([], 1)
    assert old.files.commit(2).status_code == 200
    assert old.versions() == ([], 2)
    put_next(old.files, 3)
    assert old.versions() == ([], 3)
    put_next(old.files, 4, metadata_action(old.files, columns=["height"]))
    assert [column["name"] for column in old.get()["columns"]][-1] == "height"
    assert old.commit(4).status_code == 409
    put_next(old.files, 5)
    assert old.commit(6).status_code == 200
    assert_whole(old.files, 6)


def test_metadata_changes_through_the_old_api_are_put(lake: Lake, unique: str) -> None:
    old = OldLake(lake.http).new_table(unique, properties=PUTTING)
    assert old.commit(1, metadata_action(old.files, columns=["height"])).status_code == 200
    assert [column["name"] for column in old.get()["columns"]][-1] == "height"
    refused = old.write(commit_info={**old.stage_commit(2), "file_size": 1})
    assert refused.status_code == 400
    assert_whole(old.files, 1)


def test_a_commit_of_the_old_api_that_was_learned_meanwhile_is_recognised_when_it_is_sent_again(
    lake: Lake, unique: str
) -> None:
    old = OldLake(lake.http).new_table(unique, properties=PUTTING)
    info = old.stage_commit(1)
    assert put_file(old.files, 1, (old.files.log / "_staged_commits" / info["file_name"]).read_bytes())
    assert [old.write(commit_info=info).status_code for _ in range(2)] == [200, 200]
    assert_whole(old.files, 1)


# Commits that come with their content


def plain_table(lake: Lake, name: str) -> LakeTable:
    """Its rows have no ids."""
    draft = lake.draft(name, properties=PUTTING)
    draft.request["protocol"]["writer-features"] = PLAIN
    draft.write_version_0()
    assert lake.create(draft.request).status_code == 200
    return LakeTable(lake, name, draft.id, draft.location, timestamp=draft.request["last-commit-timestamp-ms"])


def transaction_in(table: LakeTable, version: int) -> str:
    return json.loads(published(table, version).read_text().splitlines()[0])["commitInfo"]["txnId"]


def test_a_commit_that_comes_with_its_content_is_put_and_never_staged(table: LakeTable) -> None:
    inline, start = Inline(table), table.timestamp
    sent = content(add("x.parquet"), timestamp=start + 1)
    assert [inline.commit(sent, version=1).status_code for _ in range(2)] == [200, 200]
    assert published(table, 1).read_text() == sent
    assert inline.commit(content(timestamp=start + 2), version=1).status_code == 409
    assert put_file(table, 2, content_of(start + 2))
    changing = content(metadata_action(table, columns=["height"]), timestamp=start + 3)
    assert inline.commit(changing, version=3).status_code == 200
    assert [field["name"] for field in table.load()["metadata"]["columns"]["fields"]][-1] == "height"
    again = content(timestamp=start + 4)
    assert put_file(table, 4, again.encode())
    assert table.load()["latest-table-version"] == 4
    assert inline.commit(again, version=4).status_code == 200, "known by its bytes"
    assert inline.staged() == []
    assert inline.kept()["commits"] == []
    assert_whole(table, 4)


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "with row ids"])
def test_appends_that_leave_their_version_open_are_put_after_whatever_is_there(
    lake: Lake, unique: str, tracked: bool
) -> None:
    table = lake.new_table(unique, properties=PUTTING) if tracked else plain_table(lake, unique)
    inline, first, second = Inline(table), str(uuid.uuid4()), str(uuid.uuid4())
    for _ in range(2):
        answer = inline.append(add("a.parquet"), txn=first)
        assert (answer.status_code, answer.json()["version"]) == (200, 1), answer.text
    later = json.loads(published(table, 1).read_text().splitlines()[0])["commitInfo"]["inCommitTimestamp"] + 1
    assert put_file(table, 2, content_of(later))
    for _ in range(2):
        answer = inline.append(add("b.parquet"), txn=second)
        assert (answer.status_code, answer.json()["version"]) == (200, 3), answer.text
    assert [transaction_in(table, version) for version in (1, 3)] == [first, second]
    assert_whole(table, 3)


def test_appends_at_once_get_every_version_once(quiet: ServerProcess, lake: Lake, unique: str) -> None:
    table = plain_table(lake, unique)

    def write(number: int) -> list[str]:
        with quiet.lake() as own:
            inline = Inline(LakeTable(own, table.name, table.id, table.location))
            sent = [str(uuid.uuid4()) for _ in range(5)]
            for txn in sent:
                answer = inline.append(add(f"{txn}.parquet"), txn=txn)
                assert answer.status_code == 200, answer.text
            return sent

    with ThreadPoolExecutor(4) as pool:
        won = [txn for sent in pool.map(write, range(4)) for txn in sent]
    assert_every_commit_is_there_once(table, won)
    assert_whole(table, 20)


@pytest.mark.parametrize("loaded_first", [False, True], ids=["sent again", "loaded, then sent again"])
def test_an_append_whose_server_is_killed_at_any_step_happens_exactly_once(
    home: tuple[Path, str], loaded_first: bool
) -> None:
    server = ServerProcess(*home, settings=SELDOM).start()
    with server.lake() as lake:
        table = plain_table(lake, "t")
    assert server.stop() == 0
    for version, step in enumerate(PUT_STEPS, start=1):
        txn = str(uuid.uuid4())
        server = ServerProcess(*home, settings={**SELDOM, "fault": f"{step}:kill"}).start()
        with server.lake() as lake:
            table.lake = lake
            die(server, lambda: Inline(table).append(add("x.parquet"), txn=txn))  # noqa: B023
        server = ServerProcess(*home, settings=SELDOM).start()
        with server.lake() as lake:
            table.lake = lake
            if loaded_first:
                table.load()
            answers = [Inline(table).append(add("x.parquet"), txn=txn) for _ in range(2)]
            assert [(one.status_code, one.json()["version"]) for one in answers] == [(200, version)] * 2, step
            assert transaction_in(table, version) == txn
            assert_whole(table, version)
        assert server.stop() == 0
    assert_recorded_once(home[1], len(PUT_STEPS))


def test_an_append_is_told_of_a_file_in_its_way(lake: Lake, unique: str) -> None:
    table = plain_table(lake, unique)
    assert put_file(table, 1, b"something else\n")
    answer = Inline(table).append(add("x.parquet"))
    assert answer.status_code == 400
    assert "Move that file away" in answer.text
    assert table.load()["latest-table-version"] == 0


# Tables that are given back


def test_a_table_is_given_back_with_what_others_have_put_and_adopted_again_as_it_was(
    lake: Lake, tmp_path: Path, unique: str
) -> None:
    allow(lake.http, tmp_path)
    plain = Plain(tmp_path / "orders", configuration=PUTTING).create()
    table = adopted(lake, plain, unique)
    latest = plain.versions()[-1]
    assert table.commit(latest + 1).json()["commits"] == []
    put_next(table, latest + 2)
    given_back = release(lake.http, unique, keep="nothing")
    assert (given_back.status_code, given_back.json()["version"]) == (200, latest + 3), given_back.text
    assert plain.versions()[-1] == latest + 3
    assert plain.append(latest + 4)
    again = adopted(lake, plain, f"{unique}_again")
    assert again.commit(latest + 6).json()["commits"] == []
    assert_whole(again, latest + 6)


def test_the_file_that_gives_a_table_back_is_never_held_against_it(home: tuple[Path, str], tmp_path: Path) -> None:
    """The server dies between the file and the record; its successor sweeps, and keeps the promise."""
    server = ServerProcess(*home, settings={**SELDOM, "fault": "release.put:kill"}).start()
    with server.lake() as lake:
        allow(lake.http, tmp_path)
        table = adopted(lake, Plain(tmp_path / "orders", configuration=PUTTING).create(), "t")
        die(server, lambda: release(table.lake.http, "t", keep="nothing"))
    server = ServerProcess(*home, settings={"learning_seconds": "1"}).start()
    with server.http() as http:
        wait_until(lambda: Lake(http).load("t").status_code == 404, "the table is given back")
        kinds = [event["kind"] for event in read_all(http, 0, table=table.id)]
    assert server.stop() == 0
    assert "table.alarm" not in kinds
    assert kinds[-1] == "table.released"


# Answers that are lost, stores that fail


@pytest.fixture(params=DATABASES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    folder = tmp_path / "home"
    folder.mkdir()
    if request.param == "postgresql":
        return folder, request.getfixturevalue("postgres").create_database()
    return folder, f"sqlite:///{folder}/catalog.db"


def select(database: str, statement: str) -> list[tuple[Any, ...]]:
    engine = writing_engine(parse_url(database))
    with engine.begin() as connection:
        rows = [tuple(row) for row in connection.execute(sa.text(statement))]
    engine.dispose()
    return rows


def assert_recorded_once(database: str, versions: int) -> None:
    """In the commits, and in the events; in order."""
    every = [(version,) for version in range(1, versions + 1)]
    assert select(database, "SELECT version FROM commits ORDER BY version") == every
    for kind in ("committed", "published"):
        said = select(database, f"SELECT version FROM events WHERE kind = 'table.{kind}' ORDER BY position")
        assert said == every


@pytest.mark.parametrize("step", ["put.linked", "put.synced"])
def test_a_store_that_fails_after_the_commit_leaves_the_outcome_open_and_who_asks_again_succeeds(
    home: tuple[Path, str], step: str
) -> None:
    server = ServerProcess(*home, settings={**SELDOM, "fault": f"{step}:fail:1"}).start()
    with server.lake() as lake:
        table = lake.new_table("t", properties=PUTTING)
        proposed, etag = propose(table, 1), table.load()["metadata"]["etag"]
        answer = table.update(proposed, etag=etag)
        assert error_of(answer) == UNKNOWN
        assert published(table, 1).exists()
        assert table.update(set_properties(meanwhile="yes")).status_code == 200
        assert table.update(proposed, etag=etag).status_code == 200, (
            "the commit has happened under the etag it asked for"
        )
        assert table.load()["metadata"]["properties"]["meanwhile"] == "yes"
        assert_whole(table, 1)
    assert server.stop() == 0
    assert_recorded_once(home[1], 1)


def test_a_store_that_fails_before_the_commit_leaves_nothing(home: tuple[Path, str]) -> None:
    server = ServerProcess(*home, settings={**SELDOM, "fault": "put.written:fail:1"}).start()
    with server.lake() as lake:
        table = lake.new_table("t", properties=PUTTING)
        proposed = propose(table, 1)
        answer = table.update(proposed)
        assert answer.status_code == 503, answer.text
        assert_whole(table, 0)
        assert table.update(proposed).status_code == 200
        assert_whole(table, 1)
    assert server.stop() == 0
    assert_recorded_once(home[1], 1)


# Servers that are killed


def die(server: ServerProcess, call: Any) -> None:
    """The call kills the server."""
    with contextlib.suppress(httpx.TransportError):
        answer = call()
        pytest.fail(f"answered {answer}")
    assert server.process is not None
    assert server.process.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL


@pytest.mark.parametrize("loaded_first", [False, True], ids=["sent again", "loaded, then sent again"])
def test_a_commit_whose_server_is_killed_at_any_step_happens_exactly_once(
    home: tuple[Path, str], loaded_first: bool
) -> None:
    server = ServerProcess(*home, settings=SELDOM).start()
    with server.lake() as lake:
        table = lake.new_table("t", properties=PUTTING)
    assert server.stop() == 0
    for version, step in enumerate(PUT_STEPS, start=1):
        server = ServerProcess(*home, settings={**SELDOM, "fault": f"{step}:kill"}).start()
        with server.lake() as lake:
            table.lake = lake
            proposed = propose(table, version)
            die(server, lambda: table.update(proposed))  # noqa: B023
        stands = published(table, version).exists()
        assert stands == (step in PUT_STEPS[PUT_STEPS.index("put.linked") :]), step
        server = ServerProcess(*home, settings=SELDOM).start()
        with server.lake() as lake:
            table.lake = lake
            if loaded_first:
                assert table.load()["latest-table-version"] == (version if stands else version - 1), step
            assert table.update(proposed).status_code == 200, step
            assert table.update(proposed).status_code == 200, step
            assert published(table, version).read_bytes() == staged(table, version).read_bytes()
            assert_whole(table, version)
        assert server.stop() == 0
    assert_recorded_once(home[1], len(PUT_STEPS))


def test_a_file_whose_learning_is_killed_at_any_step_is_learned_exactly_once(home: tuple[Path, str]) -> None:
    server = ServerProcess(*home, settings=SELDOM).start()
    with server.lake() as lake:
        table = lake.new_table("t", properties=PUTTING)
    assert server.stop() == 0
    for version, step in enumerate(LEARN_STEPS, start=1):
        server = ServerProcess(*home, settings={**SELDOM, "fault": f"{step}:kill"}).start()
        with server.lake() as lake:
            table.lake = lake
            put_next(table, version)
            die(server, table.load)
    server = ServerProcess(*home, settings=SELDOM).start()
    with server.lake() as lake:
        table.lake = lake
        assert_whole(table, len(LEARN_STEPS))
    assert server.stop() == 0
    assert_recorded_once(home[1], len(LEARN_STEPS))


def test_a_catalog_that_is_restored_from_an_older_copy_learns_the_versions_since(tmp_path: Path) -> None:
    home = tmp_path / "home"
    server = ServerProcess(home, settings=SELDOM).start()
    with server.lake() as lake:
        table = lake.new_table("t", properties=PUTTING)
        assert table.commit(1).status_code == 200
    assert server.stop() == 0
    copy = (home / "catalog.db").read_bytes()
    server.start()
    with server.lake() as lake:
        table.lake = lake
        for version in (2, 3):
            assert table.commit(version).status_code == 200
        proposed = propose(table, 4, metadata_action(table, columns=["height"]))
        columns = lake.load("t").json()["metadata"]["columns"]
        columns["fields"].append({"name": "height", "type": "long", "nullable": True, "metadata": {}})
        assert table.update(proposed, {"action": "set-columns", "columns": columns}).status_code == 200
        state = table.load()
    assert server.stop() == 0

    (home / "catalog.db").write_bytes(copy)
    server.start()
    with server.lake() as lake:
        table.lake = lake
        assert_whole(table, 4)
        assert table.load()["metadata"]["columns"] == state["metadata"]["columns"]
        assert table.update(proposed).status_code == 200, "sent again"
    assert server.stop() == 0
    assert_recorded_once(f"sqlite:///{home}/catalog.db", 4)


# Races


def race(
    servers: Sequence[ServerProcess], table: LakeTable, *, writers: int, commits: int, by_hand: int = 0
) -> list[str]:
    """Each writer proposes until it has got its commits through, some by hand into the log; their transactions' ids."""

    def next_version(seen: LakeTable) -> tuple[int, int]:
        latest = seen.load()["latest-table-version"]
        (info, *_) = map(json.loads, published(seen, latest).read_text().splitlines())
        return latest + 1, info["commitInfo"]["inCommitTimestamp"] + 1

    def write(number: int) -> list[str]:
        won: list[str] = []
        with servers[number % len(servers)].lake() as lake:
            seen = LakeTable(lake, table.name, table.id, table.location)
            for _ in range(1000):
                if len(won) == commits:
                    return won
                version, timestamp = next_version(seen)
                txn = str(uuid.uuid4())
                content = content_of(timestamp, txn=txn)
                if number < by_hand:
                    if put_file(seen, version, content):
                        won.append(txn)
                    continue
                commit = seen.stage_commit(version, timestamp=timestamp, content=content)
                answer = seen.update(add_commit(commit), report(version - 1))
                if answer.status_code == 200:
                    won.append(txn)
                else:
                    assert error_of(answer) == CONFLICT, answer.text
        raise AssertionError(f"writer {number} got {len(won)} commits through")

    with ThreadPoolExecutor(writers) as pool:
        return [txn for won in pool.map(write, range(writers)) for txn in won]


def assert_every_commit_is_there_once(table: LakeTable, won: Sequence[str]) -> None:
    in_log = [
        json.loads(published(table, version).read_text().splitlines()[0])["commitInfo"]["txnId"]
        for version in range(1, len(won) + 1)
    ]
    assert Counter(in_log) == Counter(won)


def test_two_servers_and_a_writer_that_puts_files_itself_get_every_version_once(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    database, storage = postgres.create_database(), str(tmp_path / "tables")
    settings = {**PUBLISHING, "learning_seconds": "1", "storage_root": f"file://{storage}"}
    servers = [ServerProcess(tmp_path / name, database, settings=settings).start() for name in ("one", "two")]
    with servers[0].lake() as lake, servers[1].lake() as other:
        table = lake.new_table("t", properties=PUTTING)
        won = race(servers, table, writers=6, commits=5, by_hand=1)
        assert_every_commit_is_there_once(table, won)
        assert_whole(table, 30)
        assert other.load("t").json()["latest-table-version"] == 30
    for server in servers:
        assert server.stop() == 0
    assert_recorded_once(database, 30)


def test_what_one_server_has_put_and_another_has_learned_is_a_success_for_its_writer(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """The first server dies after the commit; the second has learned of it when the writer asks there again."""
    database, storage = postgres.create_database(), f"file://{tmp_path}/tables"
    dying = {**SELDOM, "storage_root": storage, "fault": "put.synced:kill"}
    one = ServerProcess(tmp_path / "one", database, settings=dying).start()
    two = ServerProcess(tmp_path / "two", database, settings={**SELDOM, "storage_root": storage}).start()
    with one.lake() as lake, two.lake() as other:
        table = lake.new_table("t", properties=PUTTING)
        assert other.load("t").json()["latest-table-version"] == 0
        proposed = propose(table, 1)
        die(one, lambda: table.update(proposed))
        assert other.load("t").json()["latest-table-version"] == 1
        table.lake = other
        assert table.update(proposed).status_code == 200
        assert error_of(table.update(propose(table, 1))) == CONFLICT
        assert_whole(table, 1)
    assert two.stop() == 0
    assert_recorded_once(database, 1)
