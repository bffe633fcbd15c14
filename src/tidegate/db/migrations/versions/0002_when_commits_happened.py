"""When a commit was proposed, and when it was ratified."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Null for the commits that are there already: nobody wrote down when they happened.
    op.add_column("commits", sa.Column("proposed_at", sa.BigInteger(), nullable=True))
    op.add_column("commits", sa.Column("ratified_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("commits", "ratified_at")
    op.drop_column("commits", "proposed_at")
