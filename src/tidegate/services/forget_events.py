"""Forgetting: events are kept for a while, and then go, oldest first, in batches that hold up nobody.

What a subscription has not got yet stays for longer, and not for ever: see `forgettable`.
"""

from __future__ import annotations

from tidegate.domain.events import forgettable
from tidegate.domain.ports import UnitOfWork
from tidegate.services.environment import Environment
from tidegate.services.event_feed import look
from tidegate.steps import reached

BATCH = 1000
BATCHES_MAX = 1000
"""In one go; what is left goes next time."""


async def forget_events(env: Environment, *, kept_ms: int) -> None:
    async with env.database.exclusively("forget events") as alone:
        if not alone:
            return
        await look(env.database)  # what has no number yet gets one
        for _ in range(BATCHES_MAX):
            if not await env.database.write(lambda uow: _forget_some(uow, now=env.patient_clock(), kept_ms=kept_ms)):
                return
            reached("forget.removed")


def _forget_some(uow: UnitOfWork, *, now: int, kept_ms: int) -> int:
    cursors = [subscription.cursor for subscription in uow.subscriptions.all()]
    seen = min(cursors, default=None)
    up_to = forgettable(uow.events.oldest(limit=BATCH), now=now, kept_ms=kept_ms, seen=seen)
    if up_to is None:
        return 0
    reached("forget.chosen")
    return uow.events.remove_up_to(up_to)
