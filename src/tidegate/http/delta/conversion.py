"""Between the wire of Delta REST v1.0 and the domain, in both directions."""

from __future__ import annotations

from typing import Any

from tidegate.domain import columns, commits, credentials, metrics, protocol, requirements, tables, uniform, updates
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import Version
from tidegate.wire import delta as wire


def to_columns(struct: wire.Columns) -> columns.StructType:
    return columns.StructType(tuple(_to_field(field, depth=1) for field in struct.fields))


def _to_field(field: wire.StructField, *, depth: int) -> columns.Field:
    return columns.Field(
        name=field.name, type=_to_type(field.type, depth=depth + 1), nullable=field.nullable, metadata=field.metadata
    )


def _to_type(data_type: wire.DataType, *, depth: int) -> columns.DataType:
    if depth > columns.NESTING_MAX + 1:
        raise InvalidRequest(f"The columns are nested more than {columns.NESTING_MAX} levels deep.")
    match data_type:
        case str():
            return data_type
        case wire.ArrayType():
            return columns.ArrayType(_to_type(data_type.element_type, depth=depth + 1), data_type.contains_null)
        case wire.MapType():
            key = _to_type(data_type.key_type, depth=depth + 1)
            value = _to_type(data_type.value_type, depth=depth + 1)
            return columns.MapType(key, value, data_type.value_contains_null)
        case wire.StructType():
            return columns.StructType(tuple(_to_field(field, depth=depth) for field in data_type.fields))


def from_columns(struct: columns.StructType) -> wire.Columns:
    return wire.Columns("struct", [_from_field(field) for field in struct.fields])


def _from_field(field: columns.Field) -> wire.StructField:
    return wire.StructField(field.name, _from_type(field.type), field.nullable, dict(field.metadata))


def _from_type(data_type: columns.DataType) -> wire.DataType:
    match data_type:
        case str():
            return data_type
        case columns.ArrayType(element, contains_null):
            return wire.ArrayType(_from_type(element), contains_null)
        case columns.MapType(key, value, contains_null):
            return wire.MapType(_from_type(key), _from_type(value), contains_null)
        case columns.StructType(fields):
            return wire.StructType([_from_field(field) for field in fields])


def to_protocol(sent: wire.Protocol) -> protocol.Protocol:
    return protocol.Protocol(
        min_reader_version=sent.min_reader_version,
        min_writer_version=sent.min_writer_version,
        reader_features=frozenset(sent.reader_features or ()),
        writer_features=frozenset(sent.writer_features or ()),
    )


def from_protocol(known: protocol.Protocol) -> wire.Protocol:
    return wire.Protocol(
        known.min_reader_version,
        known.min_writer_version,
        sorted(known.reader_features),
        sorted(known.writer_features),
    )


def to_commit(sent: wire.Commit) -> commits.Commit:
    return commits.Commit(
        version=Version(sent.version),
        timestamp=sent.timestamp,
        file_name=sent.file_name,
        file_size=sent.file_size,
        file_modified_at=sent.file_modification_timestamp,
    )


def from_commit(commit: commits.Commit) -> wire.Commit:
    return wire.Commit(
        version=commit.version,
        timestamp=commit.timestamp,
        file_name=commit.file_name,
        file_size=commit.file_size,
        file_modification_timestamp=commit.file_modified_at,
    )


def to_uniform(sent: wire.Uniform | None) -> uniform.Uniform | None:
    if sent is None:
        return None
    return uniform.Uniform(
        metadata_location=sent.iceberg.metadata_location,
        converted_version=sent.iceberg.converted_delta_version,
        converted_timestamp=sent.iceberg.converted_delta_timestamp,
        base_converted_version=sent.iceberg.base_converted_delta_version,
    )


def from_uniform(known: uniform.Uniform) -> wire.Uniform:
    return wire.Uniform(
        wire.Iceberg(
            metadata_location=known.metadata_location,
            converted_delta_version=known.converted_version,
            converted_delta_timestamp=known.converted_timestamp,
            base_converted_delta_version=known.base_converted_version,
        )
    )


def from_credential(credential: credentials.Credential) -> wire.StorageCredential:
    return wire.StorageCredential(
        prefix=credential.prefix,
        operation=credential.operation.value,
        config=dict(credential.config),
        expiration_time_ms=credential.expires_at,
    )


def to_requirement(sent: wire.Requirement) -> requirements.Requirement:
    match sent:
        case wire.AssertTableUuid(uuid):
            return requirements.AssertTableId(uuid)
        case wire.AssertEtag(etag):
            return requirements.AssertEtag(etag)


def to_action(sent: wire.Update) -> updates.Action:
    match sent:
        case wire.AddCommit(commit, uniform_):
            return updates.AddCommit(to_commit(commit), to_uniform(uniform_))
        case wire.SetLatestBackfilledVersion(version):
            return updates.ReportPublished(Version(version))
        case wire.UpdateSnapshotVersion(version, timestamp):
            return updates.SetSnapshotVersion(Version(version), timestamp)
        case _:
            return _to_metadata_action(sent)


def _to_metadata_action(sent: Any) -> updates.MetadataAction:
    match sent:
        case wire.SetProperties(values):
            return updates.SetProperties(values)
        case wire.RemoveProperties(keys):
            return updates.RemoveProperties(keys)
        case wire.SetProtocol(protocol_):
            return updates.SetProtocol(to_protocol(protocol_))
        case wire.SetColumns(columns_):
            return updates.SetColumns(to_columns(columns_))
        case wire.SetPartitionColumns(names):
            return updates.SetPartitionColumns(tuple(names))
        case wire.SetTableComment(comment):
            return updates.SetComment(comment)
        case wire.SetDomainMetadata(domains):
            return updates.SetDomainMetadata(domains)
        case wire.RemoveDomainMetadata(domains):
            return updates.RemoveDomainMetadata(domains)
        case _:
            raise TypeError(sent)


def to_report(sent: wire.CommitReport) -> metrics.CommitReport:
    sizes = sent.file_size_histogram
    version = None if sizes is None else sizes.commit_version
    return metrics.CommitReport(
        version=None if version is None else Version(version),
        files_added=sent.num_files_added,
        bytes_added=sent.num_bytes_added,
        files_removed=sent.num_files_removed,
        bytes_removed=sent.num_bytes_removed,
        rows_inserted=sent.num_rows_inserted,
        rows_removed=sent.num_rows_removed,
        rows_updated=sent.num_rows_updated,
        histogram=None
        if sizes is None
        else metrics.FileSizeHistogram(sizes.sorted_bin_boundaries, sizes.file_counts, sizes.total_bytes),
    )


def from_metadata(table: tables.Table) -> wire.TableMetadata:
    return wire.TableMetadata(
        etag=table.etag,
        table_type=table.shown_type,
        table_uuid=table.id,
        location=table.location,
        created_time=table.created_at,
        updated_time=table.updated_at,
        columns=from_columns(table.metadata.columns),
        partition_columns=list(table.metadata.partition_columns),
        properties=tables.served_properties(table),
        last_commit_version=table.metadata_version,
        last_commit_timestamp_ms=table.metadata_timestamp,
    )
