"""Tidegate's Python client and stock Spark on the same tables: each goes on where the other stopped.

After each test the catalog is compared with the log of every table (see `logs`), so whatever the client commits, its
metadata stays in step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tidegate import client

COLUMNS = [{"name": "id", "type": "long", "nullable": False}, {"name": "name", "type": "string"}]
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitioned": {"partition_by": ["name"]},
    "clustered": {"cluster_by": ["id"]},
    "mapped, with row ids": {"properties": {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}},
    "mapped and clustered": {"cluster_by": ["name"], "properties": {"delta.columnMapping.mode": "name"}},
}


@pytest.fixture(scope="module")
def lake(catalog_server: ServerProcess) -> Iterator[client.Catalog]:
    with client.connect(catalog_server.url, token=catalog_server.token) as connected:
        yield connected


def newest_metadata(table: client.Table) -> dict[str, Any]:
    """The metaData that Spark or the client wrote last, published or not."""
    log = Path(table.load().metadata.location.removeprefix("file://")) / "_delta_log"
    files = sorted([*log.glob("*[0-9].json"), *log.glob("_staged_commits/*.json")], key=lambda path: path.name[:20])
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    return [line["metaData"] for line in lines if "metaData" in line][-1]


def next_version(table: client.Table) -> int:
    latest = table.load().latest_table_version
    assert latest is not None
    return latest + 1


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
def test_spark_writes_and_reads_a_table_that_the_client_made(
    lake: client.Catalog, sql: Sql, table: str, options: dict[str, Any]
) -> None:
    made = lake.create_table(table, COLUMNS, comment="tides", **options)
    sql(f"INSERT INTO {table} VALUES (1, 'ebb'), (2, 'flood')")
    made.commit(2, [{"txn": {"appId": "gauge", "version": 7}}])
    sql(f"UPDATE {table} SET name = 'slack' WHERE id = 2")
    assert sorted(sql(f"SELECT id, name FROM {table}")) == [(1, "ebb"), (2, "slack")]
    history = sql(f"DESCRIBE HISTORY {table}")
    assert [row.version for row in history] == [3, 2, 1, 0]
    assert [row.operation for row in history][1] == "WRITE"


def test_spark_sees_what_the_client_changes_of_a_table_that_spark_made(
    lake: client.Catalog, sql: Sql, table: str
) -> None:
    sql(f"CREATE TABLE {table} (id BIGINT) TBLPROPERTIES ('color' = 'blue')")
    sql(f"INSERT INTO {table} VALUES (1)")
    known = lake.table(table)
    metadata = newest_metadata(known)
    schema = json.loads(metadata["schemaString"])
    mapped = "delta.columnMapping.id" in schema["fields"][0]["metadata"]
    mapping = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "col-note"} if mapped else {}
    schema["fields"].append({"name": "note", "type": "string", "nullable": True, "metadata": mapping})
    configuration = {key: value for key, value in metadata["configuration"].items() if key != "color"}
    if mapped:
        configuration["delta.columnMapping.maxColumnId"] = "2"
    configuration["delta.appendOnly"] = "false"
    changed = {**metadata, "schemaString": json.dumps(schema), "configuration": configuration}
    known.commit(next_version(known), [{"metaData": changed}])
    sql(f"INSERT INTO {table} VALUES (2, 'high water')")
    assert sorted(sql(f"SELECT id, note FROM {table}")) == [(1, None), (2, "high water")]
    properties = {row.key: row.value for row in sql(f"SHOW TBLPROPERTIES {table}")}
    assert properties["delta.appendOnly"] == "false"
    assert "color" not in properties


def test_spark_and_the_client_take_turns_and_publish_for_each_other(lake: client.Catalog, sql: Sql, table: str) -> None:
    sql(f"CREATE TABLE {table} (id BIGINT)")
    known = lake.table(table)
    for number in range(3):
        sql(f"INSERT INTO {table} VALUES ({number})")
        known.commit(next_version(known), [])
    assert sql(f"SELECT count(*) FROM {table}") == [(3,)]
    assert known.publish() == 6
    assert sql(f"SELECT count(*) FROM {table} VERSION AS OF 3") == [(2,)]
