"""Every endpoint and every error that it documents, provoked for real over HTTP and on both databases.

Each case starts from a sound request and changes one thing: a part of the request, who sends it, or the server that
gets it. The servers differ in what is wrong with them: one is full, one has a dead database, one has a defect. All of
them hear requests about the same scene, and whatever is refused must leave that scene as it was.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import msgspec
import pytest
import sqlalchemy as sa
import uvicorn

from tests.lake import Draft, Lake, LakeTable, add_commit, file_name, report, set_properties
from tests.owned import Owned
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tests.test_ownership import Plain
from tidegate.auth.tokens import ADMIN, ANONYMOUS
from tidegate.compose import ENDPOINTS, FACES, build_server, prepare
from tidegate.db import schema as db
from tidegate.domain import errors
from tidegate.domain.credentials import Credential, CredentialOperation
from tidegate.domain.ports import Database
from tidegate.domain.privileges import Principal
from tidegate.domain.ratification import Decision, Proposal
from tidegate.http.app import App
from tidegate.http.delta.face import DELTA
from tidegate.http.endpoints import Endpoint
from tidegate.http.faces import BodyTooLarge
from tidegate.services.environment import Environment
from tidegate.settings import Settings

BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}
BODY_BYTES_MAX = Settings().body_bytes_max
LEAKS = re.compile(
    r"Traceback|File \"|sqlalchemy|psycopg|sqlite3|\b(SELECT|INSERT|UPDATE|DELETE) .*\b(FROM|INTO|SET)\b"
)


# What requests are about


@dataclass(frozen=True)
class Scene:
    """A catalog with two schemas; in one a table is at version 1, another is staged, its version 0 written, and a third
    is dropped. Beside them a table lies that belongs to nobody."""

    catalog: str
    schema: str
    table: LakeTable
    commit: dict[str, Any]
    """Of version 2, its file staged."""
    draft: Draft
    dropped_id: str
    found: str
    """Where the table of nobody lies."""
    parquet_id: str = ""
    """A table that is not Delta's, named `parquet`."""
    token_id: str = ""
    """Of a user."""

    @property
    def full_name(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table.name}"

    def seen(self) -> list[Any]:
        """All that the catalog says about the scene."""
        http, names = self.table.lake.http, {"catalog_name": self.catalog, "schema_name": self.schema}
        answers = [
            http.get(url("getCatalog", name=self.catalog)),
            http.get(url("listSchemas"), params=names),
            http.get(url("listTables"), params=names),
            self.table.lake.load(self.table.name),
            http.get(url("getStagingTableCredentials", table_id=self.draft.id)),
            http.get(url("getMetrics", full_name=self.full_name)),
            http.get(url("getPermissions", securable_type="table", full_name=self.full_name)),
            http.get(url("listMembers", group=f"{self.catalog}_crew")),
            http.get(url("listTokens"), params={"principal": f"{self.catalog}_ada"}),
        ]
        return [(answer.status_code, answer.json()) for answer in answers]


def set_scene(http: httpx.Client, name: str) -> Scene:
    """A scene of its own in a catalog called `name`."""
    lake = Lake(http, catalog=name, schema="s")
    assert http.post(url("createCatalog"), json={"name": name}).status_code == 200
    for schema in ("s", "other"):
        assert http.post(url("createSchema"), json={"name": schema, "catalog_name": name}).status_code == 200
    assert http.post(url("createSubscription"), json=_subscription(name)).status_code == 200
    table = lake.new_table("t")
    assert table.commit(1).status_code == 200
    draft = lake.draft("staged")
    draft.write_version_0()
    dropped = lake.new_table("dropped")
    assert http.delete(f"{lake.tables_url()}/dropped").status_code == 204
    assert http.post(url("allowAdoption"), json={"location": _allowed(name)}).status_code == 200
    nobodys, token = _put_table_of_nobody(table), _add_identities(http, name)
    return Scene(name, "s", table, table.stage_commit(2), draft, dropped.id, nobodys, token_id=token)


def _add_identities(http: httpx.Client, name: str) -> str:
    """Ada, with a token, and Bob; Ada is in the crew. The id of the token."""
    for who, kind in (("ada", "user"), ("bob", "service account"), ("crew", "group")):
        added = http.post(url("createIdentity"), json={"name": f"{name}_{who}", "kind": kind})
        assert added.status_code == 200, added.text
    assert http.put(url("addMember", group=f"{name}_crew", member=f"{name}_ada")).status_code == 200
    return http.post(url("createToken"), json={"principal": f"{name}_ada"}).json()["info"]["id"]


def _allowed(name: str) -> str:
    return f"file:///allowed/{name}"


def _put_table_of_nobody(neighbour: LakeTable) -> str:
    location = f"{neighbour.location.rpartition('/')[0]}/{uuid.uuid4()}"
    log = Path(location.removeprefix("file://")) / "_delta_log"
    log.mkdir(parents=True)
    columns = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    metadata = {"id": "x", "schemaString": json.dumps(columns), "partitionColumns": [], "configuration": {}}
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    (log / f"{0:020}.json").write_bytes(b"".join(msgspec.json.encode(action) + b"\n" for action in actions))
    return location


def add_parquet_table(scene: Scene, database: str) -> Scene:
    """No endpoint makes such a table, so it is put straight into the database: a copy with another format."""
    id = str(uuid.uuid4())
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        row = connection.execute(sa.select(db.tables).where(db.tables.c.id == scene.table.id)).one()
        changed = {"id": id, "name": "parquet", "format": "PARQUET", "location": f"{scene.table.location}-parquet"}
        connection.execute(db.tables.insert().values({**row._mapping, **changed}))
        document = sa.select(sa.literal(id), db.table_metadata.c.document).where(
            db.table_metadata.c.table_id == scene.table.id
        )
        connection.execute(db.table_metadata.insert().from_select(["table_id", "document"], document))
    engine.dispose()
    return replace(scene, parquet_id=id)


# Requests


