"""A table as the catalog knows it: its metadata, and where its log stands.

    latest       the newest ratified version
    published    every version up to this one is verified to be in _delta_log
    unpublished  the ratified commits in between, oldest first, complete and contiguous

The *revision* counts metadata changes; the etag is made of it, so it never repeats and does not depend on a clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from tidegate.domain.columns import StructType, check_columns, check_partition_columns
from tidegate.domain.commit_owner import check_owned_contract
from tidegate.domain.commits import Commit
from tidegate.domain.constraints import Constraint
from tidegate.domain.errors import InvalidRequest, UnsupportedTableFormat
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.protocol import (
    CLUSTERING_DOMAIN,
    FULL_CONTRACT,
    ROW_TRACKING_DOMAIN,
    Contract,
    Protocol,
    check_domain_features,
    check_managed_contract,
    check_protocol,
    contract_met,
)
from tidegate.domain.put_if_absent import check_commits_property, is_put_if_absent
from tidegate.domain.row_ids import RowMark
from tidegate.domain.uniform import Uniform


class TableType(StrEnum):
    MANAGED = "MANAGED"
    EXTERNAL = "EXTERNAL"
    OWNED = "OWNED"
    """On a file system, with us as its commit owner; see `commit_owner.py`."""


DELTA = "DELTA"


@frozen
class TableMetadata:
    """What the log says of the table, and the little that only the catalog knows."""

    columns: StructType
    partition_columns: tuple[str, ...]
    protocol: Protocol
    properties: Mapping[str, str]
    domains: Mapping[str, Mapping[str, Any]]
    comment: str | None
    catalog_properties: Mapping[str, str]
    """Set without a commit: they never reach the log."""


@frozen
class Table:
    id: TableId
    name: TableName
    type: TableType
    format: str
    location: str
    owner: str
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    metadata: TableMetadata
    revision: int
    metadata_version: Version
    """The last version that changed metadata."""
    metadata_timestamp: int
    latest: Version
    latest_timestamp: int
    published: Version
    unpublished: tuple[Commit, ...]
    uniform: Uniform | None
    row_mark: RowMark | None = None
    """The highest row id as of the last version of which the catalog knows it."""
    releasing: Version | None = None
    """The version that gives the table back, while that is under way: it takes no other commits."""
    chain: str | None = None
    """Of the latest version, see `chain.py`; None until the first commit that is part of a chain."""
    guarded: bool = False
    """Its metadata changes by those alone who were given MODIFY METADATA: MODIFY does not bring it."""
    constraints: tuple[Constraint, ...] = ()
    """Its keys, the primary one first."""

    @property
    def etag(self) -> str:
        return f"{self.id}.{self.revision}"

    @property
    def decided_here(self) -> bool:
        """Whether it is the catalog that ratifies its commits."""
        return self.type is not TableType.EXTERNAL

    @property
    def shown_type(self) -> Literal["MANAGED", "EXTERNAL"]:
        """As clients know tables: one with a commit owner is read and written by its path."""
        return "MANAGED" if self.type is TableType.MANAGED else "EXTERNAL"

    @property
    def puts_if_absent(self) -> bool:
        """Whether a file in the log is what makes a commit; see `put_if_absent.py`."""
        return is_put_if_absent(self.metadata.properties) and self.type is TableType.MANAGED

    def ratified(self, version: Version) -> Commit | None:
        """The commit that has this version, if it is one of the unpublished."""
        position = version - self.published - 1
        return self.unpublished[position] if 0 <= position < len(self.unpublished) else None

    def unpublished_after(self, version: Version) -> tuple[Commit, ...]:
        """Those of the unpublished commits that are newer than a version which is not older than `published`."""
        return self.unpublished[version - self.published :]


@frozen
class StagingTable:
    """An id and a location, promised to one principal until the creation is finished."""

    id: TableId
    name: TableName
    location: str
    created_by: str
    created_at: int


def contract_of(table: Table) -> Contract:
    """What a managed table must keep: it was met when the table was made, and after every update since."""
    return contract_met(protocol=table.metadata.protocol, properties=table.metadata.properties)


def check_metadata(table: Table, contract: Contract = FULL_CONTRACT) -> None:
    """What must hold after every change: sound columns, and for managed tables the whole contract."""
    metadata = table.metadata
    check_columns(metadata.columns)
    check_partition_columns(metadata.columns, metadata.partition_columns)
    if table.type is TableType.MANAGED:
        check_commits_property(metadata.properties)
        check_managed_contract(
            table_id=table.id,
            protocol=metadata.protocol,
            properties=metadata.properties,
            domains=metadata.domains,
            contract=contract,
        )
    else:
        if "catalogManaged" in metadata.protocol.features():
            raise InvalidRequest("An external table cannot have the feature 'catalogManaged'. Create a managed table.")
        if table.type is TableType.OWNED:
            check_owned_contract(
                table_id=table.id,
                protocol=metadata.protocol,
                properties=metadata.properties,
                domains=metadata.domains,
            )
        check_protocol(metadata.protocol)
        check_domain_features(metadata.protocol, metadata.domains)


def require_delta(table: Table) -> Table:
    if table.format != DELTA:
        raise UnsupportedTableFormat(table.name, table.format)
    return table


_DERIVED = frozenset(
    {
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        "delta.clusteringColumns",
        "delta.rowTracking.rowIdHighWaterMark",
        "delta.lastUpdateVersion",
        "delta.lastCommitTimestamp",
    }
)
FEATURE_PREFIX = "delta.feature."


def is_derived_property(key: str) -> bool:
    """Whether the catalog makes this key up itself. Nobody may send it."""
    return key in _DERIVED or key.startswith(FEATURE_PREFIX)


def protocol_properties(protocol: Protocol) -> dict[str, str]:
    """The protocol as derived properties."""
    versions = {
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
    }
    return versions | {FEATURE_PREFIX + feature: "supported" for feature in sorted(protocol.features())}


def served_properties(table: Table) -> dict[str, str]:
    """The table's configuration and the derived keys, as both faces show them."""
    metadata = table.metadata
    served = {**metadata.catalog_properties, **metadata.properties, **protocol_properties(metadata.protocol)}
    clustering = metadata.domains.get(CLUSTERING_DOMAIN)
    if clustering is not None:
        served["delta.clusteringColumns"] = json.dumps(clustering["clusteringColumns"], separators=(",", ":"))
    row_tracking = metadata.domains.get(ROW_TRACKING_DOMAIN)
    if row_tracking is not None:
        served["delta.rowTracking.rowIdHighWaterMark"] = str(row_tracking["rowIdHighWaterMark"])
    served["delta.lastUpdateVersion"] = str(table.metadata_version)
    served["delta.lastCommitTimestamp"] = str(table.metadata_timestamp)
    return served
