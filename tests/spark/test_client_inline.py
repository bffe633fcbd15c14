"""Inline commits and open appends of the client beside stock Spark: each sees the other's rows at once, before
anything is published, and goes on after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tidegate import client

COLUMNS = {"id": "long", "name": "string"}
TRACKED = {"delta.enableRowTracking": "true"}


@pytest.fixture(scope="module")
def lake(catalog_server: ServerProcess) -> Iterator[client.Catalog]:
    with client.connect(catalog_server.url, token=catalog_server.token) as connected:
        yield connected


def ids(table: client.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def published(table: client.Table) -> list[str]:
    log = Path(table.describe().storage_location.removeprefix("file://")) / "_delta_log"
    return sorted(path.name for path in log.glob("*.json"))


def test_spark_reads_what_went_inline_before_it_is_published(lake: client.Catalog, sql: Sql, table: str) -> None:
    made = lake.create_table(table, COLUMNS, partition_by=["name"])
    made.append([{"id": 1, "name": "ebb"}, {"id": 2, "name": "flood"}])
    made.append([{"id": 3, "name": "ebb"}])
    assert [one.inline for one in made.get_ratified_commits().commits] == [True, True]
    assert len(published(made)) == 1, "nothing but version 0 is in the log"
    assert sql(f"SELECT id, name FROM {table} ORDER BY id") == [(1, "ebb"), (2, "flood"), (3, "ebb")]
    assert sql(f"SELECT count(*) FROM {table} VERSION AS OF 1") == [(2,)]


def test_spark_and_the_client_write_after_each_other(lake: client.Catalog, sql: Sql, table: str) -> None:
    made = lake.create_table(table, COLUMNS)
    made.append([{"id": 0, "name": "client"}])
    sql(f"INSERT INTO {table} VALUES (1, 'spark')")
    assert made.append([{"id": 2, "name": "client"}]).version == 3
    sql(f"DELETE FROM {table} WHERE id = 0")
    assert made.append([{"id": 3, "name": "client"}]).path is None
    assert ids(made) == [1, 2, 3]
    assert sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,), (3,)]
    assert made.overwrite([{"id": 9, "name": "client"}]).path is None
    assert sql(f"SELECT id, name FROM {table}") == [(9, "client")]
    operations = [row.operation for row in sql(f"DESCRIBE HISTORY {table}")]
    assert operations == ["WRITE", "WRITE", "DELETE", "WRITE", "WRITE", "WRITE", "CREATE TABLE"]


def test_rows_get_ids_in_turns(lake: client.Catalog, sql: Sql, table: str) -> None:
    made = lake.create_table(table, COLUMNS, properties=TRACKED)
    for number in range(0, 4, 2):
        made.append([{"id": number}])
        sql(f"INSERT INTO {table} VALUES ({number + 1}, 'spark')")
    rows = sql(f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table} ORDER BY id")
    assert [(row.id, row.row_id, row.row_commit_version) for row in rows] == [(n, n, n + 1) for n in range(4)]


def test_a_column_that_spark_adds_is_noticed_by_an_open_append(lake: client.Catalog, sql: Sql, table: str) -> None:
    made = lake.create_table(table, COLUMNS)
    made.append([{"id": 1}])
    sql(f"ALTER TABLE {table} ADD COLUMNS (depth DOUBLE)")
    with pytest.raises(client.ConcurrentChange, match="columns"):
        made.append([{"id": 2}])
    made.append([{"id": 2, "depth": 1.5}])
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('color' = 'blue')")
    rows: list[dict[str, Any]] = [{"id": 3, "depth": 2.5}]
    assert made.append(rows).version == 5
    assert sql(f"SELECT id, depth FROM {table} ORDER BY id") == [(1, None), (2, 1.5), (3, 2.5)]
