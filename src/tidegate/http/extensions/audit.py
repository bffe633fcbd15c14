"""The audit log, as Tidegate's own API shows it. There is no way to change it."""

from __future__ import annotations

from dataclasses import asdict

from tidegate.domain import errors
from tidegate.domain.audit import AuditFilter, AuditId
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.read_audit import PAGE_SIZE, read_audit
from tidegate.wire import audit as wire


async def get(call: Call) -> wire.AuditRecords:
    query: wire.AuditQuery = call.query
    wanted = AuditFilter(query.principal, query.table, query.operation, query.allowed, query.since, query.until)
    before = None if query.before is None else AuditId(query.before)
    limit = PAGE_SIZE if query.max_results is None else query.max_results
    page = await read_audit(call.env, call.caller, wanted, before=before, limit=limit)
    records = [wire.AuditRecord(id=one.id, **asdict(one.record)) for one in page.records]
    return wire.AuditRecords(records, page.next_before)


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        "/audit",
        "readAudit",
        "Who asked for what, and whether it was done; the newest first, in pages.",
        get,
        query=wire.AuditQuery,
        answer=wire.AuditRecords,
        errors=(errors.InvalidRequest,),
    ),
]
