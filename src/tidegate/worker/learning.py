"""Learning of commits that were put into logs while nobody asks for their tables, by one server at a time.

Tables whose commits are put there are found by going through all of them, a few at a time; only their logs are looked
at.
"""

from __future__ import annotations

import asyncio
import logging

from tidegate.domain.errors import NotFound, TidegateError
from tidegate.domain.names import TableId
from tidegate.services.environment import Environment
from tidegate.services.learn_commits import up_to_date

TABLES_AT_ONCE = 4
"""Of which all but one wait for a slow store."""
TABLES_READ_AT_ONCE = 1000
PAUSE_SECONDS = 0.05
"""Between one part of a large catalog and the next."""

log = logging.getLogger(__name__)


async def learn_put_commits(env: Environment) -> None:
    async with env.database.exclusively("learning commits") as alone:
        turns, after = asyncio.Semaphore(TABLES_AT_ONCE), "" if alone else None
        while after is not None:
            ids, after = await env.database.read(
                lambda uow: uow.tables.putting(after=after or "", limit=TABLES_READ_AT_ONCE)  # noqa: B023
            )
            async with asyncio.TaskGroup() as tasks:
                for id in ids:
                    await turns.acquire()
                    tasks.create_task(_learn(env, id)).add_done_callback(lambda _: turns.release())
            await asyncio.sleep(PAUSE_SECONDS)


async def _learn(env: Environment, id: TableId) -> None:
    try:
        await up_to_date(env, await env.database.read(lambda uow: uow.tables.get_by_id(id)))
    except NotFound:
        return  # dropped meanwhile
    except TidegateError as error:
        log.warning("what was put into the log of table %s is learned later: %s", id, error.message)
    except Exception:
        log.exception("what was put into the log of table %s is learned later", id)
