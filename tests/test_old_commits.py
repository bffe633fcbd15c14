"""Commits through specification v0.1.0: proposed, listed in pages, reported as published, in both spellings."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, Lake, error_of, file_name
from tests.old_lake import OldLake, OldTable, protocol_action
from tests.servers import ServerProcess

INVALID = (400, "INVALID_PARAMETER_VALUE")
CONVERTED = {
    "metadata_location": "file:///t/metadata/v0.json",
    "converted_delta_version": 0,
    "converted_delta_timestamp": "2026-02-09T17:00:00.000000Z",
}


@pytest.fixture
def old(http: httpx.Client) -> OldLake:
    return OldLake(http)


@pytest.fixture(params=[False, True], ids=["as specified", "as shipped"])
def table(request: pytest.FixtureRequest, old: OldLake, unique: str) -> OldTable:
    """A new table, by the addresses of the specification and by those of the clients that exist."""
    return replace(old.new_table(unique), preview=request.param)


def test_a_new_table_has_version_0_and_no_commits(table: OldTable) -> None:
    answer = table.get_commits()
    assert answer.status_code == 200
    assert answer.json() == {"commits": [], "latest_table_version": 0}


def test_a_commit_is_ratified_listed_and_forgotten_once_its_publication_is_verified(table: OldTable) -> None:
    info = table.stage_commit(1)
    assert table.get_commits().json()["commits"] == []
    accepted = table.write(commit_info=info)
    assert (accepted.status_code, accepted.json()) == (200, {})
    assert table.get_commits().json() == {"commits": [info], "latest_table_version": 1}
    table.files.staged[1] = info["file_name"]
    assert table.report(1).status_code == 200
    assert table.versions() == ([1], 1), "a claim alone makes nothing forgotten"
    table.files.publish(1)
    assert table.report(1).json() == {}
    assert table.versions() == ([], 1)


def test_a_report_rides_along_with_the_next_commit(table: OldTable) -> None:
    assert table.commit(1).status_code == 200
    table.files.publish(1)
    key = "latest_backfilled_version" if table.preview else "latest_published_version"
    assert table.commit(2, **{key: 1}).status_code == 200
    assert table.versions() == ([2], 2)


def test_both_names_of_the_published_version_are_understood_and_may_not_differ(table: OldTable) -> None:
    assert table.commit(1).status_code == 200
    assert table.write(latest_published_version=0, latest_backfilled_version=0).status_code == 200
    refused = table.write(latest_published_version=0, latest_backfilled_version=1)
    assert error_of(refused) == INVALID
    assert "differ" in refused.json()["message"]


def test_a_commit_that_is_sent_again_succeeds_and_changes_nothing(table: OldTable) -> None:
    info = table.stage_commit(1)
    for _ in range(2):
        assert table.write(commit_info=info).status_code == 200
    assert table.commit(2).status_code == 200
    assert table.write(commit_info=info).status_code == 200
    assert table.versions() == ([1, 2], 2)


def test_a_version_that_another_commit_has_is_a_conflict_and_a_gap_is_not_one(table: OldTable) -> None:
    assert table.commit(1).status_code == 200
    lost = table.commit(1)
    assert error_of(lost) == (409, "ALREADY_EXISTS")
    assert "propose version 2" in lost.json()["message"]
    for version in (3, 5000):
        assert error_of(table.commit(version)) == INVALID
    assert table.versions() == ([1], 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 0}, "version is 1 or higher"),
        ({"version": -1}, "version is 1 or higher"),
        ({"timestamp": 0}, "is positive"),
        ({"timestamp": 1}, "but 1 is proposed"),
        ({"file_size": 0}, "is positive"),
        ({"file_modification_timestamp": -5}, "is positive"),
        ({"file_name": ""}, "cannot be the staged file"),
        ({"file_name": "../../../../etc/passwd"}, "cannot be the staged file"),
        ({"file_name": file_name(2, str(uuid.UUID(int=1)))}, "cannot be the staged file of version 1"),
    ],
    ids=str,
)
def test_a_commit_with_an_invalid_field_is_refused(table: OldTable, change: dict[str, Any], message: str) -> None:
    info = table.stage_commit(1)
    refused = table.write(commit_info={**info, **change})
    assert error_of(refused) == INVALID
    assert message in refused.json()["message"]
    assert table.versions() == ([], 0)
    assert table.write(commit_info=info).status_code == 200


@pytest.mark.parametrize("missing", ["version", "timestamp", "file_name", "file_size", "file_modification_timestamp"])
def test_a_commit_without_a_required_field_is_refused(table: OldTable, missing: str) -> None:
    info = table.stage_commit(1)
    refused = table.write(commit_info={key: value for key, value in info.items() if key != missing})
    assert error_of(refused) == INVALID
    assert missing in refused.json()["message"]


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({}, "neither commit_info nor latest_published_version"),
        ({"latest_published_version": -1}, "0 or higher"),
        ({"latest_published_version": 1}, "the latest ratified version is 0"),
        ({"latest_published_version": 0, "metadata": {"description": "x"}}, "together with commit_info"),
        ({"latest_published_version": 0, "uniform": {"iceberg": CONVERTED}}, "together with commit_info"),
    ],
    ids=str,
)
def test_a_request_that_says_too_little_or_too_much_is_refused(
    table: OldTable, sent: dict[str, Any], message: str
) -> None:
    refused = table.write(**sent)
    assert error_of(refused) == INVALID
    assert message in refused.json()["message"]


# Who and where


@pytest.mark.parametrize("call", ["get", "write"])
@pytest.mark.parametrize(
    ("change", "expected", "message"),
    [
        ({"table_id": "not-a-uuid"}, INVALID, "is not a UUID"),
        ({"table_id": "00000000-0000-4000-8000-000000000000"}, (404, "TABLE_DOES_NOT_EXIST"), "no table with id"),
        ({"table_uri": "file:///elsewhere"}, INVALID, "Get the table anew"),
        ({"table_uri": "elsewhere"}, INVALID, "is not a storage location"),
        ({"table_id": None}, INVALID, "table_id"),
        ({"table_uri": None}, INVALID, "table_uri"),
    ],
    ids=str,
)
def test_a_table_is_named_by_its_id_and_its_location(
    table: OldTable, call: str, change: dict[str, Any], expected: tuple[int, str], message: str
) -> None:
    sent = {**table.identity, **change}
    if call == "get":
        refused = table.lake.http.request("GET", f"{UNITY}/delta/commits", json=sent)
    else:
        refused = table.lake.http.post(f"{UNITY}/delta/commit", json={**sent, "latest_published_version": 0})
    assert error_of(refused) == expected
    assert message in refused.json()["message"]


def test_the_id_may_be_in_capitals_and_the_location_spelled_as_java_does(table: OldTable) -> None:
    location = table.files.location.replace("file:///", "file:/") + "/"
    asked = {"table_id": table.files.id.upper(), "table_uri": location}
    assert table.versions(**asked) == ([], 0)
    assert table.write(**asked, commit_info=table.stage_commit(1)).status_code == 200


def test_a_staging_table_has_no_commits_to_get(old: OldLake, unique: str) -> None:
    draft = old.draft(unique)
    staged = old.table(unique, draft.id, draft.location)
    assert error_of(staged.get_commits()) == (404, "TABLE_DOES_NOT_EXIST")


def test_a_dropped_table_takes_no_commits(table: OldTable) -> None:
    dropped = table.lake.http.delete(f"{UNITY}/tables/main.default.{table.files.name}")
    assert dropped.status_code == 200
    assert error_of(table.commit(1)) == (404, "TABLE_DOES_NOT_EXIST")
    assert error_of(table.get_commits()) == (404, "TABLE_DOES_NOT_EXIST")


def test_a_renamed_table_is_the_same_table(table: OldTable) -> None:
    renamed = table.lake.http.post(
        f"{Lake(table.lake.http).tables_url()}/{table.files.name}/rename", json={"new-name": f"{table.files.name}_new"}
    )
    assert renamed.status_code == 204
    assert table.commit(1).status_code == 200
    assert table.versions() == ([1], 1)


@pytest.fixture
def external(old: OldLake, unique: str, tmp_path: Path) -> OldTable:
    """A table whose log somebody else decides on."""
    place = tmp_path.as_uri()
    protocol = {"min-reader-version": 1, "min-writer-version": 2}
    columns = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    request = {"name": f"{unique}_ext", "table-type": "EXTERNAL", "location": place, "columns": columns}
    created = Lake(old.http).create({**request, "protocol": protocol, "properties": {}, "last-commit-timestamp-ms": 1})
    assert created.status_code == 200, created.text
    return old.table(f"{unique}_ext", created.json()["metadata"]["table-uuid"], place)


def test_of_a_table_that_is_not_managed_here_the_latest_version_is_minus_1(external: OldTable) -> None:
    assert external.get_commits().json() == {"commits": [], "latest_table_version": -1}


def test_a_table_that_is_not_managed_here_takes_no_commits(external: OldTable) -> None:
    refused = external.commit(1)
    assert error_of(refused) == INVALID
    assert "is external" in refused.json()["message"]


# Ranges and pages


@pytest.fixture
def grown(table: OldTable) -> OldTable:
    """Versions 1 and 2 are published, 3 to 7 are not."""
    for version in range(1, 8):
        assert table.commit(version).status_code == 200
    for version in (1, 2):
        table.files.publish(version)
    assert table.report(2).status_code == 200
    return table


@pytest.mark.parametrize("in_query", [False, True], ids=["body", "query"])
@pytest.mark.parametrize(
    ("asked", "versions"),
    [
        ({}, [3, 4, 5, 6, 7]),
        ({"start_version": 0}, [3, 4, 5, 6, 7]),
        ({"start_version": 5}, [5, 6, 7]),
        ({"end_version": 4}, [3, 4]),
        ({"start_version": 4, "end_version": 6}, [4, 5, 6]),
        ({"start_version": 5, "end_version": 5}, [5]),
        ({"start_version": 8}, []),
        ({"start_version": 100, "end_version": 200}, []),
        ({"start_version": 0, "end_version": 2}, []),
        ({"end_version": 2**63 - 1}, [3, 4, 5, 6, 7]),
    ],
    ids=str,
)
def test_commits_of_a_range_are_listed_and_the_latest_version_is_always_the_true_one(
    grown: OldTable, in_query: bool, asked: dict[str, int], versions: list[int]
) -> None:
    assert grown.versions(in_query=in_query, **asked) == (versions, 7)


@pytest.mark.parametrize("in_query", [False, True], ids=["body", "query"])
@pytest.mark.parametrize(
    "asked",
    [
        {"start_version": -1},
        {"end_version": -1},
        {"start_version": 5, "end_version": 4},
        {"start_version": "five"},
        {"end_version": 1.5},
        {"start_version": 2**63},
    ],
    ids=str,
)
def test_a_range_that_is_none_is_refused(table: OldTable, in_query: bool, asked: dict[str, Any]) -> None:
    assert error_of(table.get_commits(in_query=in_query, **asked)) == INVALID


def test_query_and_body_may_share_the_work_but_not_contradict_each_other(grown: OldTable) -> None:
    url = f"{UNITY}/delta/commits"
    http = grown.lake.http
    shared = http.request("GET", url, params={**grown.identity, "start_version": 6}, json={"end_version": 6})
    assert [commit["version"] for commit in shared.json()["commits"]] == [6]
    same = http.request("GET", url, params={**grown.identity, "start_version": 6}, json={"start_version": 6})
    assert same.status_code == 200
    other = http.request("GET", url, params={**grown.identity, "start_version": 6}, json={"start_version": 7})
    assert error_of(other) == INVALID
    assert "start_version" in other.json()["message"]


@pytest.fixture(scope="module")
def small_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    limits = {"commits_page_size_max": "2", "unpublished_commits_max": "5"}
    server = ServerProcess(tmp_path_factory.mktemp("pages"), settings=limits).start()
    yield server
    assert server.stop() == 0


def test_a_client_that_follows_the_pages_sees_every_commit_once(small_pages: ServerProcess) -> None:
    with small_pages.http() as http:
        table = OldLake(http).new_table("paged")
        for version in range(1, 6):
            assert table.commit(version).status_code == 200
        seen: list[int] = []
        start, latest = 0, 5
        for _ in range(4):
            versions, latest = table.versions(start_version=start)
            assert (len(versions) <= 2, latest) == (True, 5)
            if not versions:
                break
            seen += versions
            start = versions[-1] + 1
        assert seen == [1, 2, 3, 4, 5]


def test_a_backlog_at_its_bound_tells_the_client_to_publish(small_pages: ServerProcess) -> None:
    with small_pages.http() as http:
        table = OldLake(http).new_table("full")
        for version in range(1, 6):
            assert table.commit(version).status_code == 200
        full = table.commit(6)
        assert error_of(full) == (429, "RESOURCE_EXHAUSTED")
        assert "Publish them" in full.json()["message"]
        table.files.publish(1)
        assert table.commit(6, latest_published_version=1).status_code == 200


# The staged file


def test_a_staged_file_that_is_not_there_is_refused_unless_requests_are_trusted(table: OldTable) -> None:
    info = table.stage_commit(1)
    (table.files.log / "_staged_commits" / info["file_name"]).unlink()
    refused = table.write(commit_info=info)
    assert error_of(refused) == INVALID
    assert "is not there. Write it before you propose it." in refused.json()["message"]
    assert table.trusted().write(commit_info=info).status_code == 200


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1", "Line 2 of the staged commit is not JSON"),
        (b'{"protocol":{}}\n', "The staged commit is not sound"),
        (b'{"metaData":{"schemaString":"{"}}\n', "The schema in the staged commit is not JSON"),
        (b'{"metaData":{"schemaString":"{\\"type\\":\\"struct\\",\\"fields\\":[]}"}}\n', "has no columns"),
        (b'{"domainMetadata":{"domain":"delta.clustering","configuration":"x"}}\n', "is not JSON"),
        (b'{"domainMetadata":{"domain":"delta.clustering","configuration":"[]"}}\n', "is not a JSON object"),
        (b'{"domainMetadata":{"domain":"delta.clustering","configuration":"{}"}}\n', "needs clusteringColumns"),
        (b'{"domainMetadata":{"domain":"delta.rowTracking","configuration":"7"}}\n', "is not a JSON object"),
    ],
)
def test_a_staged_file_that_cannot_be_read_is_refused(table: OldTable, content: bytes, message: str) -> None:
    info = table.stage_commit(1)
    with (table.files.log / "_staged_commits" / info["file_name"]).open("ab") as file:
        file.write(content)
    refused = table.write(commit_info={**info, "file_size": info["file_size"] + len(content)})
    assert error_of(refused) == INVALID
    assert message in refused.json()["message"]
    assert table.versions() == ([], 0)


def test_a_protocol_that_breaks_the_contract_is_refused_wherever_it_is_said(table: OldTable) -> None:
    action = {"protocol": protocol_action(("catalogManaged", "vacuumProtocolCheck"))}
    refused = table.commit(1, action)
    assert error_of(refused) == INVALID
    assert "inCommitTimestamp" in refused.json()["message"]
    assert table.commit(1).status_code == 200
