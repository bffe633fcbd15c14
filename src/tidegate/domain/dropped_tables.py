"""Dropped tables: the name is free at once, all the rest stays until the retention ends or somebody purges it.

    drop ──▶ dropped ──▶ purging ──▶ gone
               │ restore: live again, with its id, place, commits and grants

What is marked as purging has lost files already, perhaps: there is no way back.
"""

from __future__ import annotations

from tidegate.domain.errors import InvalidRequest, NoSuchTable
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, TableName
from tidegate.domain.removals import Removal
from tidegate.domain.tables import TableType


@frozen
class DroppedTable:
    id: TableId
    table: str
    """Its own name, without those of schema and catalog."""
    name: TableName | None
    """The full name under which it was dropped, with the present name of its schema if that is still there. None for
    a table that was dropped together with its schema before the catalog kept such names."""
    type: TableType
    location: str
    dropped_at: int
    dropped_by: str
    removal: Removal | None
    """Set once it is being purged."""

    @property
    def shown_name(self) -> str:
        return str(self.name or self.table)


def no_such_dropped_table(id: TableId) -> NoSuchTable:
    return NoSuchTable(f"with id {id} among the dropped ones", hint="Perhaps it was restored or purged.")


def restored_name(dropped: DroppedTable, wanted: TableName | None) -> TableName:
    """The name under which the table comes back, if it can."""
    if dropped.removal is not None:
        raise InvalidRequest(
            f"{dropped.shown_name} with id {dropped.id} is being purged and cannot be restored: "
            f"{dropped.removal.files_removed} of its files are gone already."
        )
    name = wanted or dropped.name
    if name is None:
        raise InvalidRequest(
            f"It is not known in which schema {dropped.table} with id {dropped.id} was. Say under which full name it "
            "shall be restored."
        )
    return name
