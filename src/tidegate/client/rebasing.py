"""A commit that is tried again at a later version: what stays as it was made, and what changes with the version. Pure.

made for version 7     {"add":{"path":"a",...}}                          3 rows
as version 8           {"add":{"path":"a","baseRowId":10,"defaultRowCommitVersion":8,...}}
as version 9           {"add":{"path":"a","baseRowId":14,"defaultRowCommitVersion":9,...}}      8 brought 4 rows

It is always made of what was given first, never of an earlier attempt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from tidegate.client.allowed_changes import ROW_TRACKING
from tidegate.client.log.actions import Add, Metadata, Protocol
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.log.widening import TYPE_CHANGES
from tidegate.client.proposals import ROW_TRACKING_DOMAIN, Action
from tidegate.client.row_ids import high_water_mark, numbered, without_ids
from tidegate.client.winners import Winner
from tidegate.client.writable import is_set, knows_row_ids, tracks_rows

_PRESERVED = "delta.rowTracking.preserved"
_TABLE_VERSION = "tableVersion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The table that the next attempt builds on, as far as a commit depends on it."""

    version: int
    timestamp: int | None
    protocol: Protocol
    metadata: Metadata
    highest_row_id: int
    backfilled: Mapping[str, Add]
    """By path the files that got ids for their rows since the commit was made."""
    row_tracking_began: bool
    """Since the commit was made. It could not know of ids that its rows might have had."""


def ground_of(snapshot: Snapshot) -> Ground:
    return Ground(
        version=snapshot.version,
        timestamp=snapshot.timestamp,
        protocol=snapshot.protocol,
        metadata=snapshot.metadata,
        highest_row_id=high_water_mark(snapshot.domains) if knows_row_ids(snapshot.protocol) else -1,
        backfilled={},
        row_tracking_began=False,
    )


def after(ground: Ground, winner: Winner) -> Ground:
    """The ground with one more version."""
    metadata = winner.metadata or ground.metadata
    began = is_set(metadata.configuration, ROW_TRACKING) and not is_set(ground.metadata.configuration, ROW_TRACKING)
    mark = winner.domains.get(ROW_TRACKING_DOMAIN)
    highest = ground.highest_row_id
    if mark is not None and not mark.removed:
        highest = high_water_mark({ROW_TRACKING_DOMAIN: mark.configuration})
    backfilled = {file.path: file for file in winner.adds} if winner.is_backfill else {}
    return replace(
        ground,
        version=winner.version,
        timestamp=winner.info.in_commit_timestamp or ground.timestamp,
        protocol=winner.protocol or ground.protocol,
        metadata=metadata,
        highest_row_id=highest,
        backfilled={**ground.backfilled, **backfilled} if backfilled else ground.backfilled,
        row_tracking_began=ground.row_tracking_began or began,
    )


def left_open(actions: Iterable[Action], *, made_for: Snapshot, ground: Ground) -> list[Action]:
    """The actions as some version after the ground's. The ids of rows depend on which one, and are left open too."""
    return [_moved(action, made_for, ground) for action in actions]


def rebased(actions: Iterable[Action], *, made_for: Snapshot, ground: Ground) -> list[Action]:
    """The actions as the version after the ground's."""
    version = ground.version + 1
    moved = left_open(actions, made_for=made_for, ground=ground)
    if tracks_rows(ground.protocol, ground.metadata.configuration):
        highest, settled = ground.highest_row_id, ground.backfilled
        return numbered(moved, version=version, highest=highest, read=made_for, settled=settled)
    return without_ids(moved) if knows_row_ids(ground.protocol) else moved


def _moved(action: Action, made_for: Snapshot, ground: Ground) -> Action:
    ((kind, value),) = action.items()
    match kind:
        case "commitInfo":
            return {kind: _info(value, ground, is_later=ground.version > made_for.version)}
        case "add" | "remove" if value["path"] in ground.backfilled:
            return {kind: _with_ids_of(ground.backfilled[value["path"]], value)}
        case "metaData" if _TABLE_VERSION in value["schemaString"]:
            schema = _with_versions(json.loads(value["schemaString"]), made_for.version + 1, ground.version + 1)
            return {kind: {**value, "schemaString": json.dumps(schema, separators=(",", ":"), ensure_ascii=False)}}
        case _:
            return action


def _info(info: Action, ground: Ground, *, is_later: bool) -> Action:
    given, before = info.get("inCommitTimestamp"), ground.timestamp
    if is_later and type(given) is int and (before is None or given <= before):
        # It need not be later than that of the version before any more: the client sets another one.
        info = {key: value for key, value in info.items() if key != "inCommitTimestamp"}
    if not ground.row_tracking_began:
        return info
    return {**info, "tags": {**(info.get("tags") or {}), _PRESERVED: "false"}}


def _with_ids_of(file: Add, value: Action) -> Action:
    """The ids that were given to the rows of a file go with it."""
    ids = {"baseRowId": file.base_row_id, "defaultRowCommitVersion": file.default_row_commit_version}
    kept = {key: told for key, told in value.items() if key not in ids}
    return kept | {key: told for key, told in ids.items() if told is not None}


def _with_versions(node: Any, first: int, version: int) -> Any:
    """A schema in which changes of types that this commit makes are those of another version.

    Only the preview of type widening noted versions.
    """
    if isinstance(node, list):
        return [_with_versions(one, first, version) for one in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    told = {key: _with_versions(value, first, version) for key, value in cast("dict[str, Any]", node).items()}
    for change in told.get(TYPE_CHANGES, ()):
        if change.get(_TABLE_VERSION) == first:
            change[_TABLE_VERSION] = version
    return told
