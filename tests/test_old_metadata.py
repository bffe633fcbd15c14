"""Metadata in a commit of specification v0.1.0: the desired final state, held against what the staged file says.

The clients that exist send a description and properties, and leave schema, protocol and domains to the file.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.lake import Draft, Lake, error_of, set_properties
from tests.old_lake import (
    FEATURES,
    FIELDS,
    OldLake,
    OldTable,
    column_infos,
    derived,
    domain_action,
    field,
    metadata_action,
    protocol_action,
)

INVALID = (400, "INVALID_PARAMETER_VALUE")
WIDER = [*FIELDS, field("height", "long")]
ALL = (*FEATURES, "clustering", "domainMetadata", "rowTracking")


@pytest.fixture
def old(http: httpx.Client) -> OldLake:
    return OldLake(http)


@pytest.fixture
def table(old: OldLake, unique: str) -> OldTable:
    return old.new_table(unique, properties={"team": "sea"}, features=ALL, description="first")


def configuration(table: OldTable, **others: str) -> dict[str, str]:
    return {"delta.enableInCommitTimestamps": "true", "io.unitycatalog.tableId": table.files.id, **others}


def shown(table: OldTable) -> dict[str, Any]:
    """What may change, through the old face; the other face must say the same."""
    told, loaded = table.get(), table.files.load()["metadata"]
    assert [json.loads(column["type_json"]) for column in told["columns"]] == loaded["columns"]["fields"]
    without = {key: value for key, value in told["properties"].items() if key != "clusteringColumns"}
    assert without == loaded["properties"]
    return told


def test_everything_that_a_commit_states_becomes_the_tables_metadata(table: OldTable) -> None:
    """As in the specification's example; the staged file says nothing of it."""
    table = table.trusted()
    desired = {
        "id": "12345678-1234-5678-1234-567812345678",
        "name": "my_table",
        "description": "Updated table description",
        "format": {"provider": "parquet", "options": {}},
        "schema": [
            {"name": "id", "type": "long", "nullable": False},
            {"name": "name", "type": "string", "nullable": True},
            {"name": "created_at", "type": "timestamp", "nullable": False},
        ],
        "partition_columns": ["name"],
        "properties": {**configuration(table, port="A"), **derived(ALL, 1704067400000, version=0)},
        "created_time": 1804067300000,
    }
    assert table.commit(1, metadata=desired).status_code == 200
    after = shown(table)
    assert after["comment"] == "Updated table description"
    assert [(c["name"], c["type_text"], c["nullable"], c["partition_index"]) for c in after["columns"]] == [
        ("id", "bigint", False, None),
        ("name", "string", True, 0),
        ("created_at", "timestamp", False, None),
    ]
    assert after["properties"]["port"] == "A"
    assert "team" not in after["properties"], "what a final state leaves out is gone"
    assert after["properties"]["delta.lastUpdateVersion"] == "1"


@pytest.mark.parametrize("wrapped", [False, True], ids=["as specified", "as shipped"])
def test_properties_and_schema_may_come_as_clients_wrap_them(table: OldTable, wrapped: bool) -> None:
    table = table.trusted()
    properties, columns = configuration(table, port="A"), column_infos(WIDER)
    desired: dict[str, Any] = {"properties": properties, "schema": columns}
    if wrapped:
        desired = {"properties": {"properties": properties}, "schema": {"columns": columns}}
    assert table.commit(1, metadata=desired).status_code == 200
    after = shown(table)
    assert (after["properties"]["port"], len(after["columns"]), after["comment"]) == ("A", 4, "first")


def test_a_property_that_is_called_properties_is_just_a_property(table: OldTable) -> None:
    table = table.trusted()
    properties = configuration(table, properties="text")
    assert table.commit(1, metadata={"properties": properties}).status_code == 200
    assert shown(table)["properties"]["properties"] == "text"


