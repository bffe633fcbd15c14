"""A table's metadata: when it may change, what must hold afterwards, and what load shows of it.

Metadata that lives in the log changes together with a commit only; a comment and a property of the catalog may change
alone. The contract of managed tables holds after every update, whatever the update was.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.lake import COLUMNS, UNITY, Lake, LakeTable, error_of, report

INVALID = (400, "InvalidParameterValueException")
CONFLICT = (409, "UpdateRequirementConflictException")

READER_FEATURES = ("catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck")
WRITER_FEATURES = (*READER_FEATURES, "inCommitTimestamp")
REQUIRED_PROPERTIES = {
    "delta.checkpointPolicy": "v2",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
}
TABLE_ID = "io.unitycatalog.tableId"
PROTOCOL: dict[str, Any] = {
    "min-reader-version": 3,
    "min-writer-version": 7,
    "reader-features": list(READER_FEATURES),
    "writer-features": [*WRITER_FEATURES, "domainMetadata", "rowTracking", "clustering"],
}
"""What tables get from `Lake.new_table`."""
WIDER: dict[str, Any] = {
    "type": "struct",
    "fields": [*COLUMNS["fields"], {"name": "day", "type": "date", "nullable": True, "metadata": {}}],
}


def properties_set(updates: dict[str, str]) -> dict[str, Any]:
    return {"action": "set-properties", "updates": updates}


def properties_removed(*removals: str) -> dict[str, Any]:
    return {"action": "remove-properties", "removals": list(removals)}


def protocol_set(**changes: Any) -> dict[str, Any]:
    changed = {key.replace("_", "-"): value for key, value in changes.items()}
    return {"action": "set-protocol", "protocol": {**PROTOCOL, **changed}}


def columns_set(columns: dict[str, Any]) -> dict[str, Any]:
    return {"action": "set-columns", "columns": columns}


def partitions_set(*names: str) -> dict[str, Any]:
    return {"action": "set-partition-columns", "partition-columns": list(names)}


def comment_set(comment: str | None) -> dict[str, Any]:
    return {"action": "set-table-comment", "comment": comment}


def domains_set(**domains: dict[str, Any]) -> dict[str, Any]:
    return {"action": "set-domain-metadata", "updates": {k.replace("_", "."): v for k, v in domains.items()}}


def domains_removed(*domains: str) -> dict[str, Any]:
    return {"action": "remove-domain-metadata", "domains": list(domains)}


def metadata_of(table: LakeTable) -> dict[str, Any]:
    return table.load()["metadata"]


def etag_of(table: LakeTable) -> str:
    return metadata_of(table)["etag"]


def comment_of(table: LakeTable) -> str | None:
    """Delta REST v1.0 does not show it; the surrounding API does."""
    lake = table.lake
    return lake.http.get(f"{UNITY}/tables/{lake.catalog}.{lake.schema}.{table.name}").json()["comment"]


def committed(table: LakeTable, *updates: dict[str, Any]) -> dict[str, Any]:
    """Commits the next version with the updates; the answer."""
    response = table.commit(table.load()["latest-table-version"] + 1, *updates)
    assert response.status_code == 200, response.text
    return response.json()


def check_refused(table: LakeTable, *updates: dict[str, Any], with_commit: bool) -> str:
    """The updates are a 400 that changes nothing, and the version they asked for stays free. Gives the message."""
    before = table.load()
    version = before["latest-table-version"] + 1
    response = table.commit(version, *updates) if with_commit else table.update(*updates)
    assert response.status_code == 400, response.text
    assert error_of(response) == INVALID
    assert table.load() == before
    assert table.commit(version).status_code == 200
    return response.json()["error"]["message"]


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    return lake.new_table(unique)


# The etag

CHANGES_WITH_A_COMMIT: dict[str, dict[str, Any]] = {
    "set-properties": properties_set({"delta.appendOnly": "true"}),
    "set-columns": columns_set(WIDER),
    "set-protocol": protocol_set(writer_features=[*PROTOCOL["writer-features"], "appendOnly"]),
    "set-partition-columns": partitions_set("name"),
    "set-table-comment": comment_set("of the sea"),
    "set-domain-metadata": domains_set(delta_clustering={"clusteringColumns": [["id"]]}),
}


@pytest.mark.parametrize("change", CHANGES_WITH_A_COMMIT.values(), ids=CHANGES_WITH_A_COMMIT.keys())
def test_a_metadata_change_with_a_commit_changes_the_etag_and_the_last_commit(
    table: LakeTable, change: dict[str, Any]
) -> None:
    committed(table)
    before = metadata_of(table)
    answer = committed(table, change)
    after, commit = answer["metadata"], answer["commits"][0]
    assert after["etag"] != before["etag"]
    assert (after["last-commit-version"], after["last-commit-timestamp-ms"]) == (2, commit["timestamp"])
    assert after["properties"]["delta.lastUpdateVersion"] == "2"
    assert after["properties"]["delta.lastCommitTimestamp"] == str(commit["timestamp"])
    assert table.load() == answer


REMOVALS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "remove-properties": (properties_set({"team": "sea"}), properties_removed("team")),
    "remove-domain-metadata": (domains_set(app_owner={"team": "sea"}), domains_removed("app.owner")),
}


@pytest.mark.parametrize(("set_", "removed"), REMOVALS.values(), ids=REMOVALS.keys())
def test_what_is_removed_changes_the_etag_like_what_is_set(
    table: LakeTable, set_: dict[str, Any], removed: dict[str, Any]
) -> None:
    etags = [etag_of(table), committed(table, set_)["metadata"]["etag"], committed(table, removed)["metadata"]["etag"]]
    assert len(set(etags)) == 3
    assert metadata_of(table)["last-commit-version"] == 2


@pytest.mark.parametrize(
    "change", [comment_set("of the sea"), properties_set({"team": "sea"})], ids=["comment", "property"]
)
def test_a_change_without_a_commit_changes_the_etag_but_not_the_last_commit(
    table: LakeTable, change: dict[str, Any]
) -> None:
    before = metadata_of(table)
    response = table.update(change)
    assert response.status_code == 200, response.text
    after = response.json()["metadata"]
    assert after["etag"] != before["etag"]
    assert after["last-commit-version"] == before["last-commit-version"] == 0
    assert after["last-commit-timestamp-ms"] == before["last-commit-timestamp-ms"]
    assert table.load()["latest-table-version"] == 0


def test_data_commits_and_publication_reports_leave_the_metadata_alone(table: LakeTable) -> None:
    before = metadata_of(table)
    for version in (1, 2):
        committed(table)
        table.publish(version)
    assert table.report(1).status_code == 200
    assert committed(table, report(2))["latest-table-version"] == 3
    assert table.versions() == [3]
    assert metadata_of(table) == before


def test_the_row_tracking_mark_moves_without_a_new_etag(table: LakeTable) -> None:
    before = metadata_of(table)
    for mark in (9, 19):
        after = committed(table, domains_set(delta_rowTracking={"rowIdHighWaterMark": mark}))["metadata"]
        assert after["properties"]["delta.rowTracking.rowIdHighWaterMark"] == str(mark)
        assert after["etag"] == before["etag"]
        assert after["last-commit-version"] == 0


def test_the_row_tracking_mark_beside_a_real_change_does_not_hide_it(table: LakeTable) -> None:
    before = etag_of(table)
    mark = domains_set(delta_rowTracking={"rowIdHighWaterMark": 9}, app_owner={"team": "sea"})
    assert committed(table, mark)["metadata"]["etag"] != before


def test_an_etag_never_repeats_even_when_the_metadata_does(table: LakeTable) -> None:
    """Back and forth, as fast as it goes: several changes fall into one millisecond of the clock, or next to it."""
    etags = [etag_of(table)]
    for number in range(40):
        response = table.update(comment_set("ebb" if number % 2 else "flood"))
        etags.append(response.json()["metadata"]["etag"])
    assert len(set(etags)) == len(etags)


def test_a_table_made_anew_under_the_name_has_etags_of_its_own(lake: Lake, unique: str) -> None:
    seen: set[str] = set()
    for _ in range(3):
        table = lake.new_table(unique)
        etags = {etag_of(table), table.update(comment_set("new")).json()["metadata"]["etag"]}
        assert len(etags) == 2
        assert not etags & seen
        seen |= etags
        assert lake.http.delete(f"{lake.tables_url()}/{unique}").status_code == 204


def test_an_asserted_etag_holds_through_data_commits_and_fails_after_a_metadata_change(table: LakeTable) -> None:
    etag = etag_of(table)
    assert table.commit(1, etag=etag).status_code == 200
    assert table.commit(2, comment_set("first"), etag=etag).status_code == 200
    before = table.load()
    for response in (table.commit(3, etag=etag), table.update(comment_set("second"), etag=etag)):
        assert error_of(response) == CONFLICT
        assert before["metadata"]["etag"] in response.json()["error"]["message"]
    assert table.load() == before
    assert table.commit(3, etag=before["metadata"]["etag"]).status_code == 200


# What load shows


def test_load_shows_the_configuration_and_the_derived_properties_and_no_others(lake: Lake, unique: str) -> None:
    domains = {
        "delta.clustering": {"clusteringColumns": [["id"], ["home", "zip"]]},
        "delta.rowTracking": {"rowIdHighWaterMark": 41},
        "app.owner": {"team": "sea"},
    }
    table = lake.new_table(unique, domain_metadata=domains, properties={"team": "sea"})
    features = {f"delta.feature.{feature}": "supported" for feature in PROTOCOL["writer-features"]}
    shown = metadata_of(table)["properties"]
    assert json.loads(shown.pop("delta.clusteringColumns")) == [["id"], ["home", "zip"]]
    assert shown == {
        **REQUIRED_PROPERTIES,
        TABLE_ID: table.id,
        "team": "sea",
        **features,
        "delta.minReaderVersion": "3",
        "delta.minWriterVersion": "7",
        "delta.rowTracking.rowIdHighWaterMark": "41",
        "delta.lastUpdateVersion": "0",
        "delta.lastCommitTimestamp": str(table.timestamp),
    }


DERIVED = (
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.feature.appendOnly",
    "delta.feature.catalogManaged",
    "delta.clusteringColumns",
    "delta.rowTracking.rowIdHighWaterMark",
    "delta.lastUpdateVersion",
    "delta.lastCommitTimestamp",
)


@pytest.mark.parametrize("with_commit", [False, True], ids=["alone", "with a commit"])
@pytest.mark.parametrize("key", DERIVED)
def test_derived_properties_cannot_be_sent_back(table: LakeTable, key: str, with_commit: bool) -> None:
    for update in (properties_set({key: "1"}), properties_removed(key)):
        assert key in check_refused(table, update, with_commit=with_commit)


@pytest.mark.parametrize("key", DERIVED)
def test_derived_properties_cannot_be_declared_at_creation(lake: Lake, unique: str, key: str) -> None:
    draft = lake.draft(unique, properties={key: "supported"})
    draft.write_version_0()
    response = lake.create(draft.request)
    assert error_of(response) == INVALID
    assert key in response.json()["error"]["message"]


def test_updated_time_is_the_time_of_the_last_metadata_change(table: LakeTable) -> None:
    created = metadata_of(table)
    assert created["updated-time"] == created["created-time"]
    committed(table)
    assert metadata_of(table)["updated-time"] == created["updated-time"]
    for change in (lambda: table.update(comment_set("alone")), lambda: table.commit(2, columns_set(WIDER))):
        earliest = int(time.time() * 1000)
        assert change().status_code == 200
        latest = int(time.time() * 1000)
        after = metadata_of(table)
        assert earliest <= after["updated-time"] <= latest
        assert after["created-time"] == created["created-time"]


def test_columns_come_back_as_they_were_sent(table: LakeTable) -> None:
    nested: dict[str, Any] = {
        "type": "struct",
        "fields": [
            {"name": "Id", "type": "long", "nullable": False, "metadata": {"a": 1, "b": [None, {"c": 1.5}]}},
            {
                "name": "list",
                "type": {
                    "type": "array",
                    "element-type": {
                        "type": "map",
                        "key-type": "string",
                        "value-type": {
                            "type": "struct",
                            "fields": [{"name": "x", "type": "decimal(38,0)", "nullable": True, "metadata": {}}],
                        },
                        "value-contains-null": True,
                    },
                    "contains-null": False,
                },
                "nullable": True,
                "metadata": {},
            },
        ],
    }
    assert committed(table, columns_set(nested))["metadata"]["columns"] == nested
    assert metadata_of(table)["columns"] == nested


# Comments


@pytest.mark.parametrize("with_commit", [False, True], ids=["alone", "with a commit"])
def test_a_comment_is_set_changed_and_cleared(table: LakeTable, with_commit: bool) -> None:
    assert comment_of(table) is None
    for comment in ("of the sea", 'näher 🌊\n"quoted"', "x" * 70_000, None, "again", None):
        if with_commit:
            committed(table, comment_set(comment))
        else:
            assert table.update(comment_set(comment)).status_code == 200
        assert comment_of(table) == comment


def test_a_comment_given_at_creation_is_kept_until_it_is_changed(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique, comment="from the start")
    assert comment_of(table) == "from the start"
    committed(table, properties_set({"team": "sea"}))
    assert comment_of(table) == "from the start"
    assert table.update(comment_set(None)).status_code == 200
    assert comment_of(table) is None


# Properties of the catalog and of the log


def test_a_property_of_the_catalog_is_set_changed_and_removed_without_a_commit(table: LakeTable) -> None:
    for value in ("sea", "air", "x" * 10_000):
        answer = table.update(properties_set({"team": value}))
        assert answer.json()["metadata"]["properties"]["team"] == value
        assert metadata_of(table)["properties"]["team"] == value
    assert table.update(properties_removed("team")).status_code == 200
    assert "team" not in metadata_of(table)["properties"]
    assert table.load()["latest-table-version"] == 0


def test_a_property_that_came_with_a_commit_lives_in_the_log_and_changes_with_commits_only(table: LakeTable) -> None:
    committed(table, properties_set({"team": "sea"}))
    for update in (properties_set({"team": "air"}), properties_removed("team")):
        assert "team" in check_refused(table, update, with_commit=False)
    assert committed(table, properties_set({"team": "air"}))["metadata"]["properties"]["team"] == "air"
    assert "team" not in committed(table, properties_removed("team"))["metadata"]["properties"]
    assert table.update(properties_set({"team": "catalog"})).status_code == 200


def test_a_commit_takes_a_property_of_the_catalog_over_into_the_log(table: LakeTable) -> None:
    assert table.update(properties_set({"team": "sea"})).status_code == 200
    assert committed(table, properties_set({"team": "air"}))["metadata"]["properties"]["team"] == "air"
    check_refused(table, properties_removed("team"), with_commit=False)
    assert "team" not in committed(table, properties_removed("team"))["metadata"]["properties"]


def test_a_commit_that_removes_a_property_of_the_catalog_removes_it(table: LakeTable) -> None:
    assert table.update(properties_set({"team": "sea"})).status_code == 200
    assert "team" not in committed(table, properties_removed("team"))["metadata"]["properties"]


def test_properties_of_the_catalog_survive_commits_that_do_not_name_them(table: LakeTable) -> None:
    assert table.update(properties_set({"team": "sea"})).status_code == 200
    committed(table)
    answer = committed(table, properties_set({"delta.appendOnly": "true"}))
    assert answer["metadata"]["properties"]["team"] == "sea"


@pytest.mark.parametrize("key", ["delta.appendOnly", "delta.anything.new", TABLE_ID, *REQUIRED_PROPERTIES])
def test_a_property_of_the_log_does_not_change_without_a_commit(table: LakeTable, key: str) -> None:
    for update in (properties_set({key: "true"}), properties_removed(key)):
        assert key in check_refused(table, update, with_commit=False)


def test_one_property_of_the_log_among_those_of_the_catalog_stops_them_all(table: LakeTable) -> None:
    mixed = properties_set({"team": "sea", "delta.appendOnly": "true"})
    check_refused(table, mixed, comment_set("not this either"), with_commit=False)
    assert comment_of(table) is None


# The contract of managed tables

BREAKERS: dict[str, dict[str, Any]] = {
    **{f"remove {key}": properties_removed(key) for key in (*REQUIRED_PROPERTIES, TABLE_ID)},
    **{f"set {key}": properties_set({key: "other"}) for key in (*REQUIRED_PROPERTIES, TABLE_ID)},
    **{f"empty {key}": properties_set({key: ""}) for key in (*REQUIRED_PROPERTIES, TABLE_ID)},
    **{
        f"drop feature {gone}": protocol_set(
            reader_features=[f for f in PROTOCOL["reader-features"] if f != gone],
            writer_features=[f for f in PROTOCOL["writer-features"] if f != gone],
        )
        for gone in WRITER_FEATURES
    },
    **{
        f"drop reader feature {gone}": protocol_set(reader_features=[f for f in READER_FEATURES if f != gone])
        for gone in READER_FEATURES
    },
    **{
        f"drop writer feature {gone}": protocol_set(
            writer_features=[f for f in PROTOCOL["writer-features"] if f != gone]
        )
        for gone in READER_FEATURES
    },
    "no reader features": protocol_set(reader_features=None),
    "no writer features": protocol_set(writer_features=None),
    "no features": protocol_set(reader_features=[], writer_features=[]),
    "lower reader version": protocol_set(min_reader_version=2),
    "lower writer version": protocol_set(min_writer_version=6),
}


@pytest.mark.parametrize("breaker", BREAKERS.values(), ids=BREAKERS.keys())
def test_no_update_breaks_the_contract(table: LakeTable, breaker: dict[str, Any]) -> None:
    """With a commit, without one, and hidden among updates that are fine."""
    check_refused(table, breaker, with_commit=True)
    check_refused(table, breaker, with_commit=False)
    check_refused(table, comment_set("fine"), breaker, columns_set(WIDER), with_commit=True)


def test_what_the_contract_asks_for_may_be_set_again(table: LakeTable) -> None:
    same = properties_set({**REQUIRED_PROPERTIES, TABLE_ID: table.id})
    assert committed(table, same, protocol_set())["latest-table-version"] == 1


def test_the_contract_is_named_when_it_is_broken(table: LakeTable) -> None:
    message = check_refused(table, properties_removed("delta.checkpointPolicy"), with_commit=True)
    assert "delta.checkpointPolicy=v2" in message
    message = check_refused(table, BREAKERS["drop feature inCommitTimestamp"], with_commit=True)
    assert "inCommitTimestamp" in message


# Protocol


def test_a_new_feature_is_shown_and_a_feature_that_nothing_needs_can_go(table: LakeTable) -> None:
    wider = protocol_set(writer_features=[*PROTOCOL["writer-features"], "appendOnly"])
    assert committed(table, wider)["metadata"]["properties"]["delta.feature.appendOnly"] == "supported"
    assert "delta.feature.appendOnly" not in committed(table, protocol_set())["metadata"]["properties"]


def test_a_feature_of_readers_is_one_of_writers_too(table: LakeTable) -> None:
    stray = protocol_set(reader_features=[*READER_FEATURES, "columnMapping"])
    assert "columnMapping" in check_refused(table, stray, with_commit=True)


DOMAIN_FEATURES = {
    "delta.clustering": ("clustering", {"clusteringColumns": [["id"]]}),
    "delta.rowTracking": ("rowTracking", {"rowIdHighWaterMark": 1}),
    "app.owner": ("domainMetadata", {"team": "sea"}),
}


@pytest.mark.parametrize("domain", DOMAIN_FEATURES)
def test_a_feature_that_a_domain_needs_cannot_go_before_the_domain(table: LakeTable, domain: str) -> None:
    feature, value = DOMAIN_FEATURES[domain]
    narrower = protocol_set(writer_features=[f for f in PROTOCOL["writer-features"] if f != feature])
    set_ = {"action": "set-domain-metadata", "updates": {domain: value}}
    committed(table, set_)
    assert feature in check_refused(table, narrower, with_commit=True)
    assert committed(table, narrower, domains_removed(domain))
    assert feature in check_refused(table, set_, with_commit=True)


# Domain metadata


def test_domains_are_set_merged_and_removed_with_commits(table: LakeTable) -> None:
    committed(table, domains_set(delta_clustering={"clusteringColumns": [["id"]]}, app_owner={"team": "sea"}))
    committed(table, domains_set(delta_rowTracking={"rowIdHighWaterMark": 7}))
    shown = metadata_of(table)["properties"]
    assert json.loads(shown["delta.clusteringColumns"]) == [["id"]]
    assert shown["delta.rowTracking.rowIdHighWaterMark"] == "7"
    committed(table, domains_set(delta_clustering={"clusteringColumns": []}))
    assert json.loads(metadata_of(table)["properties"]["delta.clusteringColumns"]) == []
    committed(table, domains_removed("delta.clustering", "app.owner"))
    shown = metadata_of(table)["properties"]
    assert "delta.clusteringColumns" not in shown
    assert shown["delta.rowTracking.rowIdHighWaterMark"] == "7"


def test_a_domain_cannot_be_set_and_removed_at_once(table: LakeTable) -> None:
    both = (domains_set(app_owner={"team": "sea"}), domains_removed("app.owner"))
    assert "app.owner" in check_refused(table, *both, with_commit=True)


def test_a_property_cannot_be_set_and_removed_at_once(table: LakeTable) -> None:
    both = (properties_set({"team": "sea", "port": "1"}), properties_removed("team"))
    for with_commit in (False, True):
        assert "team" in check_refused(table, *both, with_commit=with_commit)


# Partition columns, and everything that needs a commit


@pytest.mark.parametrize(
    "change",
    [
        columns_set(WIDER),
        protocol_set(writer_features=[*PROTOCOL["writer-features"], "appendOnly"]),
        partitions_set("name"),
        partitions_set(),
        domains_set(app_owner={"team": "sea"}),
        domains_removed("app.owner"),
    ],
    ids=["columns", "protocol", "partition columns", "no partition columns", "domain", "removed domain"],
)
def test_what_lives_in_the_log_does_not_change_without_a_commit(table: LakeTable, change: dict[str, Any]) -> None:
    assert change["action"] in check_refused(table, change, with_commit=False)
    assert change["action"] in check_refused(table, change, comment_set("fine alone"), with_commit=False)
    assert comment_of(table) is None


def test_partition_columns_change_with_a_commit_and_with_the_columns_they_name(table: LakeTable) -> None:
    assert committed(table, partitions_set("name"))["metadata"]["partition-columns"] == ["name"]
    check_refused(table, partitions_set("day"), with_commit=True)
    answer = committed(table, partitions_set("day", "name"), columns_set(WIDER))
    assert answer["metadata"]["partition-columns"] == ["day", "name"]
    check_refused(table, columns_set(COLUMNS), with_commit=True)
    assert committed(table, partitions_set(), columns_set(COLUMNS))["metadata"]["partition-columns"] == []
