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
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

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
    "inline",
    "content_sha256",
    "principal",
    "chain",
)
CONTENT_COLUMNS = ("table_id", "version", "content")
OPENED_COLUMNS = ("table_id", "txn_id", "version", "ratified_at")
DONE_COLUMNS = ("table_id", "version")
VERIFIED_COLUMNS = ("verified_sha256", "table_id", "version")
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
    "row_mark_version",
    "row_mark",
    "releasing",
    "chain",
    "state",
)
EVENT_COLUMNS = ("kind", "table_id", "table_name", "version", "at", "principal", "data")
AUDIT_COLUMNS = (
    "at",
    "principal",
    "operation",
    "subject",
    "allowed",
    "reason",
    "message",
    "request_id",
    "address",
    "version",
    "txn_id",
    "times",
)
TEXT_COLUMNS = frozenset(
    {
        "operation",
        "subject",
        "reason",
        "message",
        "request_id",
        "address",
        "table_id",
        "id",
        "file_name",
        "updated_by",
        "uniform",
        "kind",
        "table_name",
        "principal",
        "data",
        "content",
        "txn_id",
        "content_sha256",
        "verified_sha256",
        "chain",
    }
)

Row = tuple[Any, ...]
Transaction = tuple[TableId, str]
"""A table, and the id by which an append that left its version open is known again."""


class GroupRows(NamedTuple):
    """What a group writes, in this order."""

    commits: Sequence[Row]
    """Of COMMIT_COLUMNS."""
    tables: Sequence[Row]
    """Of CHANGING_COLUMNS and the id: they change."""
    events: Sequence[Row]
    """Of EVENT_COLUMNS."""
    contents: Sequence[Row]
    """Of CONTENT_COLUMNS."""
    opened: Sequence[Row]
    """Of OPENED_COLUMNS."""
    done: Sequence[Row]
    """Of DONE_COLUMNS: up to this version contents go, because they are published."""
    verified: Sequence[Row]
    """Of VERIFIED_COLUMNS: what was seen in the log of commits whose content was not known."""
    audit: Sequence[Row]
    """Of AUDIT_COLUMNS."""


NOTHING = GroupRows((), (), (), (), (), (), (), ())


class HotStatements(Protocol):
    find: str
    """Parameters: those that `names` makes. One row (position, id, state) for each name that leads to a live table."""

    def names(self, names: Sequence[TableName]) -> tuple[Any, ...]: ...

    def lock(self, connection: sa.Connection, ids: Sequence[TableId]) -> Sequence[tuple[TableId, State]]:
        """Locks the rows of the live tables among `ids`, in id order, until the transaction ends."""
        ...

    def opened(self, connection: sa.Connection, wanted: Sequence[Transaction]) -> Sequence[tuple[TableId, str, int]]:
        """Which of these appends have happened before, and as which version."""
        ...

    def write(self, connection: sa.Connection, rows: GroupRows) -> None: ...


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})"  # noqa: S608


class SqliteStatements:
    find = """
        SELECT 0, tables.id, tables.state FROM catalogs
        JOIN schemas ON schemas.catalog_id = catalogs.id AND schemas.name = ?
        JOIN tables ON tables.schema_id = schemas.id AND tables.name = ? AND tables.dropped_at IS NULL
        WHERE catalogs.name = ?
    """
    _opened = "SELECT version FROM open_commits WHERE table_id = ? AND txn_id = ?"
    # The transaction itself is the lock: it began with BEGIN IMMEDIATE.
    _lock = "SELECT id, state FROM tables WHERE dropped_at IS NULL AND id IN (SELECT value FROM json_each(?))"
    _add = _insert("commits", COMMIT_COLUMNS)
    _tell = _insert("events", EVENT_COLUMNS)
    _keep = _insert("inline_commits", CONTENT_COLUMNS)
    _open = _insert("open_commits", OPENED_COLUMNS)
    _finish = "DELETE FROM inline_commits WHERE table_id = ? AND version <= ?"
    _audit = _insert("audit", AUDIT_COLUMNS)
    _verify = "UPDATE commits SET verified_sha256 = ? WHERE table_id = ? AND version = ? AND content_sha256 IS NULL"
    _change = f"UPDATE tables SET {', '.join(f'{name} = ?' for name in CHANGING_COLUMNS)} WHERE id = ?"  # noqa: S608

    def names(self, names: Sequence[TableName]) -> tuple[Any, ...]:
        (name,) = names
        return (name.schema, name.table, name.catalog)

    def lock(self, connection: sa.Connection, ids: Sequence[TableId]) -> Sequence[tuple[TableId, State]]:
        return sqlite_driver(connection).execute(self._lock, (json.dumps(ids),)).fetchall()

    def opened(self, connection: sa.Connection, wanted: Sequence[Transaction]) -> Sequence[tuple[TableId, str, int]]:
        driver = sqlite_driver(connection)
        found = [(key, driver.execute(self._opened, key).fetchone()) for key in wanted]
        return [(*key, row[0]) for key, row in found if row is not None]

    def write(self, connection: sa.Connection, rows: GroupRows) -> None:
        driver = sqlite_driver(connection)
        driver.executemany(self._add, rows.commits)
        driver.executemany(self._change, rows.tables)
        driver.executemany(self._tell, rows.events)
        driver.executemany(self._audit, rows.audit)
        seldom = (self._keep, self._open, self._finish, self._verify)
        for statement, some in zip(seldom, (rows.contents, rows.opened, rows.done, rows.verified), strict=True):
            if some:
                driver.executemany(statement, some)


