"""Driver errors become domain errors here, by code, never by text."""

from __future__ import annotations

import sqlite3

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from tidegate.domain.errors import Unavailable

_SQLITE_TRANSIENT = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_POSTGRES_TRANSIENT = frozenset({"40001", "40P01", "55P03"})
"""Serialization failure, deadlock, lock not available: the transaction was rolled back and may be run again."""


def is_transient(error: BaseException) -> bool:
    """Whether nothing was stored and the same transaction may be tried again."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in _SQLITE_TRANSIENT
    return getattr(cause, "sqlstate", None) in _POSTGRES_TRANSIENT


def is_lost(error: BaseException, connection: sa.Connection | None) -> bool:
    """Whether the connection is gone, and with it the transaction, unless it was just being committed."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated
    if connection is None or connection.invalidated:
        return False
    return bool(getattr(connection.connection.driver_connection, "closed", False))


def is_missing_parent(error: IntegrityError) -> bool:
    """Whether the row that this one refers to is gone, as opposed to a name that is taken."""
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    return getattr(cause, "sqlstate", None) == "23503"


def unavailable(error: Exception) -> Unavailable:
    """Says no more than the kind of failure: the text of a driver's error may hold SQL and values."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    kind = type(cause or error).__name__
    return Unavailable(f"The catalog's database does not answer ({kind}). Try again later.")
