"""The first schema: catalogs, schemas, staging tables, tables, commits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

plain = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "catalogs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", plain, nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("properties", sa.Text(), nullable=False),
        sa.Column("storage_root", sa.Text(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalogs")),
        sa.UniqueConstraint("name", name=op.f("uq_catalogs_name")),
    )
    op.create_table(
        "metastore",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("one = 1", name=op.f("ck_metastore_only_one")),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_metastore")),
    )
    op.create_table(
        "schemas",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("catalog_id", sa.Text(), nullable=False),
        sa.Column("name", plain, nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("properties", sa.Text(), nullable=False),
        sa.Column("storage_root", sa.Text(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["catalog_id"], ["catalogs.id"], name=op.f("fk_schemas_catalog_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schemas")),
        sa.UniqueConstraint("catalog_id", "name", name=op.f("uq_schemas_catalog_id_name")),
    )
    op.create_table(
        "staging_tables",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("schema_id", sa.Text(), nullable=True),
        sa.Column("name", plain, nullable=False),
        sa.Column("location", plain, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["schema_id"], ["schemas.id"], name=op.f("fk_staging_tables_schema_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_staging_tables")),
        sa.UniqueConstraint("location", name=op.f("uq_staging_tables_location")),
    )
    with op.batch_alter_table("staging_tables", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_staging_tables_schema_id"), ["schema_id"], unique=False)

    op.create_table(
        "tables",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("schema_id", sa.Text(), nullable=True),
        sa.Column("name", plain, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("location", plain, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("metadata_version", sa.BigInteger(), nullable=False),
        sa.Column("metadata_timestamp", sa.BigInteger(), nullable=False),
        sa.Column("latest", sa.BigInteger(), nullable=False),
        sa.Column("latest_timestamp", sa.BigInteger(), nullable=False),
        sa.Column("published", sa.BigInteger(), nullable=False),
        sa.Column("uniform", sa.Text(), nullable=True),
        sa.Column("dropped_at", sa.BigInteger(), nullable=True),
        sa.Column("dropped_by", sa.Text(), nullable=True),
        sa.CheckConstraint("dropped_at IS NOT NULL OR schema_id IS NOT NULL", name=op.f("ck_tables_live_in_a_schema")),
        sa.CheckConstraint("published <= latest", name=op.f("ck_tables_published_is_ratified")),
        sa.ForeignKeyConstraint(["schema_id"], ["schemas.id"], name=op.f("fk_tables_schema_id"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tables")),
    )
    with op.batch_alter_table("tables", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tables_location"), ["location"], unique=False)
        batch_op.create_index(batch_op.f("ix_tables_schema_id"), ["schema_id"], unique=False)
        batch_op.create_index(
            "uq_tables_live_name",
            ["schema_id", "name"],
            unique=True,
            sqlite_where=sa.text("dropped_at IS NULL"),
            postgresql_where=sa.text("dropped_at IS NULL"),
        )

    op.create_table(
        "commits",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("file_name", sa.Text(), nullable=False),
        sa.Column("file_size", sa.BigInteger(), nullable=False),
        sa.Column("file_modified_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=op.f("fk_commits_table_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("table_id", "version", name=op.f("pk_commits")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "table_metadata",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name=op.f("fk_table_metadata_table_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("table_id", name=op.f("pk_table_metadata")),
    )


def downgrade() -> None:
    op.drop_table("table_metadata")
    op.drop_table("commits")
    with op.batch_alter_table("tables", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_tables_live_name",
            sqlite_where=sa.text("dropped_at IS NULL"),
            postgresql_where=sa.text("dropped_at IS NULL"),
        )
        batch_op.drop_index(batch_op.f("ix_tables_schema_id"))
        batch_op.drop_index(batch_op.f("ix_tables_location"))

    op.drop_table("tables")
    with op.batch_alter_table("staging_tables", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_staging_tables_schema_id"))

    op.drop_table("staging_tables")
    op.drop_table("schemas")
    op.drop_table("metastore")
    op.drop_table("catalogs")
