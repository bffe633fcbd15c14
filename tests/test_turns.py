"""Turns: who lost is told in order, one for each commit, soon enough in any case."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.lake import Lake, LakeTable, add_commit
from tests.servers import ServerProcess
from tidegate.domain.names import TableId
from tidegate.services import turns as turns_module
from tidegate.services.turns import Turns

T = TableId("t")


async def settle() -> None:
    """Lets everything run that can run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def losers(turns: Turns, *names: str) -> tuple[list[str], list[asyncio.Task[None]]]:
    told: list[str] = []

    async def lose(name: str) -> None:
        await turns.wait(T)
        told.append(name)

    tasks = [asyncio.create_task(lose(name)) for name in names]
    await settle()
    return told, tasks


def test_the_first_is_told_at_once_and_the_others_one_for_each_commit() -> None:
    async def story() -> None:
        turns = Turns()
        told, tasks = await losers(turns, "a", "b", "c")
        assert told == ["a"]
        assert turns.pass_on(T)
        await settle()
        assert told == ["a", "b"]
        assert turns.pass_on(T)
        await settle()
        assert told == ["a", "b", "c"]
        assert not turns.pass_on(T), "nobody waits any more"
        await asyncio.gather(*tasks)

    asyncio.run(story())


def test_tables_have_turns_of_their_own_and_a_commit_without_losers_passes_nothing_on() -> None:
    async def story() -> None:
        turns = Turns()
        told, tasks = await losers(turns, "a", "b")
        assert not turns.pass_on(TableId("another"))
        await settle()
        assert told == ["a"]
        turns.pass_on(T)
        await asyncio.gather(*tasks)

    asyncio.run(story())


def test_who_has_the_turn_and_does_nothing_holds_nobody_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "TURN_SECONDS", 0.01)

    async def story() -> None:
        turns = Turns()
        told, tasks = await losers(turns, "a", "b", "c")
        await asyncio.wait_for(asyncio.gather(*tasks), 10)
        assert told == ["a", "b", "c"]

    asyncio.run(story())


def test_nobody_waits_longer_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "TURN_SECONDS", 60)
    monkeypatch.setattr(turns_module, "WAIT_SECONDS_MAX", 0.01)

    async def story() -> None:
        turns = Turns()
        told, tasks = await losers(turns, "a", "b", "c")
        await asyncio.wait_for(asyncio.gather(*tasks), 10)
        assert sorted(told) == ["a", "b", "c"]

    asyncio.run(story())


def test_who_went_away_loses_the_turn_to_the_next() -> None:
    async def story() -> None:
        turns = Turns()
        told, tasks = await losers(turns, "a", "b", "c")
        tasks[1].cancel()
        await settle()
        assert turns.pass_on(T)
        await settle()
        assert told == ["a", "c"]

    asyncio.run(story())


WRITERS = 12
WINS_EACH = 8


def test_contending_writers_all_get_through(server: ServerProcess, unique: str) -> None:
    with server.lake() as lake:
        table = lake.new_table(unique)

    def write(number: int) -> tuple[int, float]:
        with server.lake() as mine:
            return contend(mine, table)

    with ThreadPoolExecutor(WRITERS) as pool:
        outcomes = list(pool.map(write, range(WRITERS)))
    with server.lake() as lake:
        answer = lake.load(unique).json()
    assert answer["latest-table-version"] == WRITERS * WINS_EACH
    assert Counter(wins for wins, _ in outcomes) == {WINS_EACH: WRITERS}


def contend(lake: Lake, table: LakeTable) -> tuple[int, float]:
    """Wins, and the longest wait for one: load, propose the next version, when it is taken load again."""
    wins, longest = 0, 0.0
    while wins < WINS_EACH:
        started = time.monotonic()
        while True:
            latest = lake.load(table.name).json()["latest-table-version"]
            mine = LakeTable(lake, table.name, table.id, table.location, timestamp=int(time.time() * 1000) + latest)
            answer = lake.update(table.name, mine.request(add_commit(mine.stage_commit(latest + 1))))
            if answer.status_code == 200:
                break
            assert answer.status_code == 409, answer.text
        wins, longest = wins + 1, max(longest, time.monotonic() - started)
    return wins, longest
