"""The rules of retries, without a network: which requests are sent again, after what, and what is said in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tidegate.client import InvalidRequest, OutcomeUnknown, Patience, ServerFailure, TooBusy, Unreachable
from tidegate.client.conversations import Again, Answer, Ask, Conversation, NoAnswer, request

REFUSED = NoAnswer("http://x", "refused", never_sent=True)
BROKEN = NoAnswer("http://x", "broke off", never_sent=False)
UNKNOWN = Answer(500, b'{"error":{"type":"CommitStateUnknownException","message":"?"}}')
BUSY = Answer(429, b'{"error_code":"TOO_MANY_REQUESTS","message":"Busy."}', retry_after=7.0)
DONE = Answer(200, b"{}")


def play(talk: Conversation[Answer], outcomes: Sequence[Answer | NoAnswer]) -> tuple[Any, list[Again]]:
    """Answers one by one, and gives up after the last: the result, or the error, and the pauses asked for."""
    left, pauses = list(outcomes), []
    try:
        step: Any = next(talk)
        while True:
            if isinstance(step, Ask):
                step = talk.send(left.pop(0))
            else:
                pauses.append(step)
                step = talk.send(bool(left))
    except StopIteration as ended:
        return ended.value, pauses
    except Exception as error:
        return error, pauses


@pytest.mark.parametrize(
    "outcome", [REFUSED, BROKEN, BUSY, UNKNOWN, Answer(502, b""), Answer(503, b""), Answer(504, b"")]
)
@pytest.mark.parametrize(("method", "repeatable"), [("GET", None), ("HEAD", None), ("POST", True)])
def test_what_may_be_repeated_is(outcome: Any, method: str, repeatable: bool | None) -> None:
    result, pauses = play(request(method, "/", repeatable=repeatable), [outcome, outcome, DONE])
    assert result.status == 200
    assert [pause.attempt for pause in pauses] == [1, 2]


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("outcome", [BROKEN, UNKNOWN, Answer(502, b""), Answer(503, b""), Answer(504, b"")])
def test_what_may_have_happened_is_not_repeated(outcome: Any, method: str) -> None:
    result, pauses = play(request(method, "/"), [outcome, DONE])
    assert isinstance(result, OutcomeUnknown)
    assert pauses == []


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("outcome", [REFUSED, BUSY])
def test_what_surely_did_not_happen_is_repeated(outcome: Any, method: str) -> None:
    result, pauses = play(request(method, "/"), [outcome, DONE])
    assert result.status == 200
    assert len(pauses) == 1


@pytest.mark.parametrize(
    ("method", "outcomes", "expected"),
    [
        ("GET", [REFUSED], Unreachable),
        ("GET", [BROKEN, BROKEN], Unreachable),
        ("GET", [BUSY], TooBusy),
        ("GET", [Answer(503, b"")], ServerFailure),
        ("POST", [REFUSED, REFUSED], Unreachable),
        ("POST", [BUSY], TooBusy),
        ("POST", [BROKEN], OutcomeUnknown),
        ("POST", [BROKEN, REFUSED], OutcomeUnknown),
        ("POST", [UNKNOWN, BUSY], OutcomeUnknown),
    ],
)
def test_when_patience_is_over_the_truth_is_told(method: str, outcomes: Any, expected: type[Exception]) -> None:
    assert type(play(request(method, "/", repeatable=True), outcomes)[0]) is expected


def test_an_answer_after_doubt_is_marked_as_such() -> None:
    assert play(request("POST", "/", repeatable=True), [BROKEN, DONE])[0].doubtful
    assert not play(request("POST", "/", repeatable=True), [REFUSED, BUSY, DONE])[0].doubtful


def test_the_server_says_how_long_to_wait() -> None:
    assert play(request("GET", "/"), [BUSY, DONE])[1] == [Again(1, 7.0)]


def test_pauses_double_at_random_up_to_a_bound_and_end() -> None:
    patience = Patience(attempts_max=12, first_seconds=0.1, seconds_max=2.0)
    for attempt in range(1, 12):
        ceiling = min(2.0, 0.1 * 2 ** (attempt - 1))
        pauses = {patience.pause(Again(attempt)) for _ in range(20)}
        assert len(pauses) > 1
        assert all(pause is not None and ceiling / 2 <= pause <= ceiling for pause in pauses)
    assert patience.pause(Again(12)) is None


def test_a_server_cannot_make_a_client_wait_for_ever() -> None:
    pause = Patience().pause(Again(1, after_seconds=1e9))
    assert pause is not None
    assert pause < 31


@pytest.mark.parametrize("wrong", [{"attempts_max": 0}, {"answer_seconds_max": 0.0}, {"first_seconds": -1.0}])
def test_patience_that_could_not_be_had_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="Patience needs"):
        Patience(**wrong)
