"""Commits through the client: staged, stamped, ratified, published, and in step with the catalog's metadata."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.python_client.conftest import KINDS, log_of
from tests.python_client.faces import close_face, open_face
from tests.python_client.proxy import Fault, proxy_to
from tests.servers import ServerProcess
from tidegate import client

WIDER = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "tags", "type": {"type": "array", "elementType": "string", "containsNull": True}, "nullable": True},
    ],
}
WIDER["fields"][1]["metadata"] = {}


@pytest.fixture
def inline_bytes_max() -> int:
    """Staged, unless a test says that it is about both kinds."""
    return 0


def lines_of(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(str(path).removeprefix("file://")).read_text().splitlines()]


def metadata_of(table: Any, version: int = 0) -> dict[str, Any]:
    """The metaData in a published version."""
    return next(line["metaData"] for line in lines_of(log_of(table) / f"{version:020}.json") if "metaData" in line)


def staged_in(table: Any) -> list[str]:
    folder = log_of(table) / "_staged_commits"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_commit_is_staged_stamped_and_ratified(table: Any) -> None:
    add = {"add": {"path": "a.parquet", "size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": True}}
    response = table.commit(1, [add])
    first, second = lines_of(response.path)
    assert second == add
    info = first["commitInfo"]
    assert (info["txnId"], info["inCommitTimestamp"]) == (response.txn_id, response.timestamp)
    loaded = table.load()
    assert loaded.latest_table_version == response.version == 1
    (ratified,) = loaded.commits
    assert (ratified.file_name, ratified.file_size) == (response.path.rpartition("/")[2], response.size)
    assert ratified.timestamp == response.timestamp


@KINDS
def test_timestamps_rise_even_when_the_clock_does_not(table: Any) -> None:
    ahead = int(time.time() * 1000) + 3_600_000
    table.commit(1, [{"commitInfo": {"inCommitTimestamp": ahead, "operation": "MERGE"}}])
    assert table.commit(2, []).timestamp == ahead + 1


@KINDS
def test_timestamps_rise_for_a_client_that_knows_nothing_yet(catalog: Any, table: Any) -> None:
    """The catalog does not tell when the latest commit was once it is published: the log does."""
    ahead = int(time.time() * 1000) + 3_600_000
    table.commit(1, [{"commitInfo": {"inCommitTimestamp": ahead}}])
    assert table.publish() == 1
    assert catalog.table(table.name).commit(2, []).timestamp == ahead + 1


def test_what_the_caller_says_of_a_commit_is_kept(table: Any) -> None:
    info = {"operation": "MERGE", "txnId": "mine", "userMetadata": "tide"}
    response = table.commit(1, [{"commitInfo": info}])
    assert response.txn_id == "mine"
    assert info.items() <= lines_of(response.path)[0]["commitInfo"].items()


def test_each_commit_publishes_the_ones_before_and_reports_it(table: Any) -> None:
    responses = [table.commit(version, []) for version in (1, 2, 3)]
    assert [response.published for response in responses] == [None, 1, 2]
    assert [one.version for one in table.load().commits] == [3]
    for response in responses[:2]:
        assert lines_of(log_of(table) / f"{response.version:020}.json") == lines_of(response.path)


def test_what_another_writer_left_behind_is_published(catalog: Any, table: Any) -> None:
    table.commit(1, [])
    assert catalog.table(table.name).commit(2, []).published == 1


def test_a_published_file_with_other_bytes_is_neither_touched_nor_reported(table: Any) -> None:
    table.commit(1, [])
    intruder = log_of(table) / f"{1:020}.json"
    intruder.write_text("{}\n")
    assert table.commit(2, []).published is None
    assert intruder.read_text() == "{}\n"
    assert [one.version for one in table.load().commits] == [2, 1]


@KINDS
def test_all_that_is_ratified_can_be_published_now(table: Any) -> None:
    table.commit(1, [])
    assert table.publish() == 1
    assert table.load().commits == []
    assert table.publish() == 1


def test_ratified_commits_are_told_in_order_and_by_range(catalog: Any, table: Any) -> None:
    blocked = log_of(table) / f"{1:020}.json"
    table.commit(1, [])
    blocked.write_text("{}\n")
    for version in (2, 3, 4):
        table.commit(version, [])
    other = catalog.table(table.name)
    assert [one.version for one in other.get_ratified_commits().commits] == [1, 2, 3, 4]
    ranged = other.get_ratified_commits(2, 3)
    assert ([one.version for one in ranged.commits], ranged.latest) == ([2, 3], 4)
    assert [one.version for one in other.get_ratified_commits(start=4).commits] == [4]


@KINDS
def test_a_lost_race_tells_who_won_and_leaves_nothing_behind(catalog: Any, table: Any, inline_bytes_max: int) -> None:
    other = catalog.table(table.name)
    other.load()
    won = [table.commit(1, []), table.commit(2, [])]
    before = staged_in(table)
    with pytest.raises(client.CommitConflict, match="commit version 3") as lost:
        other.commit(1, [])
    assert (lost.value.version, lost.value.latest) == (1, 2)
    unpublished = won if inline_bytes_max else won[1:]
    assert [one.timestamp for one in lost.value.commits] == [one.timestamp for one in unpublished]
    assert lost.value.append_stands is True
    assert staged_in(table) == before
    assert other.commit(lost.value.latest + 1, []).version == 3


@KINDS
def test_after_a_lost_race_the_next_commit_needs_no_load(
    server: ServerProcess, face: str, table: Any, inline_bytes_max: int
) -> None:
    asked: list[str] = []

    def note(line: str) -> Fault:
        asked.append(line.split()[0])
        return Fault.PASS

    with proxy_to(server.url, note) as proxy:
        writer = open_face(face, proxy.url, token=server.token, inline_bytes_max=inline_bytes_max)
        other = writer.table(table.name)
        other.load()
        for version in (1, 2, 3):
            table.commit(version, [])
        with pytest.raises(client.CommitConflict) as lost:
            other.commit(1, [])
        assert other.commit(lost.value.latest + 1, []).version == 4
        close_face(writer)
    assert asked == ["GET", "POST", "POST"]


@KINDS
def test_after_a_change_of_metadata_an_append_does_not_stand(catalog: Any, table: Any) -> None:
    other = catalog.table(table.name)
    other.load()
    table.commit(1, [{"metaData": {**metadata_of(table), "description": "changed"}}])
    with pytest.raises(client.CommitConflict) as lost:
        other.commit(1, [])
    assert lost.value.append_stands is False
    assert other.commit(2, []).version == 2


@KINDS
def test_a_version_that_would_leave_a_gap_is_a_conflict_and_is_never_proposed(table: Any) -> None:
    with pytest.raises(client.CommitConflict, match="gap") as lost:
        table.commit(5, [])
    assert (lost.value.latest, lost.value.commits) == (0, ())
    assert staged_in(table) == []


@KINDS
def test_actions_that_cannot_be_a_commit_are_refused_before_anything_is_written(table: Any) -> None:
    with pytest.raises(client.InvalidCommit, match="checkpoint"):
        table.commit(1, [{"checkpoint": {}}])
    with pytest.raises(client.InvalidCommit, match="1 or higher"):
        table.commit(0, [])
    assert staged_in(table) == []
    assert table.commit(1, []).version == 1


@KINDS
def test_what_the_server_refuses_leaves_no_staged_file(table: Any) -> None:
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []}
    with pytest.raises(client.InvalidRequest, match="needs the reader feature"):
        table.commit(1, [{"protocol": protocol}])
    assert staged_in(table) == []
    assert table.commit(1, []).version == 1


# Lockstep


@KINDS
def test_a_commit_that_changes_the_schema_changes_the_catalogs(table: Any) -> None:
    table.set_properties({"team": "sea"})
    before = metadata_of(table)
    configuration = {**before["configuration"], "delta.appendOnly": "false", "color": "blue"}
    changed = {
        **before,
        "schemaString": json.dumps(WIDER),
        "partitionColumns": ["id"],
        "configuration": configuration,
        "description": "tides",
    }
    table.commit(1, [{"metaData": changed}])
    metadata = table.load().metadata
    assert metadata.columns["fields"][1]["type"] == {
        "type": "array",
        "element-type": "string",
        "contains-null": True,
    }
    assert metadata.partition_columns == ["id"]
    assert (metadata.properties["delta.appendOnly"], metadata.properties["color"]) == ("false", "blue")
    assert metadata.last_commit_version == 1
    assert table.describe().comment == "tides"
    table.commit(2, [])
    table.commit(3, [{"metaData": before}])
    metadata = table.load().metadata
    assert [field["name"] for field in metadata.columns["fields"]] == ["id", "name"]
    assert "color" not in metadata.properties
    assert metadata.properties["team"] == "sea", "what is in the catalog only is not the log's to remove"
    assert table.describe().comment is None


def test_the_metadata_before_may_be_given(table: Any) -> None:
    before = metadata_of(table)
    (log_of(table) / f"{0:020}.json").rename(log_of(table) / "gone")
    changed = {**before, "configuration": {**before["configuration"], "color": "blue"}}
    with pytest.raises(client.InvalidCommit, match="metadata_before"):
        table.commit(1, [{"metaData": changed}])
    table.commit(1, [{"metaData": changed}], metadata_before=before)
    assert table.load().metadata.properties["color"] == "blue"


@KINDS
def test_a_protocol_and_domains_go_along_with_their_commit(table: Any) -> None:
    lines = lines_of(log_of(table) / f"{0:020}.json")
    protocol = next(line["protocol"] for line in lines if "protocol" in line)
    features = [*protocol["writerFeatures"], "rowTracking", "domainMetadata"]
    rows = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark": 41}', "removed": False}
    mine = {"domain": "mine", "configuration": "any text", "removed": False}
    table.commit(
        1, [{"protocol": {**protocol, "writerFeatures": features}}, {"domainMetadata": rows}, {"domainMetadata": mine}]
    )
    properties = table.load().metadata.properties
    assert properties["delta.feature.rowTracking"] == "supported"
    assert properties["delta.rowTracking.rowIdHighWaterMark"] == "41"
    table.commit(2, [{"domainMetadata": {**rows, "removed": True}}])
    assert "delta.rowTracking.rowIdHighWaterMark" not in table.load().metadata.properties


@pytest.mark.parametrize("bounds", [(-1, None), (None, -1), ("1", None), (None, 1.5)])
def test_a_range_that_is_none_is_refused(table: Any, bounds: tuple[Any, Any]) -> None:
    with pytest.raises(client.InvalidRequest, match="counted from 0"):
        table.get_ratified_commits(*bounds)
