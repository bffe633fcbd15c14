"""What the end of a table needs from the database: dropped tables, and folders that have to go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidegate.domain.dropped_tables import DroppedTable
from tidegate.domain.names import TableId, TableName
from tidegate.domain.namespaces import Schema
from tidegate.domain.privileges import Principal
from tidegate.domain.removals import Removal
from tidegate.domain.rights import Names


class DroppedTables(Protocol):
    def page(
        self, *, before: tuple[int, TableId] | None, limit: int, only_for: Names | None = None
    ) -> Sequence[DroppedTable]:
        """The last dropped first; with `before` those that follow one that was dropped then and has this id; with
        `only_for` those that somebody of these names may manage.
        """
        ...

    def find(self, id: TableId) -> DroppedTable | None: ...
    def lock(self, id: TableId) -> DroppedTable:
        """Nobody else restores or purges it until the transaction ends."""
        ...

    def find_locked(self, id: TableId) -> DroppedTable | None:
        """As `lock`; None if there is none."""
        ...

    def overlaps(self, location: str) -> bool:
        """Whether one lies at, above or below this place."""
        ...

    def overdue(self, *, dropped_before: int, limit: int) -> Sequence[DroppedTable]:
        """The oldest of those that nobody has begun to purge."""
        ...

    def restore(self, id: TableId, to: TableName, schema: Schema, *, by: Principal, now: int) -> None: ...

    def forget_commits(self, id: TableId, *, limit: int) -> int:
        """Of a table that is being purged, the oldest: how many."""
        ...

    def forget(self, id: TableId) -> None:
        """Its rows, and the grants on it. Its events stay."""
        ...


class Removals(Protocol):
    def lock_places(self) -> None:
        """Nobody else gives a place to a table, or begins to empty one, until the transaction ends."""
        ...

    def add(self, removal: Removal) -> bool:
        """False if there is one already."""
        ...

    def get(self, id: TableId) -> Removal | None: ...
    def due(self, *, now: int, limit: int) -> Sequence[Removal]: ...
    def count(self, *, failing: bool = False) -> int: ...
    def change(self, removal: Removal) -> None: ...

    def remove(self, removal: Removal) -> bool:
        """False if somebody else has done so."""
        ...

    def find_overlapping(self, location: str) -> Removal | None: ...

    def find_neighbour(self, removal: Removal) -> str | None:
        """A table at, above or below the place, staging tables and dropped ones included, that is not going too."""
        ...
