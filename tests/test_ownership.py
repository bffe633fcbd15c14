"""Tables of a file system are taken over and given back, and are at every moment either fully ours or fully not."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, Lake, LakeTable
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tests.waiting import wait_until
from tidegate.steps import STEPS

TIDEGATE = "/api/tidegate/v1"
ID = "io.unitycatalog.tableId"
SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


@dataclass
class Plain:
    """A Delta table on the file system, written by put-if-absent as any engine does it."""

    folder: Path
    protocol: dict[str, Any] = field(default_factory=lambda: {"minReaderVersion": 1, "minWriterVersion": 2})
    configuration: dict[str, str] = field(default_factory=dict)

    @property
    def location(self) -> str:
        return f"file://{self.folder}"

    @property
    def log(self) -> Path:
        return self.folder / "_delta_log"

    def create(self) -> Plain:
        self.log.mkdir(parents=True)
        metadata = {
            "id": str(uuid.uuid4()),
            "name": "orders",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(SCHEMA),
            "partitionColumns": [],
            "configuration": self.configuration,
            "createdTime": 1_700_000_000_000,
        }
        self.put(0, {"commitInfo": {"operation": "CREATE TABLE"}}, {"protocol": self.protocol}, {"metaData": metadata})
        self.append(1)
        return self

    def put(self, version: int, *actions: dict[str, Any]) -> bool:
        draft = self.log / f".{uuid.uuid4()}"
        draft.write_text("".join(json.dumps(action) + "\n" for action in actions))
        try:
            os.link(draft, self.log / f"{version:020}.json")
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def append(self, version: int) -> bool:
        file = {"path": f"{version}.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
        return self.put(version, {"commitInfo": {"operation": "WRITE"}}, {"add": {**file, "dataChange": True}})

    def versions(self) -> list[int]:
        return sorted(int(file.stem) for file in self.log.glob("*.json") if file.stem.isdigit())

    def actions(self, version: int) -> dict[str, Any]:
        lines = (self.log / f"{version:020}.json").read_text().splitlines()
        return {key: value for line in lines for key, value in json.loads(line).items()}

    def latest(self) -> dict[str, Any]:
        return self.actions(self.versions()[-1])


@pytest.fixture
def plain(server: ServerProcess, http: httpx.Client, tmp_path: Path) -> Plain:
    allow(http, tmp_path)
    return Plain(tmp_path / "orders").create()


def allow(http: httpx.Client, folder: Path) -> None:
    assert http.post(f"{TIDEGATE}/adoptable-locations", json={"location": f"file://{folder}"}).status_code == 200


def adopt(http: httpx.Client, plain: Plain, name: str, **body: Any) -> httpx.Response:
    body = {"location": plain.location, "full_name": f"main.default.{name}", **body}
    return http.post(f"{TIDEGATE}/adoptions", json=body)


def release(http: httpx.Client, name: str, **body: Any) -> httpx.Response:
    return http.post(f"{TIDEGATE}/tables/main.default.{name}/release", json=body)


def adopted(lake: Lake, plain: Plain, name: str) -> LakeTable:
    done = adopt(lake.http, plain, name)
    assert done.status_code == 200, done.text
    return LakeTable(lake, name, done.json()["table_id"], plain.location, timestamp=int(time.time() * 1000) + 1000)


def promises(http: httpx.Client, *of: str) -> list[dict[str, Any]]:
    """Adoptions and releases that are under way. Who registers a table as its commit owner may never come back."""
    told = http.get(f"{TIDEGATE}/ownership-promises").json()["promises"]
    return [promise for promise in told if promise["change"] in (of or ("adopt", "release"))]


def is_ours(plain: Plain) -> bool:
    """By the newest protocol in the log."""
    newest = max(version for version in plain.versions() if "protocol" in plain.actions(version))
    return "catalogManaged" in plain.actions(newest)["protocol"].get("writerFeatures", [])


def test_an_adopted_table_keeps_everything_and_gets_an_owner(lake: Lake, plain: Plain, unique: str) -> None:
    before = plain.actions(0)
    done = adopt(lake.http, plain, unique)
    assert done.status_code == 200, done.text
    assert (done.json()["version"], done.json()["location"]) == (2, plain.location)
    commit = plain.actions(2)
    assert [*commit] == ["commitInfo", "protocol", "metaData"]
    assert commit["protocol"] == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["catalogManaged", "vacuumProtocolCheck"],
        "writerFeatures": ["appendOnly", "catalogManaged", "inCommitTimestamp", "invariants", "vacuumProtocolCheck"],
    }
    timestamp = commit["commitInfo"]["inCommitTimestamp"]
    assert commit["metaData"] == before["metaData"] | {
        "configuration": {
            ID: done.json()["table_id"],
            "tidegate.adopted": "2",
            "delta.enableInCommitTimestamps": "true",
            "delta.inCommitTimestampEnablementVersion": "2",
            "delta.inCommitTimestampEnablementTimestamp": str(timestamp),
        }
    }
    loaded = lake.load(unique).json()
    assert (loaded["latest-table-version"], loaded["commits"]) == (2, [])
    assert loaded["metadata"]["location"] == plain.location
    assert loaded["metadata"]["table-uuid"] == done.json()["table_id"]
    assert promises(lake.http) == []


def test_an_adoption_that_is_asked_for_again_is_the_same_adoption(lake: Lake, plain: Plain, unique: str) -> None:
    first = adopt(lake.http, plain, unique).json()
    again = adopt(lake.http, plain, unique)
    assert again.status_code == 200, again.text
    assert again.json() == {**first, "actions": []}
    assert plain.versions() == [0, 1, 2]


def test_commits_go_on_through_the_catalog(lake: Lake, plain: Plain, unique: str) -> None:
    table = adopted(lake, plain, unique)
    assert table.commit(3).status_code == 200
    assert table.commit(3).status_code == 409
    assert lake.load(unique).json()["latest-table-version"] == 3


def test_a_dry_run_shows_the_commit_and_changes_nothing(lake: Lake, plain: Plain, unique: str) -> None:
    shown = adopt(lake.http, plain, unique, dry_run=True).json()
    assert (shown["version"], [*shown["actions"][1]]) == (2, ["protocol"])
    assert plain.versions() == [0, 1]
    assert lake.load(unique).status_code == 404


def test_an_external_table_is_registered_and_its_log_left_alone(lake: Lake, plain: Plain, unique: str) -> None:
    done = adopt(lake.http, plain, unique, external=True)
    assert done.status_code == 200, done.text
    assert plain.versions() == [0, 1]
    loaded = lake.load(unique).json()["metadata"]
    assert (loaded["table-type"], loaded["location"]) == ("EXTERNAL", plain.location)
    assert [one["name"] for one in loaded["columns"]["fields"]] == ["id"]


@pytest.mark.parametrize(
    ("protocol", "implied"),
    [
        ({"minReaderVersion": 1, "minWriterVersion": 1}, set()),
        ({"minReaderVersion": 1, "minWriterVersion": 4}, {"checkConstraints", "changeDataFeed", "generatedColumns"}),
        ({"minReaderVersion": 2, "minWriterVersion": 5}, {"columnMapping", "checkConstraints"}),
        ({"minReaderVersion": 2, "minWriterVersion": 6}, {"columnMapping", "identityColumns"}),
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}, {"rowTracking"}),
    ],
    ids=["1,1", "1,4", "2,5", "2,6", "1,7"],
)
def test_what_an_older_protocol_means_is_spelled_out(
    lake: Lake, plain: Plain, unique: str, protocol: dict[str, Any], implied: set[str]
) -> None:
    plain.put(2, {"commitInfo": {}}, {"protocol": protocol})
    assert adopt(lake.http, plain, unique).status_code == 200
    after = plain.latest()["protocol"]
    assert implied <= set(after["writerFeatures"])
    assert ("columnMapping" in after["readerFeatures"]) == ("columnMapping" in implied)


def test_in_commit_timestamps_that_are_on_stay_as_they_are(lake: Lake, http: httpx.Client, tmp_path: Path) -> None:
    allow(http, tmp_path)
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    plain = Plain(tmp_path / "t", features, {"delta.enableInCommitTimestamps": "true"})
    plain.log.mkdir(parents=True)
    future = int(time.time() * 1000) + 500_000
    metadata = {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": [],
        "configuration": plain.configuration,
    }
    plain.put(0, {"commitInfo": {"inCommitTimestamp": future}}, {"protocol": features}, {"metaData": metadata})
    assert adopt(http, plain, f"ict{uuid.uuid4().hex}").status_code == 200
    commit = plain.latest()
    assert commit["commitInfo"]["inCommitTimestamp"] == future + 1
    assert "delta.inCommitTimestampEnablementVersion" not in commit["metaData"]["configuration"]


@pytest.mark.parametrize(
    ("feature", "reason"),
    [
        ("catalogManaged", "belongs to a catalog already"),
        ("coordinatedCommits-preview", "has a commit owner"),
        ("managedCommit", "has a commit owner"),
        ("somethingNew", "does not know"),
    ],
)
def test_tables_that_cannot_be_adopted_are_told_why(
    lake: Lake, plain: Plain, unique: str, feature: str, reason: str
) -> None:
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": [feature]}
    plain.put(2, {"commitInfo": {}}, {"protocol": protocol})
    refused = adopt(lake.http, plain, unique)
    assert refused.status_code == 400
    assert reason in refused.json()["message"]
    assert plain.versions() == [0, 1, 2]
    assert promises(lake.http) == []


def test_refusals_name_what_to_do(lake: Lake, plain: Plain, unique: str, tmp_path: Path) -> None:
    http = lake.http
    nothing = Plain(tmp_path / "nothing")
    assert "no Delta table" in adopt(http, nothing, unique).json()["message"]
    elsewhere = adopt(http, Plain(Path("/nowhere/t")), unique).json()["message"]
    assert "tidegate adoptable add file:///nowhere/t" in elsewhere
    assert adopt(http, plain, "a.b").status_code == 400
    no_schema = {"location": plain.location, "full_name": "main.nosuch.t"}
    assert http.post(f"{TIDEGATE}/adoptions", json=no_schema).status_code == 404
    assert "not a storage location" in adopt(http, plain, unique, location="orders").json()["message"]
    assert adopt(http, plain, unique).status_code == 200
    again = adopt(http, plain, f"{unique}_b")
    assert "belongs to a catalog already" in again.json()["message"]
    taken = adopt(http, Plain(tmp_path / "other").create(), unique)
    assert (taken.status_code, taken.json()["error_code"]) == (409, "TABLE_ALREADY_EXISTS")


def test_a_damaged_log_is_not_adopted(lake: Lake, plain: Plain, unique: str) -> None:
    (plain.log / f"{1:020}.json").write_text("not json\n")
    refused = adopt(lake.http, plain, unique)
    assert refused.status_code == 400
    assert "line 1" in refused.json()["message"]
    (plain.log / f"{1:020}.json").unlink()
    plain.append(2)
    assert "missing" in adopt(lake.http, plain, unique).json()["message"]


def test_places_are_allowed_and_no_longer_allowed(http: httpx.Client, tmp_path: Path) -> None:
    place = {"location": f"file://{tmp_path}/lake/"}
    added = http.post(f"{TIDEGATE}/adoptable-locations", json=place)
    assert added.json()["location"] == f"file://{tmp_path}/lake"
    assert http.post(f"{TIDEGATE}/adoptable-locations", json=place).json() == added.json()
    listed = [one["location"] for one in http.get(f"{TIDEGATE}/adoptable-locations").json()["locations"]]
    assert f"file://{tmp_path}/lake" in listed
    assert http.delete(f"{TIDEGATE}/adoptable-locations", params=place).status_code == 204
    assert http.delete(f"{TIDEGATE}/adoptable-locations", params=place).status_code == 404
    assert http.post(f"{TIDEGATE}/adoptable-locations", json={"location": "s3://bucket/x"}).status_code == 400


def test_a_released_table_is_the_file_systems_with_all_of_its_history(lake: Lake, plain: Plain, unique: str) -> None:
    table = adopted(lake, plain, unique)
    assert table.commit(3).status_code == 200
    done = release(lake.http, unique)
    assert done.status_code == 200, done.text
    assert done.json() == {
        "full_name": f"main.default.{unique}",
        "table_id": table.id,
        "location": plain.location,
        "version": 4,
        "kept": "external",
    }
    assert plain.versions() == [0, 1, 2, 3, 4]
    commit = plain.actions(4)
    assert not is_ours(plain)
    assert not {ID, "tidegate.adopted"} & commit["metaData"]["configuration"].keys()
    assert commit["metaData"]["schemaString"] == plain.actions(0)["metaData"]["schemaString"]
    loaded = lake.load(unique).json()
    assert loaded["metadata"]["table-type"] == "EXTERNAL"
    assert "latest-table-version" not in loaded
    refused = table.commit(5)
    assert refused.status_code == 400
    assert "external" in refused.json()["error"]["message"]


def test_a_released_table_can_be_forgotten_and_adopted_again(lake: Lake, plain: Plain, unique: str) -> None:
    adopted(lake, plain, unique)
    assert release(lake.http, unique, keep="nothing").status_code == 200
    assert lake.load(unique).status_code == 404
    assert plain.append(4)
    again = adopt(lake.http, plain, unique)
    assert (again.status_code, again.json()["version"]) == (200, 5)
    assert is_ours(plain)


def test_a_catalog_can_forbid_it(lake: Lake, http: httpx.Client, tmp_path: Path) -> None:
    allow(http, tmp_path)
    name = f"kept_{uuid.uuid4().hex}"
    body = {"name": name, "properties": {"tidegate.release": "forbidden"}}
    assert http.post(f"{UNITY}/catalogs", json=body).status_code == 200
    assert http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": name}).status_code == 200
    plain = Plain(tmp_path / "t").create()
    adopting = {"location": plain.location, "full_name": f"{name}.s.t"}
    assert http.post(f"{TIDEGATE}/adoptions", json=adopting).status_code == 200
    refused = http.post(f"{TIDEGATE}/tables/{name}.s.t/release")
    assert refused.status_code == 403
    assert "tidegate.release" in refused.json()["message"]
    assert is_ours(plain)


def test_a_log_that_somebody_else_wrote_to_is_not_released(lake: Lake, plain: Plain, unique: str) -> None:
    table = adopted(lake, plain, unique)
    plain.append(3)
    refused = release(lake.http, unique)
    assert refused.status_code == 400
    assert "without the catalog" in refused.json()["message"]
    (plain.log / f"{3:020}.json").unlink()
    assert table.commit(3).status_code == 200, "the table takes commits again"
    assert release(lake.http, unique).status_code == 200


def test_an_external_table_has_nothing_to_release(lake: Lake, plain: Plain, unique: str) -> None:
    adopt(lake.http, plain, unique, external=True)
    refused = release(lake.http, unique)
    assert refused.status_code == 400
    assert "external" in refused.json()["message"]
    assert release(lake.http, "nosuch").status_code == 404


def test_events_tell_of_both(lake: Lake, plain: Plain, unique: str) -> None:
    adopted(lake, plain, unique)
    release(lake.http, unique)
    events = lake.http.get(f"{TIDEGATE}/events", params={"table": f"main.default.{unique}"}).json()["events"]
    told = [(one["kind"], one["data"]) for one in events]
    assert told[0] == ("table.created", {"type": "MANAGED", "adopted": True})
    assert told[-1] == ("table.released", {"kept": "external"})


CRASHES = [
    "adopt.promised",
    "put.written",
    "put.linked",
    "put.synced",
    "adopt.put",
    "adopt.registered",
]
RELEASE_CRASHES = [
    "release.promised",
    "publish.started",
    "publish.copied",
    "publish.linked",
    "publish.verified",
    "publish.recorded",
    "release.published",
    "release.planned",
    "put.written",
    "put.linked",
    "put.synced",
    "release.put",
    "release.forgotten",
]


def test_every_step_of_both_is_cut_off_somewhere() -> None:
    """`put.decided` belongs to commits of others; `adopt.planned_anew` has a test of its own below."""
    named = {step for step in STEPS if step.startswith(("adopt.", "release.", "put.", "publish."))}
    visited = {*CRASHES, *RELEASE_CRASHES, "adopt.planned_anew"}
    assert visited == named - {"put.decided", "put.recorded"}


@pytest.fixture(params=["sqlite", "postgresql"])
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    database = None
    if request.param == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        database = postgres.create_database()
    process = ServerProcess(tmp_path / "home", database)
    yield process
    process.stop()


def started(server: ServerProcess, *, fault: str | None = None, what: str = "kill") -> ServerProcess:
    if server.process is not None and server.process.poll() is None:
        server.stop()
    os.environ.pop("TIDEGATE_FAULT", None)
    if fault is not None:
        os.environ["TIDEGATE_FAULT"] = f"{fault}:{what}"
    try:
        return server.start()
    finally:
        os.environ.pop("TIDEGATE_FAULT", None)


@pytest.mark.parametrize("step", CRASHES)
def test_an_adoption_that_was_cut_off_is_finished_at_the_next_start(
    own_server: ServerProcess, tmp_path: Path, step: str
) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server, fault=step).http() as http:
        allow(http, tmp_path / "lake")
        with pytest.raises(httpx.TransportError):
            adopt(http, plain, "t")
    assert own_server.process is not None
    own_server.process.wait(30)
    with started(own_server).http() as http:
        wait_until(lambda: promises(http) == [], "the promise is kept")
        lake = Lake(http)
        assert is_ours(plain)
        assert plain.versions() == [0, 1, 2]
        table = LakeTable(lake, "t", plain.latest()["metaData"]["configuration"][ID], plain.location)
        table.timestamp = int(time.time() * 1000) + 1000
        assert lake.load("t").json()["latest-table-version"] == 2
        assert table.commit(3).status_code == 200


@pytest.mark.parametrize("step", RELEASE_CRASHES)
def test_a_release_that_was_cut_off_is_finished_at_the_next_start(
    own_server: ServerProcess, tmp_path: Path, step: str
) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server).http() as http:
        allow(http, tmp_path / "lake")
        assert adopted(Lake(http), plain, "t").commit(3).status_code == 200
    with started(own_server, fault=step).http() as http, pytest.raises(httpx.TransportError):
        release(http, "t")
    assert own_server.process is not None
    own_server.process.wait(30)
    with started(own_server).http() as http:
        wait_until(lambda: promises(http) == [], "the promise is kept")
        assert not is_ours(plain)
        assert plain.versions() == [0, 1, 2, 3, 4]
        assert Lake(http).load("t").json()["metadata"]["table-type"] == "EXTERNAL"
        assert plain.append(5)


def test_a_lost_version_is_planned_anew_even_after_a_crash(own_server: ServerProcess, tmp_path: Path) -> None:
    """The promise is written down, the server dies, a writer takes the version; the next start goes on after it."""
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server, fault="adopt.promised").http() as http:
        allow(http, tmp_path / "lake")
        with pytest.raises(httpx.TransportError):
            adopt(http, plain, "t")
    assert plain.append(2)
    with started(own_server, fault="adopt.planned_anew").http():
        assert own_server.process is not None
        own_server.process.wait(30)
    assert plain.append(3)
    with started(own_server).http() as http:
        wait_until(lambda: promises(http) == [], "the promise is kept")
        assert plain.versions() == [0, 1, 2, 3, 4]
        assert is_ours(plain)
        assert Lake(http).load("t").json()["latest-table-version"] == 4


def test_a_promise_that_can_never_be_kept_ends(own_server: ServerProcess, tmp_path: Path) -> None:
    plain = Plain(tmp_path / "lake" / "t").create()
    with started(own_server, fault="adopt.promised").http() as http:
        allow(http, tmp_path / "lake")
        with pytest.raises(httpx.TransportError):
            adopt(http, plain, "t")
    features = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [],
        "writerFeatures": ["catalogManaged"],
    }
    plain.put(2, {"commitInfo": {}}, {"protocol": features})
    with started(own_server).http() as http:
        wait_until(lambda: promises(http) == [], "the promise has ended")
        assert plain.versions() == [0, 1, 2]
        assert Lake(http).load("t").status_code == 404
