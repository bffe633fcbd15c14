"""Credentials and permissions through the old API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, error_of
from tests.old_lake import OldLake, OldTable
from tests.servers import ServerProcess

INVALID = (400, "INVALID_PARAMETER_VALUE")
NOTHING = {"aws_temp_credentials": None, "azure_user_delegation_sas": None, "gcp_oauth_token": None}


@pytest.fixture
def table(http: httpx.Client, unique: str) -> OldTable:
    return OldLake(http).new_table(unique)


# Credentials


def of_table(http: httpx.Client, id: str, operation: str = "READ") -> httpx.Response:
    return http.post(f"{UNITY}/temporary-table-credentials", json={"table_id": id, "operation": operation})


def of_path(http: httpx.Client, url: str, operation: str = "PATH_READ") -> httpx.Response:
    return http.post(f"{UNITY}/temporary-path-credentials", json={"url": url, "operation": operation})


@pytest.mark.parametrize("operation", ["READ", "READ_WRITE"])
def test_local_files_need_no_credentials_and_the_answer_says_where_they_are(table: OldTable, operation: str) -> None:
    answer = of_table(table.lake.http, table.files.id.upper(), operation)
    assert answer.status_code == 200
    assert answer.json() == {**NOTHING, "expiration_time": None, "url": table.files.location}


def test_a_staging_table_gets_credentials_as_if_it_were_a_table(http: httpx.Client, unique: str) -> None:
    draft = OldLake(http).draft(unique)
    assert of_table(http, draft.id, "READ_WRITE").json()["url"] == draft.location


@pytest.mark.parametrize(
    ("id", "operation", "expected"),
    [
        ("not-a-uuid", "READ", INVALID),
        ("00000000-0000-4000-8000-000000000000", "READ", (404, "TABLE_DOES_NOT_EXIST")),
        ("00000000-0000-4000-8000-000000000000", "UNKNOWN_TABLE_OPERATION", INVALID),
        ("00000000-0000-4000-8000-000000000000", "DELETE", INVALID),
    ],
)
def test_a_request_for_no_table_or_no_operation_is_refused(
    http: httpx.Client, id: str, operation: str, expected: tuple[int, str]
) -> None:
    assert error_of(of_table(http, id, operation)) == expected


@pytest.mark.parametrize("operation", ["PATH_READ", "PATH_READ_WRITE", "PATH_CREATE_TABLE"])
def test_a_place_that_is_nobodys_gets_credentials(http: httpx.Client, unique: str, operation: str) -> None:
    answer = of_path(http, f"file:/data/{unique}/", operation)
    assert answer.json() == {**NOTHING, "expiration_time": None, "url": f"file:///data/{unique}"}


@pytest.mark.parametrize("operation", ["PATH_READ_WRITE", "PATH_CREATE_TABLE"])
def test_where_a_table_is_nobody_gets_credentials_to_write_past_the_catalog(table: OldTable, operation: str) -> None:
    for place in (table.files.location, f"{table.files.location}/_delta_log"):
        assert error_of(of_path(table.lake.http, place, operation)) == INVALID
    assert of_path(table.lake.http, table.files.location).status_code == 200


@pytest.mark.parametrize(("url", "operation"), [("data/t", "PATH_READ"), ("s3://b/t", "PATH_READ"), ("file:///x", "X")])
def test_what_is_no_place_or_on_a_store_without_credentials_is_refused(
    http: httpx.Client, url: str, operation: str
) -> None:
    assert error_of(of_path(http, url, operation)) == INVALID


# Permissions


def permissions(http: httpx.Client, kind: str, name: str, **query: str) -> Any:
    answer = http.get(f"{UNITY}/permissions/{kind}/{name}", params=query)
    assert answer.status_code == 200, answer.text
    return {one["principal"]: one["privileges"] for one in answer.json()["privilege_assignments"]}


def change(http: httpx.Client, kind: str, name: str, *changes: dict[str, Any]) -> httpx.Response:
    return http.patch(f"{UNITY}/permissions/{kind}/{name}", json={"changes": list(changes)})


def grant(principal: str, *add: str, remove: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"principal": principal, "add": list(add), "remove": list(remove)}


@pytest.fixture
def named(http: httpx.Client, unique: str) -> dict[str, str]:
    """An object of each kind."""
    assert http.post(f"{UNITY}/catalogs", json={"name": unique}).status_code == 200
    assert http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": unique}).status_code == 200
    OldLake(http, unique, "s").new_table("t")
    return {"metastore": "metastore", "catalog": unique, "schema": f"{unique}.s", "table": f"{unique}.s.t"}


@pytest.mark.parametrize("kind", ["metastore", "catalog", "schema", "table"])
def test_what_is_granted_is_shown_until_it_is_taken_away(
    http: httpx.Client, named: dict[str, str], unique: str, kind: str
) -> None:
    name, ada, bob = named[kind], f"{unique}-ada@sea", f"{unique}-bob"
    answer = change(http, kind, name, grant(ada, "SELECT", "MODIFY"), grant(bob, "SELECT", "SELECT"))
    assert answer.status_code == 200, answer.text
    granted = permissions(http, kind, name)
    assert (granted[ada], granted[bob]) == (["MODIFY", "SELECT"], ["SELECT"])
    assert permissions(http, kind, name, principal=bob) == {bob: ["SELECT"]}
    answer = change(http, kind, name, grant(ada, "USE SCHEMA", remove=("MODIFY",)), grant(bob, remove=("SELECT",)))
    told = {one["principal"]: one["privileges"] for one in answer.json()["privilege_assignments"]}
    assert told == permissions(http, kind, name)
    assert (told[ada], bob in told) == (["SELECT", "USE SCHEMA"], False)


def test_grants_belong_to_the_object_and_not_to_its_name(http: httpx.Client, named: dict[str, str]) -> None:
    catalog = named["catalog"]
    for kind in ("catalog", "schema", "table"):
        assert change(http, kind, named[kind], grant("ada", "SELECT")).status_code == 200
    assert http.patch(f"{UNITY}/catalogs/{catalog}", json={"new_name": f"{catalog}_new"}).status_code == 200
    assert permissions(http, "table", f"{catalog}_new.s.t") == {"ada": ["SELECT"]}
    assert http.delete(f"{UNITY}/catalogs/{catalog}_new", params={"force": "true"}).status_code == 200
    assert http.post(f"{UNITY}/catalogs", json={"name": f"{catalog}_new"}).status_code == 200
    assert permissions(http, "catalog", f"{catalog}_new") == {}


def test_a_change_is_made_as_a_whole_or_not_at_all(http: httpx.Client, named: dict[str, str]) -> None:
    refused = change(http, "table", named["table"], grant("ada", "SELECT"), grant("", "SELECT"))
    assert error_of(refused) == INVALID
    assert permissions(http, "table", named["table"]) == {}


@pytest.mark.parametrize(
    ("kind", "name", "changes", "message"),
    [
        ("volume", "a.b.c", [grant("ada", "SELECT")], "Use metastore, catalog, schema, table"),
        ("schema", "a.b.c", [grant("ada", "SELECT")], "is not a schema's full name"),
        ("table", "a.b", [grant("ada", "SELECT")], "is not a table's full name"),
        ("catalog", "main", [grant("ada", "FLY")], "FLY"),
        ("catalog", "main", [grant("", "SELECT")], "cannot be a principal"),
        ("catalog", "main", [grant("a\nb", "SELECT")], "cannot be a principal"),
        ("catalog", "main", [grant("a" * 256, "SELECT")], "cannot be a principal"),
        ("catalog", "main", [grant("ada", "SELECT", remove=("SELECT",))], "Decide for one"),
        ("catalog", "main", [grant("ada", "SELECT")] * 1001, "at most 1000"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_a_grant_that_makes_no_sense_is_refused(
    http: httpx.Client, kind: str, name: str, changes: list[dict[str, Any]], message: str
) -> None:
    refused = change(http, kind, name, *changes)
    assert error_of(refused) == INVALID
    assert message in refused.json()["message"]


def test_a_grant_opens_at_once_and_taking_it_away_closes_at_once(
    server: ServerProcess, http: httpx.Client, named: dict[str, str], unique: str
) -> None:
    ada = f"{unique}_ada"
    assert http.post("/api/tidegate/v1/identities", json={"name": ada}).status_code == 200
    token = http.post("/api/tidegate/v1/tokens", json={"principal": ada}).json()["token"]
    table = f"{UNITY}/tables/{named['table']}"
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as hers:
        assert error_of(hers.get(table)) == (404, "CATALOG_DOES_NOT_EXIST")
        for kind, privilege in (("catalog", "USE CATALOG"), ("schema", "USE SCHEMA"), ("table", "SELECT")):
            assert change(http, kind, named[kind], grant(ada, privilege)).status_code == 200
        assert hers.get(table).status_code == 200
        assert change(http, "table", named["table"], grant(ada, remove=("SELECT",))).status_code == 200
        assert error_of(hers.get(table)) == (404, "TABLE_DOES_NOT_EXIST")
    assert http.get(table).status_code == 200, "the admin may do everything"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("narrow"), settings={"grants_max": "2"}).start()
    yield server
    assert server.stop() == 0


def test_grants_on_one_object_are_bounded(narrow: ServerProcess) -> None:
    with narrow.http() as http:
        assert change(http, "catalog", "main", grant("ada", "SELECT", "MODIFY")).status_code == 200
        full = change(http, "catalog", "main", grant("bob", "SELECT"))
        assert error_of(full) == (429, "RESOURCE_EXHAUSTED")
        assert "grants_max" in full.json()["message"]
        assert permissions(http, "catalog", "main") == {"ada": ["MODIFY", "SELECT"]}
