"""Retention: old events go, oldest first; who asks for what is gone is told so, and nobody else notices."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tests.conftest import DATABASES
from tests.lake import error_of
from tests.receivers import Receiver
from tests.servers import ServerProcess
from tidegate.compose import build_server
from tidegate.db.engines import parse_url
from tidegate.db.schema import events
from tidegate.domain.events import Sequence, forgettable
from tidegate.services.forget_events import forget_events
from tidegate.settings import Settings
from tidegate.steps import STEPS, VARIABLE

EVENTS = "/api/tidegate/v1/events"
SUBSCRIPTIONS = "/api/tidegate/v1/subscriptions"
HOUR_MS = 3_600_000


def numbered(*moments: int) -> list[tuple[Sequence, int]]:
    return [(Sequence(number), at) for number, at in enumerate(moments, start=1)]


@pytest.mark.parametrize(
    ("moments", "seen", "up_to"),
    [
        ((), None, None),
        ((95, 96), None, None),
        ((1, 2, 95, 3), None, 2),
        ((89, 90), None, 1),
        ((1, 2, 999, 3, 95), None, 4),
        ((1, 999), None, 1),
        ((999, 998), None, None),
        ((1, 2, 80, 80), 2, 2),
        ((1, 80, 80, 80), 3, 3),
        ((1, 2, 3), 0, 3),
    ],
    ids=[
        "none",
        "young",
        "a gap is never made",
        "just old enough",
        "from a clock that was ahead",
        "ahead and nothing after it",
        "all ahead",
        "unseen",
        "seen",
        "unseen for too long",
    ],
)
def test_events_are_forgotten_from_the_front_when_they_are_old_and_were_seen(
    moments: tuple[int, ...], seen: int | None, up_to: int | None
) -> None:
    last_seen = None if seen is None else Sequence(seen)
    assert forgettable(numbered(*moments), now=100, kept_ms=10, seen=last_seen) == up_to


@pytest.mark.parametrize("database", DATABASES)
def test_what_is_forgotten_is_gone_for_readers_and_stops_a_subscription_with_a_note(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    chosen = request.getfixturevalue("postgres").create_database() if database == "postgresql" else None
    server = ServerProcess(tmp_path / "home", chosen, settings={"publishing": "off"}).start()
    url = chosen or f"sqlite:///{tmp_path}/home/catalog.db"
    with server.lake() as lake, Receiver() as receiver:
        table = lake.new_table("t")
        body = {"name": "s", "webhook": {"url": receiver.url}, "after": 0}
        lake.http.post(SUBSCRIPTIONS, json=body).raise_for_status()
        receiver.wait_for(lambda: lake.http.get(f"{SUBSCRIPTIONS}/s").json()["cursor"] == 1, "the first is recorded")
        lake.http.patch(f"{SUBSCRIPTIONS}/s", json={"paused": True}).raise_for_status()
        for version in range(1, 6):
            assert table.commit(version).status_code == 200
        assert read(lake.http)["last"] == 6

        age(url, up_to=4, hours=3)
        forget(tmp_path / "home", url, kept_hours=1)
        # The first was delivered. The others are old, and wait for the subscription.
        assert [event["sequence"] for event in read(lake.http)["events"]] == [2, 3, 4, 5, 6]

        age(url, up_to=4, hours=5)
        forget(tmp_path / "home", url, kept_hours=1)
        assert [event["sequence"] for event in read(lake.http)["events"]] == [5, 6]
        assert [event["sequence"] for event in read(lake.http, after=4)["events"]] == [5, 6]
        for path in (EVENTS, f"{EVENTS}/stream"):
            refused = lake.http.get(path, params={"after": 3})
            assert error_of(refused) == (410, "EVENTS_FORGOTTEN")
            assert "after=4" in refused.json()["message"]

        lake.http.patch(f"{SUBSCRIPTIONS}/s", json={"paused": False}).raise_for_status()
        receiver.wait_for(lambda: lake.http.get(f"{SUBSCRIPTIONS}/s").json()["paused"], "it stops at the gap")
        assert "events 2 to 4 were forgotten" in lake.http.get(f"{SUBSCRIPTIONS}/s").json()["note"]
        lake.http.patch(f"{SUBSCRIPTIONS}/s", json={"paused": False}).raise_for_status()
        receiver.wait_for(lambda: [one.sequence for one in receiver.deliveries] == [1, 5, 6], "it goes on after it")

        age(url, up_to=6, hours=2)
        forget(tmp_path / "home", url, kept_hours=1)
        empty = read(lake.http)
        assert (empty["events"], empty["next_after"], empty["last"]) == ([], 6, 6)
        assert table.commit(6).status_code == 200
        assert [event["sequence"] for event in read(lake.http, after=6)["events"]] == [7]
    assert server.stop() == 0, "".join(server.log[-50:])


def read(http: httpx.Client, **query: Any) -> dict[str, Any]:
    answer = http.get(EVENTS, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def age(url: str, *, up_to: int, hours: int) -> None:
    engine = sa.create_engine(parse_url(url))
    number = events.c.position if engine.dialect.name == "sqlite" else events.c.sequence
    with engine.begin() as connection:
        at = time.time_ns() // 1_000_000 - hours * HOUR_MS
        connection.execute(events.update().where(number <= up_to).values(at=at))
    engine.dispose()


def forget(home: Path, url: str, *, kept_hours: int) -> None:
    """As the job does, now."""
    server = build_server(Settings(home=home, database=url))

    async def work() -> None:
        server.env.database.start()  # type: ignore[attr-defined]
        await forget_events(server.env, kept_ms=kept_hours * HOUR_MS)
        server.env.database.stop()  # type: ignore[attr-defined]

    asyncio.run(work())


@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("forget.")])
def test_a_server_killed_while_it_forgets_leaves_no_gap(database_url: str, step: str, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", database_url, settings={"publishing": "off"}).start()
    with server.lake() as lake:
        table = lake.new_table("t")
        for version in range(1, 4):
            assert table.commit(version).status_code == 200
        assert read(lake.http)["last"] == 4
        age(database_url, up_to=3, hours=2)
        program = (
            "from pathlib import Path; from tests.test_event_retention import forget; "
            f"forget(Path({str(tmp_path / 'home')!r}), {database_url!r}, kept_hours=1)"
        )
        killed = subprocess.run([sys.executable, "-c", program], env={**os.environ, VARIABLE: f"{step}:kill"})
        assert killed.returncode == -9
        left = [event["sequence"] for event in read(lake.http)["events"]]
        assert left in ([1, 2, 3, 4], [4])
        forget(tmp_path / "home", database_url, kept_hours=1)
        assert [event["sequence"] for event in read(lake.http)["events"]] == [4]
    assert server.stop() == 0, "".join(server.log[-50:])
