"""Which tables are published next: a table that fails waits longer and longer, and nobody else waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tidegate.domain.names import TableId, Version
from tidegate.services.publish_queue import BACKOFF_SECONDS, BACKOFF_SECONDS_MAX, EVERYTHING, MANY, PublishQueue

ILL, WELL, OTHER = TableId("ill"), TableId("well"), TableId("other")
JITTER = 1.2
MOMENT_SECONDS = 0.05


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


async def due(queue: PublishQueue) -> TableId | None:
    """The next table, if there is one now. By this clock no time passes while somebody waits."""
    try:
        async with asyncio.timeout(MOMENT_SECONDS):
            return (await queue.next())[0]
    except TimeoutError:
        return None


def queue_of(clock: Clock, *, tables_max: int = 10, delay_seconds: float = 1.0) -> PublishQueue:
    return PublishQueue(clock, delay_seconds=delay_seconds, tables_max=tables_max)


def test_a_table_that_fails_waits_twice_as_long_each_time_up_to_a_bound() -> None:
    async def check() -> None:
        clock = Clock()
        queue = queue_of(clock)
        for attempt in range(15):
            queue.hurry(ILL)
            assert await due(queue) == ILL
            seconds = queue.failed(ILL, EVERYTHING)
            expected = min(BACKOFF_SECONDS * 2**attempt, BACKOFF_SECONDS_MAX)
            assert expected / JITTER <= seconds <= expected * JITTER
            clock.now += seconds * 0.99
            assert await due(queue) is None
            clock.now += seconds * 0.02
        assert await due(queue) == ILL
        queue.done(ILL)
        queue.hurry(ILL)
        assert await due(queue) == ILL
        assert queue.failed(ILL, EVERYTHING) <= BACKOFF_SECONDS * JITTER, "it has worked meanwhile"

    asyncio.run(check())


def test_nobody_waits_for_a_table_that_fails_and_nobody_can_hurry_it() -> None:
    async def check() -> None:
        clock = Clock()
        queue = queue_of(clock)
        queue.hurry(ILL)
        assert await due(queue) == ILL
        queue.failed(ILL, EVERYTHING)
        queue.notice(ILL, Version(100), waiting=MANY)
        queue.hurry(ILL)
        queue.hurry(WELL)
        assert await due(queue) == WELL
        assert await due(queue) is None
        assert await queue.relief(ILL, seconds_max=60) is False, "a writer is told at once"
        assert queue.failing == 1

    asyncio.run(check())


def test_a_table_far_behind_comes_at_once_and_others_after_the_delay() -> None:
    async def check() -> None:
        clock = Clock()
        queue = queue_of(clock)
        queue.notice(WELL, Version(1), waiting=1)
        assert await due(queue) is None
        queue.notice(OTHER, Version(MANY), waiting=MANY)
        assert await due(queue) == OTHER
        queue.notice(WELL, Version(MANY), waiting=MANY)
        assert await due(queue) == WELL
        queue.notice(WELL, Version(MANY + 1), waiting=1)
        clock.now = 2.0
        assert await due(queue) is None, "one at a time"
        queue.done(WELL)
        assert await due(queue) == WELL

    asyncio.run(check())


def test_what_does_not_fit_is_left_to_the_sweep() -> None:
    async def check() -> None:
        queue = queue_of(Clock(), tables_max=1)
        queue.hurry(WELL)
        queue.hurry(OTHER)
        assert [await due(queue), await due(queue)] == [WELL, None]

    asyncio.run(check())
