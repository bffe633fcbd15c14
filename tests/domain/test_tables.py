"""Tables: the served properties, the etag, and what holds after every change."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.domain.builders import (
    NAME,
    TABLE_ID,
    columns,
    external_table,
    field,
    managed_table,
    metadata,
    metadatas,
    struct,
)
from tidegate.domain.errors import InvalidRequest, UnsupportedTableFormat
from tidegate.domain.protocol import Protocol
from tidegate.domain.tables import (
    Table,
    TableMetadata,
    check_metadata,
    is_derived_property,
    require_delta,
    served_properties,
)

DERIVED = (
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.feature.catalogManaged",
    "delta.feature.anything",
    "delta.clusteringColumns",
    "delta.rowTracking.rowIdHighWaterMark",
    "delta.lastUpdateVersion",
    "delta.lastCommitTimestamp",
)


def test_the_etag_changes_with_the_revision_and_with_nothing_else() -> None:
    table = managed_table()
    assert managed_table(latest=5, published=2, updated_at=1, uniform=None).etag == table.etag
    assert managed_table(name=replace(NAME, table="waves")).etag == table.etag


def test_no_two_revisions_and_no_two_tables_share_an_etag() -> None:
    ids = [TABLE_ID, f"{TABLE_ID[:-1]}b", f"{TABLE_ID}1"]
    etags = {managed_table(id=id, revision=revision).etag for id in ids for revision in range(1, 200)}
    assert len(etags) == len(ids) * 199


@pytest.mark.parametrize("key", DERIVED)
def test_the_keys_that_the_catalog_makes_up_are_derived(key: str) -> None:
    assert is_derived_property(key)


@pytest.mark.parametrize(
    "key", ["", "team", "delta.feature", "delta.checkpointPolicy", "delta.rowTracking", "x.delta.feature.a"]
)
def test_other_keys_are_not_derived(key: str) -> None:
    assert not is_derived_property(key)


def test_served_properties_are_the_configuration_and_the_derived_keys() -> None:
    sound = metadata(
        protocol=Protocol(3, 7, frozenset({"catalogManaged"}), frozenset({"catalogManaged", "rowTracking"})),
        domains={
            "delta.clustering": {"clusteringColumns": [["id"], ["port", "name"]]},
            "delta.rowTracking": {"rowIdHighWaterMark": -1},
            "my.domain": {"delta.secret": "not shown"},
        },
        catalog_properties={"team": "sea"},
    )
    table = managed_table(metadata=sound, metadata_version=4, metadata_timestamp=99, latest=6)
    assert served_properties(table) == {
        **sound.properties,
        "team": "sea",
        "delta.minReaderVersion": "3",
        "delta.minWriterVersion": "7",
        "delta.feature.catalogManaged": "supported",
        "delta.feature.rowTracking": "supported",
        "delta.clusteringColumns": '[["id"],["port","name"]]',
        "delta.rowTracking.rowIdHighWaterMark": "-1",
        "delta.lastUpdateVersion": "4",
        "delta.lastCommitTimestamp": "99",
    }


def test_keys_of_domains_that_are_not_there_are_not_served() -> None:
    served = served_properties(managed_table())
    assert "delta.clusteringColumns" not in served
    assert "delta.rowTracking.rowIdHighWaterMark" not in served


def test_what_the_log_says_is_served_rather_than_what_the_catalog_says() -> None:
    both = metadata(properties={"team": "log"}, catalog_properties={"team": "catalog"})
    assert served_properties(managed_table(metadata=both))["team"] == "log"


@given(any_metadata=metadatas())
@settings(deadline=None, max_examples=50)
def test_the_configuration_is_what_remains_of_served_properties_without_the_derived_keys(
    any_metadata: TableMetadata,
) -> None:
    served = served_properties(managed_table(metadata=any_metadata))
    assert all(isinstance(value, str) for value in served.values())
    kept = {key: value for key, value in served.items() if not is_derived_property(key)}
    assert kept == {**any_metadata.catalog_properties, **any_metadata.properties}
    clustering = any_metadata.domains.get("delta.clustering")
    if clustering is not None:
        assert json.loads(served["delta.clusteringColumns"]) == clustering["clusteringColumns"]


@given(any_metadata=metadatas())
@settings(deadline=None, max_examples=50)
def test_generated_metadata_holds_for_a_managed_table(any_metadata: TableMetadata) -> None:
    check_metadata(managed_table(metadata=any_metadata))


def with_stray_feature(before: TableMetadata) -> TableMetadata:
    features = before.protocol.reader_features | {"stray"}
    return replace(before, protocol=replace(before.protocol, reader_features=features))


def with_unsupported_domain(before: TableMetadata) -> TableMetadata:
    features = before.protocol.writer_features - {"domainMetadata"}
    return replace(before, protocol=replace(before.protocol, writer_features=features), domains={"my": {}})


@pytest.mark.parametrize("table", [managed_table(), external_table()], ids=lambda table: table.type)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda before: replace(before, columns=struct()), "The table has no columns"),
        (lambda before: replace(before, columns=struct(field("a", "odd"))), "unknown type 'odd'"),
        (lambda before: replace(before, partition_columns=("depth",)), "'depth' is not among the columns"),
        (lambda before: replace(before, partition_columns=tuple(columns().names())), "All columns are partition"),
        (with_stray_feature, "'stray' is in reader-features"),
        (with_unsupported_domain, "needs the writer feature 'domainMetadata'"),
    ],
)
def test_columns_protocol_and_domains_are_checked_on_every_table(
    table: Table, change: Callable[[TableMetadata], TableMetadata], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_metadata(replace(table, metadata=change(table.metadata)))


def test_an_external_table_cannot_be_managed_by_the_catalog() -> None:
    with pytest.raises(InvalidRequest, match=r"cannot have the feature 'catalogManaged'\. Create a managed table"):
        check_metadata(external_table(metadata=metadata()))


def test_the_managed_contract_binds_managed_tables_only() -> None:
    check_metadata(external_table())
    with pytest.raises(InvalidRequest, match="A managed table needs"):
        check_metadata(managed_table(metadata=external_table().metadata))


def test_a_managed_table_cannot_carry_the_id_of_another() -> None:
    with pytest.raises(InvalidRequest, match=r"io\.unitycatalog\.tableId=other"):
        check_metadata(managed_table(id="other"))


def test_a_delta_table_is_served_and_another_format_is_named() -> None:
    assert require_delta(managed_table()) == managed_table()
    with pytest.raises(
        UnsupportedTableFormat, match=rf"{NAME} is a PARQUET table\. This call serves Delta tables only"
    ):
        require_delta(external_table(format="PARQUET"))
