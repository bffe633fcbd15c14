"""Delta REST v1.0: the JSON of requests and answers, names as the API spells them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
TableTypeName = Literal["MANAGED", "EXTERNAL"]
OperationName = Literal["READ", "READ_WRITE"]


class Kebab(Struct, frozen=True, rename="kebab"):
    """Names with hyphens."""


# Columns


class ArrayType(Kebab, frozen=True, tag="array"):
    element_type: DataType
    contains_null: bool


class MapType(Kebab, frozen=True, tag="map"):
    key_type: DataType
    value_type: DataType
    value_contains_null: bool


class StructField(Kebab, frozen=True):
    name: str
    type: DataType
    nullable: bool
    metadata: dict[str, Any]


class StructType(Kebab, frozen=True, tag="struct"):
    fields: list[StructField]


class Columns(Kebab, frozen=True):
    """A struct at the top, where no other type may stand."""

    type: Literal["struct"]
    fields: list[StructField]


DataType: TypeAlias = str | ArrayType | MapType | StructType


# What tables are made of


class Protocol(Kebab, frozen=True):
    min_reader_version: Int32
    min_writer_version: Int32
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class Features(Kebab, frozen=True):
    reader_features: list[str]
    writer_features: list[str]


class Commit(Kebab, frozen=True):
    version: Int64
    timestamp: Int64
    file_name: str
    file_size: Int64
    file_modification_timestamp: Int64


class Iceberg(Kebab, frozen=True, omit_defaults=True):
    metadata_location: str
    converted_delta_version: Int64
    converted_delta_timestamp: Int64
    base_converted_delta_version: Int64 | None = None


class Uniform(Kebab, frozen=True):
    iceberg: Iceberg


class StorageCredential(Kebab, frozen=True):
    prefix: str
    operation: OperationName
    config: dict[str, str]
    expiration_time_ms: int | None


# Configuration


class CatalogConfig(Kebab, frozen=True):
    endpoints: list[str]
    protocol_version: str


# Life of a table


class CreateStagingTableRequest(Kebab, frozen=True):
    name: str


class StagingTable(Kebab, frozen=True):
    table_id: str
    table_type: TableTypeName
    location: str
    storage_credentials: list[StorageCredential]
    required_protocol: Protocol
    suggested_protocol: Features
    required_properties: dict[str, str | None]
    suggested_properties: dict[str, str | None]


class CreateTableRequest(Kebab, frozen=True):
    name: str
    location: str
    table_type: TableTypeName
    columns: Columns
    protocol: Protocol
    properties: dict[str, str]
    last_commit_timestamp_ms: Int64
    comment: str | None = None
    partition_columns: list[str] | None = None
    domain_metadata: dict[str, dict[str, Any]] | None = None
    uniform: Uniform | None = None


class TableMetadata(Kebab, frozen=True):
    etag: str
    table_type: TableTypeName
    table_uuid: str
    location: str
    created_time: int
    updated_time: int
    columns: Columns
    partition_columns: list[str]
    properties: dict[str, str]
    last_commit_version: int
    last_commit_timestamp_ms: int


class LoadTableResponse(Kebab, frozen=True):
    metadata: TableMetadata
    commits: list[Commit]
    uniform: Uniform | UnsetType = UNSET
    latest_table_version: int | UnsetType = UNSET
    allowed_maintenance_operations: list[str] | UnsetType = UNSET


class RenameTableRequest(Kebab, frozen=True):
    new_name: str


# Update


class AssertTableUuid(Kebab, frozen=True, tag_field="type", tag="assert-table-uuid"):
    uuid: str


class AssertEtag(Kebab, frozen=True, tag_field="type", tag="assert-etag"):
    etag: str


Requirement: TypeAlias = AssertTableUuid | AssertEtag


class AddCommit(Kebab, frozen=True, tag_field="action", tag="add-commit"):
    commit: Commit
    uniform: Uniform | None = None


class SetLatestBackfilledVersion(Kebab, frozen=True, tag_field="action", tag="set-latest-backfilled-version"):
    latest_published_version: Int64


class SetProperties(Kebab, frozen=True, tag_field="action", tag="set-properties"):
    updates: dict[str, str]


class RemoveProperties(Kebab, frozen=True, tag_field="action", tag="remove-properties"):
    removals: list[str]


class SetProtocol(Kebab, frozen=True, tag_field="action", tag="set-protocol"):
    protocol: Protocol


class SetColumns(Kebab, frozen=True, tag_field="action", tag="set-columns"):
    columns: Columns


class SetPartitionColumns(Kebab, frozen=True, tag_field="action", tag="set-partition-columns"):
    partition_columns: list[str]


class SetTableComment(Kebab, frozen=True, tag_field="action", tag="set-table-comment"):
    comment: str | None


class SetDomainMetadata(Kebab, frozen=True, tag_field="action", tag="set-domain-metadata"):
    updates: dict[str, dict[str, Any]]


class RemoveDomainMetadata(Kebab, frozen=True, tag_field="action", tag="remove-domain-metadata"):
    domains: list[str]


class UpdateSnapshotVersion(Kebab, frozen=True, tag_field="action", tag="update-metadata-snapshot-version"):
    last_commit_version: Int64
    last_commit_timestamp_ms: Int64


Update: TypeAlias = (
    AddCommit
    | SetLatestBackfilledVersion
    | SetProperties
    | RemoveProperties
    | SetProtocol
    | SetColumns
    | SetPartitionColumns
    | SetTableComment
    | SetDomainMetadata
    | RemoveDomainMetadata
    | UpdateSnapshotVersion
)


class UpdateTableRequest(Kebab, frozen=True):
    requirements: list[Requirement]
    updates: list[Update]


# Credentials


class CredentialsResponse(Kebab, frozen=True):
    storage_credentials: list[StorageCredential]


# Metrics


class FileSizeHistogram(Kebab, frozen=True):
    sorted_bin_boundaries: list[Count]
    file_counts: list[Count]
    total_bytes: list[Count]
    commit_version: Count | None = None


class CommitReport(Kebab, frozen=True):
    num_files_added: Count | None = None
    num_bytes_added: Count | None = None
    num_files_removed: Count | None = None
    num_bytes_removed: Count | None = None
    num_rows_inserted: Count | None = None
    num_rows_removed: Count | None = None
    num_rows_updated: Count | None = None
    file_size_histogram: FileSizeHistogram | None = None


class Report(Kebab, frozen=True):
    commit_report: CommitReport | None = None


class ReportMetricsRequest(Kebab, frozen=True):
    table_id: str
    report: Report | None = None


# Queries


class ConfigQuery(Kebab, frozen=True):
    catalog: str
    protocol_versions: str


class DropQuery(Kebab, frozen=True):
    force: bool = False


class CredentialsQuery(Kebab, frozen=True):
    operation: OperationName


class PathCredentialsQuery(Kebab, frozen=True):
    location: str
    operation: OperationName


# Errors


class ErrorModel(Struct, frozen=True):
    type: str
    code: int
    message: str


class Conflict(Kebab, frozen=True):
    """What the loser of a version has to know to go on without another load; beyond the specification.

    `commits` are those since the proposed version, the proposed one included, that are not published yet; the others up
    to `latest_table_version` are in the log. `append_stands`: nothing of that concerns a blind append, which can be
    proposed again as it is.
    """

    latest_table_version: Int64
    commits: list[Commit]
    append_stands: bool


class ErrorResponse(Struct, frozen=True, omit_defaults=True):
    error: ErrorModel
    conflict: Conflict | None = None
