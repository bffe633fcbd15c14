"""The OpenAPI document says what the server does: it is valid, complete, and requests made from it find no failure.

Schemathesis makes the requests, sound and unsound ones, for every operation. They go to servers of their own, one per
database, because they create and drop what they like. Requests made from a schema rarely name things that exist, so
they are sent a second time about a table that does, where they get past the first checks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import jsonschema_rs
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.definitions import OPENAPI_31

from tests.conftest import DATABASES
from tests.lake import COLUMNS, UNITY, Lake, LakeTable, add_commit, error_of
from tests.servers import ServerProcess
from tidegate.compose import ENDPOINTS
from tidegate.http.endpoints import Endpoint
from tidegate.http.openapi import openapi_document

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DOCUMENT = openapi_document(ENDPOINTS)
NESTED = ["createTable", "updateTable", "registerTable", "writeCommit", "writeCommitPreview"]
"""Operations whose bodies have so many parts that one request for each boundary of each part would take minutes."""

OPERATIONS = schemathesis.openapi.from_dict(
    DOCUMENT,
    config=schemathesis.Config.from_dict(
        {"operations": [{"include-operation-id": NESTED, "phases": {"coverage": {"enabled": False}}}]}
    ),
).exclude(operation_id=["streamEvents"])  # which goes on for an hour
ABOUT_WHAT_EXISTS = schemathesis.openapi.from_dict(
    DOCUMENT,
    config=schemathesis.Config.from_dict(
        {"phases": {"coverage": {"enabled": False}}, "generation": {"with-security-parameters": False}}
    ),
).include(
    operation_id=[
        *NESTED,
        "createStagingTable",
        "generateTemporaryPathCredentials",
        "generateTemporaryTableCredentials",
        "getCommits",
        "getMetrics",
        "getTableCredentials",
        "getTimeline",
        "listSchemas",
        "listTables",
        "reportMetrics",
        "stageTable",
        "updatePermissions",
        "writeMetrics",
    ]
)
"""Those that look further into a request once the things that it names are there, and that do not take them away."""

FUZZ = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def test_the_document_needs_a_token(server: ServerProcess) -> None:
    refused = httpx.get(f"{server.url}/openapi.json")
    assert error_of(refused) == (401, "UNAUTHENTICATED")
    assert refused.headers["www-authenticate"] == "Bearer"


def test_the_served_document_is_the_one_made_from_the_endpoints(http: httpx.Client) -> None:
    served = http.get("/openapi.json")
    assert served.status_code == 200
    assert served.headers["content-type"] == "application/json"
    assert served.json() == DOCUMENT


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    mistakes = jsonschema_rs.validator_for(OPENAPI_31).iter_errors(DOCUMENT)
    assert [f"{mistake.instance_path}: {mistake.message}" for mistake in mistakes] == []


def test_the_schemas_of_the_document_are_valid_json_schemas_and_refer_to_each_other_only() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for name, described in schemas.items():
        assert jsonschema_rs.meta.is_valid({"$schema": "https://json-schema.org/draft/2020-12/schema", **described}), (
            name
        )
    known = {f"#/components/schemas/{name}" for name in schemas}
    assert set(references(DOCUMENT)) <= known


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from references(item)


def test_the_document_names_every_endpoint_once_and_nothing_else() -> None:
    named = [
        (method.upper(), path, operation["operationId"])
        for path, operations in DOCUMENT["paths"].items()
        for method, operation in operations.items()
    ]
    served = [(endpoint.method, endpoint.template, endpoint.name) for endpoint in ENDPOINTS]
    besides = [("GET", "/health", "health"), ("GET", "/openapi.json", "openapi"), ("GET", "/metrics", "metrics")]
    assert sorted(named) == sorted([*served, *besides])
    assert len({id for _, _, id in named}) == len(named)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_an_operation_names_its_success_and_the_status_and_code_of_every_error(endpoint: Endpoint) -> None:
    responses = DOCUMENT["paths"][endpoint.template][endpoint.method.lower()]["responses"]
    codes = [endpoint.face.code_of(error) for error in endpoint.all_errors()]
    assert set(responses) == {str(endpoint.status), *(str(code.status) for code in codes)}
    for code in codes:
        assert code.code in responses[str(code.status)]["description"].split(" or ")
    with_body = {status for status, response in responses.items() if "content" in response}
    without_body = set(responses) if endpoint.method == "HEAD" else set()
    assert with_body == set(responses) - without_body - ({"204"} if endpoint.answer is None else set())


# Requests made from the document


@dataclass(frozen=True)
class Fuzzed:
    """A server that nobody else uses, and a table on it."""

    url: str
    session: requests.Session
    table: LakeTable

    def check(self, case: schemathesis.Case) -> requests.Response:
        if isinstance(case.query, dict) and isinstance(case.query.get("wait_seconds"), int):
            case.query["wait_seconds"] = min(case.query["wait_seconds"], 0)
        return case.call_and_validate(base_url=self.url, session=self.session, checks=CHECKS, timeout=60)


@pytest.fixture(scope="module", params=DATABASES)
def fuzzed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    server = ServerProcess(tmp_path_factory.mktemp("fuzzed"), database).start()
    with server.http() as http, requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {server.token}"
        http.post(f"{UNITY}/catalogs", json={"name": "kept"}).raise_for_status()
        http.post(f"{UNITY}/schemas", json={"name": "kept", "catalog_name": "kept"}).raise_for_status()
        yield Fuzzed(server.url, session, Lake(http, catalog="kept", schema="kept").new_table("kept"))
    assert server.stop() == 0, "".join(server.log[-50:])


@OPERATIONS.parametrize()
@settings(FUZZ, max_examples=15)
def test_a_request_made_from_the_document_gets_a_documented_answer(case: schemathesis.Case, fuzzed: Fuzzed) -> None:
    fuzzed.check(case)


@ABOUT_WHAT_EXISTS.parametrize()
@settings(FUZZ, max_examples=40)
def test_a_request_about_things_that_exist_gets_a_documented_answer(case: schemathesis.Case, fuzzed: Fuzzed) -> None:
    point_at(case, fuzzed.table)
    if fuzzed.check(case).status_code == 200:
        assert fuzzed.table.load()["metadata"]["table-uuid"] == fuzzed.table.id
        shown = fuzzed.table.lake.http.get(f"{UNITY}/tables/kept.kept.kept")
        assert shown.status_code == 200, shown.text


def point_at(case: schemathesis.Case, table: LakeTable) -> None:
    """Makes a generated request one about this table, or about a new one beside it, and leaves the rest as it is."""
    kept = dict.fromkeys(("catalog", "schema", "table", "catalog_name", "schema_name"), "kept")
    kept |= {
        "securable_type": "table",
        "full_name": "kept.kept.kept",
        "table_id": table.id,
        "table_uri": table.location,
    }
    for given in (case.path_parameters, case.query, case.body):
        if isinstance(given, dict):
            given.update({name: value for name, value in kept.items() if name in given})
    if not isinstance(case.body, dict):
        return
    if "commit_info" in case.body:
        commit = table.stage_commit(table.load()["latest-table-version"] + 1)
        case.body["commit_info"] = {key.replace("-", "_"): value for key, value in commit.items()}
    if "storage_location" in case.body:
        place = new_external_table()
        case.body |= {"name": place["name"], "table_type": "EXTERNAL", "storage_location": place["location"]}
    if "table-id" in case.body:
        case.body["table-id"] = table.id
    if "location" in case.body:
        case.body |= new_external_table()
    if isinstance(case.body.get("updates"), list):
        # With a commit, because without one nothing that the log holds may change.
        others = [update for update in case.body["updates"] if _action(update) != "add-commit"]
        commit = add_commit(table.stage_commit(table.load()["latest-table-version"] + 1))
        case.body |= table.request(*others, commit)


_numbers = itertools.count(1)


def new_external_table() -> dict[str, Any]:
    """The parts of a creation that generated data never gets right."""
    number = next(_numbers)
    protocol = {"min-reader-version": 1, "min-writer-version": 2}
    place = {"name": f"external_{number}", "table-type": "EXTERNAL", "location": f"file:///lake/{number}"}
    return {**place, "columns": COLUMNS, "partition-columns": [], "protocol": protocol, "uniform": None}


def _action(update: Any) -> Any:
    return update.get("action") if isinstance(update, dict) else None
