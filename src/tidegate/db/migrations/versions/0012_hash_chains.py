"""Who ratified what, chained by hashes. Tables that are there already begin their chains with their next commits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tables", sa.Column("chain", sa.Text()))
    for name in ("content_sha256", "principal", "chain", "verified_sha256"):
        op.add_column("commits", sa.Column(name, sa.Text()))
    op.create_table(
        "chain_starts",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("file_size", sa.BigInteger(), nullable=False),
        sa.Column("content_sha256", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("ratified_at", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=op.f("fk_chain_starts_table_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("table_id", name=op.f("pk_chain_starts")),
    )


def downgrade() -> None:
    op.drop_table("chain_starts")
    for name in ("verified_sha256", "chain", "principal", "content_sha256"):
        op.drop_column("commits", name)
    op.drop_column("tables", "chain")
