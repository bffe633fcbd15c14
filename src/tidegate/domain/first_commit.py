"""Version 0: what the first file of the log says, and whether a creation request says the same.

The client writes `_delta_log/00000000000000000000.json` before it asks the catalog to finish the creation. From then
on the catalog and the log must agree, so the first disagreement is named and nothing is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.domain.chain import FileDigest
from tidegate.domain.columns import DataType, Field, StructType, log_schema
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.json_values import same_json
from tidegate.domain.protocol import Protocol
from tidegate.domain.table_actions import (
    SHOWN_DOMAINS,
    LogMetadata,
    TableActions,
    check_storable,
    parse_table_actions,
    unsound,
    without_name,
)
from tidegate.domain.tables import TableMetadata, is_derived_property

_WHAT = "version 0 of the log"


@frozen
class FirstCommit:
    columns: StructType
    partition_columns: tuple[str, ...]
    protocol: Protocol
    properties: Mapping[str, str]
    domains: Mapping[str, Any]
    timestamp: int
    description: str | None = None
    digest: FileDigest | None = None
    """Of the file itself."""


def parse_first_commit(content: bytes) -> FirstCommit:
    actions = parse_table_actions(content, what=_WHAT)
    info, protocol, metadata = actions.commit_info, actions.protocol, actions.metadata
    if info is None or protocol is None or metadata is None:
        there = {"commitInfo": info, "protocol": protocol, "metaData": metadata}
        missing = next(name for name, action in there.items() if action is None)
        raise InvalidRequest(f"Version 0 in the log has no {missing} action. Write it before you create the table.")
    try:
        timestamp = int(info["inCommitTimestamp"])
    except (KeyError, TypeError, ValueError, OverflowError) as missing:
        raise unsound(_WHAT, missing) from None
    return FirstCommit(
        columns=metadata.columns,
        partition_columns=metadata.partition_columns,
        protocol=protocol,
        properties=metadata.properties,
        domains=actions.domains,
        timestamp=timestamp,
        description=metadata.description,
        digest=FileDigest.of(content),
    )


def check_storable_first_commit(log: FirstCommit) -> None:
    """For what is stored as the log has it, without a request that says the same."""
    metadata = LogMetadata(log.columns, log.partition_columns, log.properties, log.description)
    check_storable(TableActions(log.protocol, metadata, log.domains, (), None), what=_WHAT)


def check_agreement(declared: TableMetadata, *, timestamp: int, log: FirstCommit) -> None:
    """Raises InvalidRequest naming the first thing that the request and version 0 say differently."""
    _check_protocol(declared.protocol, log.protocol)
    difference = _schema_difference(declared.columns, log.columns, path="")
    if difference is not None:
        raise InvalidRequest(f"The columns differ from version 0 in the log: {difference}.")
    _check_properties(declared.properties, log.properties)
    if _lower(declared.partition_columns) != _lower(log.partition_columns):
        _differ("partition-columns", list(declared.partition_columns), list(log.partition_columns))
    if timestamp != log.timestamp:
        _differ("last-commit-timestamp-ms", timestamp, log.timestamp)
    for domain in sorted({*declared.domains, *(d for d in SHOWN_DOMAINS if d in log.domains)}):
        if not same_json(without_name(declared.domains.get(domain)), log.domains.get(domain)):
            _differ(f"domain metadata {domain}", declared.domains.get(domain), log.domains.get(domain))


def _lower(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def _differ(what: str, declared: object, in_log: object) -> None:
    raise InvalidRequest(
        f"The request and version 0 in the log differ in {what}: {_short(declared)} is declared, "
        f"{_short(in_log)} is in the log. Send what the log says."
    )


def _short(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, default=str)
    return text if len(text) <= 200 else text[:200] + "..."


def _check_protocol(declared: Protocol, log: Protocol) -> None:
    if declared.min_reader_version != log.min_reader_version:
        _differ("protocol min-reader-version", declared.min_reader_version, log.min_reader_version)
    if declared.min_writer_version != log.min_writer_version:
        _differ("protocol min-writer-version", declared.min_writer_version, log.min_writer_version)
    for what, ours, theirs in (
        ("reader", declared.reader_features, log.reader_features),
        ("writer", declared.writer_features, log.writer_features),
    ):
        if ours != theirs:
            feature = min(ours ^ theirs)
            where = "declared but not in the log" if feature in ours else "in the log but not declared"
            raise InvalidRequest(
                f"The request and version 0 in the log differ in protocol {what}-features: "
                f"{feature!r} is {where}. Send what the log says."
            )


def _check_properties(declared: Mapping[str, str], log: Mapping[str, str]) -> None:
    for key in sorted({*declared, *log}):
        if declared.get(key) != log.get(key) and not is_derived_property(key):
            _differ(f"property {key}", declared.get(key), log.get(key))


def _schema_difference(declared: StructType, log: StructType, *, path: str) -> str | None:
    ours, theirs = declared.names(), log.names()
    if ours != theirs:
        return f"{path.rstrip('.') or 'the table'} has the columns {ours} in the request and {theirs} in the log"
    for one, other in zip(declared.fields, log.fields, strict=True):
        difference = _field_difference(one, other, path=f"{path}{one.name}")
        if difference is not None:
            return difference
    return None


def _field_difference(declared: Field, log: Field, *, path: str) -> str | None:
    if declared.nullable != log.nullable:
        return f"{path} has nullable={declared.nullable} in the request and {log.nullable} in the log"
    if not same_json(declared.metadata, log.metadata):
        return f"{path} has other metadata in the request than in the log"
    if isinstance(declared.type, StructType) and isinstance(log.type, StructType):
        return _schema_difference(declared.type, log.type, path=f"{path}.")
    if not same_json(log_schema(declared.type), log_schema(log.type)):
        return f"{path} is {_type_text(declared.type)} in the request and {_type_text(log.type)} in the log"
    return None


def _type_text(data_type: DataType) -> str:
    return _short(log_schema(data_type))
