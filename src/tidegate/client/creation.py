"""Creating a managed table: stage it, write version 0, let the catalog check it and make it known.

What the columns and properties need of the Delta protocol is added to what the catalog demands:

    delta.columnMapping.mode=name       columnMapping; every column gets an id and a name for the files
    delta.enableRowTracking=true        rowTracking; the columns that keep row ids get their names
    a column of type timestamp_ntz      timestampNtz
    a column that is NOT NULL           invariants
    cluster_by                          clustering
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from tidegate.client.address import schema_path, split_table, table_path
from tidegate.client.columns import TYPES_IN, Columns, log_schema, to_wire
from tidegate.client.conversations import Answer, Conversation, decoded, do, exchange, request
from tidegate.client.creatable import check_creatable, features_asked_for
from tidegate.client.errors import InvalidRequest
from tidegate.client.files import Files, published_path, staged_folder
from tidegate.client.known_tables import KnownTable, known_table
from tidegate.client.proposals import draft, encoded, stamped
from tidegate.client.refusals import refusal
from tidegate.client.wire import LoadedTable, StagingTable

PHYSICAL_NAME = "delta.columnMapping.physicalName"
CLUSTERING = "delta.clustering"

_FOR_READERS = frozenset({"columnMapping", "timestampNtz", "typeWidening", "variantType"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A table as somebody wants it."""

    name: str
    columns: Columns
    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str] = ()
    comment: str | None = None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version0:
    """What the log and the catalog are both told."""

    schema: dict[str, Any]
    properties: dict[str, str]
    reader_features: list[str]
    writer_features: list[str]
    clustering: dict[str, Any] | None


def create_table(wanted: NewTable, files: Files) -> Conversation[KnownTable]:
    catalog, schema, name = split_table(wanted.name)
    columns, stated = log_schema(wanted.columns), stated_properties(wanted)
    check_creatable(columns, stated, partition_by=wanted.partition_by, cluster_by=wanted.cluster_by)
    where = schema_path(f"{catalog}.{schema}")
    # Staged twice, one of the two is left behind, and expires: it may be repeated.
    answer = yield from request("POST", f"{where}/staging-tables", body={"name": name}, repeatable=True)
    staging = decoded(answer, StagingTable)
    version_0 = plan(wanted, columns, staging)
    timestamp = time.time_ns() // 1_000_000
    content = _log_content(wanted, staging, version_0, timestamp)
    yield from do(partial(_write, files, staging.location, content))
    body = _request(name, wanted, staging, version_0, timestamp)
    answer = yield from exchange("POST", f"{where}/tables", body=body, repeatable=True)
    if answer.status != 200:
        answer = yield from _perhaps_ours(wanted.name, staging.table_id, answer)
    return known_table(wanted.name, decoded(answer, LoadedTable))


def _write(files: Files, location: str, content: bytes) -> None:
    # The stock Delta client does not make this folder before it writes there: it expects that the creator did.
    files.make_folder(staged_folder(location))
    files.write_new(published_path(location, 0), content)


def stated_properties(wanted: NewTable) -> dict[str, str]:
    return {str(key): str(value) for key, value in wanted.properties.items()}


def plan(wanted: NewTable, schema: dict[str, Any], staging: StagingTable) -> Version0:
    required = {key: value for key, value in staging.required_properties.items() if value is not None}
    properties = {**required, **stated_properties(wanted)}
    features = set(features_asked_for(schema, properties))
    if wanted.cluster_by:
        features |= {"clustering", "domainMetadata"}
    if "columnMapping" in features:
        ids = itertools.count(1)
        schema = _mapped(schema, ids)
        properties["delta.columnMapping.maxColumnId"] = str(next(ids) - 1)
    if "rowTracking" in features:
        for kind in ("RowId", "RowCommitVersion"):
            key = f"delta.rowTracking.materialized{kind}ColumnName"
            properties.setdefault(key, f"_{'row-id' if kind == 'RowId' else 'row-commit-version'}-col-{uuid.uuid4()}")
    protocol = staging.required_protocol
    return Version0(
        schema=schema,
        properties=properties,
        reader_features=sorted({*protocol.reader_features, *(features & _FOR_READERS)}),
        writer_features=sorted({*protocol.writer_features, *features}),
        clustering=_clustering(wanted.cluster_by, schema) if wanted.cluster_by else None,
    )