@dataclass(frozen=True)
class Ask:
    """The parts of a request that an endpoint leaves open. Path values are percent-encoded already."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] | str = field(default_factory=dict)
    body: Any = None


MakeAsk = Callable[[Scene], Ask]


def url(name: str, /, **path: str) -> str:
    return BY_NAME[name].template.format(**{key: quote(value, safe="") for key, value in path.items()})


def send(http: httpx.Client, endpoint: Endpoint, ask: Ask, headers: Mapping[str, str] | None = None) -> httpx.Response:
    target = endpoint.template.format(**ask.path)
    if ask.query:
        target += "?" + (ask.query if isinstance(ask.query, str) else str(httpx.QueryParams(ask.query)))
    content = ask.body if ask.body is None or isinstance(ask.body, bytes) else msgspec.json.encode(ask.body)
    return http.request(endpoint.method, target, content=content, headers=headers)


def _schema_path(scene: Scene) -> dict[str, str]:
    return {"catalog": scene.catalog, "schema": scene.schema}


def _table_path(scene: Scene) -> dict[str, str]:
    return {**_schema_path(scene), "table": scene.table.name}


def _schema_query(scene: Scene) -> dict[str, str]:
    return {"catalog_name": scene.catalog, "schema_name": scene.schema}


_REGISTERED = {"name": "staged", "table_type": "MANAGED", "data_source_format": "DELTA"}


def _identity(scene: Scene) -> dict[str, str]:
    return {"table_id": scene.table.id, "table_uri": scene.table.location}


def _subscription(name: str) -> dict[str, Any]:
    """To something that never happens."""
    return {"name": name, "webhook": {"url": "http://127.0.0.1:9/"}, "kinds": ["table.purged"]}


def _inline(scene: Scene, version: int | None, **changes: Any) -> dict[str, Any]:
    info = {"inCommitTimestamp": scene.commit["timestamp"], "txnId": str(uuid.uuid4())}
    file = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    lines = [{"commitInfo": info}, {"add": {**file, "stats": '{"numRecords":1}'}}]
    content = "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)
    return {"table_id": scene.table.id, "content": content, "version": version, **changes}


def _commit_info(scene: Scene, **changes: Any) -> dict[str, Any]:
    return {**{key.replace("-", "_"): value for key, value in scene.commit.items()}, **changes}


def _renumbered(version: int) -> dict[str, Any]:
    return {"version": version, "file_name": file_name(version)}


_OWNED: dict[str, Owned] = {}


def _owned(scene: Scene) -> Owned:
    """A table that the catalog is the commit owner of, with version 2 ratified and 3 staged; made when it is needed."""
    if scene.catalog not in _OWNED:
        location = _put_table_of_nobody(scene.table)
        owned = Owned(scene.table.lake.http, Plain(Path(location.removeprefix("file://")))).taken_over(0)
        assert owned.commit(2).status_code == 200
        owned.stage(3)
        _OWNED[scene.catalog] = owned
    return _OWNED[scene.catalog]


def _primary_key(scene: Scene, table: str = "t") -> dict[str, Any]:
    key = {"primary_key_constraint": {"name": "pk", "child_columns": ["id"]}}
    return {"full_name_arg": f"{scene.catalog}.{scene.schema}.{table}", "constraint": key}


def _with_key(scene: Scene) -> str:
    """The full name of the scene's table, which has a primary key now."""
    http = scene.table.lake.http
    if "table_constraints" not in http.get(url("getTable", full_name=scene.full_name)).json():
        declared = http.post(url("createTableConstraint"), json=_primary_key(scene))
        assert declared.status_code == 200, declared.text
    return scene.full_name


SOUND: dict[str, MakeAsk] = {
    "getConfig": lambda s: Ask(query={"catalog": s.catalog, "protocol-versions": "1.0"}),
    "createStagingTable": lambda s: Ask(_schema_path(s), body={"name": "another"}),
    "createTable": lambda s: Ask(_schema_path(s), body=s.draft.request),
    "loadTable": lambda s: Ask(_table_path(s)),
    "updateTable": lambda s: Ask(_table_path(s), body=s.table.request(add_commit(s.commit))),
    "deleteTable": lambda s: Ask(_table_path(s)),
    "tableExists": lambda s: Ask(_table_path(s)),
    "renameTable": lambda s: Ask(_table_path(s), body={"new-name": "renamed"}),
    "getTableCredentials": lambda s: Ask(_table_path(s), {"operation": "READ_WRITE"}),
    "reportMetrics": lambda s: Ask(_table_path(s), body={"table-id": s.table.id, "report": {"commit-report": {}}}),
    "getStagingTableCredentials": lambda s: Ask({"table_id": s.draft.id}),
    "getTemporaryPathCredentials": lambda s: Ask(query={"location": "file:///data/t", "operation": "READ"}),
    "getMetastoreSummary": lambda s: Ask(),
    "getDefaultNamespaceSetting": lambda s: Ask(),
    "createCatalog": lambda s: Ask(body={"name": f"{s.catalog}_new"}),
    "listCatalogs": lambda s: Ask(),
    "getCatalog": lambda s: Ask({"name": s.catalog}),
    "updateCatalog": lambda s: Ask({"name": s.catalog}, body={"comment": "changed"}),
    "deleteCatalog": lambda s: Ask({"name": s.catalog}, {"force": "true"}),
    "createSchema": lambda s: Ask(body={"name": "another", "catalog_name": s.catalog}),
    "listSchemas": lambda s: Ask(query={"catalog_name": s.catalog}),
    "getSchema": lambda s: Ask({"full_name": f"{s.catalog}.{s.schema}"}),
    "updateSchema": lambda s: Ask({"full_name": f"{s.catalog}.{s.schema}"}, body={"comment": "changed"}),
    "deleteSchema": lambda s: Ask({"full_name": f"{s.catalog}.{s.schema}"}, {"force": "true"}),
    "listTables": lambda s: Ask(query=_schema_query(s)),
    "getTable": lambda s: Ask({"full_name": s.full_name}),
    "dropTable": lambda s: Ask({"full_name": s.full_name}),
    "getTimeline": lambda s: Ask({"full_name": s.full_name}),
    "getTableCommits": lambda s: Ask({"full_name": s.full_name}),
    "commitInline": lambda s: Ask({"full_name": s.full_name}, body=_inline(s, 2)),
    "adoptTable": lambda s: Ask(body={"location": s.found, "full_name": f"{s.catalog}.{s.schema}.found"}),
    "releaseTable": lambda s: Ask({"full_name": s.full_name}, body={"keep": "external"}),
    "getPolicies": lambda s: Ask({"full_name": s.full_name}),
    "getConstraints": lambda s: Ask({"full_name": s.full_name}),
    "createTableConstraint": lambda s: Ask(body=_primary_key(s)),
    "deleteTableConstraint": lambda s: Ask({"full_name": _with_key(s)}, {"constraint_name": "pk"}),
    "changePolicies": lambda s: Ask({"full_name": s.full_name}, body={"files_max": 3}),
    "registerOwnedTable": lambda s: Ask(body={"location": s.found, "version": 0, "schema": f"{s.catalog}.{s.schema}"}),
    "commitOwned": lambda s: Ask({"table_id": _owned(s).id}, body=_owned(s).staged[3]),
    "getOwnedCommits": lambda s: Ask({"table_id": _owned(s).id}, {"location": _owned(s).plain.location}),
    "publishOwned": lambda s: Ask(
        {"table_id": _owned(s).id}, body={"location": _owned(s).plain.location, "version": 1}
    ),
    "listOwnershipPromises": lambda s: Ask(),
    "listAdoptableLocations": lambda s: Ask(),
    "allowAdoption": lambda s: Ask(body={"location": "file:///elsewhere"}),
    "disallowAdoption": lambda s: Ask(query={"location": _allowed(s.catalog)}),
    "stageTable": lambda s: Ask(body={"name": "another", **_schema_query(s)}),
    "registerTable": lambda s: Ask(body={**_schema_query(s), **_REGISTERED, "storage_location": s.draft.location}),
    "getCommits": lambda s: Ask(query=_identity(s)),
    "getCommitsPreview": lambda s: Ask(body=_identity(s)),
    "writeCommit": lambda s: Ask(body={**_identity(s), "commit_info": _commit_info(s)}),
    "writeCommitPreview": lambda s: Ask(body={**_identity(s), "commit_info": _commit_info(s)}),
    "writeMetrics": lambda s: Ask(body={**_identity(s), "report": {"commit_report": {"commit_version": 1}}}),
    "getMetrics": lambda s: Ask({"full_name": s.full_name}),
    "listDroppedTables": lambda s: Ask(),
    "restoreTable": lambda s: Ask({"table_id": s.dropped_id}, body={}),
    "purgeTable": lambda s: Ask({"table_id": s.dropped_id}),
    "examineTable": lambda s: Ask({"full_name": s.full_name}),
    "verifyTable": lambda s: Ask({"full_name": s.full_name}),
    "readAudit": lambda s: Ask(),
    "mendTable": lambda s: Ask({"full_name": s.full_name}),
    "examineStorage": lambda s: Ask(),
    "mendStorage": lambda s: Ask(),
    "getStatus": lambda s: Ask(),
    "generateTemporaryTableCredentials": lambda s: Ask(body={"table_id": s.table.id, "operation": "READ_WRITE"}),
    "generateTemporaryPathCredentials": lambda s: Ask(body={"url": "file:///data/t", "operation": "PATH_READ"}),
    "getPermissions": lambda s: Ask({"securable_type": "table", "full_name": s.full_name}),
    "updatePermissions": lambda s: Ask(
        {"securable_type": "table", "full_name": s.full_name},
        body={"changes": [{"principal": "ada", "add": ["SELECT", "MODIFY"], "remove": []}]},
    ),
    "getAccess": lambda s: Ask({"securable_type": "table", "full_name": s.full_name}),
    "changeAccess": lambda s: Ask(
        {"securable_type": "table", "full_name": s.full_name}, body={"owner": f"{s.catalog}_ada"}
    ),
    "can": lambda s: Ask(
        {"securable_type": "table", "full_name": s.full_name},
        {"privilege": "SELECT", "principal": f"{s.catalog}_ada"},
    ),
    "whoAmI": lambda s: Ask(),
    "createIdentity": lambda s: Ask(body={"name": f"{s.catalog}_new", "kind": "group"}),
    "listIdentities": lambda s: Ask(),
    "removeIdentity": lambda s: Ask({"name": f"{s.catalog}_bob"}),
    "listMembers": lambda s: Ask({"group": f"{s.catalog}_crew"}),
    "addMember": lambda s: Ask({"group": f"{s.catalog}_crew", "member": f"{s.catalog}_bob"}),
    "removeMember": lambda s: Ask({"group": f"{s.catalog}_crew", "member": f"{s.catalog}_ada"}),
    "createToken": lambda s: Ask(body={"principal": f"{s.catalog}_ada"}),
    "listTokens": lambda s: Ask(query={"principal": f"{s.catalog}_ada"}),
    "revokeToken": lambda s: Ask({"id": s.token_id}),
    "readEvents": lambda s: Ask(query={"kind": "table.committed"}),
    "streamEvents": lambda s: Ask(query={"seconds_max": "1"}),
    "createSubscription": lambda s: Ask(body=_subscription(f"{s.catalog}_new")),
    "listSubscriptions": lambda s: Ask(),
    "getSubscription": lambda s: Ask({"name": s.catalog}),
    "updateSubscription": lambda s: Ask({"name": s.catalog}, body={"paused": True}),
    "deleteSubscription": lambda s: Ask({"name": s.catalog}),
    "listDeadLetters": lambda s: Ask({"name": s.catalog}),
    "resendDeadLetters": lambda s: Ask({"name": s.catalog}, body={}),
    "discardDeadLetters": lambda s: Ask({"name": s.catalog}, body={"sequences": [1]}),
}
"""For each endpoint a request that succeeds."""


