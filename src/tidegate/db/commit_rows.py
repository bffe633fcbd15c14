"""Rows of ratified commits."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tidegate.db.schema import commits
from tidegate.domain.commits import Commit, RatifiedCommit
from tidegate.domain.names import TableId

COMMIT = [column for column in commits.c if column.name not in {"proposed_at", "ratified_at"}]
"""What a commit is, without when it happened: loads and decisions have no use for that."""


def commit_of(row: sa.Row[Any]) -> Commit:
    return Commit(
        version=row.version,
        timestamp=row.timestamp,
        file_name=row.file_name,
        file_size=row.file_size,
        file_modified_at=row.file_modified_at,
        inline=row.inline == 1,
    )


def commit_row(table_id: TableId, ratified: RatifiedCommit) -> tuple[Any, ...]:
    """The values of COMMIT_COLUMNS."""
    commit = ratified.commit
    return (
        table_id,
        commit.version,
        commit.timestamp,
        commit.file_name,
        commit.file_size,
        commit.file_modified_at,
        ratified.proposed_at,
        ratified.ratified_at,
        int(commit.inline),
    )
