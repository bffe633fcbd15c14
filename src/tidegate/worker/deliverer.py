"""The deliverer: for each subscription that is due, one task on one of the servers.

It waits for events as their readers do; while there are no subscriptions it asks for nothing but them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence as Several
from functools import partial

from tidegate.domain.errors import TidegateError
from tidegate.domain.events import Sequence
from tidegate.domain.subscriptions import Subscription, is_due
from tidegate.services.deliver_events import deliver
from tidegate.services.environment import Environment
from tidegate.services.event_feed import look

LOOK_SECONDS = 1.0
"""Between two looks at the subscriptions: another server, or another process, may have changed one."""
REST_SECONDS = 0.02
AGAIN_SECONDS = 5.0
"""After the database did not answer."""

log = logging.getLogger(__name__)


async def deliver_for_ever(env: Environment) -> None:
    running: set[str] = set()
    async with asyncio.TaskGroup() as tasks:
        while True:
            try:
                await _deliver_what_is_due(env, tasks, running)
            except TidegateError as error:
                log.warning("events are delivered later: %s", error.message)
                await asyncio.sleep(AGAIN_SECONDS)
            await asyncio.sleep(REST_SECONDS)


async def _deliver_what_is_due(env: Environment, tasks: asyncio.TaskGroup, running: set[str]) -> None:
    """Starts it, and waits until there may be more."""

    def finished(id: str, task: asyncio.Task[bool]) -> None:
        running.discard(id)
        if not task.cancelled() and task.result():
            env.deliveries.set()  # what came while it ended is looked at now

    env.deliveries.clear()
    subscriptions = await env.database.read(lambda uow: uow.subscriptions.all())
    if not subscriptions:
        await _wait(env, None, seconds_max=LOOK_SECONDS)
        return
    last = await look(env.database)
    for due in (one for one in subscriptions if is_due(one, last=last, now=env.clock())):
        if due.id not in running:
            running.add(due.id)
            tasks.create_task(_deliver(env, due)).add_done_callback(partial(finished, due.id))
    await _wait(env, last, seconds_max=_until_next_attempt(env, subscriptions))


async def _wait(env: Environment, last: Sequence | None, *, seconds_max: float) -> None:
    """Until there is an event after `last`, or something else to deliver, or the time is over."""
    something = asyncio.ensure_future(env.deliveries.wait())
    try:
        if last is None:
            await asyncio.wait([something], timeout=seconds_max)
        else:
            await env.feed.newer_than(last, seconds_max=seconds_max, ending=something)
    finally:
        something.cancel()


def _until_next_attempt(env: Environment, subscriptions: Several[Subscription]) -> float:
    now = env.clock()
    pauses = [one.next_attempt_at - now for one in subscriptions if not one.paused and one.next_attempt_at > now]
    return min([LOOK_SECONDS, *(pause / 1000 for pause in pauses)])


async def _deliver(env: Environment, subscription: Subscription) -> bool:
    """Whether it was this server that did it, and all went as it should, or failed as it may."""
    try:
        async with env.database.exclusively(f"deliver {subscription.id}") as alone:
            if alone:
                await deliver(env, subscription.name)
            return alone
    except TidegateError as error:
        log.warning("delivery to %s is tried again: %s", subscription.name, error.message)
    except Exception:
        log.exception("delivery to %s failed and is tried again", subscription.name)
    return False
