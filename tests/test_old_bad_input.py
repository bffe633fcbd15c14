"""Bad input to the old API's own calls, spoiled as in `test_bad_input.py`: a 400 in its body, and nothing stored."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, error_of
from tests.old_lake import FIELDS, OldLake, OldTable, column_infos, metadata_action
from tests.test_bad_input import (
    BAD_NAMES,
    NOT_THE_JSON_WE_NEED,
    UNITY_INVALID,
    UNKNOWN,
    Sound,
    Yard,
    at,
    check_refused,
    fresh,
    paths_of,
    refuse_all,
    with_value,
    without,
    yard,
)
from tests.test_bad_input import WRONG as WRONG_VALUES

__all__ = ["yard"]  # a fixture, found by its name

HISTOGRAM = {"sorted_bin_boundaries": [0, 10], "file_counts": [1, 2], "total_bytes": [3, 40]}
WRONG = {**WRONG_VALUES, bool: [1, "true"]}
"""Every field that is a boolean here may be null."""


def _old(yard: Yard) -> OldLake:
    return OldLake(yard.http, yard.lake.catalog, yard.lake.schema)


def _kept(yard: Yard) -> OldTable:
    table = yard.table
    return _old(yard).table(table.name, table.id, table.location, timestamp=table.timestamp)


def _staging(yard: Yard) -> tuple[str, str, dict[str, Any]]:
    return "POST", f"{UNITY}/staging-tables", _old(yard).names(fresh())


def _creation(yard: Yard) -> tuple[str, str, dict[str, Any]]:
    draft = _old(yard).draft(fresh(), partitions=("day",))
    draft.write_version_0()
    draft.request["comment"] = "c"
    return "POST", f"{UNITY}/tables", draft.request


def _commit(yard: Yard) -> tuple[str, str, dict[str, Any]]:
    table = _old(yard).new_table(fresh())
    properties = {"delta.enableInCommitTimestamps": "true", "io.unitycatalog.tableId": table.files.id}
    metadata = {
        "id": "x",
        "name": "x",
        "description": "d",
        "provider": "parquet",
        "options": {"k": "v"},
        "schema": column_infos(FIELDS),
        "partition_columns": ["day"],
        "properties": properties,
        "created_time": 1,
    }
    said = {"metaData": metadata_action(FIELDS, properties, ("day",), "d")}
    info = table.stage_commit(1, said)
    body = {**table.identity, "commit_info": info, "latest_published_version": 0, "metadata": metadata}
    return "POST", f"{UNITY}/delta/commit", body


def _metrics(yard: Yard) -> tuple[str, str, dict[str, Any]]:
    table = _kept(yard)
    report = {"commit_version": 0, "num_files_added": 1, "num_rows_updated": 2, "file_size_histogram": HISTOGRAM}
    return "POST", f"{UNITY}/delta/metrics", {**table.identity, "report": {"commit_report": report}}


def _permissions(yard: Yard) -> tuple[str, str, dict[str, Any]]:
    changes = [{"principal": fresh("p"), "add": ["SELECT"], "remove": ["MODIFY"]}]
    return "PATCH", f"{UNITY}/permissions/catalog/{yard.lake.catalog}", {"changes": changes}


INFO = ("version", "timestamp", "file_name", "file_size", "file_modification_timestamp")
NAMES = ("name", "catalog_name", "schema_name")
SOUND: dict[str, Sound] = {
    "staging": Sound(_staging, NAMES),
    "creation": Sound(_creation, (*NAMES, "table_type", "data_source_format", "storage_location")),
    "commit": Sound(_commit, ("table_id", "table_uri", *(f"commit_info.{name}" for name in INFO))),
    "metrics": Sound(_metrics, ("table_id", "table_uri", "report.commit_report.commit_version")),
    "table credentials": Sound(
        lambda y: (
            "POST",
            f"{UNITY}/temporary-table-credentials",
            {"table_id": y.table.id, "operation": "READ"},
        ),
        ("table_id", "operation"),
    ),
    "path credentials": Sound(
        lambda y: ("POST", f"{UNITY}/temporary-path-credentials", {"url": "file:///bad", "operation": "PATH_READ"}),
        ("url", "operation"),
    ),
    "permissions": Sound(_permissions, ("changes", "changes.0.principal")),
}
every_body = pytest.mark.parametrize("name", SOUND)


@every_body
def test_a_body_without_a_required_part_is_refused(yard: Yard, name: str) -> None:
    sound = SOUND[name]
    refuse_all(yard, sound, lambda body: (without(body, part) for part in sound.required))


@every_body
def test_a_body_with_a_value_of_a_wrong_type_or_out_of_range_is_refused(yard: Yard, name: str) -> None:
    def spoil(body: dict[str, Any]) -> Any:
        for path in paths_of(body):
            for value in WRONG[type(at(body, path))]:
                yield with_value(body, path, value)
        if name == "commit":
            for inner in paths_of(body["metadata"], ("metadata",)):
                for value in WRONG[type(at(body, inner))] if len(inner) > 1 else ():
                    yield with_value(body, inner, value)

    refuse_all(yard, SOUND[name], spoil)


@every_body
def test_a_body_with_a_nul_or_half_a_surrogate_pair_in_any_text_is_refused(yard: Yard, name: str) -> None:
    def spoil(body: dict[str, Any]) -> Any:
        for path in paths_of(body):
            if isinstance(at(body, path), str):
                for bad in ("\0", "\ud800", "\udc00\ud800"):
                    yield with_value(body, path, at(body, path) + bad)

    refuse_all(yard, SOUND[name], spoil)


@pytest.mark.parametrize("content", NOT_THE_JSON_WE_NEED.values(), ids=NOT_THE_JSON_WE_NEED)
def test_bytes_that_are_not_the_json_we_need_are_refused(yard: Yard, content: bytes) -> None:
    targets = {sound.make(yard)[:2] for sound in SOUND.values()}
    with yard.unchanged():
        for method, url in targets:
            check_refused(yard.http.request(method, url, content=content), 400, UNITY_INVALID)
        # Commits may be asked for without a body, but then the query says all.
        for url in (f"{UNITY}/delta/commits", f"{UNITY}/delta/preview/commits"):
            check_refused(yard.http.request("GET", url, content=content), 400, UNITY_INVALID)


@pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize("name", ["staging", "commit", "metrics"])
def test_a_part_that_nobody_knows_cannot_bring_the_reader_down(yard: Yard, name: str, unknown: bytes) -> None:
    method, url, body = SOUND[name].make(yard)
    content = json.dumps(body).encode()[:-1] + b', "unknown_part": ' + unknown + b"}"
    assert yard.http.request(method, url, content=content).status_code in {200, 400}
    assert yard.http.request(method, url, json=body).status_code in {200, 400}


def test_a_name_outside_the_alphabet_is_refused(yard: Yard) -> None:
    refuse_all(yard, SOUND["staging"], lambda body: ({**body, "name": bad} for bad in BAD_NAMES))


def _type(depth: int) -> dict[str, Any]:
    nested: Any = "long"
    for _ in range(depth):
        nested = {"type": "array", "elementType": nested, "containsNull": True}
    return nested


@pytest.mark.parametrize("depth", [60, 100, 400, 900, 5000])
@pytest.mark.parametrize("spelling", ["type_json", "type_text"])
def test_a_deep_type_is_shown_afterwards_or_refused(yard: Yard, depth: int, spelling: str) -> None:
    table = _old(yard).new_table(fresh())
    text = "[" * depth + "]" * depth
    if spelling == "type_text":
        text = "array<" * depth + "int" + ">" * depth
    elif depth < 900:
        text = json.dumps(_type(depth))
    answer = table.commit(1, metadata={"schema": [{"name": "deep", spelling: text}]})
    assert answer.status_code in {200, 400}, answer.text
    assert table.get()["table_id"] == table.files.id
    assert table.files.load()["metadata"]["table-uuid"] == table.files.id


def test_a_staged_file_of_any_bytes_is_read_or_refused(yard: Yard) -> None:
    table = _old(yard).new_table(fresh())
    info = table.stage_commit(1)
    file = table.files.log / "_staged_commits" / info["file_name"]
    deep = '{"metaData":{"schemaString":' + json.dumps("[" * 5000 + "]" * 5000) + "}}"
    wide = json.dumps({"metaData": {"schemaString": "{}", "configuration": {"k": "v" * 100_000}}})
    odd = json.dumps({"metaData": {"schemaString": json.dumps({"type": "struct", "fields": [{"name": "\ud800"}]})}})
    for content in (deep, wide, odd, "\0" * 100, "[" * 100_000, '{"protocol":[]}', '{"domainMetadata":{}}'):
        file.write_bytes(content.encode("utf-8", "surrogatepass"))
        refused = table.write(commit_info=info)
        if content != '{"domainMetadata":{}}':
            assert error_of(refused) == (400, UNITY_INVALID), content[:50]
    assert table.versions()[1] in {0, 1}


@pytest.mark.parametrize("name", ["getCommits query", "getCommits body"])
def test_a_parameter_of_a_wrong_type_is_refused_when_commits_are_asked_for(yard: Yard, name: str) -> None:
    table = _kept(yard)
    for key, values in {"table_id": [1, []], "start_version": ["x", 1.5, True], "end_version": [2**63]}.items():
        for value in values:
            if "query" in name and key == "table_id":
                continue
            refused: httpx.Response = table.get_commits(in_query="query" in name, **{key: value})
            check_refused(refused, 400, UNITY_INVALID)
