"""What all of these tests have, besides the server, the session and the schema of `shared`.

After each test that used the server, every table in it is compared with its log (see `logs`): whatever a statement
did, the catalog and the log say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import Row, SparkSession

from tests.servers import ServerProcess
from tests.spark.wire import Wire
from tests.spark.writers import WriterProcess

Sql = Callable[[str], list[Row]]
OLD_FACE = {"spark.sql.catalog.main.deltaRestApi.enabled": "false"}


@pytest.fixture
def table(schema: str, unique: str) -> str:
    """The full name of a table that does not exist yet."""
    return f"{schema}.{unique}"


@pytest.fixture
def sql(spark: SparkSession) -> Sql:
    """Runs a statement and answers its rows, which compare with plain tuples."""
    return lambda statement: spark.sql(statement).collect()


@pytest.fixture(scope="session")
def old_wire(catalog_server: ServerProcess) -> Iterator[Wire]:
    """The way that `old` takes to the server."""
    with Wire(catalog_server) as wire:
        yield wire


@pytest.fixture(scope="session")
def old(
    catalog_server: ServerProcess, old_wire: Wire, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WriterProcess]:
    """A Spark on specification v0.1.0, in a process of its own: it shares nothing with `spark` but the catalog."""
    folder = tmp_path_factory.mktemp("old")
    process = WriterProcess(catalog_server, folder, uri=old_wire.url, **OLD_FACE)
    try:
        process.wait_until_ready()
        yield process
    finally:
        process.stop()
