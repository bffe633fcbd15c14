"""Appends that left their version open are known again for a day: nobody sends one again after that."""

from __future__ import annotations

from tidegate.domain.retention import HOUR_MS
from tidegate.services.environment import Environment

KEPT_MS = 24 * HOUR_MS
BATCH = 1000
BATCHES_MAX = 1000
"""In one go; what is left goes next time."""


async def forget_appends(env: Environment) -> None:
    async with env.database.exclusively("forget appends") as alone:
        if not alone:
            return
        before = env.patient_clock() - KEPT_MS
        for _ in range(BATCHES_MAX):
            forgotten = await env.database.write(
                lambda uow: uow.inline_commits.forget_opened(ratified_before=before, limit=BATCH)
            )
            if forgotten < BATCH:
                return
