"""Connections to the two databases: one engine that reads snapshots, one that writes.

SQLite: WAL with `synchronous=FULL` (a commit is on disk before it returns) and foreign keys on; a writer takes the
write lock when it begins, so what it reads is what it changes. PostgreSQL: readers see one snapshot (REPEATABLE READ),
writers lock the rows that they decide on.
"""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tidegate.domain.errors import InvalidRequest

if TYPE_CHECKING:
    import psycopg

BUSY_WAIT_MS = 30_000
WAL_RETRY_SECONDS = 0.005
CHECKPOINT_PAGES = 1_000

_PATIENCE = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
"""A PostgreSQL server that vanished from the network is noticed within half a minute, not within hours."""


def parse_url(text: str) -> URL:
    """The database's URL with its driver filled in, or InvalidRequest for what we cannot run on."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise InvalidRequest(
            "The database URL cannot be read. Write sqlite:////path/to/file or postgresql://user@host/name."
        ) from None
    match url.get_backend_name():
        case "sqlite":
            if not url.database or url.database == ":memory:":
                raise InvalidRequest("An in-memory SQLite database keeps nothing. Name a file: sqlite:////path/to/file")
            return url.set(drivername="sqlite")
        case "postgresql":
            return url.set(drivername="postgresql+psycopg")
        case other:
            raise InvalidRequest(f"{other!r} databases are not supported. Use sqlite or postgresql.")


def writing_engine(url: URL) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, pool_size=1, max_overflow=1)
        _prepare_sqlite(engine, begin="BEGIN IMMEDIATE")
        return engine
    return sa.create_engine(url, pool_size=2, max_overflow=2, isolation_level="READ COMMITTED", connect_args=_PATIENCE)


def quick_engine(url: URL) -> sa.Engine:
    """For SQLite: who has to wait for the write lock gets an error instead; transactions begin when they are told to,
    and the log is copied into the database when that is asked for.
    """
    engine = sa.create_engine(url, pool_size=1, max_overflow=0)
    _prepare_sqlite(engine, busy_wait_ms=0, checkpoint_pages=0)
    return engine


def reading_engine(url: URL, *, connections: int) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, pool_size=connections, max_overflow=0)
        _prepare_sqlite(engine, begin="BEGIN")
        return engine
    return sa.create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ",
        connect_args=_PATIENCE,
        execution_options={"postgresql_readonly": True},
    )


def postgres_connection(url: URL) -> psycopg.Connection[Any]:
    """One that belongs to no engine, and whose transactions begin and end when they are told to."""
    # Not at the top: whoever runs on SQLite does not wait for PostgreSQL's driver.
    import psycopg

    _, named = url.get_dialect()().create_connect_args(url)
    options: dict[str, Any] = {**_PATIENCE, **named}
    return psycopg.connect(**options, autocommit=True)


def _prepare_sqlite(
    engine: sa.Engine,
    *,
    begin: str | None = None,
    busy_wait_ms: int = BUSY_WAIT_MS,
    checkpoint_pages: int = CHECKPOINT_PAGES,
) -> None:
    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        # Transactions are begun by us: the driver's own idea of when one begins breaks snapshots.
        connection.isolation_level = None
        _switch_to_wal(connection)
        for pragma in (
            f"busy_timeout={busy_wait_ms}",
            "synchronous=FULL",
            "foreign_keys=ON",
            "cache_size=-65536",
            f"wal_autocheckpoint={checkpoint_pages}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    if begin is not None:

        @event.listens_for(engine, "begin")
        def start(connection: sa.Connection) -> None:  # pyright: ignore[reportUnusedFunction]
            connection.exec_driver_sql(begin)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Of several who open a new database at once, one switches and the others have to try again: SQLite does not wait
    where two that hold a read lock both want more.
    """
    deadline = time.monotonic() + BUSY_WAIT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(WAL_RETRY_SECONDS)