def but(name: str, **changes: Any) -> MakeAsk:
    """The sound request of an endpoint with parts changed: the keys of path, query or a JSON body, or a raw body.

    A change that depends on the scene is given as a function of it.
    """

    def make(scene: Scene) -> Ask:
        ask = SOUND[name](scene)
        for part, change in changes.items():
            value = change(scene) if callable(change) else change
            known = getattr(ask, part)
            ask = replace(ask, **{part: {**known, **value} if isinstance(value, dict) else value})
        return ask

    return make


def _updates(make: Callable[[Scene], Any]) -> Callable[[Scene], dict[str, Any]]:
    return lambda scene: scene.table.request(*make(scene))


def _of_version(version: int) -> Callable[[Scene], dict[str, Any]]:
    """A proposal of this version with a file of its own name."""
    return _updates(lambda s: [add_commit({**s.commit, "version": version, "file-name": file_name(version)})])


def _of_parquet(scene: Scene) -> dict[str, Any]:
    return replace(scene.table, id=scene.parquet_id).request(set_properties(team="sea"))


def _with_wrong_etag(scene: Scene) -> dict[str, Any]:
    return scene.table.request(set_properties(team="sea"), etag="never-given-out")


def _info_of(version: int) -> Callable[[Scene], dict[str, Any]]:
    return lambda s: {"commit_info": _commit_info(s, version=version, file_name=file_name(version))}


def _report_of(version: int) -> dict[str, Any]:
    return {"report": {"commit_report": {"commit_version": version, "num_files_added": 1}}}


def _converted_from_nowhere(scene: Scene) -> dict[str, Any]:
    """Enables Iceberg, and says that the conversion went on from a version that was never converted."""
    converted = {
        "metadata_location": f"{scene.table.location}/metadata/v2.json",
        "converted_delta_version": 2,
        "converted_delta_timestamp": "2026-02-09T17:00:00.000000Z",
        "base_converted_delta_version": 1,
    }
    properties = scene.table.load()["metadata"]["properties"]
    enabled = {**properties, "delta.universalFormat.enabledFormats": "iceberg"}
    return {"metadata": {"properties": enabled}, "uniform": {"iceberg": converted}}


# Cases


@dataclass(frozen=True)
class Case:
    """A request, who sends it, and the server that gets it."""

    ask: MakeAsk
    place: str = "plain"
    token: str | None = "admin"


Pair = tuple[str, type[errors.TidegateError]]

NO_CATALOG = {"catalog": "absent"}
NO_SCHEMA = {"schema": "absent"}
NO_TABLE = {"table": "absent"}
NO_ID = str(uuid.UUID(int=0))

