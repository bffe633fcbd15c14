"""What a reader sees is what the catalog has ratified: no more, no less, and never by the path.

A file beyond the latest ratified version is no part of the table, which cannot be used until the file is gone. A
ratified commit that is not published yet is part of it. Both are tried with a session that knows the table already and
with one that reads it for the first time.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.lake import Lake, LakeTable
from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, log_folder, published_file, replay
from tests.spark.writers import StatementRefused, WriterProcess

CHECKPOINT_INTERVAL = 10


@pytest.fixture(params=["knows", "forgets"])
def reader(request: pytest.FixtureRequest, spark: SparkSession) -> Callable[[], None]:
    """Called before a read: the session still knows the table's log, or reads it from nothing."""
    forget = spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache
    return forget if request.param == "forgets" else lambda: None


@pytest.fixture
def lake(catalog_server: ServerProcess, schema: str) -> Iterator[Lake]:
    """A client made by hand, in the module's schema."""
    with catalog_server.http() as http:
        yield Lake(http, schema=schema.partition(".")[2])


@pytest.fixture
def by_hand(lake: Lake, table: str, catalog: Catalog) -> Callable[[], LakeTable]:
    """The table in the hands of that client."""

    def take() -> LakeTable:
        loaded = catalog.load(table)
        timestamp = max(replay(loaded).timestamps.values())
        metadata = loaded["metadata"]
        return LakeTable(lake, table.rpartition(".")[2], metadata["table-uuid"], metadata["location"], timestamp)

    return take


def commit_info(timestamp: int, operation: str) -> dict[str, Any]:
    parameters: dict[str, str] = {}
    info = {"inCommitTimestamp": timestamp, "timestamp": timestamp, "operation": operation, "txnId": str(uuid.uuid4())}
    return {"commitInfo": {**info, "operationParameters": parameters, "isBlindAppend": False}}


def removals(catalog: Catalog, table: str, *, operation: str) -> tuple[int, bytes]:
    """A commit that would empty the table: its timestamp and its content."""
    log = replay(catalog.load(table))
    timestamp = log.timestamps[log.version] + 1
    remove = {"deletionTimestamp": timestamp, "dataChange": True}
    actions = [commit_info(timestamp, operation), *({"remove": {"path": path, **remove}} for path in sorted(log.files))]
    return timestamp, "".join(json.dumps(action) + "\n" for action in actions).encode()


@pytest.fixture
def forged(sql: Sql, table: str, catalog: Catalog) -> Iterator[str]:
    """A table of four rows at version 1. Somebody put a version 2 into its log that would empty it."""
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    sql(f"INSERT INTO {table} VALUES (3)")
    _, content = removals(catalog, table, operation="FORGED")
    file = published_file(catalog.load(table)["metadata"]["location"], 2)
    file.write_bytes(content)
    yield table
    file.unlink(missing_ok=True)
    assert catalog.load(table)["latest-table-version"] == 1


USES: dict[str, Callable[[SparkSession, str], object]] = {
    "select": lambda spark, table: spark.sql(f"SELECT count(*) FROM {table}").collect(),
    "an old version": lambda spark, table: spark.sql(f"SELECT * FROM {table} VERSION AS OF 1").collect(),
    "the stray version": lambda spark, table: spark.sql(f"SELECT * FROM {table} VERSION AS OF 2").collect(),
    "history": lambda spark, table: spark.sql(f"DESCRIBE HISTORY {table}").collect(),
    "stream": lambda spark, table: spark.readStream.table(table),
    "insert": lambda spark, table: spark.sql(f"INSERT INTO {table} VALUES (4)"),
    "delete": lambda spark, table: spark.sql(f"DELETE FROM {table}"),
}


@pytest.mark.parametrize("use", USES)
def test_file_beyond_the_ratified_version_is_never_part_of_the_table(
    spark: SparkSession, forged: str, reader: Callable[[], None], use: str
) -> None:
    """Delta itself would read it, and a writer would propose the version after it for ever."""
    reader()
    with pytest.raises(AnalysisException, match="ratified versions up to 1 only"):
        USES[use](spark, forged)


def test_table_is_as_before_once_the_stray_file_is_gone(sql: Sql, forged: str, catalog: Catalog) -> None:
    with pytest.raises(AnalysisException, match="past the catalog"):
        sql(f"SELECT * FROM {forged}")
    published_file(catalog.load(forged)["metadata"]["location"], 2).unlink()
    assert sql(f"SELECT count(*) FROM {forged}") == [(4,)]
    assert [row.operation for row in sql(f"DESCRIBE HISTORY {forged}")] == ["WRITE", "CREATE TABLE AS SELECT"]


