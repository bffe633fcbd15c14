"""Which tables can be adopted, as what, and again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lake import UNITY, Lake
from tests.servers import ServerProcess
from tests.test_drop_commands import run
from tests.test_ownership import Plain, adopt, adopted, allow, is_ours, promises, release

ENABLED = "delta.enableInCommitTimestamps"
SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
SINCE_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


@pytest.fixture
def plain(lake: Lake, tmp_path: Path) -> Plain:
    allow(lake.http, tmp_path)
    return Plain(tmp_path / "orders").create()


def configured(plain: Plain, version: int, **configuration: str) -> None:
    metadata = plain.actions(0)["metaData"] | {
        "configuration": {k.replace("__", "."): v for k, v in configuration.items()}
    }
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    plain.put(version, {"commitInfo": {"inCommitTimestamp": 5}}, {"protocol": features}, {"metaData": metadata})


def test_in_commit_timestamps_begin_after_the_newest_commit_even_if_clocks_differ(
    lake: Lake, plain: Plain, unique: str
) -> None:
    """Without them a commit is as old as its file, and that may lie in the future."""
    future = int(time.time()) + 5000
    os.utime(plain.log / f"{1:020}.json", (future, future))
    assert adopt(lake.http, plain, unique).status_code == 200
    commit = plain.actions(2)
    assert commit["commitInfo"]["inCommitTimestamp"] == future * 1000 + 1
    assert commit["metaData"]["configuration"][SINCE_VERSION] == "2"
    assert commit["metaData"]["configuration"][SINCE_TIMESTAMP] == str(future * 1000 + 1)
    assert lake.load(unique).json()["metadata"]["last-commit-timestamp-ms"] == future * 1000 + 1


def test_in_commit_timestamps_that_were_switched_off_begin_anew(lake: Lake, plain: Plain, unique: str) -> None:
    old = {SINCE_VERSION: "1", SINCE_TIMESTAMP: "7"}
    configured(plain, 2, **{ENABLED: "false"}, **old)
    assert adopt(lake.http, plain, unique).status_code == 200
    commit = plain.actions(3)
    timestamp = str(commit["commitInfo"]["inCommitTimestamp"])
    after = commit["metaData"]["configuration"]
    assert [after[key] for key in (ENABLED, SINCE_VERSION, SINCE_TIMESTAMP)] == ["true", "3", timestamp]


def test_in_commit_timestamps_keep_the_version_that_they_began_with(lake: Lake, plain: Plain, unique: str) -> None:
    configured(plain, 2, **{ENABLED: "TRUE", SINCE_VERSION: "2", SINCE_TIMESTAMP: "5"})
    assert adopt(lake.http, plain, unique).status_code == 200
    after = plain.actions(3)["metaData"]["configuration"]
    assert [after[key] for key in (ENABLED, SINCE_VERSION, SINCE_TIMESTAMP)] == ["true", "2", "5"]


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "needs minReaderVersion 4"),
        ({"minReaderVersion": 3, "minWriterVersion": 8}, "needs minWriterVersion 8"),
    ],
    ids=["reader", "writer"],
)
def test_newer_protocols_are_left_to_newer_catalogs(
    lake: Lake, plain: Plain, unique: str, protocol: dict[str, Any], reason: str
) -> None:
    plain.put(2, {"commitInfo": {}}, {"protocol": {**protocol, "readerFeatures": [], "writerFeatures": []}})
    refused = adopt(lake.http, plain, unique)
    assert refused.status_code == 400
    assert reason in refused.json()["message"]
    assert "Use a newer catalog." in refused.json()["message"]
    assert plain.versions() == [0, 1, 2]


def test_a_dry_run_refuses_a_place_that_is_another_tables(lake: Lake, plain: Plain, unique: str) -> None:
    """What it says can be done can be done."""
    assert adopt(lake.http, plain, unique, external=True).status_code == 200
    for dry_run in (True, False):
        refused = adopt(lake.http, plain, f"{unique}_b", dry_run=dry_run)
        assert refused.status_code == 400
        assert f"the place of main.default.{unique}" in refused.json()["message"]
    assert plain.versions() == [0, 1]
    assert promises(lake.http) == []


def test_a_table_that_belongs_to_a_catalog_is_not_made_known_as_external(lake: Lake, plain: Plain, unique: str) -> None:
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [],
        "writerFeatures": ["catalogManaged"],
    }
    plain.put(2, {"commitInfo": {}}, {"protocol": protocol})
    refused = adopt(lake.http, plain, unique, external=True)
    assert refused.status_code == 400
    assert "belongs to a catalog already" in refused.json()["message"]
    assert lake.load(unique).status_code == 404


def test_a_released_table_that_is_kept_as_external_is_adopted_again_after_its_entry_is_dropped(
    lake: Lake, plain: Plain, unique: str
) -> None:
    first = adopted(lake, plain, unique)
    assert release(lake.http, unique).status_code == 200
    refused = adopt(lake.http, plain, unique)
    assert refused.status_code == 400
    assert f"tidegate drop main.default.{unique}" in refused.json()["message"]
    assert lake.http.delete(f"{UNITY}/tables/main.default.{unique}").status_code == 200
    again = adopted(lake, plain, unique)
    assert again.id != first.id
    assert again.commit(5).status_code == 200
    assert plain.actions(4)["metaData"]["configuration"]["tidegate.adopted"] == "4"


def test_a_policy_holds_from_when_it_is_set_until_it_is_lifted(lake: Lake, plain: Plain, unique: str) -> None:
    catalog = f"{UNITY}/catalogs/{unique}"
    assert lake.http.post(f"{UNITY}/catalogs", json={"name": unique}).status_code == 200
    assert lake.http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": unique}).status_code == 200
    assert adopt(lake.http, plain, unique, full_name=f"{unique}.s.t").status_code == 200
    forbidden = {"properties": {"tidegate.release": "forbidden"}}
    assert lake.http.patch(catalog, json=forbidden).status_code == 200
    url = f"/api/tidegate/v1/tables/{unique}.s.t/release"
    assert lake.http.post(url).status_code == 403
    assert promises(lake.http) == []
    assert is_ours(plain)
    assert lake.http.patch(catalog, json={"properties": {"tidegate.release": "allowed"}}).status_code == 200
    assert lake.http.post(url).status_code == 200
    assert not is_ours(plain)


def test_a_table_in_the_storage_of_managed_tables_is_adopted_without_being_allowed(
    server: ServerProcess, lake: Lake, unique: str
) -> None:
    plain = Plain(server.home / "tables" / unique).create()
    adopted(lake, plain, unique)
    looked = run(server, "doctor", "--json")
    assert plain.location not in looked.stdout, "its folder is not called by its id, and is no orphan"
