"""The actions of one commit file that speak of the table as a whole: protocol, metadata, domains.

{"commitInfo":{...}}        read: its in-commit timestamp
{"protocol":{...}}          read
{"metaData":{...}}          read
{"domainMetadata":{...}}    read
{"add":{...}}               passed over, as all that speak of files: there may be very many of them
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from tidegate.domain.columns import StructType, log_schema, parse_log_schema
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.json_values import check_nesting, check_texts
from tidegate.domain.protocol import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, Protocol

SHOWN_DOMAINS = (CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN)
"""Those whose content the catalog shows. What users keep in theirs is their own."""

READ_ACTIONS = ("commitInfo", "protocol", "metaData", "domainMetadata")


@frozen
class LogMetadata:
    columns: StructType
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    description: str | None


@frozen
class TableActions:
    """What is None is not in the file."""

    protocol: Protocol | None
    metadata: LogMetadata | None
    domains: Mapping[str, Any]
    removed_domains: tuple[str, ...]
    commit_info: Mapping[str, Any] | None

    @property
    def changes_domains(self) -> bool:
        """Of those that the catalog shows."""
        return any(domain in self.domains or domain in self.removed_domains for domain in SHOWN_DOMAINS)


NOTHING_SAID = TableActions(protocol=None, metadata=None, domains={}, removed_domains=(), commit_info=None)


def parse_table_actions(content: bytes, *, what: str) -> TableActions:
    """`what` names the file in messages."""
    lines = enumerate(map(bytes.strip, content.split(b"\n")), start=1)
    parsed = (_parse_line(line, number, what) for number, line in lines if line and not _speaks_of_files(line))
    return collect_actions((action for actions in parsed for action in actions.items()), what=what)


def collect_actions(actions: Iterable[tuple[str, Mapping[str, Any]]], *, what: str) -> TableActions:
    """Of two actions of one kind the later one counts."""
    last: dict[str, Mapping[str, Any]] = {}
    domains: dict[str, Any] = {}
    removed: set[str] = set()
    for name, action in actions:
        if name == "domainMetadata":
            domain = str(action.get("domain"))
            domains.pop(domain, None)
            removed.discard(domain)
            if action.get("removed"):
                removed.add(domain)
            else:
                domains[domain] = _parse_domain(action, what)
        elif name in READ_ACTIONS:
            last[name] = action
    return TableActions(
        protocol=_parse_protocol(last.get("protocol"), what),
        metadata=_parse_metadata(last.get("metaData"), what),
        domains=domains,
        removed_domains=tuple(sorted(removed)),
        commit_info=last.get("commitInfo"),
    )


def check_storable(actions: TableActions, *, what: str) -> None:
    """For what is stored although no request has said it: requests are checked for such texts when they are read."""
    if actions.metadata is not None:
        metadata = actions.metadata
        check_texts(log_schema(metadata.columns), f"The schema in {what}")
        check_texts([*metadata.partition_columns, metadata.description, dict(metadata.properties)], what.capitalize())
    if actions.protocol is not None:
        check_texts(sorted(actions.protocol.features()), f"The protocol in {what}")
    check_texts(dict(actions.domains), f"The domain metadata in {what}")


def without_name(configuration: Any) -> Any:
    """The stock client repeats the domain's name inside its configuration, and leaves it out of its requests."""
    if not isinstance(configuration, dict):
        return configuration
    return {k: v for k, v in cast("dict[str, Any]", configuration).items() if k != "domainName"}


def unsound(what: str, missing: object) -> InvalidRequest:
    return InvalidRequest(f"{what[0].upper()}{what[1:]} is not sound: {missing} is missing or misshapen.")


def _speaks_of_files(line: bytes) -> bool:
    """Told by its looks, because there may be very many of them; a line that was cut off is read, and refused."""
    whole = line.startswith(b"{") and line.endswith(b"}")
    return whole and not any(f'"{name}"'.encode() in line[:64] for name in READ_ACTIONS)


def _parse_line(line: bytes, number: int, what: str) -> dict[str, dict[str, Any]]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"Line {number} of {what} is not JSON. Write one action a line.") from None
    check_nesting(parsed, f"Line {number} of {what}")
    if not isinstance(parsed, dict) or not all(isinstance(v, dict) for v in cast("dict[str, Any]", parsed).values()):
        raise InvalidRequest(f"Line {number} of {what} is not a Delta action.")
    return cast("dict[str, dict[str, Any]]", parsed)


def _parse_domain(action: Mapping[str, Any], what: str) -> Any:
    """Its configuration: a JSON object for the domains that the catalog shows, any text for those of users."""
    text, shown = action.get("configuration"), action.get("domain") in SHOWN_DOMAINS
    try:
        configuration = json.loads(cast("str", text))
    except (ValueError, TypeError, RecursionError):
        if shown:
            raise InvalidRequest(f"The domain {action.get('domain')} in {what} is not JSON.") from None
        return text
    check_nesting(configuration, f"The domain {action.get('domain')} in {what}")
    if shown and not isinstance(configuration, dict):
        raise InvalidRequest(f"The domain {action.get('domain')} in {what} is not a JSON object.")
    return without_name(configuration)


def _parse_protocol(action: Mapping[str, Any] | None, what: str) -> Protocol | None:
    if action is None:
        return None
    try:
        return Protocol(
            min_reader_version=int(action["minReaderVersion"]),
            min_writer_version=int(action["minWriterVersion"]),
            reader_features=frozenset(_strings(action.get("readerFeatures"))),
            writer_features=frozenset(_strings(action.get("writerFeatures"))),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as missing:
        raise unsound(what, missing) from None


def _parse_metadata(action: Mapping[str, Any] | None, what: str) -> LogMetadata | None:
    if action is None:
        return None
    try:
        description = action.get("description")
        return LogMetadata(
            columns=parse_log_schema(_parse_schema(action["schemaString"], what)),
            partition_columns=tuple(str(name) for name in action.get("partitionColumns") or ()),
            properties={str(k): str(v) for k, v in dict(action.get("configuration") or {}).items()},
            description=None if description is None else str(description),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as missing:
        raise unsound(what, missing) from None


def _parse_schema(text: object, what: str) -> Any:
    try:
        return json.loads(cast("str", text))
    except (ValueError, TypeError, RecursionError):
        raise InvalidRequest(f"The schema in {what} is not JSON.") from None


def _strings(features: Iterable[object] | None) -> list[str]:
    return [str(feature) for feature in features or ()]
