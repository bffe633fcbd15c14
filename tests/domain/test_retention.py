"""What ends a retention: the server's clock, which does not count where it jumps ahead."""

from __future__ import annotations

import pytest

from tidegate.domain.names import TableId
from tidegate.domain.removals import BACKOFF_MS, BACKOFF_MS_MAX, Removal, RemovalCause, failed, progressed
from tidegate.domain.retention import unhurried

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("now", "rose_by", "told"),
    [
        (101 * HOUR, HOUR, 101 * HOUR),
        (9999 * HOUR, HOUR, 101 * HOUR),
        (50 * HOUR, HOUR, 50 * HOUR),
        (101 * HOUR, 2 * HOUR, 101 * HOUR),
    ],
    ids=["as it should be", "set ahead", "set back", "slow"],
)
def test_a_clock_that_is_set_ahead_ends_nothing_early(now: int, rose_by: int, told: int) -> None:
    wall, rising = [100 * HOUR], [7]
    clock = unhurried(lambda: wall[0], lambda: rising[0])
    assert clock() == 100 * HOUR
    wall[0], rising[0] = now, 7 + rose_by
    assert clock() == told


def test_what_fails_is_tried_again_after_ever_longer_pauses_and_at_once_after_progress() -> None:
    removal = Removal(TableId("t"), RemovalCause.PURGE, "a.b.c", "file:///t", 0, "admin")
    pauses: list[int] = []
    for _ in range(40):
        removal = failed(removal, "the store fails", now=1000)
        pauses.append(removal.not_before - 1000)
    assert pauses[:3] == [BACKOFF_MS, 2 * BACKOFF_MS, 4 * BACKOFF_MS]
    assert pauses[-1] == BACKOFF_MS_MAX
    assert removal.problem == "the store fails"
    going = progressed(removal, 5)
    assert (going.files_removed, going.attempts, going.not_before, going.problem) == (5, 0, 0, None)
