"""What happened to tables, in order, and what is wrong with them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_events_sequence",
        "events",
        ["sequence"],
        unique=True,
        sqlite_where=sa.text("sequence IS NOT NULL"),
        postgresql_where=sa.text("sequence IS NOT NULL"),
    )
    op.create_index(
        "ix_events_unnumbered",
        "events",
        ["position"],
        unique=False,
        sqlite_where=sa.text("sequence IS NOT NULL"),
        postgresql_where=sa.text("sequence IS NULL"),
    )
    numbers = op.create_table(
        "event_numbers",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("one = 1", name=op.f("ck_event_numbers_only_one")),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_event_numbers")),
    )
    op.bulk_insert(numbers, [{"one": 1, "last": 0}])
    op.create_table(
        "alarms",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("raised_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=op.f("fk_alarms_table_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("table_id", "version", name=op.f("pk_alarms")),
    )


def downgrade() -> None:
    op.drop_table("alarms")
    op.drop_table("event_numbers")
    op.drop_table("events")
