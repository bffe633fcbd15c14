"""One server for all clients, and DuckDB attached to it.

The server is the one that Spark's tests use, so that clients can work on what Spark has written. After each test every
table is compared with its log, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.clients import duck as ducks
from tests.clients.duck import Duck
from tests.clients.matrix import Refused, refused_by
from tests.clients.tables import HUSUM, STATIONS, External, append, make
from tests.lake import Lake, LakeTable
from tests.servers import ServerProcess


@pytest.fixture(scope="module")
def shore(catalog_server: ServerProcess, schema: str) -> Iterator[Lake]:
    """A client made by hand, in the schema of the module."""
    with catalog_server.http() as http:
        yield Lake(http, schema=schema.rpartition(".")[2])


@pytest.fixture
def in_lake(schema: str) -> str:
    """The schema of the module, as DuckDB knows it: `main` is a name that it keeps for itself."""
    return f"lake.{schema.rpartition('.')[2]}"


@pytest.fixture
def table(shore: Lake, unique: str) -> LakeTable:
    """A catalog-managed table of the test's own, at version 1."""
    made = make(shore, unique, STATIONS)
    append(made, HUSUM)
    return made


@pytest.fixture
def external(shore: Lake, unique: str, tmp_path: Path) -> External:
    """An external table of the test's own, at version 0."""
    return External.make(shore, f"{unique}_external", tmp_path / "external")


@pytest.fixture(scope="session")
def duckdb_instance() -> Iterator[duckdb.DuckDBPyConnection]:
    with ducks.start() as connection:
        yield connection


@pytest.fixture
def reader(duckdb_instance: duckdb.DuckDBPyConnection, catalog_server: ServerProcess) -> Iterator[Duck]:
    """DuckDB with the catalog attached for reading."""
    duck = Duck(duckdb_instance, catalog_server.url, catalog_server.token)
    duck.attach("READ_ONLY")
    yield duck
    duck.detach()


@pytest.fixture
def writer(reader: Duck) -> Duck:
    """DuckDB with the catalog attached for writing."""
    reader.attach()
    return reader


@pytest.fixture
def refused(request: pytest.FixtureRequest) -> Iterator[Refused]:
    """Expects the error that the test claims for its client."""
    expected = refused_by(request.function)
    yield expected
    assert expected.seen, "the test claims an error, and provokes none"
