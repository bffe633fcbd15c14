"""Metadata documents: how a table's metadata is kept as JSON in one column."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from tidegate.domain.columns import log_schema, parse_log_schema
from tidegate.domain.protocol import Protocol
from tidegate.domain.tables import TableMetadata
from tidegate.domain.uniform import Uniform


def encode_metadata(metadata: TableMetadata) -> str:
    protocol = metadata.protocol
    return _dumps(
        {
            "columns": log_schema(metadata.columns),
            "partitionColumns": metadata.partition_columns,
            "protocol": {
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                "readerFeatures": sorted(protocol.reader_features),
                "writerFeatures": sorted(protocol.writer_features),
            },
            "properties": dict(metadata.properties),
            "domains": {domain: dict(value) for domain, value in metadata.domains.items()},
            "comment": metadata.comment,
            "catalogProperties": dict(metadata.catalog_properties),
        }
    )


@lru_cache(maxsize=512)
def decode_metadata(document: str) -> TableMetadata:
    """Remembered by its text, which most commits and loads leave as it was: nothing here can grow old."""
    parts: dict[str, Any] = json.loads(document)
    protocol = parts["protocol"]
    return TableMetadata(
        columns=parse_log_schema(parts["columns"]),
        partition_columns=tuple(parts["partitionColumns"]),
        protocol=Protocol(
            min_reader_version=protocol["minReaderVersion"],
            min_writer_version=protocol["minWriterVersion"],
            reader_features=frozenset(protocol["readerFeatures"]),
            writer_features=frozenset(protocol["writerFeatures"]),
        ),
        properties=parts["properties"],
        domains=parts["domains"],
        comment=parts["comment"],
        catalog_properties=parts["catalogProperties"],
    )


def encode_uniform(uniform: Uniform | None) -> str | None:
    if uniform is None:
        return None
    return _dumps(
        {
            "metadataLocation": uniform.metadata_location,
            "convertedVersion": uniform.converted_version,
            "convertedTimestamp": uniform.converted_timestamp,
            "baseConvertedVersion": uniform.base_converted_version,
        }
    )


def decode_uniform(document: str | None) -> Uniform | None:
    if document is None:
        return None
    parts: dict[str, Any] = json.loads(document)
    return Uniform(
        metadata_location=parts["metadataLocation"],
        converted_version=parts["convertedVersion"],
        converted_timestamp=parts["convertedTimestamp"],
        base_converted_version=parts["baseConvertedVersion"],
    )


def _dumps(parts: dict[str, Any]) -> str:
    return json.dumps(parts, separators=(",", ":"))
