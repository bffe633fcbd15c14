"""External tables: somebody else writes their log. The catalog knows them, and never touches their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import COLUMNS, DELTA, UNITY, Draft, Lake, LakeTable, add_commit, error_of, report, set_properties

INVALID = (400, "InvalidParameterValueException")
PROTOCOL: dict[str, Any] = {
    "min-reader-version": 3,
    "min-writer-version": 7,
    "reader-features": ["deletionVectors"],
    "writer-features": ["deletionVectors", "appendOnly", "domainMetadata"],
}
TIMESTAMP = 1_700_000_000_000
Files = dict[str, tuple[bytes, int, int]]


def external_request(name: str, location: str, **changes: Any) -> dict[str, Any]:
    request = {
        "name": name,
        "location": location,
        "table-type": "EXTERNAL",
        "columns": COLUMNS,
        "partition-columns": [],
        "protocol": PROTOCOL,
        "properties": {"delta.appendOnly": "false"},
        "last-commit-timestamp-ms": TIMESTAMP,
    }
    return request | {key.replace("_", "-"): value for key, value in changes.items()}


def files_of(folder: Path) -> Files:
    """Every file with its bytes, its mode and when it was changed; folders too, by when they were changed."""
    found: Files = {}
    for path in sorted([folder, *folder.rglob("*")]):
        state = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (content, state.st_mode, state.st_mtime_ns)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Delta table that somebody else made: a log of two versions, a staged file, and data."""
    place = tmp_path / "lake" / "orders"
    (place / "_delta_log" / "_staged_commits").mkdir(parents=True)
    for name in ("00000000000000000000.json", "00000000000000000001.json", "_staged_commits/leftover.json"):
        (place / "_delta_log" / name).write_text('{"commitInfo":{}}\n')
    (place / "part-0.parquet").write_bytes(bytes(range(256)))
    return place


def registered(lake: Lake, name: str, location: str, **changes: Any) -> LakeTable:
    response = lake.create(external_request(name, location, **changes))
    assert response.status_code == 200, response.text
    answer = response.json()["metadata"]
    return LakeTable(lake, name, answer["table-uuid"], answer["location"])


def check_nothing_registered(lake: Lake, response: httpx.Response, name: str) -> None:
    assert error_of(response) == INVALID, response.text
    assert error_of(lake.load(name)) == (404, "NoSuchTableException")


def test_an_external_table_is_registered_loaded_and_listed_as_it_was_declared(
    lake: Lake, unique: str, folder: Path
) -> None:
    table = registered(lake, unique, f"file://{folder}", comment="not ours")
    metadata = table.load()["metadata"]
    assert metadata["table-type"] == "EXTERNAL"
    assert metadata["location"] == f"file://{folder}"
    assert metadata["columns"] == COLUMNS
    assert metadata["properties"]["delta.appendOnly"] == "false"
    assert metadata["properties"]["delta.feature.deletionVectors"] == "supported"
    assert (metadata["last-commit-version"], metadata["last-commit-timestamp-ms"]) == (0, TIMESTAMP)
    assert table.load()["commits"] == []
    shown = lake.http.get(f"{UNITY}/tables/main.default.{unique}").json()
    assert (shown["table_type"], shown["data_source_format"]) == ("EXTERNAL", "DELTA")
    assert (shown["storage_location"], shown["comment"]) == (f"file://{folder}", "not ours")


def test_the_files_of_an_external_table_are_never_touched(lake: Lake, unique: str, folder: Path) -> None:
    before = files_of(folder.parent)
    table = registered(lake, unique, f"file://{folder}")
    table.load()
    assert table.update(set_properties(team="sea")).status_code == 200
    assert error_of(table.update(report(1))) == INVALID
    credentials = f"{lake.tables_url()}/{unique}/credentials?operation=READ_WRITE"
    assert lake.http.get(credentials).status_code == 200
    renamed = lake.http.post(f"{lake.tables_url()}/{unique}/rename", json={"new-name": f"{unique}_new"})
    assert renamed.status_code == 204
    assert lake.http.delete(f"{lake.tables_url()}/{unique}_new").status_code == 204
    assert error_of(lake.load(f"{unique}_new")) == (404, "NoSuchTableException")
    assert files_of(folder.parent) == before


