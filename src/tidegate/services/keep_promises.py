"""Promises to take tables over, or to give them back, that somebody made and did not keep: a server that was killed, or
a store that did not answer. They are kept by whoever finds them: at the start, every so often, or for the doctor.

Two at once do no harm: both put the same bytes, and what follows happens once.
"""

from __future__ import annotations

import logging

from tidegate.domain.errors import InvalidRequest, TidegateError
from tidegate.domain.ownership import Change, Promise
from tidegate.services.adopt_table import keep_adoption
from tidegate.services.environment import Environment
from tidegate.services.own_table import keep_registration
from tidegate.services.release_table import keep_release

PAGE = 100
"""Read at once; the oldest first."""
GRACE_MS = 30_000
"""Who made a promise is left in peace for so long."""

log = logging.getLogger(__name__)


async def keep_promises(env: Environment, *, grace_ms: int = GRACE_MS) -> None:
    for promise in await overdue(env, grace_ms=grace_ms):
        await keep_promise(env, promise)


async def overdue(env: Environment, *, grace_ms: int = GRACE_MS) -> list[Promise]:
    """All of them: old ones may wait for ever for clients that died, and are not to stand before newer ones."""
    promises = list[Promise]()
    while True:
        last = promises[-1] if promises else None
        page = await env.database.read(lambda uow, last=last: uow.ownership.all(limit=PAGE, after=last))
        promises += page
        if len(page) < PAGE:
            break
    now = env.clock()
    # A moment in the future was noted by a clock that was wrong.
    return [promise for promise in promises if not 0 <= now - promise.begun_at < grace_ms]


async def keep_promise(env: Environment, promise: Promise) -> None:
    """As far as it goes; what is in the way is logged."""
    try:
        match promise.change:
            case Change.ADOPT:
                await keep_adoption(env, promise)
            case Change.RELEASE:
                await keep_release(env, promise)
            case Change.OWN:
                if not await keep_registration(env, promise):
                    return  # its client has put nothing yet
        log.info("the promise to %s %s is kept", promise.change.value, promise.name)
    except InvalidRequest as error:
        if promise.change is Change.OWN:
            log.warning("the promise to own %s waits: %s", promise.name, error.message)
            return
        log.warning("the promise to %s %s has ended: %s", promise.change.value, promise.name, error.message)
    except TidegateError as error:
        log.warning("the promise to %s %s waits: %s", promise.change.value, promise.name, error.message)
