"""Looks at stores that hang: who looks elsewhere goes on, who looks there is told, and threads are bounded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from tests.waiting import PATIENCE_SECONDS
from tidegate.domain.errors import Unavailable
from tidegate.storage.quick_looks import QuickLooks


@pytest.fixture
def store() -> Iterator[threading.Event]:
    """A store that hangs until this is set."""
    works = threading.Event()
    yield works
    works.set()


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, PATIENCE_SECONDS))


def fail() -> None:
    raise PermissionError("not yours")


def threads() -> int:
    return sum(thread.name == "tidegate-look" for thread in threading.enumerate())


def test_a_look_returns_or_raises_what_was_found() -> None:
    async def scenario() -> None:
        looks = QuickLooks(seconds_max=PATIENCE_SECONDS, threads_max=2)
        with pytest.raises(PermissionError):
            await looks.call("t", fail)
        found = await asyncio.gather(*(looks.call(f"t{n % 7}", lambda n=n: n) for n in range(500)))
        assert found == list(range(500))

    run(scenario())


def test_looks_at_one_table_come_one_after_the_other_in_order() -> None:
    async def scenario() -> None:
        looks, order, at_work = QuickLooks(seconds_max=PATIENCE_SECONDS, threads_max=4), list[int](), list[int]()

        def look(number: int) -> None:
            at_work.append(number)
            assert at_work == [number], "another one is under way"
            order.append(number)
            at_work.remove(number)

        await asyncio.gather(*(looks.call("t", lambda n=n: look(n)) for n in range(50)))
        assert order == list(range(50))

    run(scenario())


def test_a_store_that_hangs_holds_up_nobody_who_looks_elsewhere(store: threading.Event) -> None:
    async def scenario() -> None:
        looks = QuickLooks(seconds_max=PATIENCE_SECONDS, threads_max=4)
        hanging = [asyncio.ensure_future(looks.call(f"hangs {n}", store.wait)) for n in range(3)]
        assert await asyncio.gather(*(looks.call(f"t{n}", lambda n=n: n) for n in range(50))) == list(range(50))
        assert not any(one.done() for one in hanging)
        store.set()
        assert await asyncio.gather(*hanging) == [True] * 3

    run(scenario())


def test_who_looks_at_a_table_that_hangs_is_told_then_and_refused_until_it_returns(store: threading.Event) -> None:
    async def scenario() -> None:
        looks = QuickLooks(seconds_max=0.1, threads_max=2)
        first, second = (asyncio.ensure_future(looks.call("t", store.wait)) for _ in range(2))
        for one in (first, second):
            with pytest.raises(Unavailable, match="has not answered"):
                await one
        for _ in range(20):
            with pytest.raises(Unavailable, match="has not returned"):
                await looks.call("t", store.wait)
        store.set()
        while True:  # until the thread is back
            try:
                assert await looks.call("t", lambda: "here again") == "here again"
                return
            except Unavailable:
                await asyncio.sleep(0.01)

    run(scenario())


def test_threads_are_bounded_while_stores_hang_and_end_when_they_work_again(store: threading.Event) -> None:
    before = threads()

    async def scenario() -> None:
        looks = QuickLooks(seconds_max=0.5, threads_max=3)
        answers = await asyncio.gather(*(looks.call(f"t{n}", store.wait) for n in range(20)), return_exceptions=True)
        assert all(isinstance(answer, Unavailable) for answer in answers)
        assert threads() - before == 3
        store.set()
        while threads() - before > 1:
            await asyncio.sleep(0.01)
        assert await looks.call("t0", lambda: 1) == 1

    run(scenario())
