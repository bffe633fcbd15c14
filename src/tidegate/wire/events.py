"""Events in Tidegate's own API: their JSON. Moments are milliseconds since the epoch."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from tidegate.wire.delta import Int32

Sequence = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class EventsQuery(Struct, frozen=True):
    """Which events. `kind` may name several, separated by commas."""

    after: Sequence | None = None
    max_results: Int32 | None = None
    table: str | None = None
    kind: str | None = None
    wait_seconds: Annotated[int, Meta(ge=0, le=60)] = 0


class StreamQuery(Struct, frozen=True):
    """Which events, and how long the stream lasts at most. A header Last-Event-ID comes before `after`."""

    after: Sequence | None = None
    table: str | None = None
    kind: str | None = None
    seconds_max: Annotated[int, Meta(ge=1, le=86_400)] = 3600


class Event(Struct, frozen=True):
    sequence: int
    kind: str
    table_id: str
    table: str
    at: int
    by: str
    version: int | None
    data: dict[str, Any]


class Events(Struct, frozen=True):
    """`next_after` is for the next question, also when there are no events: it counts what a filter passed over."""

    events: list[Event]
    next_after: int
    last: int
