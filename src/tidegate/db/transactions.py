"""Transactions that write, on a connection that is kept open: opening one for each costs as much as a small group.

One at a time; which thread runs it does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from tidegate.db.errors import is_lost, is_transient
from tidegate.db.hot_statements import HotStatements
from tidegate.db.known_tables import KnownTables
from tidegate.db.unit_of_work import SqlUnitOfWork
from tidegate.domain.errors import TidegateError
from tidegate.domain.ports import UnitOfWork

T = TypeVar("T")

ATTEMPTS_MAX = 5
"""How often a transaction that the database rolled back for another one's sake is run again."""


class Transactions:
    def __init__(self, engine: sa.Engine, known: KnownTables, hot: HotStatements) -> None:
        self._engine = engine
        self._known = known
        self._hot = hot
        self._connection: sa.Connection | None = None

    def run(self, work: Callable[[UnitOfWork], T]) -> T:
        """Returns when what was written is synced."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            worked = False
            try:
                connection = self._connection = self._connection or self._engine.connect()
                with connection.begin():
                    outcome = work(SqlUnitOfWork(connection, self._known, self._hot))
                    worked = True
                self._known.confirm()
                return outcome
            except BaseException as error:
                self._known.dismiss()
                lost = is_lost(error, self._connection)
                if not isinstance(error, TidegateError):
                    self.close()
                # A connection that is lost before the commit, as one that lay idle while the database was restarted,
                # has stored nothing; one that is lost during the commit may have.
                if attempt == ATTEMPTS_MAX or not (is_transient(error) or (lost and not worked)):
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        """At the end, and after an error whose cause may be the connection. The next transaction gets another one."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.invalidate()
            connection.close()