OWN_CASES: dict[Pair, Case] = {
    ("getConfig", errors.InvalidRequest): Case(but("getConfig", query={"protocol-versions": "2.0"})),
    ("getConfig", errors.NoSuchCatalog): Case(but("getConfig", query=NO_CATALOG)),
    ("createStagingTable", errors.InvalidRequest): Case(but("createStagingTable", body={"name": "a.b"})),
    ("createStagingTable", errors.NoSuchCatalog): Case(but("createStagingTable", path=NO_CATALOG)),
    ("createStagingTable", errors.NoSuchSchema): Case(but("createStagingTable", path=NO_SCHEMA)),
    ("createStagingTable", errors.TableAlreadyExists): Case(but("createStagingTable", body={"name": "t"})),
    ("createStagingTable", errors.BacklogFull): Case(SOUND["createStagingTable"], "narrow"),
    ("createTable", errors.InvalidRequest): Case(but("createTable", body={"last-commit-timestamp-ms": 1})),
    ("createTable", errors.NoSuchCatalog): Case(but("createTable", path=NO_CATALOG)),
    ("createTable", errors.NoSuchSchema): Case(but("createTable", path=NO_SCHEMA)),
    ("createTable", errors.NoSuchStagingTable): Case(but("createTable", body={"location": "file:///absent"})),
    ("createTable", errors.TableAlreadyExists): Case(but("createTable", body={"name": "t"})),
    ("loadTable", errors.UnsupportedTableFormat): Case(but("loadTable", path={"table": "parquet"})),
    ("loadTable", errors.NoSuchTable): Case(but("loadTable", path=NO_TABLE)),
    ("updateTable", errors.InvalidRequest): Case(but("updateTable", body={"updates": []})),
    ("updateTable", errors.UnsupportedTableFormat): Case(
        but("updateTable", path={"table": "parquet"}, body=_of_parquet)
    ),
    ("updateTable", errors.NoSuchTable): Case(but("updateTable", path=NO_TABLE)),
    ("updateTable", errors.CommitVersionConflict): Case(but("updateTable", body=_of_version(1))),
    ("updateTable", errors.RequirementConflict): Case(but("updateTable", body=_with_wrong_etag)),
    ("updateTable", errors.BacklogFull): Case(SOUND["updateTable"], "narrow"),
    ("updateTable", errors.OutcomeUnknown): Case(SOUND["updateTable"], "broken"),
    ("deleteTable", errors.InvalidRequest): Case(but("deleteTable", query={"force": "perhaps"})),
    ("deleteTable", errors.NoSuchTable): Case(but("deleteTable", path=NO_TABLE)),
    ("tableExists", errors.NoSuchTable): Case(but("tableExists", path=NO_TABLE)),
    ("renameTable", errors.InvalidRequest): Case(but("renameTable", body={"new-name": "a b"})),
    ("renameTable", errors.NoSuchTable): Case(but("renameTable", path=NO_TABLE)),
    ("renameTable", errors.TableAlreadyExists): Case(but("renameTable", body={"new-name": "parquet"})),
    ("getTableCredentials", errors.InvalidRequest): Case(but("getTableCredentials", query={"operation": "WRITE"})),
    ("getTableCredentials", errors.NoSuchTable): Case(but("getTableCredentials", path=NO_TABLE)),
    ("reportMetrics", errors.InvalidRequest): Case(but("reportMetrics", body={"table-id": str(uuid.UUID(int=0))})),
    ("reportMetrics", errors.NoSuchTable): Case(but("reportMetrics", path=NO_TABLE)),
    ("getStagingTableCredentials", errors.NoSuchStagingTable): Case(
        but("getStagingTableCredentials", path={"table_id": str(uuid.UUID(int=0))})
    ),
    ("getTemporaryPathCredentials", errors.InvalidRequest): Case(
        but("getTemporaryPathCredentials", query={"location": "data/t"})
    ),
    ("createCatalog", errors.InvalidRequest): Case(but("createCatalog", body={"name": "a.b"})),
    ("createCatalog", errors.CatalogAlreadyExists): Case(but("createCatalog", body={"name": "main"})),
    ("listCatalogs", errors.InvalidRequest): Case(but("listCatalogs", query={"max_results": "-1"})),
    ("getCatalog", errors.NoSuchCatalog): Case(but("getCatalog", path={"name": "absent"})),
    ("updateCatalog", errors.InvalidRequest): Case(but("updateCatalog", body={"new_name": ""})),
    ("updateCatalog", errors.NoSuchCatalog): Case(but("updateCatalog", path={"name": "absent"})),
    ("updateCatalog", errors.CatalogAlreadyExists): Case(but("updateCatalog", body={"new_name": "main"})),
    ("deleteCatalog", errors.InvalidRequest): Case(but("deleteCatalog", query={"force": "perhaps"})),
    ("deleteCatalog", errors.NoSuchCatalog): Case(but("deleteCatalog", path={"name": "absent"})),
    ("deleteCatalog", errors.NotEmpty): Case(but("deleteCatalog", query={"force": "false"})),
    ("createSchema", errors.InvalidRequest): Case(but("createSchema", body={"name": "a.b"})),
    ("createSchema", errors.NoSuchCatalog): Case(but("createSchema", body={"catalog_name": "absent"})),
    ("createSchema", errors.SchemaAlreadyExists): Case(but("createSchema", body={"name": "s"})),
    ("listSchemas", errors.InvalidRequest): Case(but("listSchemas", query={"page_token": "!"})),
    ("listSchemas", errors.NoSuchCatalog): Case(but("listSchemas", query={"catalog_name": "absent"})),
    ("getSchema", errors.InvalidRequest): Case(but("getSchema", path={"full_name": "one"})),
    ("getSchema", errors.NoSuchCatalog): Case(but("getSchema", path={"full_name": "absent.s"})),
    ("getSchema", errors.NoSuchSchema): Case(but("getSchema", path=lambda s: {"full_name": f"{s.catalog}.absent"})),
    ("updateSchema", errors.InvalidRequest): Case(but("updateSchema", body={"new_name": "a/b"})),
    ("updateSchema", errors.NoSuchCatalog): Case(but("updateSchema", path={"full_name": "absent.s"})),
    ("updateSchema", errors.NoSuchSchema): Case(
        but("updateSchema", path=lambda s: {"full_name": f"{s.catalog}.absent"})
    ),
    ("updateSchema", errors.SchemaAlreadyExists): Case(but("updateSchema", body={"new_name": "other"})),
    ("deleteSchema", errors.InvalidRequest): Case(but("deleteSchema", path={"full_name": "a.b.c"})),
    ("deleteSchema", errors.NoSuchCatalog): Case(but("deleteSchema", path={"full_name": "absent.s"})),
    ("deleteSchema", errors.NoSuchSchema): Case(
        but("deleteSchema", path=lambda s: {"full_name": f"{s.catalog}.absent"})
    ),
    ("deleteSchema", errors.NotEmpty): Case(but("deleteSchema", query={"force": "false"})),
    ("listTables", errors.InvalidRequest): Case(but("listTables", query={"max_results": "many"})),
    ("listTables", errors.NoSuchCatalog): Case(but("listTables", query={"catalog_name": "absent"})),
    ("listTables", errors.NoSuchSchema): Case(but("listTables", query={"schema_name": "absent"})),
    ("getTable", errors.InvalidRequest): Case(but("getTable", path={"full_name": "a.b"})),
    ("getTable", errors.NoSuchCatalog): Case(but("getTable", path={"full_name": "absent.s.t"})),
    ("getTable", errors.NoSuchSchema): Case(but("getTable", path=lambda s: {"full_name": f"{s.catalog}.absent.t"})),
    ("getTable", errors.NoSuchTable): Case(but("getTable", path={"full_name": "main.default.absent"})),
    ("dropTable", errors.InvalidRequest): Case(but("dropTable", path={"full_name": "a..b"})),
    ("dropTable", errors.NoSuchTable): Case(but("dropTable", path={"full_name": "main.default.absent"})),
    ("getTimeline", errors.InvalidRequest): Case(but("getTimeline", path={"full_name": "a.b"})),
    ("getTimeline", errors.UnsupportedTableFormat): Case(
        but("getTimeline", path=lambda s: {"full_name": f"{s.catalog}.{s.schema}.parquet"})
    ),
    ("getTimeline", errors.NoSuchTable): Case(but("getTimeline", path={"full_name": "main.default.absent"})),
    ("readAudit", errors.InvalidRequest): Case(but("readAudit", query={"max_results": 100_000})),
    ("verifyTable", errors.InvalidRequest): Case(but("verifyTable", query={"max_results": 100_000})),
    ("verifyTable", errors.UnsupportedTableFormat): Case(
        but("verifyTable", path=lambda s: {"full_name": f"{s.catalog}.{s.schema}.parquet"})
    ),
    ("verifyTable", errors.NoSuchTable): Case(but("verifyTable", path={"full_name": "main.default.absent"})),
    ("stageTable", errors.InvalidRequest): Case(but("stageTable", body={"name": "a.b"})),
    ("stageTable", errors.NoSuchCatalog): Case(but("stageTable", body={"catalog_name": "absent"})),
    ("stageTable", errors.NoSuchSchema): Case(but("stageTable", body={"schema_name": "absent"})),
    ("stageTable", errors.TableAlreadyExists): Case(but("stageTable", body={"name": "t"})),
    ("stageTable", errors.BacklogFull): Case(SOUND["stageTable"], "narrow"),
    ("registerTable", errors.InvalidRequest): Case(but("registerTable", body={"data_source_format": "CSV"})),
    ("registerTable", errors.NoSuchCatalog): Case(but("registerTable", body={"catalog_name": "absent"})),
    ("registerTable", errors.NoSuchSchema): Case(but("registerTable", body={"schema_name": "absent"})),
    ("registerTable", errors.NoSuchStagingTable): Case(
        but("registerTable", body={"storage_location": "file:///absent"})
    ),
    ("registerTable", errors.TableAlreadyExists): Case(but("registerTable", body={"name": "t"})),
    **{
        (name, error): Case(but(name, **{part: change}))
        for name, part in (("getCommits", "query"), ("getCommitsPreview", "body"))
        for error, change in (
            (errors.InvalidRequest, {"start_version": "-1"} if part == "query" else {"start_version": -1}),
            (errors.NoSuchTable, {"table_id": str(uuid.UUID(int=0))}),
        )
    },
    **{
        (name, error): Case(but(name, body=change), place)
        for name in ("writeCommit", "writeCommitPreview")
        for error, change, place in (
            (errors.InvalidRequest, {"table_uri": "file:///elsewhere"}, "plain"),
            (errors.NoSuchTable, {"table_id": str(uuid.UUID(int=0))}, "plain"),
            (errors.CommitVersionConflict, _info_of(1), "plain"),
            (errors.CommitVersionGap, _info_of(3), "plain"),
            (errors.RequirementConflict, _converted_from_nowhere, "plain"),
            (errors.BacklogFull, {}, "narrow"),
            (errors.OutcomeUnknown, {}, "forgetful"),
        )
    },
    ("writeMetrics", errors.InvalidRequest): Case(but("writeMetrics", body=_report_of(2))),
    ("writeMetrics", errors.NoSuchTable): Case(but("writeMetrics", body={"table_id": str(uuid.UUID(int=0))})),
    **{
        (name, error): Case(but(name, path={"full_name": wrong}))
        for name in ("examineTable", "mendTable")
        for error, wrong in ((errors.InvalidRequest, "a.b"), (errors.NoSuchTable, "main.default.absent"))
    },
    ("listDroppedTables", errors.InvalidRequest): Case(but("listDroppedTables", query={"page_token": "!"})),
    ("restoreTable", errors.InvalidRequest): Case(but("restoreTable", path={"table_id": "nonsense"})),
    ("restoreTable", errors.NoSuchTable): Case(but("restoreTable", path={"table_id": NO_ID})),
    ("restoreTable", errors.NoSuchCatalog): Case(but("restoreTable", body={"new_full_name": "absent.s.t"})),
    ("restoreTable", errors.NoSuchSchema): Case(
        but("restoreTable", body=lambda s: {"new_full_name": f"{s.catalog}.absent.t"})
    ),
    ("restoreTable", errors.TableAlreadyExists): Case(
        but("restoreTable", body=lambda s: {"new_full_name": s.full_name})
    ),
    ("purgeTable", errors.InvalidRequest): Case(but("purgeTable", path={"table_id": "nonsense"})),
    ("purgeTable", errors.NoSuchTable): Case(but("purgeTable", path={"table_id": NO_ID})),
    ("getMetrics", errors.InvalidRequest): Case(but("getMetrics", query={"page_token": "!"})),
    ("getMetrics", errors.NoSuchTable): Case(but("getMetrics", path={"full_name": "main.default.absent"})),
    ("generateTemporaryTableCredentials", errors.InvalidRequest): Case(
        but("generateTemporaryTableCredentials", body={"table_id": "t"})
    ),
    ("generateTemporaryTableCredentials", errors.NoSuchTable): Case(
        but("generateTemporaryTableCredentials", body={"table_id": str(uuid.UUID(int=0))})
    ),
    ("generateTemporaryPathCredentials", errors.InvalidRequest): Case(
        but("generateTemporaryPathCredentials", body={"url": "data/t"})
    ),
    ("generateTemporaryPathCredentials", errors.Unavailable): Case(
        SOUND["generateTemporaryPathCredentials"], "storeless"
    ),
    **{
        (name, error): Case(but(name, path=path))
        for name in ("getPermissions", "updatePermissions", "getAccess", "changeAccess")
        for error, path in (
            (errors.InvalidRequest, {"securable_type": "volume"}),
            (errors.NoSuchCatalog, {"securable_type": "catalog", "full_name": "absent"}),
            (errors.NoSuchSchema, {"securable_type": "schema", "full_name": "main.absent"}),
            (errors.NoSuchTable, {"full_name": "main.default.absent"}),
        )
    },
    **{
        (name, error): Case(but(name, query=change), place)
        for name in ("readEvents", "streamEvents")
        for error, change, place in (
            (errors.InvalidRequest, {"kind": "table.exploded"}, "plain"),
            (errors.EventsForgotten, {"after": "0"}, "forgotten"),
        )
    },
    ("getTableCommits", errors.InvalidRequest): Case(but("getTableCommits", query={"start_version": "-1"})),
    ("commitInline", errors.InvalidRequest): Case(but("commitInline", body={"content": ""})),
    ("commitInline", errors.InlineTooLarge): Case(but("commitInline", body={"content": "x" * 100_000})),
    ("commitInline", errors.UnsupportedTableFormat): Case(
        but(
            "commitInline",
            path=lambda s: {"full_name": f"{s.catalog}.s.parquet"},
            body=lambda s: {"table_id": s.parquet_id},
        )
    ),
    ("commitInline", errors.CommitVersionConflict): Case(but("commitInline", body=lambda s: _inline(s, 1))),
    ("commitInline", errors.CommitVersionGap): Case(but("commitInline", body=lambda s: _inline(s, 7))),
    ("commitInline", errors.RequirementConflict): Case(
        but("commitInline", body=lambda s: _inline(s, None, metadata_version=7))
    ),
    ("commitInline", errors.BacklogFull): Case(SOUND["commitInline"], "narrow"),
    ("commitInline", errors.OutcomeUnknown): Case(SOUND["commitInline"], "broken"),
    # A commit alone would be one whose outcome is unknown; the report makes the server read first.
    ("commitInline", errors.Unavailable): Case(but("commitInline", body={"latest_published_version": 1}), "broken"),
    ("adoptTable", errors.InvalidRequest): Case(but("adoptTable", body={"location": "no place"})),
    ("adoptTable", errors.NoSuchCatalog): Case(but("adoptTable", body={"full_name": "absent.s.t"})),
    ("adoptTable", errors.NoSuchSchema): Case(but("adoptTable", body=lambda s: {"full_name": f"{s.catalog}.absent.t"})),
    ("adoptTable", errors.TableAlreadyExists): Case(but("adoptTable", body=lambda s: {"full_name": s.full_name})),
    ("adoptTable", errors.OutcomeUnknown): Case(SOUND["adoptTable"], "forgetful"),
    ("releaseTable", errors.InvalidRequest): Case(but("releaseTable", path={"full_name": "no_table"})),
    ("releaseTable", errors.OutcomeUnknown): Case(SOUND["releaseTable"], "forgetful"),
    ("registerOwnedTable", errors.InvalidRequest): Case(but("registerOwnedTable", body={"version": 7})),
    ("registerOwnedTable", errors.NoSuchCatalog): Case(but("registerOwnedTable", body={"schema": "absent.s"})),
    ("registerOwnedTable", errors.NoSuchSchema): Case(
        but("registerOwnedTable", body=lambda s: {"schema": f"{s.catalog}.absent"})
    ),
    ("commitOwned", errors.InvalidRequest): Case(but("commitOwned", body={"file_name": "x.json"})),
    ("commitOwned", errors.CommitVersionConflict): Case(but("commitOwned", body=_renumbered(1))),
    ("commitOwned", errors.CommitVersionGap): Case(but("commitOwned", body=_renumbered(7))),
    ("commitOwned", errors.BacklogFull): Case(SOUND["commitOwned"], "narrow"),
    ("commitOwned", errors.OutcomeUnknown): Case(SOUND["commitOwned"], "forgetful"),
    ("getOwnedCommits", errors.InvalidRequest): Case(but("getOwnedCommits", query={"start_version": "-1"})),
    ("publishOwned", errors.InvalidRequest): Case(but("publishOwned", body={"version": 9})),
    **{
        (name, errors.NoSuchTable): Case(but(name, path={"table_id": NO_ID}))
        for name in ("commitOwned", "getOwnedCommits", "publishOwned")
    },
    ("allowAdoption", errors.InvalidRequest): Case(but("allowAdoption", body={"location": "no place"})),
    ("disallowAdoption", errors.InvalidRequest): Case(but("disallowAdoption", query={"location": "no place"})),
    ("disallowAdoption", errors.NotFound): Case(but("disallowAdoption", query={"location": "file:///absent"})),
    **{
        (name, errors.NoSuchTable): Case(but(name, path=lambda s: {"full_name": f"{s.catalog}.s.absent"}))
        for name in ("getTableCommits", "commitInline", "releaseTable", "getPolicies", "changePolicies")
    },
    **{
        (name, errors.InvalidRequest): Case(but(name, path={"full_name": "no_table"}))
        for name in ("getPolicies", "changePolicies")
    },
    **{
        (name, errors.UnsupportedTableFormat): Case(but(name, path=lambda s: {"full_name": f"{s.catalog}.s.parquet"}))
        for name in ("getPolicies", "changePolicies")
    },
    ("getTableCommits", errors.UnsupportedTableFormat): Case(
        but("getTableCommits", path=lambda s: {"full_name": f"{s.catalog}.s.parquet"})
    ),
    **{
        (name, error): Case(but(name, path=path))
        for name in ("getConstraints", "deleteTableConstraint")
        for error, path in (
            (errors.InvalidRequest, {"full_name": "no_table"}),
            (errors.NoSuchTable, {"full_name": "main.default.absent"}),
            (errors.UnsupportedTableFormat, lambda s: {"full_name": f"{s.catalog}.{s.schema}.parquet"}),
        )
    },
    ("deleteTableConstraint", errors.NotFound): Case(but("deleteTableConstraint", query={"constraint_name": "absent"})),
    ("createTableConstraint", errors.InvalidRequest): Case(but("createTableConstraint", body={"constraint": {}})),
    ("createTableConstraint", errors.NoSuchTable): Case(
        but("createTableConstraint", body={"full_name_arg": "main.default.absent"})
    ),
    ("createTableConstraint", errors.UnsupportedTableFormat): Case(
        but("createTableConstraint", body=lambda s: _primary_key(s, "parquet"))
    ),
    ("createSubscription", errors.InvalidRequest): Case(but("createSubscription", body={"function": "absent"})),
    ("createSubscription", errors.SubscriptionAlreadyExists): Case(
        but("createSubscription", body=lambda s: {"name": s.catalog})
    ),
    ("createSubscription", errors.BacklogFull): Case(SOUND["createSubscription"], "narrow"),
    ("listDeadLetters", errors.InvalidRequest): Case(but("listDeadLetters", query={"max_results": "-1"})),
    **{
        (name, errors.NoSuchSubscription): Case(but(name, path={"name": "absent"}))
        for name in (
            "getSubscription",
            "updateSubscription",
            "deleteSubscription",
            "listDeadLetters",
            "resendDeadLetters",
            "discardDeadLetters",
        )
    },
    ("createIdentity", errors.InvalidRequest): Case(but("createIdentity", body={"name": "a b"})),
    ("createIdentity", errors.IdentityAlreadyExists): Case(
        but("createIdentity", body=lambda s: {"name": f"{s.catalog}_ada"})
    ),
    ("createIdentity", errors.BacklogFull): Case(SOUND["createIdentity"], "narrow"),
    ("listIdentities", errors.InvalidRequest): Case(but("listIdentities", query={"page_token": "!"})),
    ("removeIdentity", errors.NoSuchIdentity): Case(but("removeIdentity", path={"name": "absent"})),
    **{
        (name, errors.InvalidRequest): Case(but(name, path=lambda s: {"group": f"{s.catalog}_ada"}))
        for name in ("listMembers", "addMember", "removeMember")
    },
    **{
        (name, errors.NoSuchIdentity): Case(but(name, path={"group": "absent"}))
        for name in ("listMembers", "addMember", "removeMember")
    },
    ("removeMember", errors.NotFound): Case(but("removeMember", path={"member": "absent"})),
    ("createToken", errors.InvalidRequest): Case(but("createToken", body={"lifetime_seconds": 0})),
    ("createToken", errors.NoSuchIdentity): Case(but("createToken", body={"principal": "absent"})),
    ("createToken", errors.BacklogFull): Case(SOUND["createToken"], "narrow"),
    ("listTokens", errors.NoSuchIdentity): Case(but("listTokens", query={"principal": "absent"})),
    ("revokeToken", errors.NoSuchToken): Case(but("revokeToken", path={"id": "absent"})),
    ("can", errors.InvalidRequest): Case(but("can", path={"securable_type": "volume"})),
    ("can", errors.NoSuchIdentity): Case(but("can", query={"principal": "absent"})),
    ("changeAccess", errors.NoSuchIdentity): Case(but("changeAccess", body={"owner": "absent"})),
    ("updatePermissions", errors.BacklogFull): Case(SOUND["updatePermissions"], "narrow"),
    # A commit alone would be one whose outcome is unknown; the report makes the server read first.
    ("updateTable", errors.Unavailable): Case(
        but("updateTable", body=_updates(lambda s: [add_commit(s.commit), report(1)])), "broken"
    ),
    # This one needs no database, only the store's vendor.
    ("getTemporaryPathCredentials", errors.Unavailable): Case(SOUND["getTemporaryPathCredentials"], "storeless"),
}


