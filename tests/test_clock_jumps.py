"""A clock that jumps while the server runs: set ahead it ends nothing early, set back it only delays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.servers import ServerProcess
from tidegate.compose import build_server
from tidegate.db.database import SqlDatabase
from tidegate.domain.retention import HOUR_MS, unhurried
from tidegate.services.environment import Environment
from tidegate.services.expire_staging import expire_staging
from tidegate.services.purge_table import mark_overdue
from tidegate.settings import Settings

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
    """On a catalog with one dropped table and one that is staged."""
    server = ServerProcess(tmp_path / "home", database_url, {"publishing": "off"}).start()
    with server.lake() as lake:
        lake.new_table("dropped")
        assert lake.http.delete(f"{lake.tables_url()}/dropped").status_code == 204
        lake.draft("staged")
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