def test_what_only_the_staged_file_says_is_the_tables_metadata_all_the_same(table: OldTable) -> None:
    """The stock client on Spark sends a description and properties; the new column is in the file alone."""
    config = configuration(table, team="sea", **{"delta.enableRowTracking": "true"})
    actions = [
        {"metaData": metadata_action(WIDER, config, ("name",), "second")},
        {"protocol": protocol_action((*ALL, "appendOnly"))},
        domain_action("delta.rowTracking", {"rowIdHighWaterMark": 9}),
        domain_action("delta.clustering", {"clusteringColumns": [["id"]], "domainName": "delta.clustering"}),
        domain_action("of.users", {"anything": 1}),
    ]
    desired = {"description": "second", "properties": {"properties": config}}
    assert table.commit(1, *actions, metadata=desired).status_code == 200
    after = shown(table)
    assert [column["name"] for column in after["columns"]] == ["id", "name", "day", "height"]
    assert after["columns"][1]["partition_index"] == 0
    assert after["comment"] == "second"
    properties = after["properties"]
    assert properties["delta.feature.appendOnly"] == "supported"
    assert properties["delta.rowTracking.rowIdHighWaterMark"] == "9"
    assert json.loads(properties["clusteringColumns"]) == [["id"]]


def test_a_commit_without_metadata_still_moves_what_its_file_moves(table: OldTable) -> None:
    before = shown(table)
    assert table.commit(1, domain_action("delta.rowTracking", {"rowIdHighWaterMark": 5})).status_code == 200
    after = shown(table)
    assert after["properties"]["delta.rowTracking.rowIdHighWaterMark"] == "5"
    assert after["updated_at"] == before["updated_at"], "the mark moves with the data, it is no change of metadata"
    assert table.commit(2, {"protocol": protocol_action((*ALL, "appendOnly"))}).status_code == 200
    assert shown(table)["properties"]["delta.lastUpdateVersion"] == "2"
    assert table.commit(3, domain_action("delta.rowTracking", None)).status_code == 200
    assert "delta.rowTracking.rowIdHighWaterMark" not in shown(table)["properties"]


def test_a_comment_that_the_file_no_longer_has_is_cleared(table: OldTable) -> None:
    config = configuration(table)
    assert table.commit(1, {"metaData": metadata_action(FIELDS, config)}).status_code == 200
    assert shown(table)["comment"] is None


@pytest.mark.parametrize(("sent", "comment"), [({}, "first"), ({"description": None}, None), ({"description": ""}, "")])
def test_a_description_that_is_not_sent_stays_and_null_clears_it(
    table: OldTable, sent: dict[str, Any], comment: str | None
) -> None:
    table = table.trusted()
    desired = {**sent, "properties": configuration(table)}
    assert table.commit(1, metadata=desired).status_code == 200
    assert shown(table)["comment"] == comment


def test_clustering_columns_may_be_stated_as_a_property(table: OldTable) -> None:
    table = table.trusted()
    properties = configuration(table, clusteringColumns='[["id"],["day"]]')
    assert table.commit(1, metadata={"properties": properties}).status_code == 200
    assert json.loads(shown(table)["properties"]["delta.clusteringColumns"]) == [["id"], ["day"]]


def test_properties_that_were_shown_may_be_sent_back(table: OldTable) -> None:
    """Also those that live only in the catalog, and the derived ones, whose moments are old by then."""
    assert table.files.update(set_properties(steward="ada")).status_code == 200
    properties = table.get()["properties"]
    config = configuration(table, team="sea")
    for version, actions in ((1, []), (2, [{"metaData": metadata_action(FIELDS, config)}])):
        assert table.commit(version, *actions, metadata={"properties": properties}).status_code == 200
        after = shown(table)["properties"]
        assert (after["steward"], after["team"]) == ("ada", "sea")
    # It never became one of the log: it may still change alone.
    assert table.files.update(set_properties(steward="bob")).status_code == 200


def test_what_lives_only_in_the_catalog_outlives_a_client_that_does_not_know_it(table: OldTable) -> None:
    table = table.trusted()
    assert table.files.update(set_properties(steward="ada")).status_code == 200
    assert table.commit(1, metadata={"properties": configuration(table)}).status_code == 200
    assert shown(table)["properties"]["steward"] == "ada"


