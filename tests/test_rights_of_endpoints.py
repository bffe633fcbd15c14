"""Every endpoint and every privilege: who has just that one gets as far as it says here, and no further.

An endpoint that nobody has classified fails the test. Each privilege is given on the metastore, so that it holds for
everything, to a user of its own who may also pass catalogs and schemas; unless passing is what is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import httpx
import pytest

from tests.lake import Lake
from tests.servers import ServerProcess
from tests.test_endpoint_errors import BY_NAME, SOUND, Scene, send, set_scene, url
from tidegate.compose import ENDPOINTS
from tidegate.domain.grants import Privilege as P
from tidegate.http.extensions.prometheus import METRICS

ON_TABLES = {P.SELECT, P.MODIFY, P.MODIFY_METADATA, P.MAINTAIN, P.MANAGE}
READING = {P.SELECT, P.MODIFY}


@dataclass(frozen=True)
class Takes:
    """What has to be passed, and one of which privileges is needed; none: to pass is enough."""

    passing: frozenset[P] = frozenset()
    one_of: frozenset[P] = frozenset()
    hidden: bool = False
    """Who does not have it is told that there is nothing."""


def everybody() -> Takes:
    return Takes()


def metastore(*one_of: P) -> Takes:
    return Takes(one_of=frozenset(one_of))


def catalog(*one_of: P) -> Takes:
    return Takes(frozenset({P.USE_CATALOG}), frozenset(one_of))


def schema(*one_of: P) -> Takes:
    return Takes(frozenset({P.USE_CATALOG, P.USE_SCHEMA}), frozenset(one_of))


def table(*one_of: P) -> Takes:
    return Takes(frozenset({P.USE_CATALOG, P.USE_SCHEMA}), frozenset(one_of or ON_TABLES), hidden=True)


MANAGING = metastore(P.MANAGE)
TAKES: dict[str, Takes] = {
    "getConfig": catalog(),
    "createStagingTable": schema(P.CREATE_TABLE),
    "createTable": schema(P.CREATE_TABLE),
    "loadTable": table(*READING),
    "updateTable": table(P.MODIFY),
    "deleteTable": table(P.MANAGE),
    "tableExists": table(),
    "renameTable": table(P.MANAGE),
    "getTableCredentials": table(P.MODIFY),
    "reportMetrics": table(*READING),
    "getStagingTableCredentials": everybody(),
    "getTemporaryPathCredentials": metastore(P.READ_FILES, P.WRITE_FILES),
    "getMetastoreSummary": everybody(),
    "getDefaultNamespaceSetting": everybody(),
    "createCatalog": metastore(P.CREATE_CATALOG),
    "listCatalogs": everybody(),
    "getCatalog": catalog(),
    "updateCatalog": catalog(P.MANAGE),
    "deleteCatalog": catalog(P.MANAGE),
    "createSchema": catalog(P.CREATE_SCHEMA),
    "listSchemas": catalog(),
    "getSchema": schema(),
    "updateSchema": schema(P.MANAGE),
    "deleteSchema": schema(P.MANAGE),
    "stageTable": schema(P.CREATE_TABLE),
    "registerTable": schema(P.CREATE_TABLE),
    "listTables": schema(),
    "getTable": table(),
    "dropTable": table(P.MANAGE),
    "getCommits": table(*READING),
    "writeCommit": table(P.MODIFY),
    "getCommitsPreview": table(*READING),
    "writeCommitPreview": table(P.MODIFY),
    "writeMetrics": table(*READING),
    "generateTemporaryTableCredentials": table(P.MODIFY),
    "generateTemporaryPathCredentials": metastore(P.READ_FILES, P.WRITE_FILES),
    "getPermissions": table(P.MANAGE),
    "updatePermissions": table(P.MANAGE),
    "getTableCommits": table(*READING),
    "commitInline": table(P.MODIFY),
    "getTimeline": table(),
    "getMetrics": table(),
    "verifyTable": table(*READING),
    "readAudit": MANAGING,
    "examineTable": table(P.MAINTAIN, P.MANAGE),
    "mendTable": table(P.MAINTAIN, P.MANAGE),
    "examineStorage": MANAGING,
    "mendStorage": MANAGING,
    "listDroppedTables": everybody(),
    "restoreTable": replace(metastore(P.MANAGE), hidden=True),
    "purgeTable": replace(metastore(P.MANAGE), hidden=True),
    "adoptTable": schema(P.CREATE_TABLE),
    "releaseTable": table(P.MANAGE),
    "registerOwnedTable": schema(P.CREATE_TABLE),
    "commitOwned": table(P.MODIFY),
    "getOwnedCommits": table(*READING),
    "publishOwned": table(*READING),
    "getPolicies": table(*READING),
    "changePolicies": table(P.MANAGE),
    "getConstraints": table(),
    "createTableConstraint": table(P.MANAGE),
    "deleteTableConstraint": table(P.MANAGE),
    "listOwnershipPromises": MANAGING,
    "listAdoptableLocations": MANAGING,
    "allowAdoption": MANAGING,
    "disallowAdoption": MANAGING,
    "getStatus": metastore(P.MAINTAIN, P.MANAGE),
    "readEvents": everybody(),
    "streamEvents": everybody(),
    "createSubscription": MANAGING,
    "listSubscriptions": MANAGING,
    "getSubscription": MANAGING,
    "updateSubscription": MANAGING,
    "deleteSubscription": MANAGING,
    "listDeadLetters": MANAGING,
    "resendDeadLetters": MANAGING,
    "discardDeadLetters": MANAGING,
    "whoAmI": everybody(),
    "createIdentity": MANAGING,
    "listIdentities": MANAGING,
    "removeIdentity": MANAGING,
    "listMembers": MANAGING,
    "addMember": MANAGING,
    "removeMember": MANAGING,
    # Of somebody else.
    "createToken": MANAGING,
    "listTokens": MANAGING,
    "revokeToken": replace(MANAGING, hidden=True),
    "getAccess": table(),
    "changeAccess": table(P.MANAGE),
    # Of somebody else.
    "can": table(P.MANAGE),
    METRICS.name: metastore(P.MAINTAIN, P.MANAGE),
}
BY_PRINCIPAL = {"createTable", "registerTable", "getStagingTableCredentials"}
"""Only who staged a table may finish it."""
SLOW = {"streamEvents"}


def test_every_endpoint_is_classified() -> None:
    assert {endpoint.name for endpoint in [*ENDPOINTS, METRICS]} == set(TAKES)


@dataclass
class Caller:
    http: httpx.Client
    granted: frozenset[P]

    def passes(self, takes: Takes) -> bool:
        return P.MANAGE in self.granted or takes.passing <= self.granted

    def may(self, takes: Takes) -> bool:
        return self.passes(takes) and (not takes.one_of or bool(takes.one_of & self.granted))

    def sees(self, takes: Takes) -> bool:
        """Whether what it may not do is refused, rather than answered as if there were nothing."""
        return self.passes(takes) and not (takes.hidden and not self.granted & ON_TABLES)


@dataclass
class Stage:
    """One scene that is refused to change, and new ones for those who may change them."""

    server: ServerProcess
    admin: httpx.Client
    shared: Scene
    callers: dict[str, Caller] = field(default_factory=dict)
    scenes: int = 0

    def new_scene(self) -> Scene:
        self.scenes += 1
        return set_scene(self.admin, f"own{self.scenes}")

    def add(self, name: str, *granted: P) -> None:
        assert self.admin.post(url("createIdentity"), json={"name": name}).status_code == 200
        token = self.admin.post(url("createToken"), json={"principal": name}).json()["token"]
        changes = [{"principal": name, "add": list(granted), "remove": []}]
        where = url("updatePermissions", securable_type="metastore", full_name="metastore")
        assert self.admin.patch(where, json={"changes": changes}).status_code == 200
        http = httpx.Client(base_url=self.server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        self.callers[name] = Caller(http, frozenset(granted))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    # Every scene has a subscription.
    server = ServerProcess(tmp_path_factory.mktemp("rights"), settings={"subscriptions_max": "1000"}).start()
    with server.http() as admin:
        stage = Stage(server, admin, set_scene(admin, "shared"))
        stage.add("nobody")
        for privilege in P:
            passing = [P.USE_CATALOG] if privilege is P.USE_CATALOG else [P.USE_CATALOG, P.USE_SCHEMA]
            stage.add(privilege.name.lower(), *dict.fromkeys([*passing, privilege]))
        stage.add("only_manage", P.MANAGE)
        yield stage
        for caller in stage.callers.values():
            caller.http.close()
    assert server.stop() == 0


@pytest.mark.parametrize("name", list(TAKES))
def test_who_has_a_privilege_may_do_what_it_opens_and_nothing_else(stage: Stage, name: str) -> None:
    endpoint, takes = {**BY_NAME, METRICS.name: METRICS}[name], TAKES[name]
    ask = SOUND.get(name) or SOUND["listCatalogs"]
    before = stage.shared.seen()
    reading = endpoint.method in {"GET", "HEAD"} and name not in BY_PRINCIPAL
    for who, caller in stage.callers.items():
        if name in SLOW and who not in {"nobody", "manage"}:
            continue
        if not caller.may(takes):
            refused = send(caller.http, endpoint, ask(stage.shared))
            absent = 404 if not caller.sees(takes) else 403
            if takes.hidden and not takes.passing:
                absent = 404
            assert refused.status_code == absent, (who, refused.status_code, refused.text)
            continue
        scene = stage.shared if reading else stage.new_scene()
        if name in BY_PRINCIPAL:
            if P.CREATE_TABLE not in caller.granted:
                continue
            scene = _staged_by(caller, scene)
        allowed = send(caller.http, endpoint, ask(scene))
        assert allowed.status_code < 300, (who, allowed.status_code, allowed.text)
    assert stage.shared.seen() == before


def _staged_by(caller: Caller, scene: Scene) -> Scene:
    draft = Lake(caller.http, scene.catalog, scene.schema).draft("staged")
    draft.write_version_0()
    return replace(scene, draft=draft)