def _shared_cases(endpoint: Endpoint) -> Iterator[tuple[Pair, Case]]:
    """The cases that look alike for every endpoint: what is wrong lies outside of its request, or in its bytes."""
    sound = SOUND[endpoint.name]
    yield (endpoint.name, errors.NotAuthenticated), Case(sound, token=None)
    if not endpoint.for_everybody:
        yield (endpoint.name, errors.PermissionDenied), Case(sound, "guarded", token="stranger")
    yield (endpoint.name, errors.TooManyRequests), Case(sound, "crowded")
    yield (endpoint.name, errors.Unavailable), Case(sound, "broken")
    yield (endpoint.name, errors.InternalFailure), Case(sound, "defective")
    parameters = re.findall(r"{(\w+)}", endpoint.path)
    if endpoint.body is not None:
        yield (endpoint.name, errors.MalformedRequest), Case(but(endpoint.name, body=b'{"name": '))
        yield (endpoint.name, BodyTooLarge), Case(but(endpoint.name, body=b" " * (BODY_BYTES_MAX + 1)))
    elif parameters:
        yield (endpoint.name, errors.MalformedRequest), Case(but(endpoint.name, path={parameters[-1]: "%FF"}))
    elif endpoint.query is not None:
        yield (endpoint.name, errors.MalformedRequest), Case(but(endpoint.name, query="page_token=%FF"))


