"""Keeps promises to take tables over or to give them back: old ones at the start, others when they are overdue."""

from __future__ import annotations

import asyncio

from tidegate.services.environment import Environment
from tidegate.services.keep_promises import keep_promises

EVERY_SECONDS = 15.0


async def keep_promises_for_ever(env: Environment) -> None:
    await keep_promises(env, grace_ms=0)
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        await keep_promises(env)