@pytest.mark.parametrize("how", ["delta", "unity", "forced delete of its schema"])
def test_dropping_an_external_table_leaves_its_files_and_frees_its_location(
    lake: Lake, unique: str, folder: Path, how: str
) -> None:
    assert lake.http.post(f"{UNITY}/schemas", json={"name": unique, "catalog_name": "main"}).status_code == 200
    own = Lake(lake.http, schema=unique)
    registered(own, "t", f"file://{folder}")
    before = files_of(folder.parent)
    urls = {
        "delta": f"{own.tables_url()}/t",
        "unity": f"{UNITY}/tables/main.{unique}.t",
        "forced delete of its schema": f"{UNITY}/schemas/main.{unique}?force=true",
    }
    assert lake.http.delete(urls[how]).is_success
    assert error_of(own.load("t"))[0] == 404
    assert files_of(folder.parent) == before
    assert registered(lake, unique, f"file://{folder}").load()["metadata"]["location"] == f"file://{folder}"


def test_a_table_may_be_registered_where_nothing_is_yet_and_nothing_is_made_there(
    lake: Lake, unique: str, tmp_path: Path
) -> None:
    location = f"file://{tmp_path}/not/there/yet"
    assert registered(lake, unique, location).load()["metadata"]["location"] == location
    assert list(tmp_path.iterdir()) == []


# Updates


def test_properties_columns_and_the_snapshot_version_follow_the_writers_word(
    lake: Lake, unique: str, folder: Path
) -> None:
    """The log is written elsewhere: what a managed table needs a commit for comes alone here."""
    table = registered(lake, unique, f"file://{folder}")
    wider = {"type": "struct", "fields": [*COLUMNS["fields"], {**COLUMNS["fields"][1], "name": "more"}]}
    snapshot = {
        "action": "update-metadata-snapshot-version",
        "last-commit-version": 7,
        "last-commit-timestamp-ms": TIMESTAMP + 7,
    }
    properties = {"action": "set-properties", "updates": {"delta.appendOnly": "true", "team": "sea"}}
    response = table.update(properties, {"action": "set-columns", "columns": wider}, snapshot)
    assert response.status_code == 200, response.text
    metadata = table.load()["metadata"]
    assert metadata["columns"] == wider
    assert metadata["properties"]["delta.appendOnly"] == "true"
    assert metadata["properties"]["team"] == "sea"
    assert (metadata["last-commit-version"], metadata["last-commit-timestamp-ms"]) == (7, TIMESTAMP + 7)
    assert metadata["properties"]["delta.lastUpdateVersion"] == "7"
    assert metadata["properties"]["delta.lastCommitTimestamp"] == str(TIMESTAMP + 7)


EACH_ALONE: dict[str, dict[str, Any]] = {
    "set-properties": {"action": "set-properties", "updates": {"delta.appendOnly": "true"}},
    "remove-properties": {"action": "remove-properties", "removals": ["delta.appendOnly"]},
    "set-columns": {"action": "set-columns", "columns": {"type": "struct", "fields": COLUMNS["fields"][:1]}},
    "set-partition-columns": {"action": "set-partition-columns", "partition-columns": ["name"]},
    "set-protocol": {
        "action": "set-protocol",
        "protocol": {"min-reader-version": 1, "min-writer-version": 2},
    },
    "set-table-comment": {"action": "set-table-comment", "comment": "not ours"},
    "set-domain-metadata": {"action": "set-domain-metadata", "updates": {"app.owner": {"team": "sea"}}},
}


