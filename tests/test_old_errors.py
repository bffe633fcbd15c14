"""Every row of every table of errors in specification v0.1.0: its code, its status, in the old API's body.

Each case is a sound request with one thing changed, or sent by somebody else. Where a row gives examples, each of them
is a case.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.lake import UNITY
from tests.old_lake import OldDraft, OldLake, OldTable
from tests.servers import ServerProcess
from tests.test_endpoint_errors import Callers, serving
from tidegate.compose import build_server
from tidegate.settings import Settings

ABSENT_ID = str(uuid.UUID(int=0))


@dataclass
class Scene:
    """A table at version 2, of which 1 is published, and a staged one whose version 0 is written."""

    table: OldTable
    draft: OldDraft
    commit: dict[str, Any]
    """Of version 3, its file staged."""


Request = tuple[str, str, dict[str, Any] | None]


def _stage(scene: Scene) -> Request:
    return "POST", "/staging-tables", {"name": "another", "catalog_name": "main", "schema_name": "default"}


def _create(scene: Scene) -> Request:
    return "POST", "/tables", scene.draft.request


def _get(scene: Scene) -> Request:
    return "GET", f"/tables/main.default.{scene.table.files.name}", None


def _commits(scene: Scene) -> Request:
    return "GET", "/delta/commits", {**scene.table.identity, "start_version": 0, "end_version": 9}


def _commit(scene: Scene) -> Request:
    return "POST", "/delta/commit", {**scene.table.identity, "commit_info": scene.commit, "latest_published_version": 1}


def _metrics(scene: Scene) -> Request:
    report = {"commit_report": {"commit_version": 2, "num_files_added": 1}}
    return "POST", "/delta/metrics", {**scene.table.identity, "report": report}


SOUND: dict[str, Callable[[Scene], Request]] = {
    "createStagingTable": _stage,
    "createTable": _create,
    "getTable": _get,
    "getCommits": _commits,
    "writeCommit": _commit,
    "writeMetrics": _metrics,
}


@dataclass(frozen=True)
class Row:
    """One row of a table of errors, or one of its examples. `change` maps dotted paths to values; None removes."""

    operation: str
    code: str
    status: int
    change: dict[str, Any] | Callable[[Scene], dict[str, Any]] | str
    """For a request without a body: the name that is asked for."""
    token: str = "admin"
    telling: str = ""
    """What the message says."""


def _taken(scene: Scene) -> dict[str, Any]:
    return {"name": scene.table.files.name}


def _other_file(scene: Scene) -> dict[str, Any]:
    return {"commit_info.version": 2, "commit_info.file_name": f"{2:020}.{uuid.uuid4()}.json"}


def _far(scene: Scene) -> dict[str, Any]:
    return {"commit_info.version": 5, "commit_info.file_name": f"{5:020}.{uuid.uuid4()}.json"}


INVALID = ("INVALID_PARAMETER_VALUE", 400)
NO_TABLE = ("TABLE_DOES_NOT_EXIST", 404)
DENIED = ("PERMISSION_DENIED", 403)
NO_CATALOG = ("CATALOG_DOES_NOT_EXIST", 404)
NO_SCHEMA = ("SCHEMA_DOES_NOT_EXIST", 404)

ROWS = [
    Row("createStagingTable", *NO_CATALOG, {"catalog_name": "absent"}, telling="no catalog absent"),
    Row("createStagingTable", *NO_SCHEMA, {"schema_name": "absent"}, telling="no schema main.absent"),
    Row("createStagingTable", "TABLE_ALREADY_EXISTS", 400, _taken, telling="Choose another name"),
    Row("createStagingTable", *DENIED, {}, token="stranger", telling="Ask an administrator"),
    Row("createTable", *NO_CATALOG, {"catalog_name": "absent"}, telling="no catalog absent"),
    Row("createTable", *NO_SCHEMA, {"schema_name": "absent"}, telling="no schema main.absent"),
    Row("createTable", "TABLE_ALREADY_EXISTS", 400, _taken, telling="Choose another name"),
    Row("createTable", *NO_TABLE, {"storage_location": "file:///absent"}, telling="Stage the table"),
    Row("createTable", *DENIED, {}, token="stranger", telling="Ask an administrator"),
    Row("createTable", *DENIED, {}, token="colleague", telling="Stage your own"),
    Row("createTable", *INVALID, {"data_source_format": "PARQUET"}, telling="serves Delta tables only"),
    Row("createTable", *INVALID, {"properties.io.unitycatalog.tableId": None}, telling="io.unitycatalog.tableId"),
    Row("createTable", *INVALID, {"properties.delta.feature.clustering": "supported"}, telling="that feature"),
    Row("getTable", *NO_CATALOG, "absent.default.t", telling="no catalog absent"),
    Row("getTable", *NO_SCHEMA, "main.absent.t", telling="no schema main.absent"),
    Row("getTable", *NO_TABLE, "main.default.absent", telling="no table main.default.absent"),
    Row("getTable", *DENIED, "", token="stranger", telling="Ask an administrator"),
    Row("getCommits", *NO_TABLE, {"table_id": ABSENT_ID}, telling="no table with id"),
    Row("getCommits", *DENIED, {}, token="stranger", telling="Ask an administrator"),
    Row("getCommits", *INVALID, {"table_id": None}, telling="table_id is missing"),
    Row("getCommits", *INVALID, {"table_uri": None}, telling="table_uri is missing"),
    Row("getCommits", *INVALID, {"start_version": -1}, telling="0 or higher"),
    Row("getCommits", *INVALID, {"end_version": -1}, telling="0 or higher"),
    Row("getCommits", *INVALID, {"start_version": 5, "end_version": 4}, telling="lower than start_version"),
    Row("writeCommit", *NO_TABLE, {"table_id": ABSENT_ID}, telling="no table with id"),
    Row("writeCommit", *DENIED, {}, token="stranger", telling="Ask an administrator"),
    Row("writeCommit", *INVALID, {"table_id": None}, telling="table_id"),
    Row("writeCommit", *INVALID, {"table_uri": None}, telling="table_uri"),
    Row("writeCommit", *INVALID, {"commit_info": None, "latest_published_version": None}, telling="Send one of them"),
    Row("writeCommit", *INVALID, {"commit_info.version": 0}, telling="1 or higher"),
    Row("writeCommit", *INVALID, {"commit_info.timestamp": 0}, telling="positive"),
    Row("writeCommit", *INVALID, {"commit_info.file_name": None}, telling="file_name"),
    Row("writeCommit", *INVALID, {"commit_info.file_size": 0}, telling="positive"),
    Row("writeCommit", *INVALID, {"commit_info.file_modification_timestamp": 0}, telling="positive"),
    Row("writeCommit", *INVALID, _far, telling="propose version 3"),
    Row("writeCommit", *INVALID, {"latest_published_version": 3}, telling="the latest ratified version is 2"),
    Row("writeCommit", "ALREADY_EXISTS", 409, _other_file, telling="Rebase and propose version 3"),
    Row("writeMetrics", *NO_TABLE, {"table_id": ABSENT_ID}, telling="no table with id"),
    Row("writeMetrics", *DENIED, {}, token="stranger", telling="Ask an administrator"),
    Row("writeMetrics", *INVALID, {"table_uri": None}, telling="table_uri"),
    Row("writeMetrics", *INVALID, {"report.commit_report.commit_version": None}, telling="commit_version"),
    Row("writeMetrics", *INVALID, {"report.commit_report.num_files_added": -1}, telling="num_files_added"),
]


def changed(request: Request, scene: Scene, change: Any) -> Request:
    method, path, body = request
    if isinstance(change, str):
        return method, f"/tables/{change}" if change else path, body
    assert body is not None
    whole = {**body}
    for dotted, value in (change(scene) if callable(change) else change).items():
        _set(whole, dotted, value)
    return method, path, whole


def _set(body: dict[str, Any], dotted: str, value: Any) -> None:
    """Copies on the way down: the sound request is sent afterwards. A property's name has dots of its own."""
    first, _, rest = dotted.partition(".")
    if rest and isinstance(body[first], dict) and first != "properties":
        body[first] = {**body[first]}
        _set(body[first], rest, value)
    elif rest:
        body[first] = {key: old for key, old in body[first].items() if key != rest}
        if value is not None:
            body[first][rest] = value
    elif value is None:
        body.pop(first)
    else:
        body[first] = value


