"""Cleaning of logs: every so often all tables are visited, by one server at a time.

Nobody waits for it, and whoever commits should not notice it: it goes through a large catalog slowly.
"""

from __future__ import annotations

import asyncio
import logging

from tidegate.domain.errors import TidegateError
from tidegate.domain.names import TableId
from tidegate.services.clean_log import clean_log
from tidegate.services.environment import Environment

TABLES_AT_ONCE = 4
"""Of which all but one wait for a slow store."""
TABLES_READ_AT_ONCE = 100
PAUSE_SECONDS = 0.1
"""Between one table and the next: a hundred thousand are visited within three hours."""

log = logging.getLogger(__name__)


async def clean_logs(env: Environment) -> None:
    async with env.database.exclusively("cleaning logs") as alone:
        if not alone:
            return
        after, turns = "", asyncio.Semaphore(TABLES_AT_ONCE)
        while ids := await env.database.read(lambda uow: uow.tables.managed(after=after, limit=TABLES_READ_AT_ONCE)):  # noqa: B023
            async with asyncio.TaskGroup() as tasks:
                for id in ids:
                    await turns.acquire()
                    tasks.create_task(_clean(env, id)).add_done_callback(lambda _: turns.release())
                    await asyncio.sleep(PAUSE_SECONDS)
            after = ids[-1]


async def _clean(env: Environment, id: TableId) -> None:
    try:
        await clean_log(env, id)
    except TidegateError as error:
        log.warning("the log of table %s is cleaned later: %s", id, error.message)
    except Exception:
        log.exception("the log of table %s is cleaned later", id)
