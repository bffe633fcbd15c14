"""How tables end: names of dropped tables that outlive their schemas, and folders that are being removed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_Plain = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("tables", sa.Column("dropped_name", sa.Text(), nullable=True))
    op.execute(
        "UPDATE tables SET dropped_name = ("
        "SELECT catalogs.name || '.' || schemas.name || '.' || tables.name FROM schemas "
        "JOIN catalogs ON catalogs.id = schemas.catalog_id WHERE schemas.id = tables.schema_id"
        ") WHERE dropped_at IS NOT NULL"
    )
    op.create_index(
        "ix_tables_dropped",
        "tables",
        ["dropped_at", "id"],
        unique=False,
        sqlite_where=sa.text("dropped_at IS NOT NULL"),
        postgresql_where=sa.text("dropped_at IS NOT NULL"),
    )
    op.create_table(
        "removals",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("location", _Plain, nullable=False),
        sa.Column("begun_at", sa.BigInteger(), nullable=False),
        sa.Column("begun_by", sa.Text(), nullable=False),
        sa.Column("files_removed", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("table_id", name=op.f("pk_removals")),
    )
    op.create_index(op.f("ix_removals_location"), "removals", ["location"], unique=False)
    op.create_index(op.f("ix_staging_tables_created_at"), "staging_tables", ["created_at"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_staging_tables_created_at"), table_name="staging_tables")
    op.drop_table("removals")
    op.drop_index("ix_tables_dropped", table_name="tables")
    op.drop_column("tables", "dropped_name")
