"""Subscriptions in Tidegate's own API: their JSON. Moments are milliseconds since the epoch."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tidegate.wire.delta import Int32
from tidegate.wire.events import Event, Sequence

Chosen = Annotated[list[Sequence], Meta(max_length=1000)]


class Webhook(Struct, frozen=True):
    """Without a secret one is made, and shown in the answer, once."""

    url: str
    secret: str | None = None


class CreateSubscription(Struct, frozen=True):
    """One of `webhook` and `function`. Without `after` it begins with what happens from now on."""

    name: str
    webhook: Webhook | None = None
    function: str | None = None
    table: str | None = None
    kinds: list[str] | None = None
    operation: str | None = None
    after: Sequence | None = None


class Subscription(Struct, frozen=True, kw_only=True):
    """Events up to `cursor` are done with. `note` tells what went wrong last."""

    name: str
    table: str | None
    kinds: list[str]
    operation: str | None
    url: str | None
    function: str | None
    cursor: int
    attempts: int
    next_attempt_at: int | None
    paused: bool
    note: str | None
    dead_letters: int
    created_at: int
    created_by: str


class CreatedSubscription(Subscription, frozen=True, kw_only=True):
    """`secret` is shown here and nowhere else."""

    secret: str | None


class Subscriptions(Struct, frozen=True):
    subscriptions: list[Subscription]


class UpdateSubscription(Struct, frozen=True):
    paused: bool


class DeadLettersQuery(Struct, frozen=True):
    after: Sequence = 0
    max_results: Int32 | None = None


class DeadLetter(Struct, frozen=True):
    event: Event
    attempts: int
    error: str
    failed_at: int
    resend: bool


class DeadLetters(Struct, frozen=True):
    """`next_after` is for the next page; null if this is the last one."""

    dead_letters: list[DeadLetter]
    next_after: int | None


class ChosenDeadLetters(Struct, frozen=True):
    """By their numbers. Null or left out: all."""

    sequences: Chosen | None = None


class ChangedDeadLetters(Struct, frozen=True):
    count: int
