"""`GET /api/tidegate/v1/status`: servers know of each other, and say what all of them do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tests.conftest import DATABASES
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tests.test_numbers import block
from tests.test_publishing import wait_until
from tidegate import __version__
from tidegate.db import schema as db
from tidegate.domain.servers import Activity, ServerInfo, TableActivity, hottest, together

STATUS = "/api/tidegate/v1/status"


def status(http: httpx.Client) -> dict[str, Any]:
    answer = http.get(STATUS)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(params=DATABASES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    server = ServerProcess(tmp_path / "home", database, settings={"publishing": "off"}).start()
    yield server
    assert server.stop() == 0, "".join(server.log[-50:])


def test_a_server_tells_of_itself_from_its_start(home: ServerProcess) -> None:
    with home.http() as http:
        told = status(http)
    [server] = told["servers"]
    assert home.process is not None
    assert (server["url"], server["pid"], server["version"]) == (home.url, home.process.pid, __version__)
    assert server["started_at"] <= server["seen_at"] <= told["at"]
    assert not server["silent"]
    assert told["unpublished"] == {"tables": 0, "commits": 0, "largest": 0, "seconds": 0.0}
    assert (told["alarms"], told["newest_alarms"], told["hottest_tables"]) == (0, [], [])


def test_what_was_done_since_the_last_heartbeat_is_told(home: ServerProcess) -> None:
    with home.lake() as lake:
        table, quiet = lake.new_table("busy"), lake.new_table("quiet")
        version = 0

        def told_of_busy() -> bool:
            nonlocal version
            version += 1
            assert table.commit(version).status_code == 200
            assert table.commit(version).status_code == 409
            quiet.load()
            table.load()
            hot = {table["full_name"]: table for table in status(lake.http)["hottest_tables"]}
            return hot.get("main.default.busy", {"commits_per_second": 0})["commits_per_second"] > 0

        wait_until(told_of_busy, "a heartbeat tells of the commits")
        told = status(lake.http)
        hot = told["hottest_tables"]
        assert [table["full_name"] for table in hot] == ["main.default.busy", "main.default.quiet"]
        assert hot[0]["loads_per_second"] > 0
        assert (hot[1]["commits_per_second"], hot[1]["loads_per_second"] > 0) == (0, True)
        assert told["requests_per_second"] > told["commits_per_second"] > 0
        assert told["conflicts_per_second"] > 0
        waiting = told["unpublished"]
        assert (waiting["tables"], waiting["commits"], waiting["largest"]) == (1, version, version)


def test_a_standing_alarm_is_told_with_its_table(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={"publish_after_ms": "10"}).start()
    with server.lake() as lake:
        block(lake.new_table("t"), 1)
        wait_until(lambda: status(lake.http)["alarms"] == 1, "the alarm stands")
        [alarm] = status(lake.http)["newest_alarms"]
        assert (alarm["full_name"], alarm["version"], alarm["reason"]) == ("main.default.t", 1, "other_bytes")
        assert alarm["message"]
        lake.http.delete(f"{lake.tables_url()}/t").raise_for_status()
        after = status(lake.http)
        assert (after["alarms"], after["newest_alarms"]) == (0, [])
    assert server.stop() == 0


def test_servers_on_one_database_see_each_other_come_and_go(postgres: PostgresServer, tmp_path: Path) -> None:
    database = postgres.create_database()
    first = ServerProcess(tmp_path / "home", database).start()
    second = ServerProcess(tmp_path / "home", database).start()
    third = ServerProcess(tmp_path / "home", database).start()
    with first.http() as http:
        assert [server["url"] for server in status(http)["servers"]] == [first.url, second.url, third.url]
        assert second.stop() == 0
        third.kill()
        assert [server["url"] for server in status(http)["servers"]] == [first.url, third.url]
        make_older(database, third.url, seconds=30)
        assert [(server["url"], server["silent"]) for server in status(http)["servers"]] == [
            (first.url, False),
            (third.url, True),
        ]
        make_older(database, third.url, seconds=60)
        wait_until(lambda: len(status(http)["servers"]) == 1, "the dead one is forgotten")
    assert first.stop() == 0


def make_older(database: str, url: str, *, seconds: int) -> None:
    """As if that time had passed since the server was last heard of."""
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        earlier = {"seen_at": db.servers.c.seen_at - seconds * 1000}
        connection.execute(db.servers.update().where(db.servers.c.url == url).values(**earlier))
    engine.dispose()


def test_every_worker_is_a_server(postgres: PostgresServer, tmp_path: Path) -> None:
    crew = ServerProcess(tmp_path / "home", postgres.create_database(), settings={"workers": "2"}).start()
    with crew.http() as http:
        wait_until(lambda: len(status(http)["servers"]) == 2, "both are heard of")
        assert len({server["pid"] for server in status(http)["servers"]}) == 2
    assert crew.stop() == 0


# What is told of several


def server(name: str, *, seen_at: int, **activity: Any) -> ServerInfo:
    return ServerInfo(name, name, 1, "", "1", 0, seen_at, Activity(**activity))


def test_rates_are_added_up_over_the_servers_that_are_heard_of() -> None:
    hot = TableActivity("t", 1.0, 2.0)
    servers = [
        server("a", seen_at=100_000, requests=5.0, commits=1.0, conflicts=0.5, hottest=(hot,)),
        server("b", seen_at=95_000, requests=3.0, commits=2.0, hottest=(hot, TableActivity("u", 0.0, 9.0))),
        server("dead", seen_at=80_000, requests=100.0, commits=100.0, hottest=(TableActivity("v", 99.0, 99.0),)),
    ]
    assert together(servers, now=100_000) == Activity(
        requests=8.0,
        commits=3.0,
        conflicts=0.5,
        hottest=(TableActivity("t", 2.0, 4.0), TableActivity("u", 0.0, 9.0)),
    )


def test_the_hottest_are_the_first_by_commits_and_the_first_by_loads() -> None:
    tables = [TableActivity(f"t{n}", commits=n, loads=100 - n) for n in range(100)]
    names = [table.name for table in hottest(tables, limit=2)]
    assert names == ["t99", "t98", "t1", "t0"]
