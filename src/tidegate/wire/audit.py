"""The audit log, as JSON."""

from __future__ import annotations

from msgspec import Struct


class AuditQuery(Struct, frozen=True):
    """Which records. `table` takes a table, or a schema or catalog with all that is in it; moments are milliseconds."""

    principal: str | None = None
    table: str | None = None
    operation: str | None = None
    allowed: bool | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None
    max_results: int | None = None


class AuditRecord(Struct, frozen=True):
    id: int
    at: int
    principal: str | None
    operation: str
    subject: str | None
    allowed: bool
    reason: str | None
    message: str | None
    request_id: str | None
    address: str | None
    version: int | None
    txn_id: str | None
    times: int


class AuditRecords(Struct, frozen=True):
    """The newest first. A page may be empty and have a next one: a filter passed over all that was looked at."""

    records: list[AuditRecord]
    next_before: int | None
