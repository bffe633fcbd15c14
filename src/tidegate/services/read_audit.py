"""Reading the audit log, the newest records first; and forgetting those that are old enough, the oldest first."""

from __future__ import annotations

from tidegate.domain.audit import AuditFilter, AuditId, AuditPage
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment
from tidegate.steps import reached

PAGE_SIZE = 100
PAGE_SIZE_MAX = 1000
BATCH = 1000
BATCHES_MAX = 1000
"""In one go; what is left goes next time."""


async def read_audit(
    env: Environment, caller: Principal, wanted: AuditFilter, *, before: AuditId | None, limit: int = PAGE_SIZE
) -> AuditPage:
    if not 1 <= limit <= PAGE_SIZE_MAX:
        raise InvalidRequest(f"max_results is {limit}. Use 1 to {PAGE_SIZE_MAX}, or leave it out.")
    if before is not None and not 1 <= before < 2**62:
        raise InvalidRequest(f"before is {before}. Give the next_before of an earlier answer, or leave it out.")
    wanted.check()
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    return await env.database.read(lambda uow: uow.audit.page(wanted, before=before, limit=limit))


async def forget_audit(env: Environment, *, kept_ms: int) -> None:
    async with env.database.exclusively("forget audit records") as alone:
        if not alone:
            return
        for _ in range(BATCHES_MAX):
            if not await env.database.write(lambda uow: _forget_some(uow, before=env.patient_clock() - kept_ms)):
                return
            reached("audit.removed")


def _forget_some(uow: UnitOfWork, *, before: int) -> int:
    """From the front only: a record stays as long as one before it does."""
    up_to: AuditId | None = None
    for id, at in uow.audit.oldest(limit=BATCH):
        if at >= before:
            break
        up_to = id
    if up_to is None:
        return 0
    reached("audit.chosen")
    return uow.audit.remove_up_to(up_to)
