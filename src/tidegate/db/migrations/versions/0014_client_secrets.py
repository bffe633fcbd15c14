"""Secrets of service accounts, and the short tokens that machines get for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("access_tokens", sa.Column("kind", sa.Text(), nullable=False, server_default="personal"))
    op.add_column("access_tokens", sa.Column("given_for", sa.Text(), nullable=True))
    op.create_index(op.f("ix_access_tokens_given_for"), "access_tokens", ["given_for"])


def downgrade() -> None:
    op.drop_index(op.f("ix_access_tokens_given_for"), "access_tokens")
    op.drop_column("access_tokens", "given_for")
    op.drop_column("access_tokens", "kind")
