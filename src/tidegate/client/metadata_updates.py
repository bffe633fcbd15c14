"""Lockstep: what a commit changes of the metadata that the catalog keeps, as the updates that go along with it. Pure.

metaData          set-columns, set-partition-columns, set-table-comment, set-properties, remove-properties:
                  what differs from the metaData before
protocol          set-protocol, whole
domainMetadata    set-domain-metadata, remove-domain-metadata: of the domains that the catalog shows
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from tidegate.client.columns import to_wire
from tidegate.client.errors import InvalidCommit
from tidegate.client.proposals import Action, Draft

SHOWN_DOMAINS = ("delta.clustering", "delta.rowTracking")
"""What users keep in domains of their own is between them and the log."""
_DOMAIN_NAME = "domainName"
"""The stock client repeats the name inside the configuration, and the catalog does not want it there."""


def metadata_updates(draft: Draft, *, before: Action | None) -> list[dict[str, Any]]:
    """`before` is the metaData of the version before; needed if the draft has one."""
    updates = _from_domains(draft.domains)
    if draft.protocol is not None:
        updates.append({"action": "set-protocol", "protocol": _protocol(draft.protocol)})
    if draft.metadata is not None:
        if before is None:
            raise InvalidCommit(
                "The metaData of the version before is not in the log any more, so nobody can tell what this commit "
                "changes. Pass the one of your snapshot as metadata_before=."
            )
        updates += _from_metadata(before, draft.metadata)
    return updates


def _from_metadata(before: Action, after: Action) -> list[dict[str, Any]]:
    updates: list[dict[str, Any]] = []
    schema = _schema(after)
    if schema != _schema(before):
        updates.append({"action": "set-columns", "columns": to_wire(schema)})
    partitions = list(after.get("partitionColumns") or ())
    if partitions != list(before.get("partitionColumns") or ()):
        updates.append({"action": "set-partition-columns", "partition-columns": partitions})
    if after.get("description") != before.get("description"):
        updates.append({"action": "set-table-comment", "comment": after.get("description")})
    old, new = _configuration(before), _configuration(after)
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    if changed:
        updates.append({"action": "set-properties", "updates": changed})
    gone = [key for key in old if key not in new]
    if gone:
        updates.append({"action": "remove-properties", "removals": gone})
    return updates


def _from_domains(domains: Mapping[str, Action]) -> list[dict[str, Any]]:
    shown = {name: action for name, action in domains.items() if name in SHOWN_DOMAINS}
    removed = [name for name, action in shown.items() if action.get("removed")]
    kept = {name: _domain(name, action) for name, action in shown.items() if name not in removed}
    updates: list[dict[str, Any]] = []
    if kept:
        updates.append({"action": "set-domain-metadata", "updates": kept})
    if removed:
        updates.append({"action": "remove-domain-metadata", "domains": removed})
    return updates


def _domain(name: str, action: Action) -> dict[str, Any]:
    configuration = _parsed(action.get("configuration"), f"The configuration of the domain {name}")
    return {key: value for key, value in configuration.items() if key != _DOMAIN_NAME}


def _protocol(action: Action) -> dict[str, Any]:
    try:
        return {
            "min-reader-version": action["minReaderVersion"],
            "min-writer-version": action["minWriterVersion"],
            "reader-features": list(action.get("readerFeatures") or ()),
            "writer-features": list(action.get("writerFeatures") or ()),
        }
    except KeyError as missing:
        raise InvalidCommit(f"The protocol action has no {missing.args[0]}. State the protocol whole.") from None


def _schema(metadata: Action) -> dict[str, Any]:
    return _parsed(metadata.get("schemaString"), "The schemaString of the metaData")


def _configuration(metadata: Action) -> dict[str, str]:
    return {str(key): str(value) for key, value in dict(metadata.get("configuration") or {}).items()}


def _parsed(text: object, what: str) -> dict[str, Any]:
    try:
        parsed = json.loads(cast("str", text))
    except (ValueError, TypeError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise InvalidCommit(f"{what} is not the text of a JSON object.")
    return cast("dict[str, Any]", parsed)
