"""Row tracking: every row that is written gets an id that no row of the table ever had.

A file says where its ids begin, the domain `delta.rowTracking` how far they go:

    {"add":{"path":"a","baseRowId":10,"defaultRowCommitVersion":7,...}}       3 rows: 10, 11, 12
    {"domainMetadata":{"domain":"delta.rowTracking","configuration":"{\"rowIdHighWaterMark\":12}","removed":false}}

They depend on what was written before, so a commit that is tried again at a later version has others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.client.log.errors import LogDamaged

DOMAIN = "delta.rowTracking"


def high_water_mark(domains: Mapping[str, str]) -> int:
    """The highest id so far, -1 before the first."""
    told = domains.get(DOMAIN)
    try:
        return -1 if told is None else int(json.loads(told)["rowIdHighWaterMark"])
    except (ValueError, KeyError, TypeError):
        raise LogDamaged(f"domain {DOMAIN}", f"it has no rowIdHighWaterMark ({told!r})") from None


def numbered(
    adds: Sequence[dict[str, Any]], records: Sequence[int], *, version: int, highest: int
) -> list[dict[str, Any]]:
    """The add actions with their ids, and the domain if there are new ones."""
    actions: list[dict[str, Any]] = []
    first = highest + 1
    for add, count in zip(adds, records, strict=True):
        actions.append({"add": {**add["add"], "baseRowId": first, "defaultRowCommitVersion": version}})
        first += count
    if first > highest + 1:
        mark = json.dumps({"rowIdHighWaterMark": first - 1}, separators=(",", ":"))
        actions.append({"domainMetadata": {"domain": DOMAIN, "configuration": mark, "removed": False}})
    return actions
