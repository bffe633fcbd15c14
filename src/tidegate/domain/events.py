"""Events: what happened to tables, in an order that everybody sees alike.

An event is written in the transaction of its cause, so there is none without a cause and no cause without its event.
Its sequence number is given once nothing can come before it any more: whoever has read up to a number has seen every
event up to it, and will never see another.

    create t -> 1 table.created    commit 1 -> 2 table.committed    "1 is published", verified -> 3 table.published
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import field
from enum import StrEnum
from typing import Any, NewType

from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, Version
from tidegate.domain.tables import Table, TableMetadata

Sequence = NewType("Sequence", int)
"""Counts from 1. Zero stands before the first event."""

SYSTEM = "tidegate"
"""Who did what the catalog did by itself."""


class EventKind(StrEnum):
    CREATED = "table.created"
    COMMITTED = "table.committed"
    METADATA_CHANGED = "table.metadata_changed"
    PUBLISHED = "table.published"
    RENAMED = "table.renamed"
    DROPPED = "table.dropped"
    RESTORED = "table.restored"
    PURGED = "table.purged"
    RELEASED = "table.released"
    ALARM = "table.alarm"


@frozen
class Event:
    kind: EventKind
    table_id: TableId
    table: str
    """Its full name at that moment."""
    at: int
    by: str
    version: Version | None = None
    """Committed: this version. Published: every version up to this one. Metadata: the version that changed it."""
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


@frozen
class NumberedEvent:
    sequence: Sequence
    event: Event


def table_event(
    kind: EventKind, table: Table, *, at: int, by: str, version: Version | None = None, **data: Any
) -> Event:
    return Event(kind, table.id, str(table.name), at, by, version, data)


def update_events(before: Table, after: Table, *, at: int, by: str) -> list[Event]:
    """What an update of a table tells: at most a commit, a change of metadata, and how far it is published."""
    events: list[Event] = []
    name = str(after.name)
    if after.latest != before.latest:
        events.append(Event(EventKind.COMMITTED, after.id, name, at, by, after.latest))
    if after.revision != before.revision:
        version = after.latest if after.latest != before.latest else None
        changed = {"changed": changed_parts(before.metadata, after.metadata)}
        events.append(Event(EventKind.METADATA_CHANGED, after.id, name, at, by, version, changed))
    if after.published != before.published:
        events.append(Event(EventKind.PUBLISHED, after.id, name, at, by, after.published))
    return events


_PARTS = ("columns", "partition_columns", "protocol", "properties", "domains", "comment", "catalog_properties")


def changed_parts(before: TableMetadata, after: TableMetadata) -> list[str]:
    return [part for part in _PARTS if getattr(before, part) != getattr(after, part)]


UNSEEN_KEPT_TIMES = 4
"""Events that a subscription has not got yet are kept for so many times as long as others, and no longer."""


def forgettable(
    oldest: Several[tuple[Sequence, int]], *, now: int, kept_ms: int, seen: Sequence | None
) -> Sequence | None:
    """Up to which of the oldest events, given with their moments, all may be forgotten; None: nothing may be.

    Only ever from the front, so that what is left has no gaps. `seen` is what every subscription has got.

        moments   1  2  9  4  ...     now 5, kept for 2     ->   2, and 9 goes once 4 is old: its clock was wrong
    """
    up_to: Sequence | None = None
    for sequence, at in oldest:
        times = 1 if seen is None or sequence <= seen else UNSEEN_KEPT_TIMES
        if at < now - kept_ms * times:
            up_to = sequence
        elif at <= now:
            break
    return up_to