CASES: dict[Pair, Case] = {
    **dict(pair for endpoint in ENDPOINTS if endpoint.name in SOUND for pair in _shared_cases(endpoint)),
    **OWN_CASES,
}


# Servers


class Callers:
    """The admin, a colleague with the same rights, and a stranger with none."""

    async def authenticate(self, authorization: str | None) -> Principal:
        match authorization:
            case "Bearer admin":
                return ADMIN
            case "Bearer colleague":
                return ANONYMOUS
            case "Bearer stranger":
                return Principal("stranger")
            case _:
                raise errors.NotAuthenticated("Who are you?")


class Defective:
    """Ports with a defect: whatever is asked of them raises what nobody expects."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"SELECT secret FROM {name}")


class Storeless:
    """A vendor whose store does not answer."""

    def vend(self, location: str, operation: CredentialOperation) -> Credential:
        raise errors.Unavailable(f"{location} cannot be reached for {operation}. Try again later.")


class Forgetful:
    """A database that can be read, and that fails whenever a commit is written."""

    def __init__(self, database: Database) -> None:
        self.read = database.read
        self.table = database.table
        self.known_table = database.known_table

    async def ratify(self, proposal: Proposal) -> Decision:
        raise errors.OutcomeUnknown(f"The database failed on {proposal.name}. Send it again unchanged.")

    async def write(self, work: Any, **options: Any) -> Any:
        raise errors.OutcomeUnknown("The database failed. Send it again unchanged.")


class Forgotten:
    """A database that has forgotten its older events."""

    async def read(self, work: Any) -> Any:
        raise errors.EventsForgotten(after=0, forgotten=41)


@contextmanager
def serving(app: App) -> Iterator[str]:
    """The application behind a real socket, in a thread of this process; its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, http="httptools", ws="none", lifespan="on", log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        # The socket listens already: the answer comes as soon as the application serves.
        assert httpx.get(f"{address}/health", timeout=60).status_code == 200
        yield address
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        assert not thread.is_alive()


