"""INSERT that leaves rows alone which are there already: both databases know it, each in its own words."""

from __future__ import annotations

import sqlalchemy as sa


def insert_if_absent(connection: sa.Connection, table: sa.Table) -> sa.Insert:
    # Not at the top: whoever runs on SQLite does not wait for what is PostgreSQL's.
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert
    return insert(table).on_conflict_do_nothing()
