"""Emptying the folder of a table that is no more, batch by batch, until nothing is left.

Every batch is preceded by a look at who else lies there, and followed by a note of how far it got. What fails is tried
again later, and delays nobody else's folder.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tidegate.domain.errors import InvalidRequest, TidegateError, Unavailable
from tidegate.domain.names import TableId
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.removals import Removal, RemovalCause, failed, progressed
from tidegate.services.environment import Environment
from tidegate.services.purge_table import end_purge
from tidegate.steps import reached

FILES_AT_ONCE = 1000
REMOVALS_AT_ONCE = 100

log = logging.getLogger(__name__)


async def due_removals(env: Environment) -> Sequence[Removal]:
    now = env.clock()
    return await env.database.read(lambda uow: uow.removals.due(now=now, limit=REMOVALS_AT_ONCE))


async def remove_folder(env: Environment, removal: Removal) -> None:
    """Goes on with a removal until it is done or fails; then why is noted, and when it is tried again."""
    try:
        await _end(env, await _empty(env, removal))
    except TidegateError as error:
        log.warning("removing %s of %s is tried again later: %s", removal.location, removal.name, error.message)
        await _note(env, removal.table_id, error.message)
    except Exception:
        log.exception("removing %s of %s is tried again later", removal.location, removal.name)
        await _note(env, removal.table_id, "It failed for a reason that the server's log tells.")


async def _empty(env: Environment, removal: Removal) -> Removal:
    step = removal.cause.value
    while await env.table_files.exists(removal.location):
        neighbour = await env.database.read(lambda uow: uow.removals.find_neighbour(removal))  # noqa: B023
        if neighbour is not None:
            raise InvalidRequest(
                f"{removal.location} is not emptied, because the table {neighbour} lies at, above or below it. "
                "Drop that table, or move it elsewhere."
            )
        removed = await env.table_files.clear(removal.location, limit=FILES_AT_ONCE)
        env.measures.removed_files.at(step).value += removed
        reached(f"{step}.files_removed")
        if removed == 0 and await env.table_files.exists(removal.location):
            raise Unavailable(f"{removal.location} cannot be emptied: somebody puts files there. Find out who does.")
        removal = progressed(removal, removed)
        await env.database.write(lambda uow: uow.removals.change(removal))  # noqa: B023
    reached(f"{step}.emptied")
    return removal


async def _end(env: Environment, removal: Removal) -> None:
    match removal.cause:
        case RemovalCause.PURGE:
            await end_purge(env, removal)
        case RemovalCause.EXPIRY:
            await env.database.write(lambda uow: uow.removals.remove(removal))
    reached(f"{removal.cause.value}.forgotten")
    log.info("%s is gone, with %s files", removal.name, removal.files_removed)


async def _note(env: Environment, id: TableId, problem: str) -> None:
    def work(uow: UnitOfWork) -> None:
        current = uow.removals.get(id)
        if current is not None:
            uow.removals.change(failed(current, problem, now=env.clock()))

    await env.database.write(work)
