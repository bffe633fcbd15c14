"""The audit log in the database. A trigger keeps every row as it was written; another lets rows go from the front only,
up to where `audit_retention` says that they may.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tidegate.db.hot_statements import AUDIT_COLUMNS
from tidegate.db.schema import audit, audit_retention
from tidegate.domain.audit import AuditFilter, AuditId, AuditPage, AuditRecord, NumberedRecord

SCANNED_MAX = 20_000
"""Rows that one page looks at, however few of them are wanted."""
LATE_MS = 60_000
"""A record may be written after one that is younger: refusals wait for a moment, and clocks differ."""


class SqlAudit:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, records: Sequence[AuditRecord]) -> None:
        if records:
            rows = [dict[str, Any](zip(AUDIT_COLUMNS, audit_row(record), strict=True)) for record in records]
            self._connection.execute(audit.insert(), rows)

    def page(self, wanted: AuditFilter, *, before: AuditId | None, limit: int) -> AuditPage:
        newest: int | None = self._connection.scalar(sa.select(sa.func.max(audit.c.id)))
        if newest is None:
            return AuditPage((), None)
        top = newest + 1 if before is None else before
        query = sa.select(audit).where(audit.c.id < top, audit.c.id >= top - SCANNED_MAX, *_wanted(wanted))
        rows = self._connection.execute(query.order_by(audit.c.id.desc()).limit(limit)).all()
        end = AuditId(rows[-1].id if len(rows) == limit else top - SCANNED_MAX)
        return AuditPage(tuple(_numbered(row) for row in rows), self._next(wanted, end))

    def oldest(self, *, limit: int) -> Sequence[tuple[AuditId, int]]:
        rows = self._connection.execute(sa.select(audit.c.id, audit.c.at).order_by(audit.c.id).limit(limit))
        return [(AuditId(id), at) for id, at in rows]

    def remove_up_to(self, id: AuditId) -> int:
        self._connection.execute(audit_retention.update().values(removable=id))
        return self._connection.execute(audit.delete().where(audit.c.id <= id)).rowcount

    def _next(self, wanted: AuditFilter, end: AuditId) -> AuditId | None:
        """None if there is nothing before the end that could be wanted."""
        query = sa.select(audit.c.at).where(audit.c.id < end).order_by(audit.c.id.desc()).limit(1)
        at: int | None = self._connection.scalar(query)
        if at is None or (wanted.since is not None and at < wanted.since - LATE_MS):
            return None
        return end


def audit_row(record: AuditRecord) -> tuple[Any, ...]:
    """The values of AUDIT_COLUMNS."""
    return (
        record.at,
        record.principal,
        record.operation,
        record.subject,
        int(record.allowed),
        record.reason,
        record.message,
        record.request_id,
        record.address,
        record.version,
        record.txn_id,
        record.times,
    )


def _wanted(wanted: AuditFilter) -> list[sa.ColumnElement[bool]]:
    tests: list[sa.ColumnElement[bool]] = []
    if wanted.principal is not None:
        tests.append(audit.c.principal == wanted.principal)
    if wanted.operation is not None:
        tests.append(audit.c.operation == wanted.operation)
    if wanted.subject is not None:
        inside = audit.c.subject.startswith(f"{wanted.subject}.", autoescape=True)
        tests.append((audit.c.subject == wanted.subject) | inside)
    if wanted.allowed is not None:
        tests.append(audit.c.allowed == int(wanted.allowed))
    if wanted.since is not None:
        tests.append(audit.c.at >= wanted.since)
    if wanted.until is not None:
        tests.append(audit.c.at < wanted.until)
    return tests


def _numbered(row: sa.Row[Any]) -> NumberedRecord:
    values = {name: getattr(row, name) for name in AUDIT_COLUMNS}
    return NumberedRecord(AuditId(row.id), AuditRecord(**{**values, "allowed": row.allowed == 1}))
