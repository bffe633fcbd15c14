"""The tables of the catalog's database, the same for SQLite and PostgreSQL.

`tables` holds what changes with every commit, in a small row; `table_metadata` what changes rarely, as one JSON
document; `commits` one row for each ratified version. A published commit keeps its row, so that a writer who lost
the answer still gets its success.

A dropped table keeps its rows and loses its name: the unique index on names covers live tables only. `removals` notes
whose folders have to go.
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
    sa.Column("created_at", sa.BigInteger, nullable=False, index=True),
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
    # The version that gives the table back, while that is under way: it takes no other commits.
    sa.Column("releasing", sa.BigInteger),
    # 1: who may change data may not therefore change metadata.
    sa.Column("guarded", sa.BigInteger, nullable=False, server_default="0"),
    # The highest row id, as of the last version of which the catalog knows it; null before that.
    sa.Column("row_mark_version", sa.BigInteger),
    sa.Column("row_mark", sa.BigInteger),
    # Of the latest version: see chain.py.
    sa.Column("chain", sa.Text),
    # Drawn anew with every change of what is known of the table: see known_tables.py.
    sa.Column("state", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("dropped_at", sa.BigInteger),
    sa.Column("dropped_by", sa.Text),
    # The full name, which is still to be shown when schema and catalog are gone.
    sa.Column("dropped_name", sa.Text),
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
sa.Index(
    "ix_tables_dropped",
    tables.c.dropped_at,
    tables.c.id,
    sqlite_where=tables.c.dropped_at.is_not(None),
    postgresql_where=tables.c.dropped_at.is_not(None),
)

table_metadata = sa.Table(
    "table_metadata",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("document", sa.Text, nullable=False),
)

table_constraints = sa.Table(
    "table_constraints",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    # Of a foreign key: whose primary key it refers to.
    sa.Column("parent_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), index=True),
    # All of it, as JSON: see constraints.py.
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
    # 1: it came with its content, which is in inline_commits until it is published.
    sa.Column("inline", sa.BigInteger, nullable=False, server_default="0"),
    # Null if nobody had read the content when it was ratified; then the next but two says what was published.
    sa.Column("content_sha256", sa.Text),
    # Null, with the chain, for commits that are older than these columns.
    sa.Column("principal", sa.Text),
    sa.Column("chain", sa.Text),
    sa.Column("verified_sha256", sa.Text),
    sqlite_with_rowid=False,
)

chain_starts = sa.Table(
    "chain_starts",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    # Zero, or that of the commit which adopted the table: it has no row in commits.
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("timestamp", sa.BigInteger, nullable=False),
    sa.Column("file_size", sa.BigInteger, nullable=False),
    sa.Column("content_sha256", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("ratified_at", sa.BigInteger, nullable=False),
    sa.Column("chain", sa.Text, nullable=False),
)

inline_commits = sa.Table(
    "inline_commits",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("content", sa.Text, nullable=False),
)

open_commits = sa.Table(
    "open_commits",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    # By which an append that left its version open is known again, when it is sent again.
    sa.Column("txn_id", sa.Text, primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("ratified_at", sa.BigInteger, nullable=False, index=True),
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

events = sa.Table(
    "events",
    metadata,
    # Of one table in the order of what happened to it: who draws a number has the table's row locked.
    sa.Column(
        "position",
        sa.BigInteger().with_variant(sa.Integer, "sqlite"),
        primary_key=True,
        autoincrement=True,
    ),
    # Only on PostgreSQL, where transactions end in another order than they draw numbers; see events.py.
    sa.Column("sequence", sa.BigInteger),
    sa.Column("kind", sa.Text, nullable=False),
    # Stays when the table is purged: events outlive what they tell of.
    sa.Column("table_id", sa.Text, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("version", sa.BigInteger),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("data", sa.Text),
    sqlite_autoincrement=True,
)
sa.Index(
    "uq_events_sequence",
    events.c.sequence,
    unique=True,
    sqlite_where=events.c.sequence.is_not(None),
    postgresql_where=events.c.sequence.is_not(None),
)
sa.Index(
    "ix_events_unnumbered",
    events.c.position,
    sqlite_where=events.c.sequence.is_not(None),
    postgresql_where=events.c.sequence.is_(None),
)

event_numbers = sa.Table(
    "event_numbers",
    metadata,
    sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
    # The newest number that was given; kept apart, because old events are removed.
    sa.Column("last", sa.BigInteger, nullable=False),
    sa.CheckConstraint("one = 1", name="only_one"),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("principal", sa.Text),
    sa.Column("operation", sa.Text, nullable=False),
    sa.Column("subject", sa.Text),
    sa.Column("allowed", sa.BigInteger, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("request_id", sa.Text),
    sa.Column("address", sa.Text),
    sa.Column("version", sa.BigInteger),
    sa.Column("txn_id", sa.Text),
    sa.Column("times", sa.BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

audit_retention = sa.Table(
    "audit_retention",
    metadata,
    sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
    # Records up to this one may go: a trigger keeps all others.
    sa.Column("removable", sa.BigInteger, nullable=False),
    sa.CheckConstraint("one = 1", name="only_one"),
)

alarms = sa.Table(
    "alarms",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("raised_at", sa.BigInteger, nullable=False),
)

removals = sa.Table(
    "removals",
    metadata,
    # Of a dropped table, whose row goes when its files are gone; or of a staging table, whose row is gone already.
    sa.Column("table_id", sa.Text, primary_key=True),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("location", _Plain, nullable=False, index=True),
    sa.Column("begun_at", sa.BigInteger, nullable=False),
    sa.Column("begun_by", sa.Text, nullable=False),
    sa.Column("files_removed", sa.BigInteger, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("not_before", sa.BigInteger, nullable=False),
    sa.Column("problem", sa.Text),
)

servers = sa.Table(
    "servers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("started_at", sa.BigInteger, nullable=False),
    sa.Column("seen_at", sa.BigInteger, nullable=False),
    # What it does at present, as JSON: see servers.py.
    sa.Column("activity", sa.Text, nullable=False),
)

subscriptions = sa.Table(
    "subscriptions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", _Plain, nullable=False, unique=True),
    # Null: all tables, all kinds, any operation.
    sa.Column("table_scope", sa.Text),
    sa.Column("kinds", sa.Text),
    sa.Column("operation", sa.Text),
    sa.Column("url", sa.Text),
    sa.Column("secret", sa.Text),
    sa.Column("function", sa.Text),
    # Events up to this number are done with.
    sa.Column("cursor", sa.BigInteger, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", sa.BigInteger, nullable=False),
    sa.Column("paused", sa.Boolean, nullable=False),
    sa.Column("note", sa.Text),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.CheckConstraint("(url IS NULL) <> (function IS NULL)", name="one_target"),
)

dead_letters = sa.Table(
    "dead_letters",
    metadata,
    sa.Column("subscription_id", sa.Text, sa.ForeignKey("subscriptions.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    # The event itself, which may be forgotten before anybody looks at the letter.
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("failed_at", sa.BigInteger, nullable=False),
    sa.Column("resend", sa.Boolean, nullable=False),
)

ownership_promises = sa.Table(
    "ownership_promises",
    metadata,
    sa.Column("table_id", sa.Text, primary_key=True),
    sa.Column("change", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("location", _Plain, nullable=False, unique=True),
    # Null: not planned yet.
    sa.Column("version", sa.BigInteger),
    sa.Column("timestamp", sa.BigInteger),
    sa.Column("content", sa.Text),
    sa.Column("document", sa.Text),
    sa.Column("kept", sa.Text, nullable=False),
    sa.Column("begun_at", sa.BigInteger, nullable=False),
    sa.Column("begun_by", sa.Text, nullable=False),
)

adoptable_locations = sa.Table(
    "adoptable_locations",
    metadata,
    sa.Column("location", _Plain, primary_key=True),
    sa.Column("added_at", sa.BigInteger, nullable=False),
    sa.Column("added_by", sa.Text, nullable=False),
)

identities = sa.Table(
    "identities",
    metadata,
    sa.Column("name", _Plain, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
)

group_members = sa.Table(
    "group_members",
    metadata,
    sa.Column("group_name", _Plain, sa.ForeignKey("identities.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("member", _Plain, sa.ForeignKey("identities.name", ondelete="CASCADE"), primary_key=True, index=True),
)

access_tokens = sa.Table(
    "access_tokens",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    # Its hash; the token itself is nowhere.
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("principal", _Plain, sa.ForeignKey("identities.name", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text, nullable=False, server_default="personal"),
    # Of a machine's token: the client secret that it was given for, with which it goes.
    sa.Column("given_for", sa.Text, index=True),
)
