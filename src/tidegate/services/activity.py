"""Which tables this server works for, counted from one heartbeat to the next.

Bounded: beyond `tables_max`, tables that come later are counted from the next heartbeat on.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.domain.names import TableId, TableName
from tidegate.domain.servers import TableActivity, hottest
from tidegate.domain.tables import Table


@dataclass(slots=True)
class _Counts:
    name: TableName
    commits: int = 0
    loads: int = 0


class TableCounts:
    """For one event loop."""

    def __init__(self, *, tables_max: int) -> None:
        self._tables_max = tables_max
        self._counts: dict[TableId, _Counts] = {}

    def count_commit(self, table: Table) -> None:
        counts = self._counts.get(table.id) or self._add(table)
        counts.commits += 1

    def count_load(self, table: Table) -> None:
        counts = self._counts.get(table.id) or self._add(table)
        counts.loads += 1

    def take(self, seconds: float) -> tuple[TableActivity, ...]:
        """The hottest of the `seconds` since the last time; from here on is counted anew."""
        taken, self._counts = self._counts, {}
        return hottest(
            TableActivity(str(counts.name), counts.commits / seconds, counts.loads / seconds)
            for counts in taken.values()
        )

    def _add(self, table: Table) -> _Counts:
        added = _Counts(table.name)
        if len(self._counts) < self._tables_max:
            self._counts[table.id] = added
        return added
