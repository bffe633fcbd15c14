"""Tables that are taken over and given back, and where tables may be taken over from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("tables", sa.Column("releasing", sa.BigInteger(), nullable=True))
    op.create_table(
        "ownership_promises",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("change", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("location", _PLAIN, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("timestamp", sa.BigInteger(), nullable=True),
        sa.Column("content", sa.Text(), nullable=True),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("kept", sa.Text(), nullable=False),
        sa.Column("begun_at", sa.BigInteger(), nullable=False),
        sa.Column("begun_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", name=op.f("pk_ownership_promises")),
        sa.UniqueConstraint("location", name=op.f("uq_ownership_promises_location")),
    )
    op.create_table(
        "adoptable_locations",
        sa.Column("location", _PLAIN, nullable=False),
        sa.Column("added_at", sa.BigInteger(), nullable=False),
        sa.Column("added_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("location", name=op.f("pk_adoptable_locations")),
    )


def downgrade() -> None:
    op.drop_table("adoptable_locations")
    op.drop_table("ownership_promises")
    op.drop_column("tables", "releasing")
