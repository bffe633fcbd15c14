"""Subscriptions as objects of the catalog: create, list, pause, resume, delete; and their dead letters."""

from __future__ import annotations

import secrets
from collections.abc import Sequence as Several

from tidegate.domain.errors import BacklogFull, InvalidRequest, SubscriptionAlreadyExists
from tidegate.domain.event_filters import EventFilter
from tidegate.domain.events import Sequence
from tidegate.domain.frozen import frozen
from tidegate.domain.names import check_name
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.subscriptions import (
    SECRET_BYTES_MIN,
    DeadLetter,
    Function,
    Subscription,
    Target,
    Webhook,
    check_secret,
    check_url,
    make_secret,
)
from tidegate.services.environment import Environment
from tidegate.services.event_feed import look

LETTERS_PAGE_SIZE = 100
LETTERS_PAGE_SIZE_MAX = 1000


@frozen
class Draft:
    name: str
    wanted: EventFilter
    url: str | None
    secret: str | None
    function: str | None
    after: Sequence | None
    """None: what happens from now on."""


async def create_subscription(env: Environment, caller: Principal, draft: Draft) -> Subscription:
    name, target = check_name("subscription", draft.name), _target(env, draft)
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")

    def work(uow: UnitOfWork) -> Subscription:
        if uow.subscriptions.find(name) is not None:
            raise SubscriptionAlreadyExists(name)
        if uow.subscriptions.count() >= env.delivery.subscriptions_max:
            raise BacklogFull(
                f"There are {env.delivery.subscriptions_max} subscriptions already, the setting subscriptions_max. "
                "Delete one first."
            )
        made = Subscription(
            id=env.new_id(),
            name=name,
            wanted=draft.wanted,
            target=target,
            cursor=_start(uow, draft.after),
            created_at=env.clock(),
            created_by=caller.name,
        )
        uow.subscriptions.add(made)
        return made

    await look(env.database)
    made = await env.database.write(work)
    env.deliveries.set()
    return made


async def list_subscriptions(env: Environment, caller: Principal) -> Several[Subscription]:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    return await env.database.read(lambda uow: uow.subscriptions.all())


async def get_subscription(env: Environment, caller: Principal, name: str) -> Subscription:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    return await env.database.read(lambda uow: uow.subscriptions.get(name))


async def pause_subscription(env: Environment, caller: Principal, name: str, *, paused: bool) -> Subscription:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")

    def work(uow: UnitOfWork) -> Subscription:
        uow.subscriptions.pause(uow.subscriptions.get(name).id, paused=paused, note=None)
        return uow.subscriptions.get(name)

    changed = await env.database.write(work)
    env.deliveries.set()
    return changed


async def delete_subscription(env: Environment, caller: Principal, name: str) -> None:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    await env.database.write(lambda uow: uow.subscriptions.remove(uow.subscriptions.get(name).id))


async def list_dead_letters(
    env: Environment, caller: Principal, name: str, *, after: Sequence, limit: int
) -> Several[DeadLetter]:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    size = min(limit, LETTERS_PAGE_SIZE_MAX)

    def work(uow: UnitOfWork) -> Several[DeadLetter]:
        return uow.subscriptions.letters(uow.subscriptions.get(name).id, after=after, limit=size)

    return await env.database.read(work)


async def resend_dead_letters(
    env: Environment, caller: Principal, name: str, sequences: Several[Sequence] | None
) -> int:
    """They are sent soon; those that fail once more stay. How many there are."""
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")

    def work(uow: UnitOfWork) -> int:
        return uow.subscriptions.mark(uow.subscriptions.get(name).id, sequences, resend=True)

    marked = await env.database.write(work)
    env.deliveries.set()
    return marked


async def discard_dead_letters(
    env: Environment, caller: Principal, name: str, sequences: Several[Sequence] | None
) -> int:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")

    def work(uow: UnitOfWork) -> int:
        return uow.subscriptions.discard(uow.subscriptions.get(name).id, sequences)

    return await env.database.write(work)


def _target(env: Environment, draft: Draft) -> Target:
    if (draft.url is None) == (draft.function is None):
        raise InvalidRequest("A subscription has one target: a webhook or a function. Give exactly one of them.")
    if draft.url is not None:
        secret = make_secret(secrets.token_bytes(SECRET_BYTES_MIN)) if draft.secret is None else draft.secret
        return Webhook(check_url(draft.url), check_secret(secret))
    if draft.function not in env.functions.names:
        known = ", ".join(env.functions.names) or "none"
        raise InvalidRequest(
            f"There is no function {str(draft.function)[:100]!r}. The server was started with: {known}. "
            "Add it to the setting functions."
        )
    return Function(str(draft.function))


def _start(uow: UnitOfWork, after: Sequence | None) -> Sequence:
    uow.events.number()  # what has happened by now comes before what happens from now on
    last = uow.events.last()
    if after is None:
        return last
    if not uow.events.forgotten() <= after <= last:
        raise InvalidRequest(
            f"after is {after}; events from {uow.events.forgotten()} to {last} are kept. Leave it out to begin now."
        )
    return after
