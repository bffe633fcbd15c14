"""Rows of ratified commits."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tidegate.db.schema import commits
from tidegate.domain.commits import Commit
from tidegate.domain.ports import Won

_TOLD = {"proposed_at", "ratified_at", "principal", "chain", "verified_sha256"}
COMMIT = [column for column in commits.c if column.name not in _TOLD]
"""What a commit is, without when it happened and by whom: loads and decisions have no use for that."""


def commit_of(row: sa.Row[Any]) -> Commit:
    return Commit(
        version=row.version,
        timestamp=row.timestamp,
        file_name=row.file_name,
        file_size=row.file_size,
        file_modified_at=row.file_modified_at,
        inline=row.inline == 1,
        content_sha256=row.content_sha256,
    )


def commit_row(won: Won) -> tuple[Any, ...]:
    """The values of COMMIT_COLUMNS."""
    ratified, commit = won.ratified, won.ratified.commit
    return (
        won.table_id,
        commit.version,
        commit.timestamp,
        commit.file_name,
        commit.file_size,
        commit.file_modified_at,
        ratified.proposed_at,
        ratified.ratified_at,
        int(commit.inline),
        commit.content_sha256,
        won.principal,
        won.chain,
    )
