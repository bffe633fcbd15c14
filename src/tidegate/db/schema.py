"""The tables of the catalog's database, the same for SQLite and PostgreSQL.

`tables` holds what changes with every commit, in a small row; `table_metadata` what changes rarely, as one JSON
document; `commits` one row for each ratified version. A published commit keeps its row, so that a writer who lost
the answer still gets its success.

A dropped table keeps its rows and loses its name: the unique index on names covers live tables only.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


# Compared by code point on both databases: pages and ranges must not depend on where the server was installed.
_Plain = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _stamps() -> list[sa.Column[object]]:
    return [
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("updated_by", sa.Text, nullable=False),
    ]


metastore = sa.Table(
    "metastore",
    metadata,
    sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("one = 1", name="only_one"),
)

catalogs = sa.Table(
    "catalogs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", _Plain, nullable=False, unique=True),
    sa.Column("comment", sa.Text),
    sa.Column("properties", sa.Text, nullable=False),
    sa.Column("storage_root", sa.Text),
    *_stamps(),
)

schemas = sa.Table(
    "schemas",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("catalog_id", sa.Text, sa.ForeignKey("catalogs.id", ondelete="RESTRICT"), nullable=False),
    sa.Column("name", _Plain, nullable=False),
    sa.Column("comment", sa.Text),
    sa.Column("properties", sa.Text, nullable=False),
    sa.Column("storage_root", sa.Text),
    *_stamps(),
    sa.UniqueConstraint("catalog_id", "name"),
)

staging_tables = sa.Table(
    "staging_tables",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    # Null once the schema is gone: the folder must still be cleaned up.
    sa.Column("schema_id", sa.Text, sa.ForeignKey("schemas.id", ondelete="SET NULL"), index=True),
    sa.Column("name", _Plain, nullable=False),
    sa.Column("location", _Plain, nullable=False, unique=True),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

tables = sa.Table(
    "tables",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("schema_id", sa.Text, sa.ForeignKey("schemas.id", ondelete="SET NULL"), index=True),
    sa.Column("name", _Plain, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("format", sa.Text, nullable=False),
    sa.Column("location", _Plain, nullable=False, index=True),
    *_stamps(),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("metadata_version", sa.BigInteger, nullable=False),
    sa.Column("metadata_timestamp", sa.BigInteger, nullable=False),
    sa.Column("latest", sa.BigInteger, nullable=False),
    sa.Column("latest_timestamp", sa.BigInteger, nullable=False),
    sa.Column("published", sa.BigInteger, nullable=False),
    sa.Column("uniform", sa.Text),
    # Drawn anew with every change of what is known of the table: see known_tables.py.
    sa.Column("state", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("dropped_at", sa.BigInteger),
    sa.Column("dropped_by", sa.Text),
    sa.CheckConstraint("dropped_at IS NOT NULL OR schema_id IS NOT NULL", name="live_in_a_schema"),
    sa.CheckConstraint("published <= latest", name="published_is_ratified"),
)
sa.Index(
    "uq_tables_live_name",
    tables.c.schema_id,
    tables.c.name,
    unique=True,
    sqlite_where=tables.c.dropped_at.is_(None),
    postgresql_where=tables.c.dropped_at.is_(None),
)

table_metadata = sa.Table(
    "table_metadata",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("document", sa.Text, nullable=False),
)

commits = sa.Table(
    "commits",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("timestamp", sa.BigInteger, nullable=False),
    sa.Column("file_name", sa.Text, nullable=False),
    sa.Column("file_size", sa.BigInteger, nullable=False),
    sa.Column("file_modified_at", sa.BigInteger, nullable=False),
    # By the server's clock, as everywhere; null for commits that are older than these columns.
    sa.Column("proposed_at", sa.BigInteger),
    sa.Column("ratified_at", sa.BigInteger),
    sqlite_with_rowid=False,
)

commit_reports = sa.Table(
    "commit_reports",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("reported_at", sa.BigInteger, nullable=False),
    sa.Column("reported_by", sa.Text, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)

grants = sa.Table(
    "grants",
    metadata,
    # Of a catalog, a schema, a table or the metastore: ids are never used twice.
    sa.Column("securable_id", sa.Text, primary_key=True),
    sa.Column("principal", _Plain, primary_key=True),
    sa.Column("privilege", sa.Text, primary_key=True),
)
