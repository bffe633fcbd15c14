"""A clock that jumps while the server runs: set ahead it ends nothing early, set back it only delays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lake import file_name
from tests.receivers import OK, Receiver
from tests.servers import ServerProcess
from tidegate.auth.tokens import ADMIN
from tidegate.compose import build_server
from tidegate.db.database import SqlDatabase
from tidegate.delivery.webhooks import HttpWebhooks
from tidegate.domain.event_filters import EVERYTHING
from tidegate.domain.events import Sequence
from tidegate.domain.publishing import Behind
from tidegate.domain.retention import HOUR_MS, unhurried
from tidegate.services.clean_log import clean_log
from tidegate.services.deliver_events import deliver
from tidegate.services.environment import Environment
from tidegate.services.expire_staging import expire_staging
from tidegate.services.forget_events import forget_events
from tidegate.services.purge_table import mark_overdue
from tidegate.services.subscriptions import Draft, create_subscription
from tidegate.settings import Settings
from tidegate.worker.publisher import sweep

YEAR_MS = 365 * 24 * HOUR_MS


class Times:
    """The server's clock, which anybody may set, and the time that really passes."""

    def __init__(self) -> None:
        self.clock = int(time.time() * 1000)
        self.passed = 0

    def pass_by(self, ms: int) -> None:
        self.clock += ms
        self.passed += ms


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def env(database_url: str, tmp_path: Path, times: Times) -> Iterator[Environment]:
    """On a catalog with one dropped table, one that is staged, and one with a commit that is not published."""
    server = ServerProcess(tmp_path / "home", database_url, {"publishing": "off"}).start()
    with server.lake() as lake:
        lake.new_table("dropped")
        assert lake.http.delete(f"{lake.tables_url()}/dropped").status_code == 204
        lake.draft("staged")
        live = lake.new_table("live")
        assert live.commit(1).status_code == 200
        (live.log / "_staged_commits" / file_name(1)).write_text("it lost its race")
    assert server.stop() == 0
    built = build_server(Settings(home=tmp_path / "home", database=database_url)).env
    assert isinstance(built.database, SqlDatabase)
    built.database.start()
    patient = unhurried(lambda: times.clock, lambda: times.passed)
    yield replace(built, clock=lambda: times.clock, patient_clock=patient)
    built.database.stop()


def ended(env: Environment) -> tuple[int, int]:
    """How many dropped and staging tables reach their end now."""

    async def end() -> tuple[int, int]:
        return await mark_overdue(env), await expire_staging(env)

    return asyncio.run(end())


@pytest.mark.parametrize("jump_ms", [YEAR_MS, -YEAR_MS, 0], ids=["ahead", "back", "none"])
def test_nothing_ends_before_its_time_has_passed(env: Environment, times: Times, jump_ms: int) -> None:
    times.clock += jump_ms
    assert ended(env) == (0, 0)
    times.pass_by(25 * HOUR_MS)
    assert ended(env) == (0, int(jump_ms >= 0))
    times.pass_by(144 * HOUR_MS)
    assert ended(env) == (int(jump_ms >= 0), 0)
    times.pass_by(YEAR_MS)
    assert ended(env) == ((0, 0) if jump_ms >= 0 else (1, 1))


def waiting_table(env: Environment) -> Behind:
    async def find() -> Behind:
        (behind,) = await env.database.read(lambda uow: uow.tables.behind(after="", limit=10))
        return behind

    return asyncio.run(find())


@pytest.mark.parametrize("jump_ms", [YEAR_MS, -YEAR_MS], ids=["ahead", "back"])
def test_what_waits_to_be_published_is_found_whatever_the_clock_says(
    env: Environment, times: Times, jump_ms: int
) -> None:
    times.clock += jump_ms

    async def find() -> str:
        await sweep(env)
        async with asyncio.timeout(5):
            id, _ = await env.publishing.next()
        return id

    assert asyncio.run(find()) == waiting_table(env).table_id


@pytest.mark.parametrize("jump_ms", [YEAR_MS, -YEAR_MS], ids=["ahead", "back"])
def test_no_staged_file_goes_before_its_time_has_passed(env: Environment, times: Times, jump_ms: int) -> None:
    id = waiting_table(env).table_id
    times.clock += jump_ms
    assert asyncio.run(clean_log(env, id)) == 0
    times.pass_by(25 * HOUR_MS)
    assert asyncio.run(clean_log(env, id)) == (1 if jump_ms > 0 else 0)
    times.pass_by(YEAR_MS)
    assert asyncio.run(clean_log(env, id)) == (0 if jump_ms > 0 else 1)


def test_no_event_is_forgotten_before_its_time_has_passed(env: Environment, times: Times) -> None:
    def kept() -> int:
        async def forget() -> int:
            await forget_events(env, kept_ms=24 * HOUR_MS)
            return await env.database.read(lambda uow: uow.events.last() - uow.events.forgotten())

        return asyncio.run(forget())

    times.clock += YEAR_MS
    assert kept() == 4
    times.pass_by(25 * HOUR_MS)
    assert kept() == 0


def test_a_receiver_is_tried_again_after_a_clock_that_was_ahead_is_set_right(env: Environment, times: Times) -> None:
    with Receiver(lambda _: OK if receiver.deliveries else "500") as receiver:

        async def tell() -> None:
            draft = Draft("s", EVERYTHING, url=receiver.url, secret=None, function=None, after=Sequence(0))
            times.clock += YEAR_MS
            await create_subscription(env, ADMIN, draft)
            await deliver(env, "s")
            assert len(receiver.deliveries) == 1, "it is to be tried again in a moment, by a clock that is wrong"
            times.clock -= YEAR_MS
            await deliver(env, "s")
            assert isinstance(env.webhooks, HttpWebhooks)
            await env.webhooks.close()

        asyncio.run(tell())
        assert [one.sequence for one in receiver.taken()] == [1, 2, 3, 4]
