"""Rows that the client writes, read by stock Spark value by value; and what Spark makes of them, read by the client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.python_client.test_append import UNUSUAL
from tests.python_client.written import EVERYTHING, ROWS
from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tidegate import client
from tidegate.client.inline_limits import INLINE_BYTES_MAX

COLUMNS = {"id": "long", "name": "string"}
TRACKED = {"delta.enableRowTracking": "true"}


@pytest.fixture(scope="module")
def lake(catalog_server: ServerProcess) -> Iterator[client.Catalog]:
    with client.connect(catalog_server.url, token=catalog_server.token) as connected:
        yield connected


def by_id(rows: Any) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("mode", ["name", "id"])
def test_spark_reads_values_of_every_type_and_goes_on(
    lake: client.Catalog, spark: SparkSession, sql: Sql, table: str, mode: str
) -> None:
    properties = {"delta.columnMapping.mode": mode, "delta.enableDeletionVectors": "true"}
    made = lake.create_table(table, EVERYTHING, properties=properties)
    made.append(ROWS)
    assert by_id(spark.table(table).toArrow()) == ROWS
    sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE id < 3")
    sql(f"DELETE FROM {table} WHERE id = 2")
    assert by_id(made.scan().to_arrow()) == by_id(spark.table(table).toArrow()) == [ROWS[0], ROWS[0], ROWS[2]]
    made.overwrite([ROWS[1]])
    assert by_id(spark.table(table).toArrow()) == [ROWS[1]]
    assert sql(f"SELECT count(*) FROM {table} VERSION AS OF 1") == [(3,)]


PARTITIONED = {"id": "long", "s": "string", "d": "date", "t": "timestamp", "b": "boolean", "m": "decimal(38,10)"}
BY = [name for name in PARTITIONED if name != "id"]


def test_spark_finds_partitions_with_unusual_values(
    lake: client.Catalog, spark: SparkSession, sql: Sql, table: str
) -> None:
    made = lake.create_table(table, PARTITIONED, partition_by=BY)
    rest = [{"d": row["a_date"], "t": row["a_time"], "b": row["a_boolean"], "m": row["a_big_decimal"]} for row in ROWS]
    rows = [{"id": number, "s": text, **rest[number % 3]} for number, text in enumerate([*UNUSUAL, None])]
    made.append(rows)
    assert by_id(spark.table(table).toArrow()) == rows
    for row in rows[:3]:
        rows_there = spark.table(table)
        assert rows_there.where(rows_there.s == row["s"]).toArrow().to_pylist() == [row]
    sql(f"DELETE FROM {table} WHERE s = 'x/y' OR t IS NULL")
    left = [row for row in rows if row["s"] != "x/y" and row["t"] is not None]
    assert by_id(made.scan().to_arrow()) == left


def test_rows_keep_the_ids_that_they_got(lake: client.Catalog, sql: Sql, table: str) -> None:
    made = lake.create_table(table, COLUMNS, properties={**TRACKED, "delta.columnMapping.mode": "name"})
    ids = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table} ORDER BY id"
    made.append([{"id": number} for number in range(3)])
    made.append([{"id": number} for number in range(3, 5)])
    assert sql(ids) == [(0, 0, 1), (1, 1, 1), (2, 2, 1), (3, 3, 2), (4, 4, 2)]
    sql(f"UPDATE {table} SET name = 'flood' WHERE id = 1")
    made.append([{"id": 5}])
    known = sql(ids)
    assert [(row.id, row.row_id) for row in known[:5]] == [(number, number) for number in range(5)]
    assert known[1].row_commit_version == 3
    assert known[5].row_id > 4
    assert len({row.row_id for row in known}) == 6


@pytest.mark.parametrize("inline_bytes_max", [0, INLINE_BYTES_MAX], ids=["staged", "inline"])
def test_rows_of_an_overwrite_get_ids_that_no_row_had(
    catalog_server: ServerProcess, sql: Sql, table: str, inline_bytes_max: int
) -> None:
    ids = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table} ORDER BY id"
    token = catalog_server.token
    with client.connect(catalog_server.url, token=token, inline_bytes_max=inline_bytes_max) as lake:
        made = lake.create_table(table, COLUMNS, properties=TRACKED)
        made.append([{"id": number} for number in range(3)])
        made.overwrite([{"id": number} for number in range(2)])
        assert sql(ids) == [(0, 3, 2), (1, 4, 2)]
        sql(f"INSERT INTO {table} VALUES (2, 'spark')")
        made.append([{"id": 3}])
        appended = sql(ids)
        assert [(row.id, row.row_commit_version) for row in appended] == [(0, 2), (1, 2), (2, 3), (3, 4)]
        assert [row.row_id for row in appended[:2]] == [3, 4]
        assert 4 < appended[2].row_id < appended[3].row_id
        made.overwrite([{"id": 9, "name": "ebb"}, {"id": 10, "name": "flood"}])
        sql(f"UPDATE {table} SET name = 'slack' WHERE id = 10")
        (first, second) = sql(ids)
        assert (first.row_id, second.row_id) == (appended[3].row_id + 1, appended[3].row_id + 2), "kept by the update"
        assert (first.row_commit_version, second.row_commit_version) == (5, 6)
        assert sql(f"{ids.replace(table, f'{table} VERSION AS OF 1')}") == [(0, 0, 1), (1, 1, 1), (2, 2, 1)]


def test_spark_skips_files_by_the_clients_statistics(lake: client.Catalog, sql: Sql, table: str) -> None:
    """A file that is not there shows who reads it."""
    made = lake.create_table(table, {**COLUMNS, "x": "double", "at": "timestamp"})
    long = "þ" * 40
    made.append([{"id": 1, "name": long, "x": 1.0, "at": ROWS[0]["a_time"]}])
    made.append([{"id": 10, "name": "ebb", "x": float("nan"), "at": ROWS[1]["a_time"]}])
    assert sql(f"SELECT count(*), min(id), max(id) FROM {table}") == [(2, 1, 10)]
    assert sql(f"SELECT id FROM {table} WHERE x > 5") == [(10,)], "NaN is the largest"
    assert sql(f"SELECT id FROM {table} WHERE name = '{long}'") == [(1,)]
    assert sql(f"SELECT id FROM {table} WHERE at = TIMESTAMP'1905-06-30 01:02:03.999999Z'") == [(1,)]
    first = next(file for file in made.snapshot().files if file.statistics and file.statistics.max_values["id"] == 1)
    path = Path(made.load().metadata.location.removeprefix("file://")) / first.path
    hidden = path.rename(path.with_suffix(".hidden"))
    for condition in ("id > 5", "name < 'f'", "at > TIMESTAMP'2000-01-01 00:00:00Z'"):
        assert sql(f"SELECT id FROM {table} WHERE {condition}") == [(10,)]
    with pytest.raises(Exception, match=first.path):
        sql(f"SELECT id FROM {table} WHERE id > 0")
    hidden.rename(path)


def test_spark_and_the_client_append_in_turns(lake: client.Catalog, sql: Sql, table: str) -> None:
    sql(f"CREATE TABLE {table} (id BIGINT, name STRING) CLUSTER BY (name)")
    made = lake.table(table)
    for number in range(0, 4, 2):
        made.append([{"id": number, "name": "client"}])
        sql(f"INSERT INTO {table} VALUES ({number + 1}, 'spark')")
    assert [row["id"] for row in by_id(made.scan().to_arrow())] == [0, 1, 2, 3]
    assert sql(f"SELECT name, count(*) FROM {table} GROUP BY name ORDER BY name") == [("client", 2), ("spark", 2)]
    history = sql(f"DESCRIBE HISTORY {table}")
    assert [row.operationMetrics["numOutputRows"] for row in history[:2]] == ["1", "1"]
    assert history[1].operationParameters["mode"] == "Append"