def test_both_faces_read_the_same_versions(
    sql: Sql, old: WriterProcess, table: str, catalog: Catalog, by_hand: Callable[[], LakeTable]
) -> None:
    """On specification v0.1.0 as well: what is ratified is read before it is published, and nothing beyond it ever."""
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    assert old.sql(f"SELECT count(*) FROM {table}") == [(3,)]
    timestamp, content = removals(catalog, table, operation="BY HAND")
    writer = by_hand()
    commit = writer.stage_commit(1, timestamp=timestamp, content=content)
    response = writer.update({"action": "add-commit", "commit": commit})
    assert response.status_code == 200, response.text
    assert old.sql(f"SELECT count(*) FROM {table}") == [(0,)]
    assert not published_file(writer.location, 1).exists()
    published_file(writer.location, 1).write_bytes(content)
    stray = published_file(writer.location, 2)
    stray.write_bytes(removals(catalog, table, operation="FORGED")[1])
    with pytest.raises(StatementRefused, match="ratified versions up to 1 only"):
        old.sql(f"INSERT INTO {table} VALUES (7)")
    stray.unlink()
    old.sql(f"INSERT INTO {table} VALUES (7)")
    assert sql(f"SELECT id FROM {table}") == [(7,)]


def test_ratified_commit_is_read_before_it_is_published(
    sql: Sql, table: str, catalog: Catalog, by_hand: Callable[[], LakeTable], reader: Callable[[], None]
) -> None:
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    timestamp, content = removals(catalog, table, operation="BY HAND")
    writer = by_hand()
    commit = writer.stage_commit(1, timestamp=timestamp, content=content)
    response = writer.update({"action": "add-commit", "commit": commit})
    assert response.status_code == 200, response.text
    assert not published_file(writer.location, 1).exists()
    reader()
    assert sql(f"SELECT count(*) FROM {table}") == [(0,)]
    assert sql(f"DESCRIBE HISTORY {table}")[0].operation == "BY HAND"
    assert sql(f"SELECT count(*) FROM {table} VERSION AS OF 0") == [(3,)]
    reader()
    sql(f"INSERT INTO {table} VALUES (7)")
    assert sql(f"SELECT id FROM {table}") == [(7,)]
    # The next writer publishes what the one before it left behind, and tells the catalog with its own next commit.
    sql(f"INSERT INTO {table} VALUES (8)")
    assert published_file(writer.location, 1).read_bytes() == content
    assert 1 not in [commit["version"] for commit in catalog.load(table)["commits"]]


PATH_ACCESS: dict[str, Callable[[SparkSession, str], object]] = {
    "select": lambda spark, path: spark.sql(f"SELECT * FROM delta.`{path}`").collect(),
    "insert": lambda spark, path: spark.sql(f"INSERT INTO delta.`{path}` VALUES (9)"),
    "update": lambda spark, path: spark.sql(f"UPDATE delta.`{path}` SET id = 9"),
    "delete": lambda spark, path: spark.sql(f"DELETE FROM delta.`{path}`"),
    "history": lambda spark, path: spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect(),
    "load": lambda spark, path: spark.read.format("delta").load(path).collect(),
    "load an old version": lambda spark, path: spark.read.format("delta").option("versionAsOf", 0).load(path).collect(),
    "append": lambda spark, path: spark.range(1).write.format("delta").mode("append").save(path),
    "overwrite": lambda spark, path: spark.range(1).write.format("delta").mode("overwrite").save(path),
    "read as a stream": lambda spark, path: (
        spark.readStream.format("delta").load(path).writeStream.format("noop").start().processAllAvailable()
    ),
}


@pytest.fixture(scope="module")
def guarded(spark: SparkSession, schema: str) -> str:
    spark.sql(f"CREATE TABLE {schema}.guarded AS SELECT id FROM range(3)")
    return f"{schema}.guarded"


@pytest.mark.parametrize("access", PATH_ACCESS)
def test_access_by_path_is_refused(spark: SparkSession, guarded: str, catalog: Catalog, access: str) -> None:
    before = catalog.state(guarded)
    with pytest.raises(Exception, match="DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"):
        PATH_ACCESS[access](spark, before["metadata"]["location"])
    assert catalog.state(guarded) == before
    assert spark.table(guarded).count() == 3


def test_checkpoints_are_written_every_ten_commits_and_carry_a_reader(
    spark: SparkSession, sql: Sql, table: str, catalog: Catalog, tmp_path: Path
) -> None:
    sql(f"CREATE TABLE {table} (id INT)")
    for id in range(1, 22):
        sql(f"INSERT INTO {table} VALUES ({id})")
    location = catalog.load(table)["metadata"]["location"]
    folder = log_folder(location)
    versions = {int(file.name.split(".")[0]) for file in folder.glob("0*.checkpoint*")}
    assert versions == {CHECKPOINT_INTERVAL, 2 * CHECKPOINT_INTERVAL}
    assert json.loads((folder / "_last_checkpoint").read_text())["version"] == 20
    assert sql(f"SELECT count(*), sum(id) FROM {table} VERSION AS OF 15") == [(15, 120)]
    # Without the files before the checkpoint, only the checkpoint can tell what is in the table.
    hidden = [published_file(location, version) for version in range(20)]
    for file in hidden:
        shutil.move(file, tmp_path / file.name)
    try:
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        assert sql(f"SELECT count(*), sum(id) FROM {table}") == [(21, 231)]
    finally:
        for file in hidden:
            shutil.move(tmp_path / file.name, file)
