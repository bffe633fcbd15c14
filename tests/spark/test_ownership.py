"""Stock Spark on tables that are taken over while it writes to them by path, and on tables that were given back."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.waiting import wait_until

TIDEGATE = "/api/tidegate/v1"
ADOPTIONS = 20
REFUSALS = re.compile("DELTA_METADATA_CHANGED|DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED")
"""Of a writer that was under way, and of one that came later."""


@pytest.fixture
def http(catalog_server: ServerProcess, tmp_path: Path) -> Iterator[httpx.Client]:
    with catalog_server.http() as client:
        allowed = client.post(f"{TIDEGATE}/adoptable-locations", json={"location": f"file://{tmp_path}"})
        assert allowed.status_code == 200
        yield client


def adopt(http: httpx.Client, folder: Path, name: str) -> int:
    done = http.post(f"{TIDEGATE}/adoptions", json={"location": f"file://{folder}", "full_name": name}, timeout=60)
    assert done.status_code == 200, done.text
    return done.json()["version"]


def release(http: httpx.Client, name: str, keep: str = "external") -> int:
    done = http.post(f"{TIDEGATE}/tables/{name}/release", json={"keep": keep}, timeout=60)
    assert done.status_code == 200, done.text
    return done.json()["version"]


class Writer:
    """Appends by path, one number after the other, until its engine refuses."""

    def __init__(self, spark: SparkSession, folder: Path, first: int) -> None:
        self.spark, self.folder, self.next = spark, folder, first
        self.refusal: Exception | None = None
        self.landed: list[int] = []
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while self.refusal is None:
            number = self.next
            try:
                self.spark.sql(f"INSERT INTO delta.`{self.folder}` VALUES ({number})")
            except Exception as refused:
                self.refusal = refused
            else:
                self.landed.append(number)
                self.next += 1

    def wait_for(self, count: int) -> None:
        while len(self.landed) < count and self.refusal is None:
            self._thread.join(0.05)

    def end(self) -> list[int]:
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self.landed


def as_a_new_session(spark: SparkSession) -> None:
    """The stock client keeps what it knows of a place for an hour, and asks about it only through what it knows."""
    jvm: Any = spark._jvm  # pyright: ignore[reportPrivateUsage]
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def numbers(sql: Sql, of: str) -> list[int]:
    return sorted(row.id for row in sql(f"SELECT id FROM {of}"))


def test_a_table_with_history_is_taken_over_whole(sql: Sql, http: httpx.Client, table: str, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    sql(f"CREATE TABLE delta.`{folder}` (id BIGINT, day STRING) USING delta PARTITIONED BY (day)")
    for number in range(12):  # With a checkpoint on the way.
        sql(f"INSERT INTO delta.`{folder}` VALUES ({number}, 'd{number % 2}')")
    sql(f"DELETE FROM delta.`{folder}` WHERE id = 3")
    before = numbers(sql, f"delta.`{folder}`")
    version = adopt(http, folder, table)
    assert numbers(sql, table) == before
    sql(f"INSERT INTO {table} VALUES (100, 'd0')")
    sql(f"DELETE FROM {table} WHERE id = 4")
    assert numbers(sql, table) == sorted([*(one for one in before if one != 4), 100])
    assert len(numbers(sql, f"{table} VERSION AS OF {version - 2}")) == 12
    assert sql(f"DESCRIBE HISTORY {table}")[-1].version == 0
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'sea')")
    sql(f"DROP TABLE {table}")


KINDS = {
    "legacy protocol, column mapping, classic checkpoints": {
        "delta.minReaderVersion": "2",
        "delta.minWriterVersion": "5",
        "delta.columnMapping.mode": "name",
    },
    "table features, deletion vectors, v2 checkpoints": {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
        "delta.checkpointPolicy": "v2",
    },
}


@pytest.mark.parametrize("properties", KINDS.values(), ids=KINDS)
def test_tables_of_many_kinds_are_taken_over_checkpointed_and_given_back(
    spark: SparkSession, sql: Sql, http: httpx.Client, table: str, tmp_path: Path, properties: dict[str, str]
) -> None:
    folder = tmp_path / "t"
    given = ", ".join(f"'{key}' = '{value}'" for key, value in {**properties, "delta.checkpointInterval": "3"}.items())
    columns = "(key BIGINT, day STRING) USING delta PARTITIONED BY (day)"
    sql(f"CREATE TABLE delta.`{folder}` {columns} TBLPROPERTIES ({given})")
    sql(f"ALTER TABLE delta.`{folder}` RENAME COLUMN key TO id")
    for first in (0, 10, 20):
        rows = ", ".join(f"({number}, 'd{number % 2}')" for number in range(first, first + 10))
        sql(f"INSERT INTO delta.`{folder}` SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    sql(f"DELETE FROM delta.`{folder}` WHERE id = 3")
    history = [row for row in sql(f"DESCRIBE HISTORY delta.`{folder}`") if row.version > 1]
    counts = {row.version: len(numbers(sql, f"delta.`{folder}` VERSION AS OF {row.version}")) for row in history}
    assert checkpoints(folder), "there is one before the adoption"
    named_by_uuid = [*folder.glob("_delta_log/[0-9]*.checkpoint.*-*.*")]
    deletion_vectors = [*folder.rglob("deletion_vector_*.bin")]
    assert bool(named_by_uuid) == bool(deletion_vectors) == ("delta.checkpointPolicy" in properties)
    version = adopt(http, folder, table)
    for number in range(100, 105):
        sql(f"INSERT INTO {table} VALUES ({number}, 'd0')")
    sql(f"DELETE FROM {table} WHERE id = 14")
    wait_until(lambda: max(checkpoints(folder)) > version, "there is one after the adoption")
    as_a_new_session(spark)
    expected = sorted([*({*range(30)} - {3, 14}), *range(100, 105)])
    assert numbers(sql, table) == expected
    for row in history:
        at = f"{table} TIMESTAMP AS OF '{row.timestamp}'"
        assert len(numbers(sql, at)) == counts[row.version], "commits from before it are found by their time"
    release(http, table, keep="nothing")
    as_a_new_session(spark)
    sql(f"INSERT INTO delta.`{folder}` VALUES (200, 'd1')")
    assert numbers(sql, f"delta.`{folder}`") == [*expected, 200]
    assert sql(f"DESCRIBE HISTORY delta.`{folder}`")[-1].version == 0
    assert sql(f"SELECT count(*) FROM delta.`{folder}` WHERE day = 'd0'") == [(14 - 1 + 5 + 1,)]


def checkpoints(folder: Path) -> set[int]:
    return {int(file.name.partition(".")[0]) for file in (folder / "_delta_log").glob("[0-9]*.checkpoint.*")}


def test_a_table_that_was_given_back_is_read_and_written_by_path(
    spark: SparkSession, sql: Sql, http: httpx.Client, table: str, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    sql(f"CREATE TABLE delta.`{folder}` (id BIGINT) USING delta")
    sql(f"INSERT INTO delta.`{folder}` VALUES (1)")
    adopt(http, folder, table)
    sql(f"INSERT INTO {table} VALUES (2)")
    sql(f"INSERT INTO {table} VALUES (3)")
    version = release(http, table)
    as_a_new_session(spark)
    assert numbers(sql, f"delta.`{folder}`") == [1, 2, 3]
    sql(f"INSERT INTO delta.`{folder}` VALUES (4)")
    sql(f"DELETE FROM delta.`{folder}` WHERE id = 1")
    assert numbers(sql, f"delta.`{folder}`") == [2, 3, 4]
    assert numbers(sql, f"delta.`{folder}` VERSION AS OF {version}") == [1, 2, 3]
    assert sql(f"DESCRIBE HISTORY delta.`{folder}`")[-1].version == 0
    assert numbers(sql, table) == [2, 3, 4], "the catalog keeps it as an external table"
    sql(f"DROP TABLE {table}")


def test_adoptions_in_a_loop_lose_and_double_nothing_that_a_writer_appends_meanwhile(
    spark: SparkSession, sql: Sql, http: httpx.Client, table: str, tmp_path: Path
) -> None:
    """Each of two writers lands before the adoption, or is refused by its engine; through the catalog it goes on."""
    folder = tmp_path / "t"
    sql(f"CREATE TABLE delta.`{folder}` (id BIGINT) USING delta")
    expected: list[int] = []
    for round in range(ADOPTIONS):
        writers = [Writer(spark, folder, first=1000 * round + half) for half in (0, 500)]
        for writer in writers:
            writer.wait_for(1)
        adopt(http, folder, table)
        for writer in writers:
            expected += writer.end()
            assert writer.landed, writer.refusal
            assert REFUSALS.search(str(writer.refusal)), writer.refusal
        sql(f"INSERT INTO {table} VALUES ({1000 * round + 999})")
        expected += [1000 * round + 999]
        assert numbers(sql, table) == expected
        release(http, table, keep="nothing")
        as_a_new_session(spark)
    assert numbers(sql, f"delta.`{folder}`") == expected
