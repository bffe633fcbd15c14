"""Delivery: the next events of one subscription go to its target, in order, each at least once.

    read the next few -> send one -> send the next -> ... -> move the cursor past them
                             |
                             refused: remember the attempt and pause; after the last attempt it is a dead letter,
                             written together with the cursor that moves past it

Whatever fails here stays here: commits know nothing of subscriptions.
"""

from __future__ import annotations

import json
import logging
import random
from dataclasses import replace
from time import monotonic

from tidegate.domain.cloud_events import MEDIA_TYPE, cloud_event, cloud_event_id
from tidegate.domain.errors import EventsForgotten
from tidegate.domain.events import NumberedEvent, Sequence
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.subscriptions import DeadLetter, DeliveryFailed, Subscription, Webhook, is_due, pause_ms, sign
from tidegate.services.environment import Environment
from tidegate.services.event_feed import look
from tidegate.services.read_events import EventsRequest, next_events
from tidegate.steps import reached

BATCH_MAX = 20
"""Events that are sent before the cursor moves; as many may be sent twice after a crash."""
RECORD_SECONDS = 1.0
"""A batch that takes longer is recorded on the way."""

log = logging.getLogger(__name__)


async def deliver(env: Environment, name: str) -> None:
    """Sends what waits, until nothing is left or the receiver wants a pause."""
    last, metastore = await look(env.database), await env.database.read(lambda uow: uow.metastore.id()) or ""
    while True:
        subscription = await env.database.read(lambda uow: uow.subscriptions.find(name))
        if subscription is None or not is_due(subscription, last=last, now=env.clock()):
            return
        await _resend(env, subscription, metastore)
        if not await _deliver_next(env, subscription, metastore):
            return


async def _deliver_next(env: Environment, subscription: Subscription, metastore: str) -> bool:
    """Whether to go on at once."""
    try:
        request = EventsRequest(after=subscription.cursor, limit=BATCH_MAX, wanted=subscription.wanted)
        page = await next_events(env, request)
    except EventsForgotten:
        await _stop_at_gap(env, subscription)
        return False
    reached("deliver.started")
    known, delivered, recorded = subscription, subscription.cursor, monotonic()
    for numbered in page.events:
        try:
            await _send(env, subscription, numbered, metastore)
        except DeliveryFailed as failure:
            _count(env, "failed")
            reached("deliver.failed")
            return await _record_failure(env, known, delivered, numbered, str(failure))
        delivered = numbered.sequence
        _count(env, "delivered")
        reached("deliver.sent")
        if monotonic() - recorded > RECORD_SECONDS:
            if not await _record(env, known, delivered):
                return False
            known, recorded = replace(known, cursor=delivered, attempts=0), monotonic()
    moved = await _record(env, known, page.next_after)
    reached("deliver.recorded")
    return moved


async def _send(env: Environment, subscription: Subscription, numbered: NumberedEvent, metastore: str) -> None:
    event, target = cloud_event(numbered, metastore=metastore), subscription.target
    if not isinstance(target, Webhook):
        await env.functions.call(target.name, event, key=subscription.id)
        return
    id, timestamp = cloud_event_id(numbered, metastore=metastore), env.clock() // 1000
    body = json.dumps(event, separators=(",", ":")).encode()
    headers = {
        "content-type": MEDIA_TYPE,
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(target.secret, id=id, timestamp=timestamp, body=body),
    }
    await env.webhooks.post(target.url, headers=headers, body=body)


async def _record(env: Environment, known: Subscription, to: Sequence) -> bool:
    """False if another server was faster, or the subscription is gone."""
    if known.cursor == to and not known.attempts:
        return True
    return await env.database.write(
        lambda uow: uow.subscriptions.move(known, to, attempts=0, next_attempt_at=0, note=None)
    )


async def _record_failure(
    env: Environment, known: Subscription, delivered: Sequence, numbered: NumberedEvent, error: str
) -> bool:
    attempts = known.attempts + 1 if delivered == known.cursor else 1
    if attempts >= env.delivery.attempts_max:
        return await _bury(env, known, DeadLetter(numbered, attempts, error, env.clock()))
    jitter = random.uniform(0.8, 1.2)  # noqa: S311
    pause = pause_ms(attempts, first_ms=env.delivery.backoff_ms, jitter=jitter)
    log.info("subscription %s pauses for %d ms: %s", known.name, pause, error)
    again = env.clock() + pause
    await env.database.write(
        lambda uow: uow.subscriptions.move(known, delivered, attempts=attempts, next_attempt_at=again, note=error)
    )
    return False


async def _bury(env: Environment, known: Subscription, letter: DeadLetter) -> bool:
    """The letter and the cursor that moves past it are written together: the event is never in both places."""
    full = known.dead_letters + 1 >= env.delivery.dead_letters_max

    def work(uow: UnitOfWork) -> bool:
        past = letter.numbered.sequence
        if not uow.subscriptions.move(known, past, attempts=0, next_attempt_at=0, note=letter.error):
            return False
        uow.subscriptions.bury(known.id, letter)
        if full:
            note = f"Paused with {known.dead_letters + 1} dead letters. Resend or discard them, then resume."
            uow.subscriptions.pause(known.id, paused=True, note=note)
        return not full

    go_on = await env.database.write(work)
    _count(env, "buried")
    reached("deliver.buried")
    log.warning("subscription %s: event %d is a dead letter: %s", known.name, letter.numbered.sequence, letter.error)
    return go_on


async def _resend(env: Environment, subscription: Subscription, metastore: str) -> None:
    letters = await env.database.read(
        lambda uow: uow.subscriptions.letters(subscription.id, after=Sequence(0), limit=BATCH_MAX, to_resend=True)
    )
    for letter in letters:
        try:
            await _send(env, subscription, letter.numbered, metastore)
        except DeliveryFailed as failure:
            again = replace(letter, attempts=letter.attempts + 1, error=str(failure), failed_at=env.clock())
            await env.database.write(lambda uow: uow.subscriptions.failed_again(subscription.id, again))  # noqa: B023
            _count(env, "failed")
            continue
        _count(env, "delivered")
        reached("deliver.resent")
        sent = letter.numbered.sequence
        await env.database.write(lambda uow: uow.subscriptions.discard(subscription.id, [sent]))  # noqa: B023


def _count(env: Environment, outcome: str) -> None:
    env.measures.deliveries.at(outcome).value += 1


async def _stop_at_gap(env: Environment, known: Subscription) -> None:
    """A gap is for a person to know of: the receiver cannot see it."""

    def work(uow: UnitOfWork) -> None:
        forgotten = uow.events.forgotten()
        note = f"Paused: events {known.cursor + 1} to {forgotten} were forgotten before they were delivered. Resume."
        if uow.subscriptions.move(known, forgotten, attempts=0, next_attempt_at=0, note=note):
            uow.subscriptions.pause(known.id, paused=True, note=note)

    await env.database.write(work)
    log.error("subscription %s is paused: it was so far behind that events were forgotten", known.name)
