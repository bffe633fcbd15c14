"""How often a table's proposals met a conflict or were sent again, as counted by this server.

In memory, because a count must not cost a commit anything: it starts anew with the server, and servers that share a
database count apart. Bounded: beyond `tables_max` the table that was counted least recently is forgotten, and from then
on no new count claims to reach further back than that.

    started at 0, tables_max 2; conflicts on A at 1, on B at 2, on C at 3   ->   A is forgotten
    of(B) = 1 since 0,  of(A) = 0 since 3
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace

from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId
from tidegate.domain.ports import Clock


@frozen
class Counts:
    conflicts: int
    replays: int
    since: int
    """From this moment on nothing is missing."""


class OutcomeCounts:
    """Safe to use from several threads."""

    def __init__(self, clock: Clock, *, tables_max: int) -> None:
        self._clock = clock
        self._tables_max = tables_max
        self._complete_since = clock()
        self._counts: OrderedDict[TableId, Counts] = OrderedDict()
        self._lock = threading.Lock()

    def count_conflict(self, id: TableId) -> None:
        with self._lock:
            counts = self._of(id)
            self._keep(id, replace(counts, conflicts=counts.conflicts + 1))

    def count_replay(self, id: TableId) -> None:
        with self._lock:
            counts = self._of(id)
            self._keep(id, replace(counts, replays=counts.replays + 1))

    def of(self, id: TableId) -> Counts:
        with self._lock:
            return self._of(id)

    def _of(self, id: TableId) -> Counts:
        return self._counts.get(id) or Counts(conflicts=0, replays=0, since=self._complete_since)

    def _keep(self, id: TableId, counts: Counts) -> None:
        self._counts[id] = counts
        self._counts.move_to_end(id)
        if len(self._counts) > self._tables_max:
            self._counts.popitem(last=False)
            self._complete_since = self._clock()
