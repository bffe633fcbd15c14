"""Delta's protocol action, and the contract that every managed table keeps after every update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen

TABLE_ID_PROPERTY: Final = "io.unitycatalog.tableId"
CLUSTERING_DOMAIN: Final = "delta.clustering"
ROW_TRACKING_DOMAIN: Final = "delta.rowTracking"
ROW_TRACKING_FEATURE: Final = "rowTracking"


@frozen
class Protocol:
    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str]
    writer_features: frozenset[str]

    def features(self) -> frozenset[str]:
        return self.reader_features | self.writer_features


REQUIRED_PROTOCOL: Final = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"}),
    writer_features=frozenset(
        {"catalogManaged", "deletionVectors", "inCommitTimestamp", "v2Checkpoint", "vacuumProtocolCheck"}
    ),
)
SUGGESTED_READER_FEATURES: Final = frozenset({"columnMapping"})
SUGGESTED_WRITER_FEATURES: Final = frozenset({"columnMapping", "domainMetadata", "rowTracking"})

REQUIRED_PROPERTIES: Final[Mapping[str, str]] = {
    "delta.checkpointPolicy": "v2",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
}
"""With the value each must have. `io.unitycatalog.tableId` is required too; its value is the table's id."""


@frozen
class Contract:
    """What a managed table has, and keeps after every update. `io.unitycatalog.tableId` is always a part of it."""

    protocol: Protocol
    properties: Mapping[str, str]


FULL_CONTRACT: Final = Contract(REQUIRED_PROTOCOL, REQUIRED_PROPERTIES)
"""Of every table that is created through Delta REST v1.0."""

LEAST_CONTRACT: Final = Contract(
    Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"catalogManaged", "vacuumProtocolCheck"}),
        writer_features=frozenset({"catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"}),
    ),
    {"delta.enableInCommitTimestamps": "true"},
)
"""What specification v0.1.0 demands; the rest of the above it recommends."""

SUGGESTED_PROPERTIES: Final[Mapping[str, str | None]] = {
    "delta.columnMapping.mode": "name",
    "delta.columnMapping.maxColumnId": None,
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": None,
    "delta.rowTracking.materializedRowCommitVersionColumnName": None,
    "delta.randomizeFilePrefixes": "true",
    "delta.parquet.compression.codec": "zstd",
}
"""None: the engine generates the value."""

_DOMAIN_FEATURES: Final[Mapping[str, str]] = {
    CLUSTERING_DOMAIN: "clustering",
    ROW_TRACKING_DOMAIN: ROW_TRACKING_FEATURE,
}


def required_properties(table_id: str) -> dict[str, str]:
    return {**REQUIRED_PROPERTIES, TABLE_ID_PROPERTY: table_id}


def check_protocol(protocol: Protocol) -> None:
    """What Delta itself demands: versions from 1 on, and every reader feature is a writer feature too."""
    for name, version in (
        ("min-reader-version", protocol.min_reader_version),
        ("min-writer-version", protocol.min_writer_version),
    ):
        if version < 1:
            raise InvalidRequest(f"The protocol's {name} is 1 or higher, not {version}.")
    stray = protocol.reader_features - protocol.writer_features
    if stray:
        raise InvalidRequest(
            f"Feature {min(stray)!r} is in reader-features but not in writer-features. List it in both."
        )


def contract_met(*, protocol: Protocol, properties: Mapping[str, str]) -> Contract:
    """The stronger contract, if it is met: whoever meets it may not fall behind it later."""
    full = FULL_CONTRACT
    met = (
        full.protocol.reader_features <= protocol.reader_features
        and full.protocol.writer_features <= protocol.writer_features
        and full.properties.items() <= properties.items()
    )
    return full if met else LEAST_CONTRACT


def check_managed_contract(
    *,
    table_id: str,
    protocol: Protocol,
    properties: Mapping[str, str],
    domains: Mapping[str, object],
    contract: Contract = FULL_CONTRACT,
) -> None:
    """Raises InvalidRequest naming the first thing that a managed table must have and this one lacks."""
    check_protocol(protocol)
    _check_versions(protocol, contract.protocol)
    _check_features(protocol, contract.protocol)
    for key, value in {**contract.properties, TABLE_ID_PROPERTY: table_id}.items():
        if properties.get(key) != value:
            given = repr(properties[key]) if key in properties else "not set"
            raise InvalidRequest(f"A managed table needs the property {key}={value}; here it is {given}.")
    check_domain_features(protocol, domains)


def check_domain_features(protocol: Protocol, domains: Mapping[str, object]) -> None:
    for domain in domains:
        feature = _DOMAIN_FEATURES.get(domain, "domainMetadata")
        if feature not in protocol.writer_features:
            raise InvalidRequest(f"Domain metadata {domain!r} needs the writer feature {feature!r}.")


def _check_versions(protocol: Protocol, needed: Protocol) -> None:
    if protocol.min_reader_version < needed.min_reader_version:
        raise InvalidRequest(
            f"A managed table needs min-reader-version {needed.min_reader_version} or higher, "
            f"not {protocol.min_reader_version}."
        )
    if protocol.min_writer_version < needed.min_writer_version:
        raise InvalidRequest(
            f"A managed table needs min-writer-version {needed.min_writer_version} or higher, "
            f"not {protocol.min_writer_version}."
        )


def _check_features(protocol: Protocol, needed: Protocol) -> None:
    missing = needed.reader_features - protocol.reader_features
    if missing:
        raise InvalidRequest(f"A managed table needs the reader feature {min(missing)!r}.")
    missing = needed.writer_features - protocol.writer_features
    if missing:
        raise InvalidRequest(f"A managed table needs the writer feature {min(missing)!r}.")