DIFFERENCES: dict[str, tuple[dict[str, Any], str]] = {
    "schema": ({"schema": column_infos(FIELDS)}, "The schema differs from the staged commit"),
    "partitions": ({"partition_columns": ["day"]}, "differ in partition columns"),
    "description": ({"description": "other"}, "differ in description"),
    "a property": ({"properties": {"team": "land"}}, "property team: land is stated, sea is in the file"),
    "one too many": ({"properties": {"port": "A"}}, "property port: A is stated, nothing is in the file"),
    "one too few": ({"properties": {"team": None}}, "property team: nothing is stated, sea is in the file"),
    "a feature": ({"properties": {"delta.feature.appendOnly": "supported"}}, "does not have that feature"),
    "a version": ({"properties": {"delta.minWriterVersion": "8"}}, "contradicts the log: it is 7"),
    "clustering": ({"properties": {"clusteringColumns": '[["name"]]'}}, "clusteringColumns is not what the log says"),
}


@pytest.mark.parametrize(("change", "message"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_a_statement_that_differs_from_the_staged_file_is_refused(
    table: OldTable, change: dict[str, Any], message: str
) -> None:
    config = configuration(table, team="sea")
    actions = [
        {"metaData": metadata_action(WIDER, config, ("name",), "second")},
        domain_action("delta.clustering", {"clusteringColumns": [["id"]]}),
    ]
    desired: dict[str, Any] = {"description": "second", "properties": config, **change}
    if "properties" in change:
        merged = {**config, **change["properties"]}
        desired["properties"] = {key: value for key, value in merged.items() if value is not None}
    before = shown(table)
    refused = table.commit(1, *actions, metadata=desired)
    assert error_of(refused) == INVALID
    assert message in refused.json()["message"]
    assert shown(table) == before
    assert table.versions() == ([], 0)


@pytest.mark.parametrize(
    ("desired", "message"),
    [
        ({"provider": "orc"}, "parquet"),
        ({"format": {"provider": "orc"}}, "parquet"),
        ({"schema": []}, "no columns"),
        ({"schema": [{"name": "id"}]}, "Column id: It has no type"),
        ({"partition_columns": ["nowhere"]}, "'nowhere' is not among the columns"),
        ({"properties": {}}, "needs the property delta.enableInCommitTimestamps=true"),
        ({"properties": {"a": {"b": "c"}}}, "The property a is not a text"),
        ({"properties": {"properties": {"a": "b"}, "c": "d"}}, "The property properties is not a text"),
        ({"properties": {"": "empty"}}, "empty property key"),
        ({"properties": {"clusteringColumns": "id"}}, "list of column paths"),
    ],
    ids=str,
)
def test_metadata_that_is_not_that_of_a_managed_table_is_refused(
    table: OldTable, desired: dict[str, Any], message: str
) -> None:
    if set(desired.get("properties", {})) & {"", "clusteringColumns"}:
        desired = {"properties": configuration(table, **desired["properties"])}
    refused = table.commit(1, metadata=desired)
    assert error_of(refused) == INVALID
    assert message in refused.json()["message"]
    assert table.versions() == ([], 0)


# The contract


def test_a_table_of_the_old_face_keeps_what_that_face_demands_and_may_get_more(old: OldLake, unique: str) -> None:
    table = old.new_table(unique)
    assert table.files.commit(1, set_properties(port="A")).status_code == 200
    broken = table.files.commit(2, {"action": "remove-properties", "removals": ["delta.enableInCommitTimestamps"]})
    assert error_of(broken) == (400, "InvalidParameterValueException")


def test_a_table_of_the_new_face_may_not_fall_behind_its_contract_through_the_old_one(
    old: OldLake, unique: str
) -> None:
    made = Lake(old.http).new_table(unique)
    table = old.table(unique, made.id, made.location, timestamp=made.timestamp)
    kept = made.load()["metadata"]["properties"]
    properties = {key: value for key, value in kept.items() if key != "delta.checkpointPolicy"}
    refused = table.commit(1, metadata={"properties": properties})
    assert error_of(refused) == INVALID
    assert "delta.checkpointPolicy=v2" in refused.json()["message"]
    assert table.commit(1, metadata={"properties": kept}).status_code == 200


def test_a_draft_of_the_new_face_may_be_finished_through_the_old_one(old: OldLake, unique: str) -> None:
    draft: Draft = Lake(old.http).draft(unique)
    draft.write_version_0()
    request = {"table_type": "MANAGED", "data_source_format": "DELTA", "storage_location": draft.location}
    created = old.create({**old.names(unique), **request})
    assert created.status_code == 200, created.text
    assert created.json()["properties"]["delta.checkpointPolicy"] == "v2"
