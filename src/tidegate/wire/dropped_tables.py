"""Dropped tables in Tidegate's own API. Moments are milliseconds since the epoch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tidegate.wire.unity import PageQuery


class DroppedTablesQuery(PageQuery, frozen=True):
    """Which part of the dropped tables."""


class DroppedTableInfo(Struct, frozen=True):
    """`purge_at`: when the retention ends. `files_removed` and `problem` are those of a table that is being purged."""

    table_id: str
    full_name: str
    table_type: str
    storage_location: str
    dropped_at: int
    dropped_by: str
    purge_at: int
    state: Literal["DROPPED", "PURGING"]
    files_removed: int
    problem: str | None


class DroppedTableList(Struct, frozen=True):
    tables: list[DroppedTableInfo]
    next_page_token: str | None


class RestoreTable(Struct, frozen=True):
    """`new_full_name`: where it shall be, if not where it was."""

    new_full_name: str | None = None


class RestoredTable(Struct, frozen=True):
    table_id: str
    full_name: str
    latest_version: int


class PurgeInfo(Struct, frozen=True):
    """`state` GONE: an external table, of which nothing but rows has to go."""

    table_id: str
    state: Literal["PURGING", "GONE"]
