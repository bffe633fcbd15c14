"""Subscriptions, as Tidegate's own API shows them. A secret leaves the server once: with the answer that made it."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any

from tidegate.domain import errors
from tidegate.domain.event_filters import parse_filter, scope_text
from tidegate.domain.events import Sequence
from tidegate.domain.subscriptions import DeadLetter, Function, Subscription, Webhook
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.events import from_event
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services import subscriptions as service
from tidegate.wire import subscriptions as wire


async def create(call: Call) -> wire.CreatedSubscription:
    body: wire.CreateSubscription = call.body
    draft = service.Draft(
        name=body.name,
        wanted=parse_filter(table=body.table, kinds=body.kinds, operation=body.operation),
        url=None if body.webhook is None else body.webhook.url,
        secret=None if body.webhook is None else body.webhook.secret,
        function=body.function,
        after=None if body.after is None else Sequence(body.after),
    )
    made = await service.create_subscription(call.env, call.caller, draft)
    secret = made.target.secret if isinstance(made.target, Webhook) else None
    return wire.CreatedSubscription(**_shown(made), secret=secret)


async def list_all(call: Call) -> wire.Subscriptions:
    found = await service.list_subscriptions(call.env, call.caller)
    return wire.Subscriptions([wire.Subscription(**_shown(one)) for one in found])


async def get(call: Call) -> wire.Subscription:
    return wire.Subscription(**_shown(await service.get_subscription(call.env, call.caller, call.path["name"])))


async def update(call: Call) -> wire.Subscription:
    body: wire.UpdateSubscription = call.body
    name = call.path["name"]
    changed = await service.pause_subscription(call.env, call.caller, name, paused=body.paused)
    return wire.Subscription(**_shown(changed))


async def delete(call: Call) -> None:
    await service.delete_subscription(call.env, call.caller, call.path["name"])


async def list_dead_letters(call: Call) -> wire.DeadLetters:
    query: wire.DeadLettersQuery = call.query
    if query.max_results is not None and query.max_results < 0:
        raise errors.InvalidRequest(f"max_results is {query.max_results}. Use a positive number, or leave it out.")
    limit = min(query.max_results or service.LETTERS_PAGE_SIZE, service.LETTERS_PAGE_SIZE_MAX)
    letters = await service.list_dead_letters(
        call.env, call.caller, call.path["name"], after=Sequence(query.after), limit=limit
    )
    more = letters[-1].numbered.sequence if len(letters) == limit else None
    return wire.DeadLetters([_from_letter(letter) for letter in letters], more)


async def resend_dead_letters(call: Call) -> wire.ChangedDeadLetters:
    name, chosen = call.path["name"], _chosen(call)
    return wire.ChangedDeadLetters(await service.resend_dead_letters(call.env, call.caller, name, chosen))


async def discard_dead_letters(call: Call) -> wire.ChangedDeadLetters:
    name, chosen = call.path["name"], _chosen(call)
    return wire.ChangedDeadLetters(await service.discard_dead_letters(call.env, call.caller, name, chosen))


def _chosen(call: Call) -> Several[Sequence] | None:
    body: wire.ChosenDeadLetters = call.body
    return None if body.sequences is None else [Sequence(sequence) for sequence in body.sequences]


def _shown(subscription: Subscription) -> dict[str, Any]:
    wanted, target = subscription.wanted, subscription.target
    return {
        "name": subscription.name,
        "table": None if wanted.scope is None else scope_text(wanted.scope),
        "kinds": sorted(kind.value for kind in wanted.kinds),
        "operation": wanted.operation,
        "url": target.url if isinstance(target, Webhook) else None,
        "function": target.name if isinstance(target, Function) else None,
        "cursor": subscription.cursor,
        "attempts": subscription.attempts,
        "next_attempt_at": subscription.next_attempt_at or None,
        "paused": subscription.paused,
        "note": subscription.note,
        "dead_letters": subscription.dead_letters,
        "created_at": subscription.created_at,
        "created_by": subscription.created_by,
    }


def _from_letter(letter: DeadLetter) -> wire.DeadLetter:
    return wire.DeadLetter(
        event=from_event(letter.numbered),
        attempts=letter.attempts,
        error=letter.error,
        failed_at=letter.failed_at,
        resend=letter.resend,
    )


_NO_SUCH = (errors.NoSuchSubscription,)

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "POST",
        "/subscriptions",
        "createSubscription",
        "Tells a webhook or a function of the server about events; shows the webhook's secret once.",
        create,
        body=wire.CreateSubscription,
        answer=wire.CreatedSubscription,
        errors=(errors.InvalidRequest, errors.SubscriptionAlreadyExists, errors.BacklogFull),
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        "/subscriptions",
        "listSubscriptions",
        "All subscriptions, and how far each has come.",
        list_all,
        answer=wire.Subscriptions,
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        "/subscriptions/{name}",
        "getSubscription",
        "One subscription, and how far it has come.",
        get,
        answer=wire.Subscription,
        errors=_NO_SUCH,
    ),
    Endpoint(
        TIDEGATE,
        "PATCH",
        "/subscriptions/{name}",
        "updateSubscription",
        "Pauses a subscription, or lets it go on where it stopped.",
        update,
        body=wire.UpdateSubscription,
        answer=wire.Subscription,
        errors=_NO_SUCH,
    ),
    Endpoint(
        TIDEGATE,
        "DELETE",
        "/subscriptions/{name}",
        "deleteSubscription",
        "Removes a subscription and its dead letters.",
        delete,
        status=204,
        errors=_NO_SUCH,
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        "/subscriptions/{name}/dead-letters",
        "listDeadLetters",
        "Events that could not be delivered, and why, in pages.",
        list_dead_letters,
        query=wire.DeadLettersQuery,
        answer=wire.DeadLetters,
        errors=(errors.InvalidRequest, *_NO_SUCH),
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        "/subscriptions/{name}/dead-letters/resend",
        "resendDeadLetters",
        "Sends dead letters again, soon; those that fail once more stay.",
        resend_dead_letters,
        body=wire.ChosenDeadLetters,
        answer=wire.ChangedDeadLetters,
        errors=_NO_SUCH,
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        "/subscriptions/{name}/dead-letters/discard",
        "discardDeadLetters",
        "Forgets dead letters.",
        discard_dead_letters,
        body=wire.ChosenDeadLetters,
        answer=wire.ChangedDeadLetters,
        errors=_NO_SUCH,
    ),
]
