"""Tables through specification v0.1.0: staged, created at version 0, got and listed, every field in and out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, Lake, error_of
from tests.old_lake import FEATURES, FIELDS, OldDraft, OldLake, column_infos, field, protocol_action

INVALID = (400, "INVALID_PARAMETER_VALUE")
CLUSTERED = (*FEATURES, "clustering", "domainMetadata", "rowTracking")


@pytest.fixture
def old(http: httpx.Client) -> OldLake:
    return OldLake(http)


def test_a_staging_table_gets_an_id_and_a_location_and_is_not_a_table_yet(old: OldLake, unique: str) -> None:
    staged = old.stage(unique)
    assert staged.status_code == 200
    body = staged.json()
    assert {name: body.pop(name) for name in ("name", "catalog_name", "schema_name")} == old.names(unique)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", body["id"])
    assert body["staging_location"].startswith("file:///")
    assert set(body) == {"id", "staging_location"}
    assert error_of(old.get(unique)) == (404, "TABLE_DOES_NOT_EXIST")


def test_a_table_is_created_shown_and_listed_with_every_field(old: OldLake, unique: str) -> None:
    draft = old.draft(unique, partitions=("day",))
    draft.write_version_0()
    created = old.create(draft.request)
    assert created.status_code == 200, created.text
    shown = old.get(unique).json()
    assert created.json() == shown
    listed = old.http.get(f"{UNITY}/tables", params={"catalog_name": "main", "schema_name": "default"}).json()
    assert shown in listed["tables"]
    columns = shown.pop("columns")
    assert shown.pop("owner") == shown.pop("created_by") == shown.pop("updated_by") == "admin"
    assert shown.pop("created_at") == shown.pop("updated_at") > 0
    assert shown.pop("table_id") == draft.id
    assert shown.pop("comment") is None
    sent_columns = draft.request.pop("columns")
    assert shown == draft.request
    for sent, told in zip(sent_columns, columns, strict=True):
        assert json.loads(told.pop("type_json")) == json.loads(sent.pop("type_json"))
        absent = dict.fromkeys(
            ("type_precision", "type_scale", "type_interval_type", "type_internal_type", "comment", "partition_index")
        )
        assert told == {**absent, **sent}


def test_types_are_shown_in_full(old: OldLake, unique: str) -> None:
    nested = {
        "type": "array",
        "elementType": {"type": "struct", "fields": [field("x", "double")]},
        "containsNull": False,
    }
    fields = [
        field("price", "decimal(10,2)", comment="in euro"),
        field("wait", "interval day to second"),
        field("parts", nested),
    ]
    price, wait, parts = create(old, unique, fields)["columns"]
    assert (price["type_text"], price["type_name"], price["comment"]) == ("decimal(10,2)", "DECIMAL", "in euro")
    assert (price["type_precision"], price["type_scale"]) == (10, 2)
    assert (wait["type_name"], wait["type_interval_type"], wait["type_internal_type"]) == (
        "INTERVAL",
        "DAY TO SECOND",
        "DAY TO SECOND",
    )
    assert (parts["type_text"], parts["type_name"]) == ("array<struct<x:double>>", "ARRAY")
    assert json.loads(parts["type_json"]) == fields[2]


def create(old: OldLake, name: str, fields: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """Columns are left out of the request: they come from the log."""
    draft = old.draft(name, **changes)
    draft.actions["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    draft.request.pop("columns")
    draft.write_version_0()
    created = old.create(draft.request)
    assert created.status_code == 200, created.text
    return created.json()


def test_clustering_columns_are_shown_in_the_names_that_users_see(old: OldLake, unique: str) -> None:
    city = field("city", "string", **{"delta.columnMapping.physicalName": "col-2"})
    address = field("address", {"type": "struct", "fields": [city]}, **{"delta.columnMapping.physicalName": "col-1"})
    domains = {"delta.clustering": {"clusteringColumns": [["id"], ["col-1", "col-2"]]}}
    shown = create(old, unique, [*FIELDS, address], features=CLUSTERED, domains=domains)["properties"]
    assert json.loads(shown["clusteringColumns"]) == [["id"], ["address", "city"]]
    assert json.loads(shown["delta.clusteringColumns"]) == [["id"], ["col-1", "col-2"]]
    assert shown["delta.feature.clustering"] == "supported"


def test_a_request_may_leave_to_the_log_what_it_does_not_say(old: OldLake, unique: str) -> None:
    draft = old.draft(unique, partitions=("day",), properties={"team": "sea"}, description="from the log")
    draft.write_version_0()
    for part in ("columns", "properties"):
        draft.request.pop(part)
    shown = old.create(draft.request).json()
    assert [column["name"] for column in shown["columns"]] == ["id", "name", "day"]
    assert [column["partition_index"] for column in shown["columns"]] == [None, None, 0]
    assert (shown["properties"]["team"], shown["comment"]) == ("sea", "from the log")


SPARK_KEYS = ("name", "type_name", "type_text", "type_json", "nullable", "position")


@pytest.mark.parametrize(
    "spelling",
    [
        lambda sent: {key: sent[key] for key in SPARK_KEYS},
        lambda sent: {"name": sent["name"], "type_text": sent["type_text"], "nullable": sent["nullable"]},
        lambda sent: {"name": sent["name"], "type_name": sent["type_name"], "position": sent["position"]},
        lambda sent: {"type_json": sent["type_json"]},
        lambda sent: {**sent, "type_json": json.dumps(json.loads(sent["type_json"])["type"])},
        lambda sent: {"name": sent["name"], "type": json.loads(sent["type_json"])["type"]},
    ],
    ids=["stock client", "text", "name", "json", "json of the type", "the example's"],
)
def test_columns_may_be_stated_in_every_spelling(
    old: OldLake, unique: str, spelling: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    draft = old.draft(unique)
    draft.write_version_0()
    draft.request["columns"] = [spelling(sent) for sent in draft.request["columns"]]
    created = old.create(draft.request)
    assert created.status_code == 200, created.text
    assert [column["type_name"] for column in created.json()["columns"]] == ["LONG", "STRING", "DATE"]


@pytest.mark.parametrize(
    "feature", [*("v2Checkpoint", "deletionVectors", "rowTracking"), None], ids=lambda feature: feature or "none"
)
def test_what_the_specification_only_recommends_may_be_missing(old: OldLake, unique: str, feature: str | None) -> None:
    features = (*FEATURES, *(() if feature is None else (feature,)))
    shown = old.new_table(unique, features=features).get()["properties"]
    assert {key for key in shown if key.startswith("delta.feature.")} == {f"delta.feature.{name}" for name in features}


def _changed(**changes: Any) -> Callable[[OldDraft], None]:
    return lambda draft: draft.request.update(changes)


def _property(key: str, value: str | None) -> Callable[[OldDraft], None]:
    def change(draft: OldDraft) -> None:
        if value is None:
            draft.request["properties"].pop(key)
        else:
            draft.request["properties"][key] = value

    return change


def _column(position: int, **changes: Any) -> Callable[[OldDraft], None]:
    def change(draft: OldDraft) -> None:
        column = {key: value for key, value in draft.request["columns"][position].items() if key != "type_json"}
        draft.request["columns"][position] = {**column, **changes}

    return change


CONTRADICTIONS: dict[str, tuple[Callable[[OldDraft], None], str]] = {
    "not delta": (_changed(data_source_format="PARQUET"), "is a PARQUET table"),
    "a view": (_changed(table_type="VIEW"), "VIEW"),
    "no place": (_changed(storage_location="nowhere"), "is not a storage location"),
    "a place of the server's choice": (_changed(storage_location=None), "POST /staging-tables"),
    "another column name": (_column(0, name="ID"), r"\['ID', 'name', 'day'\] are stated"),
    "another type": (_column(0, type_text="string", type_name="STRING"), "id is stated as string, .* bigint"),
    "not null": (_column(1, nullable=False), "name is stated with nullable=False"),
    "fewer columns": (_changed(columns=column_infos(FIELDS[:2])), "are stated"),
    "other partitions": (_column(1, partition_index=0), "differ in partition columns"),
    "partitions that do not count": (_column(1, partition_index=7), "partition_index counts"),
    "an unknown type": (_column(1, type_text="number", type_name=None), "Column name: The type 'number'"),
    "no table id": (_property("io.unitycatalog.tableId", None), "must hold io.unitycatalog.tableId="),
    "another table id": (_property("io.unitycatalog.tableId", "x"), "must hold io.unitycatalog.tableId="),
    "no in-commit timestamps": (_property("delta.enableInCommitTimestamps", "false"), "delta.enableInCommitTimestamps"),
    "a feature that is not there": (_property("delta.feature.clustering", "supported"), "does not have that feature"),
    "a feature that is not supported": (_property("delta.feature.catalogManaged", "no"), "it is supported"),
    "another protocol": (_property("delta.minReaderVersion", "2"), "delta.minReaderVersion=2 contradicts"),
    "another version": (_property("delta.lastUpdateVersion", "1"), "differ in property delta.lastUpdateVersion"),
    "another timestamp": (_property("delta.lastCommitTimestamp", "1"), "differ in property delta.lastCommitTimestamp"),
    "a property of its own": (_property("team", "sea"), "property team: sea is stated, nothing is in the log"),
    "clustering": (_property("clusteringColumns", '[["id"]]'), "clusteringColumns is not what the log says"),
    "clustering that is no list": (_property("clusteringColumns", "id"), "is a list of column paths as JSON"),
}


@pytest.mark.parametrize(("change", "message"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_request_that_contradicts_the_log_is_refused_and_can_be_corrected(
    old: OldLake, unique: str, change: Callable[[OldDraft], None], message: str
) -> None:
    draft = old.draft(unique)
    draft.write_version_0()
    sound = json.loads(json.dumps(draft.request))
    change(draft)
    refused = old.create(draft.request)
    assert error_of(refused) == INVALID
    assert re.search(message, refused.json()["message"]), refused.text
    assert error_of(old.get(unique)) == (404, "TABLE_DOES_NOT_EXIST")
    assert old.create(sound).status_code == 200


def _lacking(feature: str) -> Callable[[OldDraft], None]:
    def change(draft: OldDraft) -> None:
        draft.actions["protocol"] = protocol_action(tuple(name for name in FEATURES if name != feature))
        draft.request["properties"].pop(f"delta.feature.{feature}")

    return change


def _without_property(key: str) -> Callable[[OldDraft], None]:
    def change(draft: OldDraft) -> None:
        draft.actions["metaData"]["configuration"].pop(key)
        draft.request.pop("properties")

    return change


BROKEN_LOGS: dict[str, tuple[Callable[[OldDraft], None], str]] = {
    **{feature: (_lacking(feature), feature) for feature in FEATURES},
    "timestamps": (_without_property("delta.enableInCommitTimestamps"), "delta.enableInCommitTimestamps=true"),
    "table id": (_without_property("io.unitycatalog.tableId"), "io.unitycatalog.tableId="),
    "no protocol": (lambda draft: draft.actions.pop("protocol") and None, "has no protocol action"),
    "old readers": (lambda draft: draft.actions["protocol"].update(minReaderVersion=2), "min-reader-version 3"),
    "no timestamp": (lambda draft: draft.actions["commitInfo"].pop("inCommitTimestamp"), "inCommitTimestamp"),
    "a timestamp from nowhere": (lambda draft: draft.actions["commitInfo"].update(inCommitTimestamp=0), "is positive"),
    "no columns": (lambda draft: draft.actions["metaData"].update(schemaString='{"type":"struct","fields":[]}'), ""),
    "clustering without its feature": (
        lambda draft: draft.domains.update({"delta.clustering": {"clusteringColumns": []}}),
        "needs the writer feature 'clustering'",
    ),
    "a misshapen domain": (lambda draft: draft.domains.update({"delta.clustering": {}}), "clusteringColumns"),
    "half a surrogate pair": (
        lambda draft: draft.actions["metaData"]["configuration"].update(k="\ud800"),
        "half a surrogate pair",
    ),
    "a nul": (lambda draft: draft.actions["metaData"].update(description="a\0b"), "NUL"),
}


@pytest.mark.parametrize(("change", "message"), BROKEN_LOGS.values(), ids=BROKEN_LOGS)
def test_a_table_whose_version_0_is_not_that_of_a_managed_table_is_refused(
    old: OldLake, unique: str, change: Callable[[OldDraft], object], message: str
) -> None:
    draft = old.draft(unique)
    request, actions = json.dumps(draft.request), json.dumps(draft.actions)
    draft.request.pop("columns")
    change(draft)
    draft.write_version_0()
    refused = old.create(draft.request)
    assert error_of(refused) == INVALID
    assert message in refused.json()["message"]
    draft.request, draft.actions, draft.domains = json.loads(request), json.loads(actions), {}
    draft.write_version_0()
    assert old.create(draft.request).status_code == 200


def test_a_creation_that_is_sent_again_hears_that_the_table_is_there(old: OldLake, unique: str) -> None:
    draft = old.draft(unique)
    draft.write_version_0()
    assert old.create(draft.request).status_code == 200
    assert error_of(old.create(draft.request)) == (400, "TABLE_ALREADY_EXISTS")
    # Under another name it is the staging table that cannot be used.
    again = old.create({**draft.request, "name": f"{unique}_other"})
    assert error_of(again) == INVALID
    assert "was finished already" in again.json()["message"]


def test_a_table_without_version_0_is_refused(old: OldLake, unique: str) -> None:
    draft = old.draft(unique)
    refused = old.create(draft.request)
    assert error_of(refused) == INVALID
    assert "Write version 0 before you create the table" in refused.json()["message"]


def test_external_delta_tables_are_registered_as_the_request_states_them(
    old: OldLake, unique: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("external").as_uri()
    request = {
        **old.names(unique),
        "table_type": "EXTERNAL",
        "data_source_format": "DELTA",
        "storage_location": place,
        "columns": column_infos(FIELDS, ("day",)),
        "comment": "theirs",
        "properties": {
            "team": "sea",
            "delta.minReaderVersion": "3",
            "delta.feature.timestampNtz": "supported",
            "delta.feature.clustering": "supported",
            "clusteringColumns": '[["id"]]',
        },
    }
    created = old.create(request)
    assert created.status_code == 200, created.text
    shown = created.json()
    assert (shown["table_type"], shown["storage_location"], shown["comment"]) == ("EXTERNAL", place, "theirs")
    assert shown["properties"] | request["properties"] == shown["properties"]
    loaded = Lake(old.http).load(unique).json()
    assert loaded["metadata"]["columns"]["fields"] == FIELDS
    assert loaded["metadata"]["partition-columns"] == ["day"]