@contextmanager
def one_request_in_flight(address: str) -> Iterator[None]:
    """A request whose body never comes. The server asks for the body, so it works on the request from then on."""
    target = urlsplit(address)
    with socket.create_connection((target.hostname, target.port), timeout=60) as connection:
        headers = "Host: tidegate\r\nAuthorization: Bearer admin\r\nContent-Length: 9\r\nExpect: 100-continue"
        connection.sendall(f"POST {url('createCatalog')} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        yield


@dataclass(frozen=True)
class Places:
    """Clients of the servers by what is special about each, and the scene that all requests are about."""

    scene: Scene
    clients: Mapping[str, httpx.Client]
    admin_token: str

    def send(self, endpoint: Endpoint, case: Case) -> httpx.Response:
        token = self.admin_token if case.place == "plain" and case.token == "admin" else case.token
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return send(self.clients[case.place], endpoint, case.ask(self.scene), headers)


@pytest.fixture(scope="module")
def places(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    database = server.database or f"sqlite:///{server.home}/catalog.db"
    with ExitStack() as stack:
        http = stack.enter_context(server.http())
        scene = add_parquet_table(set_scene(http, f"errors_{uuid.uuid4().hex[:8]}"), database)
        addresses = {"plain": server.url}
        for name, app in special_apps(Settings(home=server.home, database=database, publishing="off")).items():
            addresses[name] = stack.enter_context(serving(app))
        addresses["broken"] = stack.enter_context(serving_without_database(server, tmp_path_factory.mktemp("broken")))
        stack.enter_context(one_request_in_flight(addresses["crowded"]))
        clients = {
            name: stack.enter_context(httpx.Client(base_url=address, timeout=60)) for name, address in addresses.items()
        }
        yield Places(scene, clients, server.token)


def special_apps(settings: Settings) -> dict[str, App]:
    """Applications on the database of the plain server."""
    guarded = build_server(settings, authenticator=Callers())
    bounds = {"staging_tables_max": 1, "unpublished_commits_max": 1, "grants_max": 1, "subscriptions_max": 1}
    narrow = replace(settings, **bounds, identities_max=1, tokens_max=1)
    crowded = replace(settings, requests_in_flight_max=1)
    return {
        "guarded": guarded.app,
        "narrow": build_server(narrow, authenticator=Callers()).app,
        "crowded": build_server(crowded, authenticator=Callers()).app,
        "defective": app_of(replace(guarded.env, database=Defective(), vendor=Defective())),
        "storeless": app_of(replace(guarded.env, vendor=Storeless())),
        "forgetful": app_of(replace(guarded.env, database=Forgetful(guarded.env.database))),
        "forgotten": app_of(replace(guarded.env, database=Forgotten())),
    }


def app_of(env: Environment) -> App:
    """The application on ports of our own."""

    async def nothing() -> None:
        pass

    limits = {"body_bytes_max": BODY_BYTES_MAX, "in_flight_max": 100}
    return App(env, Callers(), ENDPOINTS, FACES, **limits, on_start=nothing, on_stop=nothing)


@contextmanager
def serving_without_database(like: ServerProcess, home: Path) -> Iterator[str]:
    """A server that started well and then lost its database, of the same kind as that of `like`.

    PostgreSQL is killed. SQLite has no process that could be: its tables are taken away.
    """
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer()) if like.database is not None else None
        database = f"sqlite:///{home}/catalog.db" if postgres is None else postgres.create_database()
        settings = Settings(home=home, database=database)
        prepare(settings)
        address = stack.enter_context(serving(build_server(settings, authenticator=Callers()).app))
        if postgres is not None:
            postgres.kill()
        else:
            engine = sa.create_engine(database)
            db.metadata.drop_all(engine)
            engine.dispose()
        yield address


# Tests


def test_every_documented_error_of_every_endpoint_has_a_case() -> None:
    documented = {(endpoint.name, error) for endpoint in ENDPOINTS for error in endpoint.all_errors()}
    missing, stray = documented - set(CASES), set(CASES) - documented
    assert not missing, f"no case provokes {sorted((name, error.__name__) for name, error in missing)}"
    assert not stray, f"not documented: {sorted((name, error.__name__) for name, error in stray)}"


def _ids(pair: Pair) -> str:
    return f"{pair[0]}-{pair[1].__name__}"


@pytest.mark.parametrize("pair", CASES, ids=_ids)
def test_an_endpoint_answers_its_documented_error_and_changes_nothing(places: Places, pair: Pair) -> None:
    name, error = pair
    endpoint = BY_NAME[name]
    writes = endpoint.method not in {"GET", "HEAD"}
    before = places.scene.seen() if writes else None
    response = places.send(endpoint, CASES[pair])
    check_error(response, endpoint, error)
    assert before == (places.scene.seen() if writes else None)


def check_error(response: httpx.Response, endpoint: Endpoint, error: type[errors.TidegateError]) -> None:
    code = endpoint.face.code_of(error)
    assert response.status_code == code.status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers.get("www-authenticate") == ("Bearer" if error is errors.NotAuthenticated else None)
    assert ("retry-after" in response.headers) == (error is errors.TooManyRequests)
    if endpoint.method == "HEAD":
        assert response.content == b""
        return
    body = response.json()
    tells_who_won = endpoint.face is DELTA or endpoint.name in {"commitInline", "commitOwned"}
    lost = tells_who_won and issubclass(error, errors.CommitVersionConflict)
    assert (body.pop("conflict", None) is not None) == lost
    message = body["error"].pop("message") if endpoint.face is DELTA else body.pop("message")
    expected = {"type": code.code, "code": code.status}
    assert body == ({"error": expected} if endpoint.face is DELTA else {"error_code": code.code})
    assert message
    assert not LEAKS.search(message), message


@pytest.mark.parametrize("name", BY_NAME)
def test_a_sound_request_succeeds_with_the_documented_status(places: Places, unique: str, name: str) -> None:
    endpoint, http = BY_NAME[name], places.scene.table.lake.http
    response = send(http, endpoint, SOUND[name](set_scene(http, f"success_{unique}")))
    assert response.status_code == endpoint.status, response.text
    if endpoint.answer is None:
        assert response.content == b""
    else:
        assert response.headers["content-type"] == endpoint.content_type.decode()
        for answer in answers_in(response):
            msgspec.json.decode(answer, type=endpoint.answer)


def answers_in(response: httpx.Response) -> list[bytes]:
    """The one body, or what was streamed."""
    if response.headers["content-type"] == "application/json":
        return [response.content]
    return [line.removeprefix(b"data: ") for line in response.content.splitlines() if line.startswith(b"data: ")]


def test_a_table_of_another_format_exists_and_is_listed_though_it_cannot_be_loaded(places: Places) -> None:
    scene = places.scene
    http = scene.table.lake.http
    path = {"catalog": scene.catalog, "schema": scene.schema, "table": "parquet"}
    assert http.head(url("tableExists", **path)).status_code == 204
    check_error(http.get(url("loadTable", **path)), BY_NAME["loadTable"], errors.UnsupportedTableFormat)
    listed = http.get(url("listTables"), params=_schema_query(scene)).json()["tables"]
    assert {table["name"]: table["data_source_format"] for table in listed} == {"t": "DELTA", "parquet": "PARQUET"}


@pytest.mark.parametrize("name", ["createTable", "getStagingTableCredentials"])
def test_a_staging_table_is_for_the_principal_that_staged_it(places: Places, name: str) -> None:
    refused = places.send(BY_NAME[name], Case(SOUND[name], "guarded", token="colleague"))
    check_error(refused, BY_NAME[name], errors.PermissionDenied)


@pytest.mark.parametrize("name", ["loadTable", "getTable", "getTableCredentials", "getTimeline", "getMetrics"])
def test_a_colleague_with_the_right_sees_what_a_stranger_does_not(places: Places, name: str) -> None:
    seen = places.send(BY_NAME[name], Case(SOUND[name], "guarded", token="colleague"))
    assert seen.status_code == 200, seen.text
    hidden = places.send(BY_NAME[name], Case(but(name, path=_absent), "guarded", token="stranger"))
    # A stranger cannot tell a table that is hidden from one that is not there.
    check_error(hidden, BY_NAME[name], errors.PermissionDenied)


def _absent(scene: Scene) -> dict[str, str]:
    return {"table": "absent", "full_name": f"{scene.catalog}.{scene.schema}.absent"}
