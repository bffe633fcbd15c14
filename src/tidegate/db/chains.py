"""The hash chains of tables in the database: a link in the row of each commit, and one for what a table began with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tidegate.db.commit_rows import commit_of
from tidegate.db.schema import chain_starts, commits
from tidegate.domain.chain import Link
from tidegate.domain.commits import Commit, published_name
from tidegate.domain.names import TableId, Version


class SqlChains:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def begin(self, id: TableId, link: Link) -> None:
        row: dict[str, Any] = {
            "table_id": id,
            "version": link.commit.version,
            "timestamp": link.commit.timestamp,
            "file_size": link.commit.file_size,
            "content_sha256": link.commit.content_sha256,
            "principal": link.principal,
            "ratified_at": link.ratified_at,
            "chain": link.chain,
        }
        self._connection.execute(chain_starts.insert().values(**row))

    def first(self, id: TableId) -> Link | None:
        row = self._connection.execute(sa.select(chain_starts).where(chain_starts.c.table_id == id)).first()
        if row is None:
            return None
        version = Version(row.version)
        name, digest = published_name(version), row.content_sha256
        commit = Commit(version, row.timestamp, name, row.file_size, 0, content_sha256=digest)
        return Link(commit, row.principal, row.ratified_at, row.chain)

    def links(self, id: TableId, *, after: Version, limit: int) -> Sequence[Link]:
        query = sa.select(commits).where(commits.c.table_id == id, commits.c.version > after)
        rows = self._connection.execute(query.order_by(commits.c.version).limit(limit))
        return [Link(commit_of(row), row.principal, row.ratified_at, row.chain, row.verified_sha256) for row in rows]
