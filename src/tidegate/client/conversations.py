"""What the client says to a server and to a table's files, without saying how: sans-IO.

An operation is a generator. It yields what it needs, one step at a time, and is sent what came of it; a driver, one for
threads and one for asyncio, does the steps. So there is one text of every operation, and two ways to run it:

    def rename(...) -> Conversation[None]:
        yield from request("POST", f"{table}/rename", body={"new-name": new_name})

Retries live here. A request is sent again when that is known to be harmless:

    no answer, never sent (refused)             always
    429                                         always: it was turned away; Retry-After is honoured
    no answer, or it broke off; 502, 503, 504   if the request may be repeated
    500 that says "outcome unknown"             if the request may be repeated

GET, HEAD and commits may be repeated, and whatever else says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import msgspec

from tidegate.client import errors
from tidegate.client.refusals import refusal, says_outcome_unknown

T = TypeVar("T")

_GATEWAY = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One HTTP request. The driver sends an `Answer` or a `NoAnswer`."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    waits_seconds: float = 0.0
    """How long the server is asked to wait before it answers."""


@dataclass(frozen=True, slots=True)
class Do:
    """A call that reads or writes files. The driver sends what it returned, or throws what it raised."""

    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Again:
    """The attempt with this number failed. The driver pauses and sends True, or False when its patience is over."""

    attempt: int
    after_seconds: float = 0.0
    """What the server asked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    retry_after: float = 0.0
    url: str = ""
    doubtful: bool = False
    """Whether an earlier attempt may have been heard although nobody heard its answer."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    url: str
    why: str
    never_sent: bool


Step: TypeAlias = Ask | Do | Again
Conversation: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is sent, how long an answer is waited for, and how long the pauses in between are: twice as
    long each time, at random up to that, so that clients that were turned away together do not come back together.
    """

    attempts_max: int = 8
    answer_seconds_max: float = 30.0
    first_seconds: float = 0.1
    seconds_max: float = 5.0
    retry_after_seconds_max: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts_max < 1 or self.answer_seconds_max <= 0:
            raise errors.InvalidRequest("Patience needs at least one attempt, and some time to wait for its answer.")
        if min(self.first_seconds, self.seconds_max, self.retry_after_seconds_max) < 0:
            raise errors.InvalidRequest("Patience needs pauses of 0 seconds or more.")

    def pause(self, again: Again) -> float | None:
        """None: enough."""
        if again.attempt >= self.attempts_max:
            return None
        ceiling = min(self.seconds_max, self.first_seconds * 2.0 ** min(again.attempt - 1, 30))
        asked = min(again.after_seconds, self.retry_after_seconds_max)
        return asked + random.uniform(ceiling / 2, ceiling)  # noqa: S311


def do(call: Callable[[], T]) -> Conversation[T]:
    result: T = yield Do(call)
    return result


def request(
    method: str,
    path: str,
    *,
    query: Mapping[str, str | int | bool | None] | None = None,
    body: object = None,
    repeatable: bool | None = None,
    waits_seconds: float = 0.0,
) -> Conversation[Answer]:
    """The answer of a request that succeeded. Raises the error of the client's tree for any other."""
    answer = yield from exchange(
        method, path, query=query, body=body, repeatable=repeatable, waits_seconds=waits_seconds
    )
    if not 200 <= answer.status < 300:
        raise refusal(answer.status, answer.body, url=answer.url)
    return answer


def exchange(
    method: str,
    path: str,
    *,
    query: Mapping[str, str | int | bool | None] | None = None,
    body: object = None,
    repeatable: bool | None = None,
    waits_seconds: float = 0.0,
) -> Conversation[Answer]:
    """The answer, whatever its status is. Raises Unreachable, OutcomeUnknown."""
    ask = Ask(
        method=method,
        path=path,
        query=_written(query or {}),
        body=None if body is None else msgspec.json.encode(body),
        waits_seconds=waits_seconds,
    )
    safe = method in {"GET", "HEAD"} if repeatable is None else repeatable
    return (yield from _sent(ask, repeatable=safe))


def decoded(answer: Answer, wanted: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.body, type=wanted)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.NotATidegate(answer.url, f"its answer cannot be read: {error}") from None


def _sent(ask: Ask, *, repeatable: bool) -> Conversation[Answer]:
    attempt, doubtful = 0, False
    while True:
        attempt += 1
        outcome: Answer | NoAnswer = yield ask
        if isinstance(outcome, Answer) and not _worth_repeating(outcome):
            return replace(outcome, doubtful=doubtful)
        in_doubt = _is_doubtful(ask, outcome)
        doubtful = doubtful or in_doubt
        waits = outcome.retry_after if isinstance(outcome, Answer) else 0.0
        if (in_doubt and not repeatable) or not (yield Again(attempt, waits)):
            return _last_word(ask, outcome, doubtful=doubtful)


def _worth_repeating(answer: Answer) -> bool:
    return answer.status == 429 or answer.status in _GATEWAY or says_outcome_unknown(answer.status, answer.body)


def _is_doubtful(ask: Ask, outcome: Answer | NoAnswer) -> bool:
    """Whether the request may have changed something, now or in a moment."""
    if ask.method in {"GET", "HEAD"}:
        return False
    return not outcome.never_sent if isinstance(outcome, NoAnswer) else outcome.status != 429


def _last_word(ask: Ask, outcome: Answer | NoAnswer, *, doubtful: bool) -> Answer:
    why = outcome.why if isinstance(outcome, NoAnswer) else f"status {outcome.status}"
    if doubtful:
        raise errors.OutcomeUnknown(f"{ask.method} {ask.path}", why)
    if isinstance(outcome, NoAnswer):
        raise errors.Unreachable(outcome.url, why)
    return outcome


def _written(query: Mapping[str, str | int | bool | None]) -> dict[str, str]:
    """What is None is left out."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in query.items()
        if value is not None
    }
