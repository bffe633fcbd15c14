"""Tables that this server knows already, so that a look at one number tells whether it must read them again.

Every change of a table's row draws a new `state`, a random number that never comes back. So what is kept here cannot
grow wrong, only useless: whoever finds the number in the row has the rest of the table without reading it, also when
another server, or another program, writes to the same database.

    row has state 17, known 17   ->   the table from memory
    row has state 42, known 17   ->   read it, keep it as 42

What the writer is about to commit is *expected*: loads that find its number in the row already may use it, but nothing
else may, because a transaction that fails never happened.
"""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeAlias

from tidegate.domain.names import TableId
from tidegate.domain.tables import Table

State: TypeAlias = int
InState: TypeAlias = tuple[State, Table]


def new_state() -> State:
    return random.getrandbits(63)


class KnownTables:
    """Safe to use from several threads. Bounded: beyond `entries_max`, tables and their unpublished commits counted
    together, those that were read or written longest ago are forgotten.
    """

    def __init__(self, *, entries_max: int) -> None:
        self._entries_max = entries_max
        self._entries = 0
        self._known: OrderedDict[TableId, InState] = OrderedDict()
        self._expected: Mapping[TableId, InState] = {}
        self._lock = threading.Lock()

    def get(self, id: TableId, state: State) -> Table | None:
        known = self._known.get(id)
        if known is not None and known[0] == state:
            return known[1]
        expected = self._expected.get(id)
        return expected[1] if expected is not None and expected[0] == state else None

    def newest(self, id: TableId) -> Table | None:
        """A state that the table was in for certain, though perhaps no longer is."""
        known = self._known.get(id)
        return None if known is None else known[1]

    def put(self, id: TableId, state: State, table: Table) -> None:
        """Keeps what was read, unless a later state is known already: a reader may be slower than the writer."""
        with self._lock:
            known = self._known.get(id)
            if known is None or known[1].latest <= table.latest:
                self._put(id, (state, table))

    def expect(self, changes: Mapping[TableId, InState]) -> None:
        self._expected = changes

    def confirm(self) -> None:
        """What was expected has been committed."""
        if self._expected:
            with self._lock:
                for id, in_state in self._expected.items():
                    self._put(id, in_state)
            self._expected = {}

    def dismiss(self) -> None:
        """What was expected may not have happened."""
        self._expected = {}

    def _put(self, id: TableId, in_state: InState) -> None:
        before = self._known.pop(id, None)
        self._entries += _size(in_state) - (0 if before is None else _size(before))
        self._known[id] = in_state
        while self._entries > self._entries_max and len(self._known) > 1:
            _, oldest = self._known.popitem(last=False)
            self._entries -= _size(oldest)


def _size(in_state: InState) -> int:
    return 1 + len(in_state[1].unpublished)
