"""Version 0: what the first file of the log says, and whether a creation request says the same.

The client writes `_delta_log/00000000000000000000.json` before it asks the catalog to finish the creation. From then
on the catalog and the log must agree, so the first disagreement is named and nothing is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from tidegate.domain.columns import DataType, Field, StructType, log_schema, parse_log_schema
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.json_values import check_nesting, same_json
from tidegate.domain.protocol import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, Protocol
from tidegate.domain.tables import TableMetadata, is_derived_property

_READ = ("commitInfo", "protocol", "metaData", "domainMetadata")
_SHOWN_DOMAINS = (CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN)


@dataclass(frozen=True, slots=True)
class FirstCommit:
    columns: StructType
    partition_columns: tuple[str, ...]
    protocol: Protocol
    properties: Mapping[str, str]
    domains: Mapping[str, Any]
    timestamp: int


def parse_first_commit(content: bytes) -> FirstCommit:
    """Reads the actions that speak of the table as a whole; those that speak of files are passed over."""
    actions: dict[str, dict[str, Any]] = {}
    domains: dict[str, Any] = {}
    for number, line in enumerate(map(bytes.strip, content.split(b"\n")), start=1):
        if not line or _speaks_of_files(line):
            continue
        for name, action in _parse_line(line, number).items():
            if name == "domainMetadata":
                if not action.get("removed"):
                    domains[str(action.get("domain"))] = _parse_domain(action)
            elif name in _READ:
                actions[name] = action
    for name in ("commitInfo", "protocol", "metaData"):
        if name not in actions:
            raise InvalidRequest(f"Version 0 in the log has no {name} action. Write it before you create the table.")
    return _first_commit(actions, domains)


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
    for domain in sorted({*declared.domains, *(d for d in _SHOWN_DOMAINS if d in log.domains)}):
        if not same_json(_without_name(declared.domains.get(domain)), log.domains.get(domain)):
            _differ(f"domain metadata {domain}", declared.domains.get(domain), log.domains.get(domain))


def _speaks_of_files(line: bytes) -> bool:
    """Told by its looks, because there may be very many of them; a line that was cut off is read, and refused."""
    whole = line.startswith(b"{") and line.endswith(b"}")
    return whole and not any(f'"{name}"'.encode() in line[:64] for name in _READ)


def _parse_line(line: bytes, number: int) -> dict[str, dict[str, Any]]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"Line {number} of version 0 in the log is not JSON. Write one action a line.") from None
    check_nesting(parsed, f"Line {number} of version 0 in the log")
    if not isinstance(parsed, dict) or not all(isinstance(v, dict) for v in cast("dict[str, Any]", parsed).values()):
        raise InvalidRequest(f"Line {number} of version 0 in the log is not a Delta action.")
    return cast("dict[str, dict[str, Any]]", parsed)


def _parse_json(text: object, what: str) -> Any:
    try:
        return json.loads(cast("str", text))
    except (ValueError, TypeError, RecursionError):
        raise InvalidRequest(f"The {what} in version 0 of the log is not JSON.") from None


def _parse_domain(action: Mapping[str, Any]) -> Any:
    """Its configuration: JSON for the domains that the catalog shows, any text for those of users."""
    text = action.get("configuration")
    try:
        configuration = json.loads(cast("str", text))
    except (ValueError, TypeError, RecursionError):
        if action.get("domain") in _SHOWN_DOMAINS:
            raise InvalidRequest(f"The domain {action.get('domain')} in version 0 of the log is not JSON.") from None
        return text
    check_nesting(configuration, f"The domain {action.get('domain')} in version 0 of the log")
    return _without_name(configuration)


def _without_name(configuration: Any) -> Any:
    """The stock client repeats the domain's name inside its configuration, and leaves it out of its requests."""
    if not isinstance(configuration, dict):
        return configuration
    return {k: v for k, v in cast("dict[str, Any]", configuration).items() if k != "domainName"}


def _first_commit(actions: Mapping[str, Mapping[str, Any]], domains: Mapping[str, Any]) -> FirstCommit:
    info, protocol, metadata = actions["commitInfo"], actions["protocol"], actions["metaData"]
    try:
        return FirstCommit(
            columns=parse_log_schema(_parse_json(metadata["schemaString"], "schema")),
            partition_columns=tuple(str(name) for name in metadata.get("partitionColumns") or ()),
            protocol=Protocol(
                min_reader_version=int(protocol["minReaderVersion"]),
                min_writer_version=int(protocol["minWriterVersion"]),
                reader_features=frozenset(_strings(protocol.get("readerFeatures"))),
                writer_features=frozenset(_strings(protocol.get("writerFeatures"))),
            ),
            properties={str(k): str(v) for k, v in dict(metadata.get("configuration") or {}).items()},
            domains=domains,
            timestamp=int(info["inCommitTimestamp"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as missing:
        raise InvalidRequest(f"Version 0 in the log is not sound: {missing} is missing or misshapen.") from None


def _strings(features: Iterable[object] | None) -> list[str]:
    return [str(feature) for feature in features or ()]


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
