"""The server and the Spark session that all tests with Spark share, and a schema for each module of them.

A plugin of tests/conftest.py, because tests of other clients work on the same server with what Spark writes there.
A second session in the same Java process would be the first one with its catalogs changed, so there is one of each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import httpx
import pytest
from pyspark.sql import SparkSession

from tests.lake import UNITY
from tests.servers import ServerProcess
from tests.spark import sessions
from tests.spark.logs import Catalog, check_lockstep

os.environ[sessions.JAVA_VARIABLE] = f"{sessions.JAVA_OPTIONS} {os.environ.get(sessions.JAVA_VARIABLE, '')}".strip()


@pytest.fixture(scope="session")
def catalog_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server on SQLite that all Spark tests share. It publishes what was left for a minute: what tests hold back
    stays so for as long as they look.
    """
    server = ServerProcess(tmp_path_factory.mktemp("catalog"), settings={"publish_after_ms": "60000"}).start()
    yield server
    assert server.stop() == 0, "".join(server.log[-50:])


@pytest.fixture(scope="session")
def spark(catalog_server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session whose catalog `main` is the shared server's."""
    folder = tmp_path_factory.mktemp("spark")
    session = sessions.connect(uri=catalog_server.url, token=catalog_server.token, folder=folder)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def catalog(catalog_server: ServerProcess) -> Iterator[Catalog]:
    """What the server says of its tables, asked without Spark."""
    with catalog_server.http() as http:
        yield Catalog(http, catalog_server.home)


@pytest.fixture(scope="module")
def schema(catalog_server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[str]:
    """`main.<name of the module>`: a schema of the module's own, dropped at its end."""
    name = request.module.__name__.rpartition(".")[2]
    with catalog_server.http() as http:
        _expect_success(http.post(f"{UNITY}/schemas", json={"name": name, "catalog_name": "main"}))
        yield f"main.{name}"
        _expect_success(http.delete(f"{UNITY}/schemas/main.{name}", params={"force": "true"}))


@pytest.fixture(autouse=True)
def lockstep(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test that used the server, the catalog's view of every table equals the log's."""
    if "catalog_server" not in request.fixturenames:
        yield
        return
    catalog: Catalog = request.getfixturevalue("catalog")
    yield
    check_lockstep(catalog)


def _expect_success(response: httpx.Response) -> None:
    assert response.status_code == 200, response.text
