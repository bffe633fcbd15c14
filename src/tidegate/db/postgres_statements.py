"""PostgreSQL's hot statements as a session prepares them, with their parameters and rows in the binary format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from tidegate.db.hot_statements import (
    AUDIT_COLUMNS,
    CHANGING_COLUMNS,
    COMMIT_COLUMNS,
    CONTENT_COLUMNS,
    DONE_COLUMNS,
    EVENT_COLUMNS,
    OPENED_COLUMNS,
    TEXT_COLUMNS,
    VERIFIED_COLUMNS,
    GroupRows,
    PostgresStatements,
    Row,
    Transaction,
)
from tidegate.db.known_tables import State
from tidegate.db.postgres_arrays import bigints, read_bigint, texts
from tidegate.db.postgres_session import Parameters, Question, Statement
from tidegate.db.postgres_session import Row as SentRow
from tidegate.domain.names import TableId, TableName


def _statement(name: str, text: str | bytes) -> Statement:
    """In the driver's texts a parameter is %s; the database numbers them."""
    numbers = count(1)
    written = text if isinstance(text, str) else text.decode()
    return Statement(name.encode(), re.sub("%s", lambda _: f"${next(numbers)}", written).encode())


class _Written(NamedTuple):
    """A statement that takes rows as one array for each column."""

    statement: Statement
    columns: Sequence[str]


FIND = _statement("find", PostgresStatements.find)
BEGIN = _statement("begin", "BEGIN ISOLATION LEVEL READ COMMITTED")
LOCK = _statement("lock", PostgresStatements.locking)
COMMIT = _statement("commit", "COMMIT")
ROLLBACK = _statement("rollback", "ROLLBACK")
OPENED = _statement("opened", PostgresStatements.opening)
_WRITTEN = (
    _Written(_statement("add", PostgresStatements.adding), COMMIT_COLUMNS),
    _Written(_statement("change", PostgresStatements.changing), (*CHANGING_COLUMNS, "id")),
    _Written(_statement("tell", PostgresStatements.telling), EVENT_COLUMNS),
    _Written(_statement("keep", PostgresStatements.keeping), CONTENT_COLUMNS),
    _Written(_statement("remember", PostgresStatements.remembering), OPENED_COLUMNS),
    _Written(_statement("finish", PostgresStatements.finishing), DONE_COLUMNS),
    _Written(_statement("verify", PostgresStatements.verifying), VERIFIED_COLUMNS),
    _Written(_statement("audit", PostgresStatements.auditing), AUDIT_COLUMNS),
)
"""In the order of GroupRows."""
GROUP_STATEMENTS = (BEGIN, LOCK, OPENED, *(written.statement for written in _WRITTEN), COMMIT, ROLLBACK)


def find_parameters(names: Sequence[TableName]) -> Parameters:
    return [texts(each) for each in PostgresStatements().names(names)]


def read_found(row: SentRow) -> tuple[int, TableId, State]:
    """Position, id and state."""
    position, id, state = row
    return read_bigint(position), TableId(id.decode()), read_bigint(state)


def lock_parameters(ids: Sequence[TableId]) -> Parameters:
    return [texts(ids)]


def read_locked(row: SentRow) -> tuple[TableId, State]:
    id, state = row
    return TableId(id.decode()), read_bigint(state)


def opened_parameters(wanted: Sequence[Transaction]) -> Parameters:
    return [texts([id for id, _ in wanted]), texts([txn_id for _, txn_id in wanted])]


def write_questions(rows: GroupRows) -> list[Question]:
    """What stores rows of each kind."""
    return [
        (written.statement, _arrays(written.columns, some))
        for written, some in zip(_WRITTEN, rows, strict=True)
        if some
    ]


def _arrays(columns: Sequence[str], rows: Sequence[Row]) -> Parameters:
    values = zip(*rows, strict=True)
    return [(texts if column in TEXT_COLUMNS else bigints)(each) for column, each in zip(columns, values, strict=True)]
