"""The publisher: takes tables from the queue, a few at a time, and finds those that the queue has missed.

Every server publishes what it ratified itself. Every so often each asks the database for tables that are behind for
longer than any server should need, as after a server died, and one of them takes those on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tidegate.domain.errors import TidegateError
from tidegate.domain.names import TableId, Version
from tidegate.domain.publishing import Behind
from tidegate.services.environment import Environment
from tidegate.services.publish_commits import PublishingBlocked, publish_commits
from tidegate.telemetry.logs import about

TABLES_AT_ONCE = 8
SLOW_SECONDS = 1.0
"""A table that takes longer than this, as one whose store hangs, no longer counts among those."""
SLOW_TABLES_MAX = 48
SWEPT_AT_ONCE = 1000
OVERDUE_MS = 2_000
"""A commit that waits for longer than this beyond the usual delay was forgotten by whoever ratified it."""

log = logging.getLogger(__name__)


async def publish_for_ever(env: Environment) -> None:
    await sweep(env, overdue_ms=0)  # what was left when this server, or the last one, went down
    slow: set[asyncio.Task[None]] = set()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(TABLES_AT_ONCE):
            tasks.create_task(_publish_one_after_the_other(env, tasks, slow))


async def _publish_one_after_the_other(
    env: Environment, tasks: asyncio.TaskGroup, slow: set[asyncio.Task[None]]
) -> None:
    while True:
        id, up_to = await env.publishing.next()
        publishing = tasks.create_task(_publish_next(env, id, up_to))
        await asyncio.wait([publishing], timeout=SLOW_SECONDS if len(slow) < SLOW_TABLES_MAX else None)
        if not publishing.done():
            slow.add(publishing)
            publishing.add_done_callback(slow.discard)


async def _publish_next(env: Environment, id: TableId, up_to: Version) -> None:
    outcome, span = "failed", None if env.traces is None else env.traces.begin("publish", {"tidegate.table_id": id})
    try:
        left = await publish_commits(env, id, up_to=up_to)
    except PublishingBlocked:
        outcome = "blocked"
        env.publishing.failed(id, up_to)  # the alarm says it all
    except TidegateError as error:
        seconds = env.publishing.failed(id, up_to)
        log.warning("publishing is tried again in %.0f s: %s", seconds, error.message, extra=_about(env, id))
    except Exception:
        env.publishing.failed(id, up_to)
        log.exception("publishing table %s failed", id, extra=_about(env, id))
    else:
        outcome = "done"
        env.publishing.done(id)
        if left is not None:
            env.publishing.notice(id, left.latest, waiting=left.waiting)
    env.measures.publishing.at(outcome).value += 1
    env.measures.failing_tables.value = env.publishing.failing
    if env.traces is not None:
        known = env.database.known_table(id)
        about = {"tidegate.table": None if known is None else str(known.name), "tidegate.outcome": outcome}
        reached = {"tidegate.version": None if known is None else known.published}
        env.traces.end(span, {**about, **reached}, failure=None if outcome == "done" else outcome)


def _about(env: Environment, id: TableId) -> dict[str, Any]:
    """The table, by its name if that is at hand, and the version that is to be published next."""
    known = env.database.known_table(id)
    return about(table=id) if known is None else about(table=str(known.name), version=known.published + 1)


async def sweep(env: Environment, *, overdue_ms: int = OVERDUE_MS) -> None:
    """Tables that are behind although nobody commits to them now: their server died, or theirs is another one."""
    async with env.database.exclusively("sweep") as alone:
        if not alone:
            return
        after = ""
        while behind := await env.database.read(lambda uow: uow.tables.behind(after=after, limit=SWEPT_AT_ONCE)):  # noqa: B023
            for table in behind:
                if _overdue(env, table, overdue_ms):
                    env.publishing.hurry(table.table_id)
            after = behind[-1].table_id


def _overdue(env: Environment, table: Behind, overdue_ms: int) -> bool:
    allowed = int(env.publishing.delay_seconds * 1000) + overdue_ms
    if table.ratified_at is None:
        return True
    age = env.clock() - table.ratified_at
    return age > allowed or age < 0  # a clock that was set back must not make it wait
