"""What writers report of their commits, and who was granted what."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

plain = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "commit_reports",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("reported_at", sa.BigInteger(), nullable=False),
        sa.Column("reported_by", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name=op.f("fk_commit_reports_table_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("table_id", "version", name=op.f("pk_commit_reports")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "grants",
        sa.Column("securable_id", sa.Text(), nullable=False),
        sa.Column("principal", plain, nullable=False),
        sa.Column("privilege", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("securable_id", "principal", "privilege", name=op.f("pk_grants")),
    )


def downgrade() -> None:
    op.drop_table("grants")
    op.drop_table("commit_reports")
