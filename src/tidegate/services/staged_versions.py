"""Which commits of which tables have files."""

from __future__ import annotations

from collections import OrderedDict

from tidegate.domain.commits import Commit
from tidegate.domain.names import TableId, Version
from tidegate.domain.tables import Table


class StagedVersions:
    """Up to which version the unpublished commits of tables are known to have files. For one event loop; beyond
    `tables_max` the tables that were asked for longest ago are forgotten.
    """

    def __init__(self, *, tables_max: int) -> None:
        self._tables_max = tables_max
        self._known: OrderedDict[TableId, tuple[Table, Version]] = OrderedDict()

    def cover(self, table: Table) -> bool:
        """Asked with every load, so next to free for a state that was asked for before."""
        known = self._known.get(table.id)
        if known is not None and known[0] is table:
            return True
        if self.missing(table):
            return False
        self.remember(table)
        return True

    def missing(self, table: Table) -> list[Commit]:
        known = self._known.get(table.id)
        up_to = table.published if known is None else known[1]
        return [one for one in table.unpublished_after(max(up_to, table.published)) if one.inline]

    def remember(self, table: Table) -> None:
        self._known.pop(table.id, None)
        self._known[table.id] = (table, table.latest)
        if len(self._known) > self._tables_max:
            self._known.popitem(last=False)
