"""Contents of inline commits in the database, until they are published; and which appends have happened."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from tidegate.db.schema import inline_commits, open_commits
from tidegate.domain.names import TableId, Version


class SqlInlineCommits:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def contents(self, id: TableId, *, first: Version, last: Version) -> Mapping[Version, bytes]:
        query = sa.select(inline_commits.c.version, inline_commits.c.content).where(
            inline_commits.c.table_id == id, inline_commits.c.version.between(first, last)
        )
        return {Version(version): content.encode() for version, content in self._connection.execute(query)}

    def forget_opened(self, *, ratified_before: int, limit: int) -> int:
        old = sa.select(open_commits.c.table_id, open_commits.c.txn_id).where(
            open_commits.c.ratified_at < ratified_before
        )
        key = sa.tuple_(open_commits.c.table_id, open_commits.c.txn_id)
        oldest = old.order_by(open_commits.c.ratified_at).limit(limit)
        return self._connection.execute(open_commits.delete().where(key.in_(oldest))).rowcount
