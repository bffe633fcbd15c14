"""Subscriptions and their dead letters in the database.

A cursor is moved by compare-and-set: of two servers that believe to deliver the same events, one finds that the other
was there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence as Several
from typing import Any

import sqlalchemy as sa

from tidegate.db.schema import dead_letters, subscriptions
from tidegate.domain.errors import NoSuchSubscription
from tidegate.domain.event_filters import EventFilter, parse_scope, scope_text
from tidegate.domain.events import Event, EventKind, NumberedEvent, Sequence
from tidegate.domain.names import TableId, Version
from tidegate.domain.subscriptions import DeadLetter, Function, Subscription, Target, Webhook

_of_it = dead_letters.c.subscription_id == subscriptions.c.id
_COUNT = sa.select(sa.func.count()).select_from(dead_letters)
_SUBSCRIPTION = sa.select(
    subscriptions,
    _COUNT.where(_of_it).scalar_subquery().label("dead_letters"),
    _COUNT.where(_of_it, dead_letters.c.resend).scalar_subquery().label("resends"),
)


class SqlSubscriptions:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, subscription: Subscription) -> None:
        self._connection.execute(subscriptions.insert().values(_row(subscription)))

    def find(self, name: str) -> Subscription | None:
        row = self._connection.execute(_SUBSCRIPTION.where(subscriptions.c.name == name)).one_or_none()
        return None if row is None else _subscription(row)

    def get(self, name: str) -> Subscription:
        found = self.find(name)
        if found is None:
            raise NoSuchSubscription(name)
        return found

    def all(self) -> Several[Subscription]:
        rows = self._connection.execute(_SUBSCRIPTION.order_by(subscriptions.c.name))
        return [_subscription(row) for row in rows]

    def count(self) -> int:
        return self._connection.scalars(sa.select(sa.func.count()).select_from(subscriptions)).one()

    def remove(self, id: str) -> None:
        self._connection.execute(subscriptions.delete().where(subscriptions.c.id == id))

    def pause(self, id: str, *, paused: bool, note: str | None) -> None:
        change: dict[str, Any] = {"paused": paused, "note": note}
        if not paused:
            change |= {"attempts": 0, "next_attempt_at": 0}
        self._connection.execute(subscriptions.update().where(subscriptions.c.id == id).values(change))

    def move(self, known: Subscription, to: Sequence, *, attempts: int, next_attempt_at: int, note: str | None) -> bool:
        unmoved = (
            subscriptions.c.id == known.id,
            subscriptions.c.cursor == known.cursor,
            subscriptions.c.attempts == known.attempts,
        )
        change = {"cursor": to, "attempts": attempts, "next_attempt_at": next_attempt_at, "note": note}
        return self._connection.execute(subscriptions.update().where(*unmoved).values(change)).rowcount == 1

    def bury(self, id: str, letter: DeadLetter) -> None:
        self._connection.execute(
            dead_letters.insert().values(
                subscription_id=id,
                sequence=letter.numbered.sequence,
                event=_document(letter.numbered.event),
                attempts=letter.attempts,
                error=letter.error,
                failed_at=letter.failed_at,
                resend=letter.resend,
            )
        )

    def letters(self, id: str, *, after: Sequence, limit: int, to_resend: bool = False) -> Several[DeadLetter]:
        query = sa.select(dead_letters).where(dead_letters.c.subscription_id == id, dead_letters.c.sequence > after)
        if to_resend:
            query = query.where(dead_letters.c.resend)
        return [_letter(row) for row in self._connection.execute(query.order_by(dead_letters.c.sequence).limit(limit))]

    def mark(self, id: str, sequences: Several[Sequence] | None, *, resend: bool) -> int:
        change = dead_letters.update().where(*_chosen(id, sequences)).values(resend=resend)
        return self._connection.execute(change).rowcount

    def discard(self, id: str, sequences: Several[Sequence] | None) -> int:
        return self._connection.execute(dead_letters.delete().where(*_chosen(id, sequences))).rowcount

    def failed_again(self, id: str, letter: DeadLetter) -> None:
        change = {"attempts": letter.attempts, "error": letter.error, "failed_at": letter.failed_at, "resend": False}
        chosen = _chosen(id, [letter.numbered.sequence])
        self._connection.execute(dead_letters.update().where(*chosen).values(change))


def _chosen(id: str, sequences: Several[Sequence] | None) -> list[sa.ColumnElement[bool]]:
    """None: all letters of the subscription."""
    chosen: list[sa.ColumnElement[bool]] = [dead_letters.c.subscription_id == id]
    return chosen if sequences is None else [*chosen, dead_letters.c.sequence.in_(sequences)]


def _row(subscription: Subscription) -> dict[str, Any]:
    wanted, target = subscription.wanted, subscription.target
    return {
        "id": subscription.id,
        "name": subscription.name,
        "table_scope": None if wanted.scope is None else scope_text(wanted.scope),
        "kinds": json.dumps(sorted(wanted.kinds)) if wanted.kinds else None,
        "operation": wanted.operation,
        "url": target.url if isinstance(target, Webhook) else None,
        "secret": target.secret if isinstance(target, Webhook) else None,
        "function": target.name if isinstance(target, Function) else None,
        "cursor": subscription.cursor,
        "attempts": subscription.attempts,
        "next_attempt_at": subscription.next_attempt_at,
        "paused": subscription.paused,
        "note": subscription.note,
        "created_at": subscription.created_at,
        "created_by": subscription.created_by,
    }


def _subscription(row: sa.Row[Any]) -> Subscription:
    target: Target = Webhook(row.url, row.secret) if row.url is not None else Function(row.function)
    kinds: list[str] = [] if row.kinds is None else json.loads(row.kinds)
    return Subscription(
        id=row.id,
        name=row.name,
        wanted=EventFilter(
            scope=None if row.table_scope is None else parse_scope(row.table_scope),
            kinds=frozenset(map(EventKind, kinds)),
            operation=row.operation,
        ),
        target=target,
        cursor=Sequence(row.cursor),
        created_at=row.created_at,
        created_by=row.created_by,
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        paused=row.paused,
        note=row.note,
        dead_letters=row.dead_letters,
        resends=row.resends,
    )


def _document(event: Event) -> str:
    return json.dumps(
        {
            "kind": event.kind.value,
            "table_id": event.table_id,
            "table": event.table,
            "at": event.at,
            "by": event.by,
            "version": event.version,
            "data": dict(event.data),
        }
    )


def _letter(row: sa.Row[Any]) -> DeadLetter:
    said: dict[str, Any] = json.loads(row.event)
    event = Event(
        kind=EventKind(said["kind"]),
        table_id=TableId(said["table_id"]),
        table=said["table"],
        at=said["at"],
        by=said["by"],
        version=None if said["version"] is None else Version(said["version"]),
        data=said["data"],
    )
    numbered = NumberedEvent(Sequence(row.sequence), event)
    return DeadLetter(numbered, row.attempts, row.error, row.failed_at, row.resend)
