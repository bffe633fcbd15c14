"""Metadata as a desired final state: whose word counts, and what clients may leave out or send back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from tests.domain.builders import TABLE_ID, columns, field, metadata, metadatas, protocol, struct
from tidegate.domain.clustering import logical_paths, physical_paths
from tidegate.domain.desired_metadata import UNSTATED, DesiredMetadata, metadata_actions
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.stated_columns import StatedColumn
from tidegate.domain.stated_properties import own_properties, stated_protocol
from tidegate.domain.table_actions import LogMetadata, TableActions
from tidegate.domain.tables import TableMetadata, protocol_properties
from tidegate.domain.updates import apply_metadata, check_actions, is_metadata_change
from tidegate.http.unity.columns import from_columns

CLUSTERED = {"delta.clustering": {"clusteringColumns": [["id"]]}}


def nothing() -> TableActions:
    return TableActions(protocol=None, metadata=None, domains={}, removed_domains=(), commit_info={})


def log_of(table: TableMetadata) -> LogMetadata:
    return LogMetadata(table.columns, table.partition_columns, table.properties, table.comment)


def after(before: TableMetadata, desired: DesiredMetadata | None, staged: TableActions | None) -> TableMetadata:
    actions = metadata_actions(before, desired, staged)
    if actions:
        check_actions(actions)
    return apply_metadata(before, actions, in_log=True)


def everything_shown(table: TableMetadata) -> DesiredMetadata:
    """What a client sends back that changes nothing: all that it was shown."""
    told = from_columns(table.columns, table.partition_columns)
    return DesiredMetadata(
        comment=table.comment,
        columns=[StatedColumn(name=one.name, type_json=one.type_json, position=one.position) for one in told],
        partition_columns=table.partition_columns,
        properties={**table.catalog_properties, **table.properties, **protocol_properties(table.protocol)},
    )


@pytest.mark.parametrize("staged", [None, nothing()], ids=["no file", "a file of data only"])
def test_a_commit_that_says_nothing_of_metadata_changes_none(staged: TableActions | None) -> None:
    assert metadata_actions(metadata(), None, staged) == []
    assert metadata_actions(metadata(), DesiredMetadata(), staged) == []


def _without_nul(table: TableMetadata) -> bool:
    return "\\x00" not in repr(table.columns)


@given(table=metadatas().filter(_without_nul))
@settings(deadline=None, max_examples=50)
def test_sending_back_what_was_shown_changes_nothing(table: TableMetadata) -> None:
    before = replace(table, catalog_properties={"steward": "ada"})
    for staged in (None, nothing(), replace(nothing(), metadata=log_of(before), protocol=before.protocol)):
        assert not is_metadata_change(before, after(before, everything_shown(before), staged))


@given(table=metadatas(), other=metadatas())
@settings(deadline=None, max_examples=50)
def test_what_the_file_says_is_what_the_table_becomes(table: TableMetadata, other: TableMetadata) -> None:
    shown = {domain: value for domain, value in other.domains.items() if domain.startswith("delta.")}
    staged = replace(nothing(), metadata=log_of(other), protocol=other.protocol, domains=shown)
    became = after(table, None, staged)
    expected = replace(other, domains={**table.domains, **shown}, properties=own_properties(other.properties))
    assert not is_metadata_change(became, expected)


def test_a_domain_that_is_removed_is_gone_and_those_of_users_are_not_kept() -> None:
    before = metadata(domains=CLUSTERED)
    staged = replace(nothing(), removed_domains=("delta.clustering", "mine"), domains={"ours": {"x": 1}})
    assert after(before, None, staged).domains == {}


def test_properties_are_a_final_state_but_those_of_the_catalog_stay() -> None:
    before = metadata(properties={"team": "sea"}, catalog_properties={"steward": "ada", "moves": "1"})
    stated = {**metadata().properties, "port": "A", "moves": "2", "steward": "ada"}
    became = after(before, DesiredMetadata(properties=stated), None)
    assert became.properties == {**metadata().properties, "port": "A", "moves": "2"}
    assert became.catalog_properties == {"steward": "ada"}


@pytest.mark.parametrize(("stated", "comment"), [(UNSTATED, "old"), (None, None), ("new", "new")])
def test_a_comment_stays_unless_it_is_stated(stated: Any, comment: str | None) -> None:
    assert after(metadata(comment="old"), DesiredMetadata(comment=stated), None).comment == comment


@pytest.mark.parametrize(
    ("domains", "removed", "message"),
    [({}, (), None), (CLUSTERED, (), "clusteringColumns is not"), ({}, ("delta.clustering",), "clusteringColumns")],
    ids=["the file is silent", "the file says otherwise", "the file removes them"],
)
def test_clustering_columns_that_are_stated_count_where_the_file_is_silent(
    domains: dict[str, Any], removed: tuple[str, ...], message: str | None
) -> None:
    before = metadata(domains=CLUSTERED)
    desired = DesiredMetadata(properties={**before.properties, "clusteringColumns": '[["port"]]'})
    staged = replace(nothing(), domains={**domains, "delta.rowTracking": {"rowIdHighWaterMark": 1}})
    staged = replace(staged, removed_domains=removed)
    if message is None:
        became = after(before, desired, staged).domains
        assert became["delta.clustering"] == {"clusteringColumns": [["port"]]}
        assert became["delta.rowTracking"] == {"rowIdHighWaterMark": 1}
    else:
        with pytest.raises(InvalidRequest, match=message):
            metadata_actions(before, desired, staged)


def test_a_feature_is_added_by_the_protocol_in_the_file_and_not_by_a_property() -> None:
    desired = DesiredMetadata(properties={**metadata().properties, "delta.feature.appendOnly": "supported"})
    with pytest.raises(InvalidRequest, match="does not have that feature"):
        metadata_actions(metadata(), desired, nothing())
    staged = replace(nothing(), protocol=protocol(writer=frozenset({"appendOnly"})))
    assert "appendOnly" in after(metadata(), desired, staged).protocol.writer_features


MAPPED = struct(
    field("id", **{"delta.columnMapping.physicalName": "c1"}),
    field("address", struct(field("city", "string", **{"delta.columnMapping.physicalName": "c3"}))),
)


def test_clustering_paths_are_renamed_level_by_level_and_back() -> None:
    logical, physical = [["id"], ["address", "city"]], [["c1"], ["address", "c3"]]
    assert logical_paths(MAPPED, physical) == logical
    assert physical_paths(MAPPED, logical) == physical


def test_a_path_to_no_column_stays_as_it_is() -> None:
    assert logical_paths(columns(), [["nowhere"], ["id", "below"]]) == [["nowhere"], ["id", "below"]]


@pytest.mark.parametrize(
    ("stated", "versions", "reader", "writer"),
    [
        ({}, (1, 2), set(), set()),
        ({"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}, (2, 5), set(), set()),
        ({"delta.feature.timestampNtz": "supported"}, (3, 7), {"timestampNtz"}, {"timestampNtz"}),
        ({"delta.feature.appendOnly": "supported"}, (1, 7), set(), {"appendOnly"}),
    ],
)
def test_the_protocol_of_an_external_table_is_what_its_properties_say(
    stated: dict[str, str], versions: tuple[int, int], reader: set[str], writer: set[str]
) -> None:
    found = stated_protocol({"io.unitycatalog.tableId": TABLE_ID, **stated})
    assert (found.min_reader_version, found.min_writer_version) == versions
    assert (found.reader_features, found.writer_features) == (reader, writer)


@pytest.mark.parametrize("version", ["", "x", "-1", "1.5", "٣", "9999999999"])
def test_a_protocol_version_that_is_no_number_is_refused(version: str) -> None:
    with pytest.raises(InvalidRequest, match="is a whole number"):
        stated_protocol({"delta.minReaderVersion": version})