def sqlite_driver(connection: sa.Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def _arrays(names: Sequence[str]) -> str:
    return ", ".join(f"%s::{'text' if name in TEXT_COLUMNS else 'bigint'}[]" for name in names)


def _insert_all(table: str, columns: Sequence[str]) -> bytes:
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({_arrays(columns)})".encode()  # noqa: S608


class PostgresStatements:
    find = """
        SELECT wanted.position, tables.id, tables.state
        FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS wanted(catalog, schema, name, position)
        JOIN catalogs ON catalogs.name = wanted.catalog
        JOIN schemas ON schemas.catalog_id = catalogs.id AND schemas.name = wanted.schema
        JOIN tables ON tables.schema_id = schemas.id AND tables.name = wanted.name AND tables.dropped_at IS NULL
    """
    locking = b"SELECT id, state FROM tables WHERE dropped_at IS NULL AND id = ANY(%s::text[]) ORDER BY id FOR UPDATE"
    opening = b"""
        SELECT table_id, txn_id, version FROM open_commits
        WHERE (table_id, txn_id) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
    """
    adding = _insert_all("commits", COMMIT_COLUMNS)
    telling = _insert_all("events", EVENT_COLUMNS)
    keeping = _insert_all("inline_commits", CONTENT_COLUMNS)
    remembering = _insert_all("open_commits", OPENED_COLUMNS)
    finishing = f"""
        DELETE FROM inline_commits USING unnest({_arrays(DONE_COLUMNS)}) AS done({", ".join(DONE_COLUMNS)})
        WHERE inline_commits.table_id = done.table_id AND inline_commits.version <= done.version
    """.encode()  # noqa: S608
    auditing = _insert_all("audit", AUDIT_COLUMNS)
    verifying = f"""
        UPDATE commits SET verified_sha256 = seen.verified_sha256
        FROM unnest({_arrays(VERIFIED_COLUMNS)}) AS seen({", ".join(VERIFIED_COLUMNS)})
        WHERE commits.table_id = seen.table_id AND commits.version = seen.version AND content_sha256 IS NULL
    """.encode()  # noqa: S608
    changing = f"""
        UPDATE tables SET {", ".join(f"{name} = changed.{name}" for name in CHANGING_COLUMNS)}
        FROM unnest({_arrays((*CHANGING_COLUMNS, "id"))}) AS changed({", ".join((*CHANGING_COLUMNS, "id"))})
        WHERE tables.id = changed.id
    """.encode()  # noqa: S608

    writing = (adding, changing, telling, keeping, remembering, finishing, verifying, auditing)
    """In the order of GroupRows."""

    def names(self, names: Sequence[TableName]) -> tuple[Any, ...]:
        return ([n.catalog for n in names], [n.schema for n in names], [n.table for n in names])

    def lock(self, connection: sa.Connection, ids: Sequence[TableId]) -> Sequence[tuple[TableId, State]]:
        driver = _postgres(connection)
        with driver.pipeline():  # together with the BEGIN that comes first
            return driver.execute(self.locking, (list(ids),)).fetchall()

    def opened(self, connection: sa.Connection, wanted: Sequence[Transaction]) -> Sequence[tuple[TableId, str, int]]:
        return _postgres(connection).execute(self.opening, _columns(wanted)).fetchall()

    def write(self, connection: sa.Connection, rows: GroupRows) -> None:
        driver = _postgres(connection)
        with driver.pipeline():
            for statement, some in zip(self.writing, rows, strict=True):
                if some:
                    driver.execute(statement, _columns(some))


def _postgres(connection: sa.Connection) -> psycopg.Connection[Any]:
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


def _columns(rows: Sequence[Row]) -> tuple[list[Any], ...]:
    return tuple(list(column) for column in zip(*rows, strict=True))


def hot_statements(dialect: str) -> HotStatements:
    return SqliteStatements() if dialect == "sqlite" else PostgresStatements()
