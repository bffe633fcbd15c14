"""Staging tables that nobody finished: their time is limited, and so is what they leave behind.

The row goes first, in one transaction with the note that the folder has to go. So a creation that finishes at that
moment either takes the row itself, and the table lives, or finds none, and is told so.
"""

from __future__ import annotations

from tidegate.domain.events import SYSTEM
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.removals import Removal, RemovalCause
from tidegate.services.environment import Environment
from tidegate.steps import reached

EXPIRED_AT_ONCE = 100


async def expire_staging(env: Environment) -> int:
    """How many staging tables have expired; to be called again if it were as many as may at once."""
    now = env.patient_clock()
    before = now - env.retentions.staging_ms

    def work(uow: UnitOfWork) -> int:
        uow.removals.lock_places()
        expired = uow.staging_tables.take_older(before, limit=EXPIRED_AT_ONCE)
        for id, name, location in expired:
            uow.removals.add(
                Removal(
                    table_id=id,
                    cause=RemovalCause.EXPIRY,
                    name=name,
                    location=location,
                    begun_at=now,
                    begun_by=SYSTEM,
                )
            )
        return len(expired)

    count = await env.database.write(work)
    if count:
        reached("expire.taken")
    return count
