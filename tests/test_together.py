"""Questions answered together: every one gets its own answer, none from before it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tidegate.db.together import Together


class Oracle:
    """Doubles numbers; a negative one is an error. Holds every call until it is let go."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.go = asyncio.Event()

    async def answer_all(self, questions: Sequence[int]) -> list[int | Exception]:
        self.calls.append(list(questions))
        await self.go.wait()
        return [ValueError(str(each)) if each < 0 else 2 * each for each in questions]


async def ask(together: Together[int, int], *questions: int) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(together.ask(question)) for question in questions]
    await asyncio.sleep(0)
    return tasks


def test_what_comes_while_others_are_answered_goes_next_and_together() -> None:
    async def story() -> None:
        oracle = Oracle()
        together = Together(oracle.answer_all, batch_max=3)
        first = await ask(together, 1, 2)
        while not oracle.calls:
            await asyncio.sleep(0)
        later = await ask(together, 3, 4, 5, 6)
        oracle.go.set()
        assert await asyncio.gather(*first, *later) == [2, 4, 6, 8, 10, 12]
        assert oracle.calls == [[1, 2], [3, 4, 5], [6]]

    asyncio.run(story())


def test_one_error_is_one_answer_and_a_failed_call_fails_all_of_it_and_nothing_else() -> None:
    async def story() -> None:
        oracle = Oracle()
        oracle.go.set()
        together = Together(oracle.answer_all, batch_max=10)
        one, wrong, two = await asyncio.gather(*await ask(together, 1, -1, 2), return_exceptions=True)
        assert (one, two) == (2, 4)
        assert isinstance(wrong, ValueError)
        with pytest.raises(TypeError):
            await together.ask("x")  # type: ignore[arg-type]
        assert await together.ask(4) == 8

    asyncio.run(story())


def test_who_went_away_is_not_answered_and_nobody_minds() -> None:
    async def story() -> None:
        oracle = Oracle()
        together = Together(oracle.answer_all, batch_max=10)
        gone, stays = await ask(together, 1, 2)
        while not oracle.calls:
            await asyncio.sleep(0)
        gone.cancel()
        oracle.go.set()
        assert await stays == 4

    asyncio.run(story())