def _mapped(node: Any, ids: Iterator[int]) -> Any:
    """The type with an id and a name for the files at every field."""
    if not isinstance(node, dict):
        return node
    mapped = cast("dict[str, Any]", {**node})
    if "fields" in mapped:
        mapped["fields"] = [_mapped_field(field, ids) for field in mapped["fields"]]
    for key in TYPES_IN & mapped.keys():
        mapped[key] = _mapped(mapped[key], ids)
    return mapped


def _mapped_field(field: dict[str, Any], ids: Iterator[int]) -> dict[str, Any]:
    mapping = {"delta.columnMapping.id": next(ids), PHYSICAL_NAME: f"col-{uuid.uuid4()}"}
    return {**field, "metadata": {**field["metadata"], **mapping}, "type": _mapped(field["type"], ids)}


def _clustering(names: Sequence[str], schema: dict[str, Any]) -> dict[str, Any]:
    """Columns of the top level, by the names that the files have."""
    fields = {field["name"]: field["metadata"] for field in schema["fields"]}
    for name in names:
        if name not in fields:
            raise InvalidRequest(f"cluster_by names {name!r}, which is not among the columns {sorted(fields)}.")
    physical = [fields[name].get(PHYSICAL_NAME, name) for name in names]
    return {"clusteringColumns": [[name] for name in physical]}


def _log_content(wanted: NewTable, staging: StagingTable, version_0: Version0, timestamp: int) -> bytes:
    protocol = staging.required_protocol
    actions: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                "readerFeatures": version_0.reader_features,
                "writerFeatures": version_0.writer_features,
            }
        },
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                **({} if wanted.comment is None else {"description": wanted.comment}),
                "schemaString": json.dumps(version_0.schema, separators=(",", ":")),
                "partitionColumns": list(wanted.partition_by),
                "configuration": version_0.properties,
                "createdTime": timestamp,
            }
        },
    ]
    if version_0.clustering is not None:
        configuration = json.dumps({**version_0.clustering, "domainName": CLUSTERING})
        actions.append({"domainMetadata": {"domain": CLUSTERING, "configuration": configuration, "removed": False}})
    info = {"operation": "CREATE TABLE", "inCommitTimestamp": timestamp}
    drafted = draft([{"commitInfo": info}, *actions])
    return encoded(stamped(drafted, previous=None, now=timestamp), drafted.others)


def _request(name: str, wanted: NewTable, staging: StagingTable, version_0: Version0, timestamp: int) -> dict[str, Any]:
    protocol = staging.required_protocol
    return {
        "name": name,
        "location": staging.location,
        "table-type": "MANAGED",
        "comment": wanted.comment,
        "columns": to_wire(version_0.schema),
        "partition-columns": list(wanted.partition_by),
        "protocol": {
            "min-reader-version": protocol.min_reader_version,
            "min-writer-version": protocol.min_writer_version,
            "reader-features": version_0.reader_features,
            "writer-features": version_0.writer_features,
        },
        "properties": version_0.properties,
        "domain-metadata": None if version_0.clustering is None else {CLUSTERING: version_0.clustering},
        "last-commit-timestamp-ms": timestamp,
    }


def _perhaps_ours(name: str, table_id: str, refused: Answer) -> Conversation[Answer]:
    """A creation that was sent again is refused, because it has happened: the table is there, with our id."""
    if refused.doubtful:
        found = yield from exchange("GET", table_path(name))
        if found.status == 200 and decoded(found, LoadedTable).metadata.table_uuid == table_id:
            return found
    raise refusal(refused.status, refused.body, url=refused.url)
