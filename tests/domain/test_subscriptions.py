"""Subscriptions: signatures, pauses, filters and what they let through."""

from __future__ import annotations

import pytest

from tidegate.domain.commit_descriptions import CommitDescription, describe_commit
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.event_filters import EventFilter, parse_filter, parse_scope, scope_text
from tidegate.domain.events import Event, EventKind, Sequence
from tidegate.domain.names import TableId, Version
from tidegate.domain.subscriptions import (
    BACKOFF_MS_MAX,
    Subscription,
    Webhook,
    check_secret,
    is_due,
    make_secret,
    pause_ms,
    sign,
)

ID = "2f0c8c39-61b5-4c3c-8a2a-0d5f0a6f1c11"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def event(kind: EventKind = EventKind.COMMITTED, table: str = "main.default.orders") -> Event:
    return Event(kind, TableId(ID), table, at=1, by="ada", version=Version(7))


def subscription(**changes: object) -> Subscription:
    fields = {"wanted": EventFilter(), "target": Webhook("http://a/", SECRET), "cursor": Sequence(5)}
    return Subscription(id="1", name="s", created_at=0, created_by="ada", **{**fields, **changes})  # type: ignore[arg-type]


def test_a_signature_is_the_one_that_the_scheme_publishes_as_its_example() -> None:
    signature = sign(SECRET, id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330, body=b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_is_not_part_of_what_a_subscription_looks_like() -> None:
    assert SECRET not in repr(subscription())


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_AAAA", SECRET.removeprefix("whsec_"), "whsec_" + "!" * 32])
def test_a_secret_that_is_none_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_secret(secret)
    assert not secret.removeprefix("whsec_") or secret not in refused.value.message
    assert check_secret(make_secret(bytes(24)))


def test_pauses_double_and_end_at_a_bound() -> None:
    assert [pause_ms(attempts, first_ms=1000, jitter=1.0) for attempts in (1, 2, 3)] == [1000, 2000, 4000]
    assert pause_ms(10_000, first_ms=1000, jitter=1.0) == BACKOFF_MS_MAX


@pytest.mark.parametrize(
    ("changes", "last", "due"),
    [
        ({}, 6, True),
        ({}, 5, False),
        ({"resends": 1}, 5, True),
        ({"paused": True, "resends": 1}, 6, False),
        ({"next_attempt_at": 1_001}, 6, False),
        ({"next_attempt_at": 1_000}, 6, True),
        ({"next_attempt_at": 1_000_000_000}, 6, True),
    ],
    ids=["news", "nothing new", "resend", "paused", "too early", "in time", "set by a clock that was wrong"],
)
def test_a_subscription_is_due_when_there_is_something_and_its_pause_is_over(
    changes: dict[str, object], last: int, due: bool
) -> None:
    assert is_due(subscription(**changes), last=Sequence(last), now=1_000) is due


@pytest.mark.parametrize(
    ("table", "lets_through"),
    [
        (None, True),
        (ID, True),
        (ID.upper(), True),
        ("main.default.orders", True),
        ("main.default.*", True),
        ("main.default.order", False),
        ("main.defaul.*", False),
        ("2f0c8c39-61b5-4c3c-8a2a-0d5f0a6f1c12", False),
    ],
)
def test_a_filter_by_table_lets_its_events_through(table: str | None, lets_through: bool) -> None:
    assert parse_filter(table=table).may_match(event()) is lets_through
    assert table is None or parse_scope(scope_text(parse_scope(table))) == parse_scope(table)


@pytest.mark.parametrize(
    ("kind", "operation", "matches"),
    [
        (EventKind.COMMITTED, "MERGE", True),
        (EventKind.COMMITTED, "merge", True),
        (EventKind.COMMITTED, None, True),
        (EventKind.COMMITTED, "WRITE", False),
        (EventKind.PUBLISHED, None, False),
    ],
)
def test_a_filter_by_operation_lets_through_what_is_not_known(
    kind: EventKind, operation: str | None, matches: bool
) -> None:
    assert parse_filter(operation="Merge").matches(event(kind), operation=operation) is matches


WRITE = b'{"commitInfo":{"operation":"WRITE","operationMetrics":{"numOutputRows":"3","numFiles":"2"}}}\n'


@pytest.mark.parametrize(
    ("head", "whole", "described"),
    [
        (b"", True, CommitDescription(files_added=0, files_removed=0)),
        (b"not json\n[]\n", True, CommitDescription(files_added=0, files_removed=0)),
        (
            WRITE + b'{"add":{}}\n{"remove":{}}\n{"add":{}}',
            True,
            CommitDescription(operation="WRITE", rows=3, files_added=2, files_removed=1),
        ),
        (WRITE + b'{"add":{}}\n{"ad', False, CommitDescription(operation="WRITE", rows=3, files_added=2)),
        (b'{"commitInfo":{"operation":"WRI', False, CommitDescription()),
        (
            b'{"commitInfo":{"operation":"\\ud800"}}',
            True,
            CommitDescription(operation="?", files_added=0, files_removed=0),
        ),
    ],
    ids=["empty", "nonsense", "whole", "cut", "cut in the first line", "no text"],
)
def test_a_commit_is_described_as_far_as_its_file_tells(head: bytes, whole: bool, described: CommitDescription) -> None:
    assert describe_commit(head, whole=whole) == described
