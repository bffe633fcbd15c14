"""Row tracking: every row that is written gets an id that no row of the table ever had.

A file says where its ids begin, the domain `delta.rowTracking` how far they go:

    {"add":{"path":"a","baseRowId":10,"defaultRowCommitVersion":7,...}}       3 rows: 10, 11, 12
    {"domainMetadata":{"domain":"delta.rowTracking","configuration":"{\"rowIdHighWaterMark\":12}","removed":false}}

They depend on what was written before, so a commit that is tried again at a later version has others.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping

from tidegate.client.errors import InvalidCommit
from tidegate.client.log.errors import LogDamaged
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.proposals import ROW_TRACKING_DOMAIN, Action


def high_water_mark(domains: Mapping[str, str]) -> int:
    """The highest id so far, -1 before the first."""
    told = domains.get(ROW_TRACKING_DOMAIN)
    try:
        return -1 if told is None else int(json.loads(told)["rowIdHighWaterMark"])
    except (ValueError, KeyError, TypeError):
        raise LogDamaged(f"domain {ROW_TRACKING_DOMAIN}", f"it has no rowIdHighWaterMark ({told!r})") from None


def numbered(
    actions: Iterable[Action], *, version: int, highest: int, read: Snapshot, settled: Container[str] = ()
) -> list[Action]:
    """Actions as version `version`, with ids above `highest` for the files that are new, and how far they go.

    `read` is what the actions were made for: ids up to the highest there belong to rows that are only written anew.
    So do those of the files with `settled` paths.
    """
    kept = high_water_mark(read.domains)
    told: list[Action] = []
    last = highest
    for action in actions:
        add = action.get("add")
        if add is not None:
            base, at = add.get("baseRowId"), add.get("defaultRowCommitVersion")
            is_settled = add["path"] in settled
            if base is None or (base > kept and not is_settled):
                base, last = last + 1, last + _records(add)
            if at is None or (at == read.version + 1 and not is_settled):
                at = version
            told.append({"add": {**add, "baseRowId": base, "defaultRowCommitVersion": at}})
        elif not _is_mark(action):
            told.append(action)
    if last > highest:
        mark = json.dumps({"rowIdHighWaterMark": last}, separators=(",", ":"))
        told.append({"domainMetadata": {"domain": ROW_TRACKING_DOMAIN, "configuration": mark, "removed": False}})
    return told


def without_ids(actions: Iterable[Action]) -> list[Action]:
    """For a table that is about to give up its ids."""
    ids = {"baseRowId", "defaultRowCommitVersion"}
    return [
        {"add": {key: value for key, value in action["add"].items() if key not in ids}} if "add" in action else action
        for action in actions
        if not _is_mark(action)
    ]


def _is_mark(action: Action) -> bool:
    domain = action.get("domainMetadata")
    return domain is not None and domain.get("domain") == ROW_TRACKING_DOMAIN


def _records(add: Action) -> int:
    """With those that its deletion vector deletes: they have had ids too."""
    try:
        return int(json.loads(add["stats"])["numRecords"])
    except (ValueError, KeyError, TypeError):
        raise InvalidCommit(
            f"The table tracks rows, so the stats of every file must have its numRecords; {add.get('path')} has none."
        ) from None
