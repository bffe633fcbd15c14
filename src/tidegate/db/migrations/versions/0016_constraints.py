"""Primary and foreign keys that are declared on tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "table_constraints",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "name", name=op.f("pk_table_constraints")),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name=op.f("fk_table_constraints_table_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["tables.id"], name=op.f("fk_table_constraints_parent_id"), ondelete="CASCADE"
        ),
    )
    op.create_index(op.f("ix_table_constraints_parent_id"), "table_constraints", ["parent_id"])


def downgrade() -> None:
    op.drop_table("table_constraints")
