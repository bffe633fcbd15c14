"""Tidegate's own API: its JSON. Moments are milliseconds since the epoch."""

from __future__ import annotations

from msgspec import Struct

from tidegate.wire.unity import PageQuery


class TimelineQuery(PageQuery, frozen=True):
    """Which part of a table's timeline."""


class TimelineEntry(Struct, frozen=True):
    version: int
    timestamp: int | None
    proposed_at: int | None
    ratified_at: int | None
    published_at: int | None
    verified: bool
    file_name: str
    file_size: int | None


class Timeline(Struct, frozen=True):
    full_name: str
    table_id: str
    table_type: str
    latest_version: int | None
    verified_version: int | None
    conflicts: int
    replays: int
    since: int
    commits: list[TimelineEntry]
    next_page_token: str | None
