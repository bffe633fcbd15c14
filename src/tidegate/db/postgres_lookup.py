"""Where names lead, asked of PostgreSQL on the event loop.

Names that are asked for while a round trip is under way are looked up together by the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from tidegate.db.errors import unavailable
from tidegate.db.lookups import Found
from tidegate.db.postgres_session import ConnectionLost, NoAnswer, PostgresSession
from tidegate.db.postgres_statements import FIND, find_parameters, read_found
from tidegate.db.together import Together
from tidegate.domain.names import TableName

BATCH_MAX = 500


class PostgresLookup:
    """Asks on the event loop too: the socket is watched there, and no thread is woken for an answer."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session
        self._asked = Together(self._find_all, batch_max=BATCH_MAX)

    async def find(self, name: TableName) -> Found:
        return await self._asked.ask(name)

    def close(self) -> None:
        self._session.close()

    async def _find_all(self, names: Sequence[TableName]) -> list[Found | Exception]:
        question = (FIND, find_parameters(names))
        try:
            try:
                (rows,) = await self._session.run([question])
            except NoAnswer:
                raise
            except ConnectionLost:
                # Perhaps while it lay idle, as in a restart of the database: a new one may do.
                (rows,) = await self._session.run([question])
        except psycopg.Error as error:
            raise unavailable(error) from error
        found = {position: (id, state) for position, id, state in map(read_found, rows)}
        return [found.get(position) for position in range(1, len(names) + 1)]
