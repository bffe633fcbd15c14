"""Dropped tables: the conversations about them. They are called by their ids, since a name may be dropped often."""

from __future__ import annotations

from tidegate.client.address import TIDEGATE, segment
from tidegate.client.conversations import Conversation, decoded, request
from tidegate.client.paging import list_all
from tidegate.client.wire import DroppedTable, DroppedTablePage, Purge, RestoredTable

_ALL = f"{TIDEGATE}/dropped-tables"


def list_dropped_tables() -> Conversation[list[DroppedTable]]:
    """The last dropped first."""
    return list_all(_ALL, DroppedTablePage, lambda page: page.tables)


def restore_table(table_id: str, *, new_full_name: str | None) -> Conversation[RestoredTable]:
    body = {"new_full_name": new_full_name}
    return decoded((yield from request("POST", f"{_ALL}/{segment(table_id)}/restore", body=body)), RestoredTable)


def purge_table(table_id: str) -> Conversation[Purge]:
    return decoded((yield from request("DELETE", f"{_ALL}/{segment(table_id)}")), Purge)