@pytest.fixture
def scene(http: httpx.Client, unique: str) -> Scene:
    old = OldLake(http)
    table = old.new_table(unique)
    for version in (1, 2):
        assert table.commit(version).status_code == 200
    table.files.publish(1)
    draft = old.draft(f"{unique}_staged")
    draft.write_version_0()
    return Scene(table, draft, table.stage_commit(3))


@pytest.fixture(scope="module")
def others(server: ServerProcess) -> Iterator[str]:
    """The same catalog, for callers who are not the admin."""
    settings = Settings(home=server.home, database=server.database or f"sqlite:///{server.home}/catalog.db")
    with serving(build_server(settings, authenticator=Callers()).app) as address:
        yield address


def send(http: httpx.Client, request: Request) -> httpx.Response:
    method, path, body = request
    return http.request(method, f"{UNITY}{path}", json=body)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.operation}-{row.code}-{row.telling}")
def test_every_row_of_the_tables_of_errors(scene: Scene, others: str, row: Row) -> None:
    http = scene.table.lake.http
    sound = SOUND[row.operation](scene)
    wrong = changed(sound, scene, row.change)
    before = scene.table.get(), scene.table.versions()
    if row.token == "admin":
        refused = send(http, wrong)
    else:
        with httpx.Client(base_url=others, headers={"Authorization": f"Bearer {row.token}"}, timeout=60) as other:
            refused = send(other, wrong)
    assert (refused.status_code, refused.json()["error_code"]) == (row.status, row.code), refused.text
    assert set(refused.json()) == {"error_code", "message"}
    assert row.telling in refused.json()["message"]
    assert (scene.table.get(), scene.table.versions()) == before
    assert send(http, sound).status_code == 200


def test_every_operation_of_the_specification_has_its_rows() -> None:
    codes = {operation: {row.code for row in ROWS if row.operation == operation} for operation in SOUND}
    missing = {"CATALOG_DOES_NOT_EXIST", "SCHEMA_DOES_NOT_EXIST"}
    invalid = {"TABLE_DOES_NOT_EXIST", "PERMISSION_DENIED", "INVALID_PARAMETER_VALUE"}
    assert codes == {
        "createStagingTable": {*missing, "TABLE_ALREADY_EXISTS", "PERMISSION_DENIED"},
        "createTable": {*missing, *invalid, "TABLE_ALREADY_EXISTS"},
        "getTable": {*missing, "TABLE_DOES_NOT_EXIST", "PERMISSION_DENIED"},
        "getCommits": invalid,
        "writeCommit": {*invalid, "ALREADY_EXISTS"},
        "writeMetrics": invalid,
    }
