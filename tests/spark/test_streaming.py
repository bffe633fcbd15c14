"""Structured streaming from and to catalog-managed tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, log_folder, published_file
from tests.spark.streams import Streams

SECONDS_MAX = 300


def finish(query: StreamingQuery) -> None:
    """Waits for a stream that ends by itself; its failure is raised here."""
    try:
        assert query.awaitTermination(SECONDS_MAX), "the stream did not end"
    finally:
        query.stop()


def drop_file(folder: Path, number: int) -> None:
    """A file of two events, as some other system would leave it."""
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"id": 2 * number + i, "name": f"n{number}"}) for i in range(2)]
    hidden = folder / f".{number}"
    hidden.write_text("\n".join(lines))
    hidden.rename(folder / f"{number}.json")


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of the files that `drop_file` puts into `tmp_path / "in"`."""
    (tmp_path / "in").mkdir()
    return spark.readStream.schema("id INT, name STRING").json(str(tmp_path / "in"))


@pytest.fixture
def to_the_end(tmp_path: Path) -> Callable[[DataFrame], DataStreamWriter]:
    """A writer of the stream that reads what there is and ends; it goes on where the last one stopped."""
    checkpoint = str(tmp_path / "checkpoint")
    return lambda rows: (
        rows.writeStream.format("delta").option("checkpointLocation", checkpoint).trigger(availableNow=True)
    )


@pytest.mark.parametrize("target", ["exists", "is made by the stream"])
def test_stream_appends_each_file_once(
    events: DataFrame,
    to_the_end: Callable[[DataFrame], DataStreamWriter],
    sql: Sql,
    table: str,
    catalog: Catalog,
    tmp_path: Path,
    target: str,
) -> None:
    if target == "exists":
        sql(f"CREATE TABLE {table} (id INT, name STRING)")
    for number in range(3):
        drop_file(tmp_path / "in", number)
        finish(to_the_end(events).toTable(table))
    finish(to_the_end(events).toTable(table))
    assert sql(f"SELECT id, name FROM {table} ORDER BY id") == [(id, f"n{id // 2}") for id in range(6)]
    assert catalog.load(table)["metadata"]["table-type"] == "MANAGED"
    assert [row.operation for row in sql(f"DESCRIBE HISTORY {table}")].count("STREAMING UPDATE") == 3


def test_stream_makes_a_partitioned_table(
    events: DataFrame,
    to_the_end: Callable[[DataFrame], DataStreamWriter],
    sql: Sql,
    table: str,
    catalog: Catalog,
    tmp_path: Path,
) -> None:
    drop_file(tmp_path / "in", 0)
    finish(to_the_end(events).partitionBy("name").toTable(table))
    assert catalog.load(table)["metadata"]["partition-columns"] == ["name"]
    assert sql(f"SELECT count(*) FROM {table} WHERE name = 'n0'") == [(2,)]


def test_table_is_read_as_a_stream_and_written_by_one(
    spark: SparkSession,
    to_the_end: Callable[[DataFrame], DataStreamWriter],
    sql: Sql,
    table: str,
) -> None:
    source = f"{table}_source"
    sql(f"CREATE TABLE {source} AS SELECT id FROM range(3)")
    finish(to_the_end(spark.readStream.table(source)).toTable(table))
    sql(f"INSERT INTO {source} VALUES (3)")
    sql(f"INSERT INTO {source} VALUES (4)")
    finish(to_the_end(spark.readStream.table(source)).toTable(table))
    assert sql(f"SELECT id FROM {table} ORDER BY id") == [(id,) for id in range(5)]


def test_stream_that_runs_sees_commits_as_they_happen(
    spark: SparkSession, sql: Sql, table: str, tmp_path: Path
) -> None:
    source = f"{table}_source"
    sql(f"CREATE TABLE {source} (id INT)")
    sql(f"CREATE TABLE {table} (id INT)")
    writer = spark.readStream.table(source).writeStream.format("delta")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="100 milliseconds").toTable(table)
    try:
        for id in range(3):
            sql(f"INSERT INTO {source} VALUES ({id})")
            query.processAllAvailable()
            assert sql(f"SELECT count(*), max(id) FROM {table}") == [(id + 1, id)]
    finally:
        query.stop()


def test_stream_starts_where_it_is_told_to(
    spark: SparkSession, to_the_end: Callable[[DataFrame], DataStreamWriter], sql: Sql, table: str
) -> None:
    source = f"{table}_source"
    sql(f"CREATE TABLE {source} AS SELECT id FROM range(3)")
    sql(f"INSERT INTO {source} VALUES (3)")
    finish(to_the_end(spark.readStream.option("startingVersion", 1).table(source)).toTable(table))
    assert sql(f"SELECT id FROM {table}") == [(3,)]


