"""The contract of managed tables: protocol, features, properties, and the features that domains need."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.domain.builders import TABLE_ID, metadata, metadatas, protocol
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.protocol import (
    FULL_CONTRACT,
    LEAST_CONTRACT,
    REQUIRED_PROPERTIES,
    REQUIRED_PROTOCOL,
    SUGGESTED_READER_FEATURES,
    SUGGESTED_WRITER_FEATURES,
    Protocol,
    check_domain_features,
    check_managed_contract,
    check_protocol,
    contract_met,
    required_properties,
)
from tidegate.domain.tables import TableMetadata

READER = ("catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck")
WRITER = (*READER, "inCommitTimestamp")
PROPERTIES = {
    "delta.checkpointPolicy": "v2",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
}
WITH_DOMAINS = protocol()


def check(
    *,
    protocol: Protocol = WITH_DOMAINS,
    properties: Mapping[str, str] | None = None,
    domains: Mapping[str, object] | None = None,
) -> None:
    check_managed_contract(
        table_id=TABLE_ID,
        protocol=protocol,
        properties=required_properties(TABLE_ID) if properties is None else properties,
        domains=domains or {},
    )


def test_the_required_protocol_and_properties_are_those_of_the_api() -> None:
    assert Protocol(3, 7, frozenset(READER), frozenset(WRITER)) == REQUIRED_PROTOCOL
    assert PROPERTIES == REQUIRED_PROPERTIES
    assert required_properties("some-id") == {**PROPERTIES, "io.unitycatalog.tableId": "some-id"}


def test_the_suggested_features_are_those_of_the_api() -> None:
    assert {"columnMapping"} == SUGGESTED_READER_FEATURES
    assert {"columnMapping", "domainMetadata", "rowTracking"} == SUGGESTED_WRITER_FEATURES


@given(any_metadata=metadatas())
@settings(deadline=None, max_examples=50)
def test_what_the_contract_leaves_open_may_be_anything(any_metadata: TableMetadata) -> None:
    check(protocol=any_metadata.protocol, properties=any_metadata.properties, domains=any_metadata.domains)


def test_the_minimum_is_enough() -> None:
    check(protocol=REQUIRED_PROTOCOL)


@pytest.mark.parametrize("feature", READER)
def test_a_missing_reader_feature_is_named(feature: str) -> None:
    lacking = replace(REQUIRED_PROTOCOL, reader_features=REQUIRED_PROTOCOL.reader_features - {feature})
    with pytest.raises(InvalidRequest, match=f"A managed table needs the reader feature '{feature}'"):
        check(protocol=lacking)


@pytest.mark.parametrize("feature", WRITER)
def test_a_missing_writer_feature_is_named(feature: str) -> None:
    writer_features = REQUIRED_PROTOCOL.writer_features - {feature}
    lacking = replace(REQUIRED_PROTOCOL, writer_features=writer_features)
    with pytest.raises(InvalidRequest, match=f"'{feature}'.*writer-features|needs the writer feature '{feature}'"):
        check(protocol=lacking)


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"min_reader_version": 2}, "min-reader-version 3 or higher, not 2"),
        ({"min_reader_version": -1}, "min-reader-version 3|min-reader-version .* not -1"),
        ({"min_writer_version": 6}, "min-writer-version 7 or higher, not 6"),
        ({"min_writer_version": 0}, "min-writer-version 7|min-writer-version .* not 0"),
    ],
)
def test_a_protocol_version_that_is_too_low_is_told_which_is_needed(versions: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check(protocol=replace(protocol(), **versions))


@pytest.mark.parametrize("key", [*PROPERTIES, "io.unitycatalog.tableId"])
def test_a_missing_property_is_named_with_the_value_it_needs(key: str) -> None:
    needed = required_properties(TABLE_ID)
    value = needed.pop(key)
    with pytest.raises(InvalidRequest) as refused:
        check(properties=needed)
    assert f"A managed table needs the property {key}={value}; here it is not set" in refused.value.message


@pytest.mark.parametrize("wrong", ["", "false", "V2", "TRUE", "7d3f2c1a-0000-4000-8000-00000000000b"])
@pytest.mark.parametrize("key", [*PROPERTIES, "io.unitycatalog.tableId"])
def test_a_property_with_another_value_is_named_with_both(key: str, wrong: str) -> None:
    needed = required_properties(TABLE_ID)
    with pytest.raises(InvalidRequest) as refused:
        check(properties={**needed, key: wrong})
    assert f"the property {key}={needed[key]}; here it is {wrong!r}" in refused.value.message


@pytest.mark.parametrize(
    ("domain", "feature"),
    [
        ("delta.clustering", "clustering"),
        ("delta.rowTracking", "rowTracking"),
        ("my.domain", "domainMetadata"),
        ("delta.other", "domainMetadata"),
    ],
)
def test_a_domain_needs_its_writer_feature(domain: str, feature: str) -> None:
    enough = replace(REQUIRED_PROTOCOL, writer_features=REQUIRED_PROTOCOL.writer_features | {feature})
    check(protocol=enough, domains={domain: {}})
    lacking = replace(protocol(), writer_features=protocol().writer_features - {feature})
    with pytest.raises(InvalidRequest, match=f"Domain metadata '{domain}' needs the writer feature '{feature}'"):
        check_domain_features(lacking, {domain: {}})
    with pytest.raises(InvalidRequest, match=f"needs the writer feature '{feature}'"):
        check(protocol=lacking, domains={domain: {}})


@pytest.mark.parametrize("plain", [Protocol(1, 2, frozenset(), frozenset()), Protocol(2, 5, frozenset(), frozenset())])
def test_a_protocol_without_features_is_sound_delta(plain: Protocol) -> None:
    check_protocol(plain)


def test_a_feature_of_readers_only_is_told_to_be_listed_twice() -> None:
    stray = Protocol(3, 7, frozenset({"a", "b"}), frozenset({"a"}))
    with pytest.raises(InvalidRequest, match=r"'b' is in reader-features but not in writer-features\. List it in both"):
        check_protocol(stray)


@pytest.mark.parametrize("version", [0, -1, -(2**31)])
@pytest.mark.parametrize(
    ("attribute", "spelled"),
    [("min_reader_version", "min-reader-version"), ("min_writer_version", "min-writer-version")],
)
def test_no_table_has_a_protocol_version_below_1(attribute: str, spelled: str, version: int) -> None:
    plain = Protocol(1, 2, frozenset(), frozenset())
    with pytest.raises(InvalidRequest, match=spelled):
        check_protocol(replace(plain, **{attribute: version}))


def test_the_built_metadata_keeps_the_contract() -> None:
    """Everything else here takes this as the ground it stands on."""
    sound = metadata()
    check(protocol=sound.protocol, properties=sound.properties, domains=sound.domains)


# The two contracts


@pytest.mark.parametrize("feature", ["catalogManaged", "vacuumProtocolCheck", "inCommitTimestamp"])
def test_the_least_contract_demands_the_features_of_its_specification(feature: str) -> None:
    least = LEAST_CONTRACT.protocol
    lacking = replace(
        least, reader_features=least.reader_features - {feature}, writer_features=least.writer_features - {feature}
    )
    properties = {"delta.enableInCommitTimestamps": "true", "io.unitycatalog.tableId": TABLE_ID}
    for asked, refused in ((least, False), (lacking, True)):
        with pytest.raises(InvalidRequest, match=feature) if refused else nullcontext():
            check_managed_contract(
                table_id=TABLE_ID, protocol=asked, properties=properties, domains={}, contract=LEAST_CONTRACT
            )


@pytest.mark.parametrize("key", ["delta.enableInCommitTimestamps", "io.unitycatalog.tableId"])
def test_the_least_contract_demands_the_properties_of_its_specification(key: str) -> None:
    properties = {"delta.enableInCommitTimestamps": "true", "io.unitycatalog.tableId": TABLE_ID}
    del properties[key]
    with pytest.raises(InvalidRequest, match=key):
        check_managed_contract(
            table_id=TABLE_ID,
            protocol=LEAST_CONTRACT.protocol,
            properties=properties,
            domains={},
            contract=LEAST_CONTRACT,
        )


def test_who_meets_the_full_contract_is_held_to_it() -> None:
    full = required_properties(TABLE_ID)
    assert contract_met(protocol=REQUIRED_PROTOCOL, properties=full) is FULL_CONTRACT
    assert contract_met(protocol=LEAST_CONTRACT.protocol, properties=full) is LEAST_CONTRACT
    for key in REQUIRED_PROPERTIES:
        assert contract_met(protocol=REQUIRED_PROTOCOL, properties={**full, key: "other"}) is LEAST_CONTRACT
