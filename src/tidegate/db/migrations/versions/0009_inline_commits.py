"""Commits that come with their content, and appends that leave their version open."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("commits", sa.Column("inline", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("tables", sa.Column("row_mark_version", sa.BigInteger(), nullable=True))
    op.add_column("tables", sa.Column("row_mark", sa.BigInteger(), nullable=True))
    op.create_table(
        "inline_commits",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name=op.f("fk_inline_commits_table_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("table_id", "version", name=op.f("pk_inline_commits")),
    )
    op.create_table(
        "open_commits",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("txn_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("ratified_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=op.f("fk_open_commits_table_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("table_id", "txn_id", name=op.f("pk_open_commits")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_open_commits_ratified_at"), "open_commits", ["ratified_at"])


def downgrade() -> None:
    op.drop_table("open_commits")
    op.drop_table("inline_commits")
    op.drop_column("tables", "row_mark")
    op.drop_column("tables", "row_mark_version")
    op.drop_column("commits", "inline")