def test_stream_of_changes(
    spark: SparkSession, to_the_end: Callable[[DataFrame], DataStreamWriter], sql: Sql, table: str
) -> None:
    source = f"{table}_source"
    sql(f"CREATE TABLE {source} (id INT, v STRING) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    sql(f"INSERT INTO {source} VALUES (1, 'a')")
    sql(f"UPDATE {source} SET v = 'b'")
    sql(f"DELETE FROM {source} WHERE id = 1")
    changes = spark.readStream.option("readChangeFeed", "true").option("startingVersion", 0).table(source)
    finish(to_the_end(changes.selectExpr("_commit_version AS version", "_change_type AS change", "v")).toTable(table))
    assert sql(f"SELECT * FROM {table} ORDER BY version, change") == [
        (1, "insert", "a"),
        (2, "update_postimage", "b"),
        (2, "update_preimage", "a"),
        (3, "delete", "b"),
    ]


def test_each_batch_is_merged(
    events: DataFrame,
    to_the_end: Callable[[DataFrame], DataStreamWriter],
    sql: Sql,
    table: str,
    tmp_path: Path,
) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 0 AS id, 'old' AS name, 0L AS batch")

    def upsert(batch: DataFrame, batch_id: int) -> None:
        batch.selectExpr("*", f"{batch_id}L AS batch").createOrReplaceTempView("batch")
        batch.sparkSession.sql(f"""MERGE INTO {table} t USING batch s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""")

    for number in range(2):
        drop_file(tmp_path / "in", number)
        finish(to_the_end(events).foreachBatch(upsert).start())
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(0, "n0", 0), (1, "n0", 0), (2, "n1", 1), (3, "n1", 1)]


def test_aggregate_replaces_the_table_with_every_batch(
    events: DataFrame,
    to_the_end: Callable[[DataFrame], DataStreamWriter],
    sql: Sql,
    table: str,
    tmp_path: Path,
) -> None:
    for number in range(2):
        drop_file(tmp_path / "in", number)
        finish(to_the_end(events.groupBy("name").count()).outputMode("complete").toTable(table))
    assert sql(f"SELECT * FROM {table} ORDER BY name") == [("n0", 2), ("n1", 2)]


@pytest.mark.timeout(1200)
def test_streams_killed_in_mid_batch_lose_and_double_nothing(
    spark: SparkSession, sql: Sql, table: str, catalog: Catalog, catalog_server: ServerProcess, tmp_path: Path
) -> None:
    """SIGKILL while data files are written, when a commit is staged, and when it is ratified but the stream does not
    know it yet; then the streams run to their end."""
    source, appended, merged = (f"{table}_{name}" for name in ("source", "appended", "merged"))
    spark.range(80).repartition(8).writeTo(source).using("delta").create()
    sql(f"CREATE TABLE {appended} (id BIGINT)")
    sql(f"CREATE TABLE {merged} (key BIGINT, value BIGINT)")
    kills = [
        ("append", is_staged(catalog, appended)),
        ("merge", is_ratified(catalog, merged)),
        ("append", is_ratified(catalog, appended)),
        ("merge", has_data(catalog, merged)),
    ]
    for query, moment in kills:
        streams = Streams(catalog_server, source=source, appended=appended, merged=merged, folder=tmp_path)
        streams.kill_in_mid_batch(query, moment())
    Streams(catalog_server, source=source, appended=appended, merged=merged, folder=tmp_path).wait()
    assert sql(f"SELECT id FROM {appended} ORDER BY id") == [(id,) for id in range(80)]
    assert sql(f"SELECT key, value FROM {merged} ORDER BY key") == [(key, key + 40) for key in range(40)]
    assert batches(catalog, appended) == list(range(8))


Moment = Callable[[], Callable[[], bool]]
"""Called before a run: answers a question that is answered with yes once something new has happened in it."""


def has_data(catalog: Catalog, table: str) -> Moment:
    return lambda: _grows(lambda: len(list(_folder(catalog, table).rglob("*.parquet"))))


def is_staged(catalog: Catalog, table: str) -> Moment:
    return lambda: _grows(lambda: len(list(_folder(catalog, table).glob("_delta_log/_staged_commits/0*"))))


def is_ratified(catalog: Catalog, table: str) -> Moment:
    return lambda: _grows(lambda: catalog.load(table)["latest-table-version"])


def _grows(count: Callable[[], int]) -> Callable[[], bool]:
    before = count()

    def grown() -> bool:
        nonlocal before
        now = count()
        before, has_grown = now, now > before
        return has_grown

    return grown


def _folder(catalog: Catalog, table: str) -> Path:
    return log_folder(catalog.load(table)["metadata"]["location"]).parent


def batches(catalog: Catalog, table: str) -> list[int]:
    """The batches that the stream committed, in order, as its transaction ids tell."""
    loaded = catalog.load(table)
    found: list[int] = []
    for version in range(1, loaded["latest-table-version"] + 1):
        lines = published_file(loaded["metadata"]["location"], version).read_text().splitlines()
        found += [action["txn"]["version"] for line in lines if "txn" in (action := json.loads(line))]
    return found
