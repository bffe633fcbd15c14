"""Commits with their content in the request: ratified by the same rules, kept, shown as files to whoever wants files,
published from what is kept; and appends that leave their version open.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import COLUMNS, UNITY, Lake, LakeTable
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tests.waiting import wait_until

TIDEGATE = "/api/tidegate/v1"
PLAIN = ["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck", "deletionVectors", "v2Checkpoint"]


def line(action: dict[str, Any]) -> str:
    return json.dumps(action) + "\n"


def add(path: str, rows: int = 1, **more: Any) -> dict[str, Any]:
    stats = json.dumps({"numRecords": rows})
    file = {"path": path, "partitionValues": {}, "size": 100, "modificationTime": 1, "dataChange": True, "stats": stats}
    return {"add": file | more}


def content(*actions: dict[str, Any], txn: str | None = None, timestamp: int | None = None, **info: Any) -> str:
    told = {
        "inCommitTimestamp": timestamp or int(time.time() * 1000) + 60_000,
        "txnId": txn or str(uuid.uuid4()),
        "operation": "WRITE",
    }
    return "".join(map(line, [{"commitInfo": told | info}, *actions]))


@dataclass
class Inline:
    """A table, written by inline commits."""

    table: LakeTable

    @property
    def http(self) -> httpx.Client:
        return self.table.lake.http

    @property
    def url(self) -> str:
        return f"{TIDEGATE}/tables/main.default.{self.table.name}/commits"

    def commit(self, content: str, **body: Any) -> httpx.Response:
        return self.http.post(self.url, json={"table_id": self.table.id, "content": content, **body})

    def append(self, *adds: dict[str, Any], txn: str | None = None, metadata_version: int = 0) -> httpx.Response:
        return self.commit(content(*adds, txn=txn), metadata_version=metadata_version)

    def kept(self, **query: int) -> dict[str, Any]:
        answer = self.http.get(self.url, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def loaded(self) -> dict[str, Any]:
        return self.table.lake.load(self.table.name).json()

    def staged(self) -> list[str]:
        folder = self.table.log / "_staged_commits"
        return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


@pytest.fixture
def inline(lake: Lake, unique: str) -> Inline:
    return Inline(plain_table(lake, unique))


@pytest.fixture
def tracked(lake: Lake, unique: str) -> Inline:
    """Its rows have ids."""
    return Inline(lake.new_table(unique))


def plain_table(lake: Lake, name: str) -> LakeTable:
    draft = lake.draft(name)
    draft.request["protocol"]["writer-features"] = PLAIN
    draft.write_version_0()
    assert lake.create(draft.request).status_code == 200
    return LakeTable(lake, name, draft.id, draft.location, timestamp=draft.request["last-commit-timestamp-ms"])


def published(inline: Inline, version: int) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (inline.table.log / f"{version:020}.json").read_text().splitlines()]


def test_an_inline_commit_is_ratified_and_kept_with_its_content(inline: Inline) -> None:
    txn, sent = str(uuid.uuid4()), content(add("a"), txn="11111111-2222-3333-4444-555555555555")
    answer = inline.commit(sent, version=1)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["version"], told["latest_version"]) == (1, 1)
    assert told["file_name"] == f"{1:020}.11111111-2222-3333-4444-555555555555.json"
    assert inline.staged() == [], "nobody has asked for a file"
    kept = inline.kept()
    assert (kept["latest_version"], kept["table_id"], kept["location"]) == (1, inline.table.id, inline.table.location)
    assert [(one["version"], one["inline"], one["content"]) for one in kept["commits"]] == [(1, True, sent)]
    assert txn not in sent


def test_others_find_it_as_a_file_before_they_are_told_of_it(inline: Inline) -> None:
    sent = content(add("a"))
    name = inline.commit(sent, version=1).json()["file_name"]
    loaded = inline.loaded()
    assert loaded["latest-table-version"] == 1
    assert [one["file-name"] for one in loaded["commits"]] == [name]
    assert (inline.table.log / "_staged_commits" / name).read_text() == sent
    assert loaded["commits"][0]["file-size"] == len(sent.encode())


def test_the_older_api_finds_it_as_a_file_too(inline: Inline) -> None:
    sent = content(add("a"))
    name = inline.commit(sent, version=1).json()["file_name"]
    query = {"table_id": inline.table.id, "table_uri": inline.table.location}
    told = inline.http.get(f"{UNITY}/delta/commits", params=query).json()
    assert [one["file_name"] for one in told["commits"]] == [name]
    assert (inline.table.log / "_staged_commits" / name).read_text() == sent


def test_a_staged_commit_after_an_inline_one_is_told_of_both(inline: Inline) -> None:
    inline.commit(content(add("a"), timestamp=inline.table.timestamp + 1), version=1)
    answer = inline.table.commit(2)
    assert answer.status_code == 200, answer.text
    told = answer.json()["commits"]
    assert [one["version"] for one in told] == [2, 1]
    assert all((inline.table.log / "_staged_commits" / one["file-name"]).exists() for one in told)


def test_the_loser_of_a_race_against_an_inline_commit_finds_its_file(inline: Inline) -> None:
    inline.commit(content(add("a")), version=1)
    lost = inline.table.commit(1)
    assert lost.status_code == 409
    (winner,) = lost.json()["conflict"]["commits"]
    assert (inline.table.log / "_staged_commits" / winner["file-name"]).exists()


def test_it_is_sent_again_as_often_as_one_likes(inline: Inline) -> None:
    sent = content(add("a"))
    first = inline.commit(sent, version=1)
    assert [inline.commit(sent, version=1).json() for _ in range(3)] == [first.json()] * 3
    assert inline.kept()["latest_version"] == 1


def test_a_taken_version_is_a_conflict_that_tells_who_won(inline: Inline) -> None:
    inline.commit(content(add("a")), version=1)
    lost = inline.commit(content(add("b")), version=1)
    assert (lost.status_code, lost.json()["error_code"]) == (409, "ALREADY_EXISTS")
    conflict = lost.json()["conflict"]
    assert (conflict["latest_version"], conflict["append_stands"]) == (1, True)
    assert [(one["version"], one["inline"]) for one in conflict["commits"]] == [(1, True)]
    assert inline.staged() == [], "who sends contents can ask for contents"
    gap = inline.commit(content(add("b")), version=7)
    assert (gap.status_code, gap.json()["conflict"]["latest_version"]) == (409, 1)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("", "Line 1 of the content is not a commitInfo"),
        ("{}\n", "single Delta action"),
        ("not json\n", "Line 1 of the content is not JSON"),
        ('{"add":{"path":"a"}}\n', "Line 1 of the content is not a commitInfo"),
        (content(txn="11111111-2222-3333-4444-555555555555") + content(), "is a second commitInfo"),
        (content(txn="no uuid"), "no txnId"),
        (content(inCommitTimestamp="soon"), "commitInfo.inCommitTimestamp, is missing or no number"),
        (content(inCommitTimestamp=-5), "positive"),
        (content(timestamp=1), "must rise"),
        (content() + line({"sidecar": {}}), "no action that a commit may have"),
        (content() + line({"add": 5}), "no action that a commit may have"),
        (content() + '{"add":{"path":"a"},"remove":{"path":"b"}}\n', "single Delta action"),
        (content() + line({"metaData": {"schemaString": "{"}}), "schema"),
        (content() + line({"protocol": {"minReaderVersion": 1}}), "not sound"),
        (content() + '{"add":' * 100 + "{}" + "}" * 100 + "\n", "nested"),
    ],
    ids=range(15),
)
def test_content_that_cannot_be_a_commit_is_refused_and_changes_nothing(
    inline: Inline, body: str, complaint: str
) -> None:
    refused = inline.commit(body, version=1)
    assert refused.status_code == 400, refused.text
    assert complaint in refused.json()["message"]
    assert inline.kept()["latest_version"] == 0


@pytest.mark.parametrize(
    "second",
    [
        "\ufeff" + line(add("a")),
        line(add("a")).replace("100", "NaN"),
        line(add("a")).replace("100", "-Infinity"),
        line(add("a")).replace("100", "1e999"),
    ],
    ids=["byte order mark", "NaN", "Infinity", "larger than any double"],
)
@pytest.mark.parametrize("told", [{"version": 1}, {"metadata_version": 0}], ids=["versioned", "open"])
def test_what_only_python_takes_for_json_is_refused(inline: Inline, second: str, told: dict[str, int]) -> None:
    refused = inline.commit(content() + second, **told)
    assert refused.status_code == 400, refused.text
    assert "Line 2 of the content is not JSON" in refused.json()["message"]
    assert inline.kept()["latest_version"] == 0


@pytest.mark.parametrize(
    ("action", "field"),
    [
        (add("../other/a.parquet"), "add.path"),
        (add("day=1/%2e%2E/../a.parquet"), "add.path"),
        (add("..%2fother%2fa.parquet"), "add.path"),
        (add("/etc/passwd"), "add.path"),
        (add("file:///etc/passwd"), "add.path"),
        (add(""), "add.path"),
        ({"add": {"dataChange": True}}, "add.path"),
        (add("a", deletionVector={"storageType": "p", "pathOrInlineDv": "file:///dv"}), "deletionVector"),
    ],
)
@pytest.mark.parametrize("told", [{"version": 1}, {"metadata_version": 0}], ids=["versioned", "open"])
def test_a_file_outside_of_the_table_is_refused(
    inline: Inline, action: dict[str, Any], field: str, told: dict[str, int]
) -> None:
    refused = inline.commit(content(add("a.parquet"), action), **told)
    assert refused.status_code == 400, refused.text
    message = refused.json()["message"]
    assert message.startswith("Line 3 of the content ")
    assert field in message
    assert inline.loaded()["latest-table-version"] == 0


def test_a_content_that_is_too_large_is_refused_by_a_code_of_its_own(inline: Inline) -> None:
    refused = inline.commit(content(add("a" * 70_000)), version=1)
    assert (refused.status_code, refused.json()["error_code"]) == (400, "COMMIT_TOO_LARGE")
    assert "inline_bytes_max" in refused.json()["message"]


def test_another_table_under_the_name_is_told_apart(inline: Inline, lake: Lake, unique: str) -> None:
    body = {"table_id": str(uuid.uuid4()), "content": content(add("a")), "version": 1}
    refused = inline.http.post(inline.url, json=body)
    assert refused.status_code == 404
    assert "Another table has taken this name" in refused.json()["message"]


def test_metadata_changes_as_the_content_says(inline: Inline) -> None:
    properties = {**inline.loaded()["metadata"]["properties"], "team": "sea"}
    own = {key: value for key, value in properties.items() if not key.startswith(("delta.feature.", "delta.min"))}
    own = {key: value for key, value in own.items() if not key.startswith("delta.last")}
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(
            {"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}]}
        ),
        "partitionColumns": [],
        "configuration": own,
    }
    done = inline.commit(content({"metaData": metadata}), version=1)
    assert done.status_code == 200, done.text
    told = inline.loaded()["metadata"]
    assert told["properties"]["team"] == "sea"
    assert [field["name"] for field in told["columns"]["fields"]] == ["n"]
    assert told["last-commit-version"] == 1
    stale = inline.append(add("a"), metadata_version=0)
    assert (stale.status_code, stale.json()["error_code"]) == (409, "ABORTED")
    assert "last changed by version 1" in stale.json()["message"]
    assert inline.append(add("a"), metadata_version=1).json()["version"] == 2


def test_a_protocol_that_breaks_the_contract_is_refused(inline: Inline) -> None:
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []}
    refused = inline.commit(content({"protocol": protocol}), version=1)
    assert refused.status_code == 400, refused.text
    assert inline.kept()["latest_version"] == 0


def test_an_open_append_becomes_the_next_version(inline: Inline) -> None:
    first, second = inline.append(add("a")).json(), inline.append(add("b")).json()
    assert (first["version"], second["version"]) == (1, 2)
    assert second["timestamp"] > first["timestamp"]
    (one, two) = inline.kept()["commits"]
    info = json.loads(two["content"].splitlines()[0])["commitInfo"]
    assert (info["inCommitTimestamp"], two["timestamp"]) == (second["timestamp"], second["timestamp"])
    assert json.loads(one["content"].splitlines()[1]) == add("a")


def test_an_open_append_that_is_sent_again_is_the_same_commit(inline: Inline) -> None:
    txn = str(uuid.uuid4())
    first = inline.append(add("a"), txn=txn)
    assert inline.append(add("b")).json()["version"] == 2
    again = inline.append(add("a"), txn=txn)
    assert (again.status_code, again.json()["version"]) == (200, 1)
    assert again.json()["timestamp"] == first.json()["timestamp"]
    assert inline.kept()["latest_version"] == 2


def test_an_open_append_is_known_again_when_it_is_published(inline: Inline) -> None:
    txn = str(uuid.uuid4())
    inline.append(add("a"), txn=txn)
    kept = inline.kept()["commits"][0]["content"]
    (inline.table.log / f"{1:020}.json").write_text(kept)
    assert inline.table.report(1).status_code == 200
    assert inline.kept()["commits"] == []
    assert inline.append(add("a"), txn=txn).json()["version"] == 1
    assert inline.kept()["latest_version"] == 1


@pytest.mark.parametrize(
    ("actions", "complaint"),
    [
        ([], "adds no file"),
        ([{"remove": {"path": "a", "dataChange": True}}], "is no new data"),
        ([add("a"), {"txn": {"appId": "x", "version": 1}}], "is no new data"),
        ([add("a", dataChange=False)], "is no new data"),
        ([add("a"), {"metaData": {}}], "is no new data"),
    ],
    ids=["nothing", "remove", "txn", "no data change", "metadata"],
)
def test_only_blind_appends_may_leave_their_version_open(
    inline: Inline, actions: list[dict[str, Any]], complaint: str
) -> None:
    refused = inline.append(*actions)
    assert refused.status_code == 400
    assert complaint in refused.json()["message"]
    assert inline.kept()["latest_version"] == 0


def test_an_open_append_says_for_which_metadata_it_was_made(inline: Inline) -> None:
    refused = inline.commit(content(add("a")))
    assert refused.status_code == 400
    assert "metadata_version" in refused.json()["message"]


def test_open_appends_to_a_table_that_tracks_rows_get_ids_one_after_the_other(tracked: Inline) -> None:
    assert tracked.append(add("a", 10), add("b", 5)).json()["version"] == 1
    assert tracked.append(add("c", 3)).json()["version"] == 2
    ids = [
        (action["add"]["baseRowId"], action["add"]["defaultRowCommitVersion"])
        for one in tracked.kept()["commits"]
        for action in map(json.loads, one["content"].splitlines())
        if "add" in action
    ]
    assert ids == [(0, 1), (10, 1), (15, 2)]
    last = json.loads(tracked.kept()["commits"][-1]["content"].splitlines()[-1])["domainMetadata"]
    assert json.loads(last["configuration"]) == {"rowIdHighWaterMark": 17}


def test_row_ids_go_on_where_a_commit_of_another_writer_ended(tracked: Inline) -> None:
    assert tracked.append(add("a", 10)).json()["version"] == 1
    mark = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":41}', "removed": False}
    later = int(time.time() * 1000) + 30_000
    body = content(add("b", 32), {"domainMetadata": mark}, timestamp=later)
    commit = tracked.table.stage_commit(2, content=body.encode(), timestamp=later)
    assert tracked.table.update({"action": "add-commit", "commit": commit}).status_code == 200
    assert tracked.append(add("c", 3)).json()["version"] == 3
    assert '"baseRowId":42' in tracked.kept(start_version=3)["commits"][0]["content"]


def test_rows_that_are_not_counted_cannot_get_ids(tracked: Inline) -> None:
    refused = tracked.append(add("a", stats="{}"))
    assert refused.status_code == 400
    assert "numRecords" in refused.json()["message"]


def test_writers_that_leave_the_version_open_never_fight(server: ServerProcess, tracked: Inline) -> None:
    """Each file gets a version and row ids of its own, and is there once."""

    def write(writer: int) -> list[int]:
        with server.http() as http:
            mine = Inline(LakeTable(Lake(http), tracked.table.name, tracked.table.id, tracked.table.location))
            answers = [mine.append(add(f"{writer}-{n}", 2)) for n in range(10)]
            assert {answer.status_code for answer in answers} == {200}
            return [answer.json()["version"] for answer in answers]

    with ThreadPoolExecutor(8) as pool:
        versions = [version for found in pool.map(write, range(8)) for version in found]
    assert sorted(versions) == list(range(1, 81))
    kept = tracked.kept()["commits"]
    adds = [json.loads(one["content"].splitlines()[1])["add"] for one in kept]
    assert len({file["path"] for file in adds}) == 80
    assert [file["baseRowId"] for file in adds] == list(range(0, 160, 2))
    times = [one["timestamp"] for one in kept]
    assert times == sorted(set(times))


def test_pages_of_kept_commits_have_no_gap(inline: Inline) -> None:
    for n in range(5):
        inline.append(add(f"{n}"))
    assert [one["version"] for one in inline.kept(start_version=2, end_version=4)["commits"]] == [2, 3, 4]
    refused = inline.http.get(inline.url, params={"start_version": 4, "end_version": 2})
    assert refused.status_code == 400


def test_a_report_rides_along(inline: Inline) -> None:
    inline.append(add("a"))
    (inline.table.log / f"{1:020}.json").write_text(inline.kept()["commits"][0]["content"])
    done = inline.commit(content(add("b")), metadata_version=0, latest_published_version=1)
    assert done.json()["version"] == 2
    assert [one["version"] for one in inline.kept()["commits"]] == [2]


def test_a_report_of_other_bytes_is_not_believed(inline: Inline) -> None:
    inline.append(add("a"))
    (inline.table.log / f"{1:020}.json").write_text("something else")
    inline.table.report(1)
    assert [one["version"] for one in inline.kept()["commits"]] == [1]
    timeline = inline.http.get(f"{TIDEGATE}/tables/main.default.{inline.table.name}/timeline").json()
    assert [alarm["reason"] for alarm in timeline["alarms"]] == ["other_bytes"]


def test_an_external_table_takes_no_inline_commits(lake: Lake, unique: str, tmp_path: Path) -> None:
    protocol = {"min-reader-version": 1, "min-writer-version": 2}
    body = {
        "name": unique,
        "location": f"file://{tmp_path}",
        "table-type": "EXTERNAL",
        "columns": COLUMNS,
        "protocol": protocol,
        "properties": {},
        "last-commit-timestamp-ms": 1_700_000_000_000,
    }
    made = lake.create(body)
    assert made.status_code == 200, made.text
    external = Inline(LakeTable(lake, unique, made.json()["metadata"]["table-uuid"], f"file://{tmp_path}"))
    assert (external.kept()["latest_version"], external.kept()["commits"]) == (None, [])
    for refused in (external.append(add("a")), external.commit(content(add("a")), version=1)):
        assert refused.status_code == 400
        assert "external" in refused.json()["message"]


def test_events_tell_what_an_inline_commit_did(inline: Inline) -> None:
    inline.append(add("a", 3), add("b", 4))
    events = inline.http.get(f"{TIDEGATE}/events", params={"table": f"main.default.{inline.table.name}"}).json()
    (committed,) = [one for one in events["events"] if one["kind"] == "table.committed"]
    told = committed["data"]
    assert (told["operation"], told["rows"], told["files_added"], told["files_removed"]) == ("WRITE", 7, 2, 0)


@pytest.fixture(params=["sqlite", "postgresql"])
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    database = None
    if request.param == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        database = postgres.create_database()
    process = ServerProcess(tmp_path / "home", database).start()
    yield process
    process.stop()


def test_the_server_publishes_what_it_keeps_and_then_keeps_it_no_longer(own_server: ServerProcess) -> None:
    own_server.stop()
    own_server.settings = {"publish_after_ms": "10"}
    own_server.start()
    with own_server.http() as http:
        inline = Inline(plain_table(Lake(http), "t"))
        sent = content(add("a"))
        assert inline.commit(sent, version=1).status_code == 200
        assert inline.append(add("b")).status_code == 200
        wait_until(lambda: inline.kept()["commits"] == [], "both are published")
        assert (inline.table.log / f"{1:020}.json").read_text() == sent
        assert published(inline, 2)[1] == add("b")
        assert inline.staged() == [], "nobody has asked for files"
        assert inline.loaded()["commits"] == []


def test_what_is_kept_survives_a_kill(own_server: ServerProcess) -> None:
    with own_server.http() as http:
        inline = Inline(plain_table(Lake(http), "t"))
        txn = str(uuid.uuid4())
        sent = content(add("a"))
        inline.commit(sent, version=1)
        inline.append(add("b"), txn=txn)
        before = inline.kept()
    own_server.kill()
    own_server.start()
    with own_server.http() as http:
        inline.table.lake.http = http
        assert inline.kept() == before
        assert inline.commit(sent, version=1).status_code == 200
        assert inline.append(add("b"), txn=txn).json()["version"] == 2
        assert [one["version"] for one in inline.loaded()["commits"]] == [2, 1]
        assert len(inline.staged()) == 2


def test_inline_commits_can_be_switched_off(own_server: ServerProcess) -> None:
    own_server.stop()
    own_server.settings = {"inline_bytes_max": "0"}
    own_server.start()
    with own_server.http() as http:
        refused = Inline(plain_table(Lake(http), "t")).append(add("a"))
        assert (refused.status_code, refused.json()["error_code"]) == (400, "COMMIT_TOO_LARGE")


def test_the_doctor_finds_nothing_wrong_with_what_is_only_kept(inline: Inline) -> None:
    inline.append(add("a"))
    found = inline.http.get(f"{TIDEGATE}/doctor/tables/main.default.{inline.table.name}").json()
    assert [one["problem"] for one in found["findings"]] == ["unpublished_tail"]
    mended = inline.http.post(f"{TIDEGATE}/doctor/tables/main.default.{inline.table.name}")
    assert mended.status_code == 200, mended.text
    assert published(inline, 1)[1] == add("a")
    assert inline.kept()["commits"] == []
