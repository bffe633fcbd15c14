"""Fixtures: a real PostgreSQL for the whole run, and one server per database that tests share.

Tests that share a server give their tables names of their own (`unique`), so that they do not meet.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, settings

from tests.lake import Lake
from tests.postgres import PostgresServer
from tests.servers import ServerProcess

pytest_plugins = ["tests.spark.shared"]

DATABASES = ("sqlite", "postgresql")

# How long an example takes says more about the machine than about the code.
settings.register_profile("tidegate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidegate")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kill-rounds", type=int, default=20, help="Rounds of kill -9 under load, for each database.")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session", params=DATABASES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server, on each of the databases in turn."""
    database = None
    if request.param == "postgresql":
        database = request.getfixturevalue("postgres").create_database()
    process = ServerProcess(tmp_path_factory.mktemp("home"), database).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, of each kind in turn."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres").create_database()
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


@pytest.fixture
def lake(http: httpx.Client) -> Lake:
    return Lake(http)


_numbers = itertools.count(1)


@pytest.fixture
def unique() -> str:
    """A name that no other test uses."""
    return f"t{next(_numbers)}"
