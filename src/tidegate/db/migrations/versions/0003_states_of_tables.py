"""A number for the state that a table's row is in, so that one look tells whether anything changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Tables that are there already may share a number: it is compared with earlier ones of the same table only.
    op.add_column("tables", sa.Column("state", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("tables", "state")