@pytest.mark.parametrize("update", EACH_ALONE.values(), ids=EACH_ALONE.keys())
def test_every_metadata_update_works_without_a_commit_and_changes_the_etag(
    lake: Lake, unique: str, folder: Path, update: dict[str, Any]
) -> None:
    table = registered(lake, unique, f"file://{folder}")
    before = table.load()["metadata"]["etag"]
    response = table.update(update)
    assert response.status_code == 200, response.text
    assert table.load()["metadata"]["etag"] == response.json()["metadata"]["etag"] != before


@pytest.mark.parametrize(("version", "timestamp"), [(-1, 1), (1, 0), (1, -1)])
def test_a_snapshot_version_that_cannot_be_is_refused(
    lake: Lake, unique: str, folder: Path, version: int, timestamp: int
) -> None:
    table = registered(lake, unique, f"file://{folder}")
    before = table.load()
    told = {"last-commit-version": version, "last-commit-timestamp-ms": timestamp}
    assert error_of(table.update({"action": "update-metadata-snapshot-version", **told})) == INVALID
    assert table.load() == before


def test_the_snapshot_version_of_a_managed_table_comes_from_its_commits_only(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    before = table.load()
    told = {"last-commit-version": 7, "last-commit-timestamp-ms": TIMESTAMP}
    assert error_of(table.update({"action": "update-metadata-snapshot-version", **told})) == INVALID
    assert table.load() == before


def test_an_external_table_takes_no_commits_and_no_publication_reports(lake: Lake, unique: str, folder: Path) -> None:
    table = registered(lake, unique, f"file://{folder}")
    before = table.load()
    commit = {
        "version": 1,
        "timestamp": TIMESTAMP + 1,
        "file-name": "00000000000000000001.6f8d2a4e-1f0b-4a3e-9a53-3a1f7d7e0c11.json",
        "file-size": 10,
        "file-modification-timestamp": TIMESTAMP + 1,
    }
    for updates in ([add_commit(commit)], [report(0)], [report(1)], [add_commit(commit), report(0)]):
        response = table.update(*updates)
        assert error_of(response) == INVALID
        assert "external" in response.json()["error"]["message"]
    assert table.load() == before


# What cannot be an external table


def test_a_table_that_a_catalog_manages_cannot_be_external(lake: Lake, unique: str, folder: Path) -> None:
    managed = {**PROTOCOL, "reader-features": ["deletionVectors", "catalogManaged"]}
    managed["writer-features"] = [*PROTOCOL["writer-features"], "catalogManaged"]
    response = lake.create(external_request(unique, f"file://{folder}", protocol=managed))
    check_nothing_registered(lake, response, unique)
    assert "catalogManaged" in response.json()["error"]["message"]


def test_an_external_table_cannot_become_one_that_a_catalog_manages(lake: Lake, unique: str, folder: Path) -> None:
    table = registered(lake, unique, f"file://{folder}")
    before = table.load()
    managed = {**PROTOCOL, "reader-features": ["deletionVectors", "catalogManaged"]}
    managed["writer-features"] = [*PROTOCOL["writer-features"], "catalogManaged"]
    response = table.update({"action": "set-protocol", "protocol": managed})
    assert response.status_code == 400, response.text
    assert "catalogManaged" in response.json()["error"]["message"]
    assert table.load() == before


@pytest.mark.parametrize("place", ["root", "below the root", "staged", "managed", "below a managed table", "as java"])
def test_a_location_in_the_storage_of_managed_tables_is_refused(lake: Lake, unique: str, place: str) -> None:
    managed, staged = lake.new_table(f"{unique}_managed"), lake.draft(f"{unique}_staged")
    root = managed.location.rpartition("/")[0]
    locations = {
        "root": root,
        "below the root": f"{root}/made-up",
        "staged": staged.location,
        "managed": managed.location,
        "below a managed table": f"{managed.location}/_delta_log",
        "as java": managed.location.replace("file:///", "file:/") + "/",
    }
    check_nothing_registered(lake, lake.create(external_request(unique, locations[place])), unique)


@pytest.mark.parametrize("level", ["catalog", "schema"])
@pytest.mark.parametrize("place", ["staged", "managed", "below a managed table"])
def test_a_location_in_the_own_storage_of_a_catalog_or_schema_is_refused(
    lake: Lake, unique: str, tmp_path: Path, level: str, place: str
) -> None:
    """Catalogs and schemas may bring a storage root: the tables in there are managed like all others."""
    roots = {level: {"storage_root": f"file://{tmp_path}/root"}}
    lake.http.post(f"{UNITY}/catalogs", json={"name": unique, **roots.get("catalog", {})})
    lake.http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": unique, **roots.get("schema", {})})
    own = Lake(lake.http, catalog=unique, schema="s")
    managed, staged = own.new_table("managed"), own.draft("staged")
    assert managed.location.startswith(f"file://{tmp_path}/root/")
    locations = {
        "staged": staged.location,
        "managed": managed.location,
        "below a managed table": f"{managed.location}/data",
    }
    response = lake.create(external_request(unique, locations[place]))
    assert response.status_code == 400, response.text
    check_nothing_registered(lake, response, unique)


def test_a_location_is_registered_once_however_it_is_spelled(lake: Lake, unique: str, folder: Path) -> None:
    registered(lake, unique, f"file://{folder}")
    for spelled in (f"file://{folder}", f"file:{folder}", f"file://localhost{folder}", f"file://{folder}/"):
        response = lake.create(external_request(f"{unique}_again", spelled))
        check_nothing_registered(lake, response, f"{unique}_again")
        assert unique in response.json()["error"]["message"]


@pytest.mark.parametrize("prefix", ["file:", "file://", "file://localhost"])
def test_all_spellings_of_a_local_location_are_served_alike(lake: Lake, unique: str, folder: Path, prefix: str) -> None:
    assert registered(lake, unique, f"{prefix}{folder}/").load()["metadata"]["location"] == f"file://{folder}"
    place = {"location": f"{prefix}{folder}", "operation": "READ"}
    vended = lake.http.get(f"{DELTA}/temporary-path-credentials", params=place).json()["storage-credentials"]
    assert [entry["prefix"] for entry in vended] == [f"file://{folder}"]


def test_credentials_to_write_are_vended_only_where_an_external_table_could_be(
    lake: Lake, unique: str, folder: Path
) -> None:
    managed = lake.new_table(unique).load()["metadata"]["location"]
    registered(lake, f"{unique}_external", f"file://{folder}")

    def asked(location: str, operation: str) -> int:
        place = {"location": location, "operation": operation}
        return lake.http.get(f"{DELTA}/temporary-path-credentials", params=place).status_code

    assert asked(f"file://{folder}-free", "READ_WRITE") == 200
    taken = [managed, str(Path(managed).parent), f"{managed}/_delta_log", f"file://{folder}", f"file://{folder}/inside"]
    assert [asked(location, "READ_WRITE") for location in taken] == [400] * len(taken)


def test_a_name_that_is_taken_is_refused(lake: Lake, unique: str, folder: Path) -> None:
    lake.new_table(unique)
    response = lake.create(external_request(unique, f"file://{folder}"))
    assert error_of(response) == (409, "AlreadyExistsException")
    registered(lake, f"{unique}_other", f"file://{folder}")
    response = lake.create(external_request(f"{unique}_other", f"file://{folder}-2"))
    assert error_of(response) == (409, "AlreadyExistsException")


def test_a_staging_table_cannot_be_finished_as_an_external_one(lake: Lake, unique: str) -> None:
    draft: Draft = lake.draft(unique)
    draft.write_version_0()
    response = lake.create({**draft.request, "table-type": "EXTERNAL"})
    check_nothing_registered(lake, response, unique)
    assert lake.create(draft.request).status_code == 200
