"""The statements of every load and every commit, spelled for each database.

Fast because each is one fixed text, which the driver prepares once, and takes a whole group: PostgreSQL gets the rows
as arrays, and statements that need not wait for each other in one round trip; SQLite runs its prepared statement row by
row, inside this process. They go to the driver itself, whose errors come as they are: what is around it takes longer
than the database does.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import sqlalchemy as sa

from tidegate.db.known_tables import State
from tidegate.domain.names import TableId, TableName

if TYPE_CHECKING:
    import psycopg

COMMIT_COLUMNS = (
    "table_id",
    "version",
    "timestamp",
    "file_name",
    "file_size",
    "file_modified_at",
    "proposed_at",
    "ratified_at",
)
CHANGING_COLUMNS = (
    "updated_at",
    "updated_by",
    "revision",
    "metadata_version",
    "metadata_timestamp",
    "latest",
    "latest_timestamp",
    "published",
    "uniform",
    "state",
)
EVENT_COLUMNS = ("kind", "table_id", "table_name", "version", "at", "principal", "data")
TEXT_COLUMNS = frozenset(
    {"table_id", "id", "file_name", "updated_by", "uniform", "kind", "table_name", "principal", "data"}
)

Row = tuple[Any, ...]


class HotStatements(Protocol):
    find: str
    """Parameters: those that `names` makes. One row (position, id, state) for each name that leads to a live table."""

    def names(self, names: Sequence[TableName]) -> tuple[Any, ...]: ...

    def lock(self, connection: sa.Connection, ids: Sequence[TableId]) -> Sequence[tuple[TableId, State]]:
        """Locks the rows of the live tables among `ids`, in id order, until the transaction ends."""
        ...

    def write(
        self, connection: sa.Connection, *, commits: Sequence[Row], tables: Sequence[Row], events: Sequence[Row]
    ) -> None:
        """Adds rows of COMMIT_COLUMNS and EVENT_COLUMNS, changes tables by rows of CHANGING_COLUMNS and the id."""
        ...


class SqliteStatements:
    find = """
        SELECT 0, tables.id, tables.state FROM catalogs
        JOIN schemas ON schemas.catalog_id = catalogs.id AND schemas.name = ?
        JOIN tables ON tables.schema_id = schemas.id AND tables.name = ? AND tables.dropped_at IS NULL
        WHERE catalogs.name = ?
    """
    # The transaction itself is the lock: it began with BEGIN IMMEDIATE.
    _lock = "SELECT id, state FROM tables WHERE dropped_at IS NULL AND id IN (SELECT value FROM json_each(?))"
    _add = f"INSERT INTO commits ({', '.join(COMMIT_COLUMNS)}) VALUES ({', '.join('?' for _ in COMMIT_COLUMNS)})"  # noqa: S608
    _tell = f"INSERT INTO events ({', '.join(EVENT_COLUMNS)}) VALUES ({', '.join('?' for _ in EVENT_COLUMNS)})"  # noqa: S608
    _change = f"UPDATE tables SET {', '.join(f'{name} = ?' for name in CHANGING_COLUMNS)} WHERE id = ?"  # noqa: S608

    def names(self, names: Sequence[TableName]) -> tuple[Any, ...]:
        (name,) = names
        return (name.schema, name.table, name.catalog)

    def lock(self, connection: sa.Connection, ids: Sequence[TableId]) -> Sequence[tuple[TableId, State]]:
        return sqlite_driver(connection).execute(self._lock, (json.dumps(ids),)).fetchall()

    def write(
        self, connection: sa.Connection, *, commits: Sequence[Row], tables: Sequence[Row], events: Sequence[Row]
    ) -> None:
        driver = sqlite_driver(connection)
        driver.executemany(self._add, commits)
        driver.executemany(self._change, tables)
        driver.executemany(self._tell, events)


def sqlite_driver(connection: sa.Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def _arrays(names: Sequence[str]) -> str:
    return ", ".join(f"%s::{'text' if name in TEXT_COLUMNS else 'bigint'}[]" for name in names)


class PostgresStatements:
    find = """
        SELECT wanted.position, tables.id, tables.state
        FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS wanted(catalog, schema, name, position)
        JOIN catalogs ON catalogs.name = wanted.catalog
        JOIN schemas ON schemas.catalog_id = catalogs.id AND schemas.name = wanted.schema
        JOIN tables ON tables.schema_id = schemas.id AND tables.name = wanted.name AND tables.dropped_at IS NULL
    """
    locking = b"SELECT id, state FROM tables WHERE dropped_at IS NULL AND id = ANY(%s::text[]) ORDER BY id FOR UPDATE"
    adding = f"""
        INSERT INTO commits ({", ".join(COMMIT_COLUMNS)}) SELECT * FROM unnest({_arrays(COMMIT_COLUMNS)})
    """.encode()  # noqa: S608
    telling = f"INSERT INTO events ({', '.join(EVENT_COLUMNS)}) SELECT * FROM unnest({_arrays(EVENT_COLUMNS)})".encode()  # noqa: S608
    changing = f"""
        UPDATE tables SET {", ".join(f"{name} = changed.{name}" for name in CHANGING_COLUMNS)}
        FROM unnest({_arrays((*CHANGING_COLUMNS, "id"))}) AS changed({", ".join((*CHANGING_COLUMNS, "id"))})
        WHERE tables.id = changed.id
    """.encode()  # noqa: S608

    def names(self, names: Sequence[TableName]) -> tuple[Any, ...]:
        return ([n.catalog for n in names], [n.schema for n in names], [n.table for n in names])

    def lock(self, connection: sa.Connection, ids: Sequence[TableId]) -> Sequence[tuple[TableId, State]]:
        driver = _postgres(connection)
        with driver.pipeline():  # together with the BEGIN that comes first
            return driver.execute(self.locking, (list(ids),)).fetchall()

    def write(
        self, connection: sa.Connection, *, commits: Sequence[Row], tables: Sequence[Row], events: Sequence[Row]
    ) -> None:
        driver = _postgres(connection)
        with driver.pipeline():
            if commits:
                driver.execute(self.adding, _columns(commits))
            driver.execute(self.changing, _columns(tables))
            if events:
                driver.execute(self.telling, _columns(events))


def _postgres(connection: sa.Connection) -> psycopg.Connection[Any]:
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


def _columns(rows: Sequence[Row]) -> tuple[list[Any], ...]:
    return tuple(list(column) for column in zip(*rows, strict=True))


def hot_statements(dialect: str) -> HotStatements:
    return SqliteStatements() if dialect == "sqlite" else PostgresStatements()
