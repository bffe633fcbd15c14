"""Stock Spark is first and the client is late: it goes ahead, or is refused, as Delta would have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tidegate import client
from tidegate.client import Reads

COLUMNS = {"id": "long", "place": "string"}
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}
FIRST = [(1, "ebb"), (2, "ebb"), (3, "flood"), (4, "flood")]
OURS = [(8, "ebb"), (9, "slack")]


@pytest.fixture(scope="module")
def lake(catalog_server: ServerProcess) -> Iterator[client.Catalog]:
    with client.connect(catalog_server.url, token=catalog_server.token) as connected:
        yield connected


@pytest.fixture
def made(lake: client.Catalog, table: str) -> str:
    """A table with one file in each of two partitions."""
    lake.create_table(table, COLUMNS, partition_by=["place"], properties=PROPERTIES).append(dicts(FIRST))
    return table


def dicts(rows: list[tuple[int, str]]) -> list[dict[str, Any]]:
    return [{"id": number, "place": place} for number, place in rows]


class Meanwhile:
    """Rows during whose reading something happens: after the client's snapshot, before its commit."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self._happens = happens

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self._happens()
        return pa.Table.from_pylist(dicts(OURS)).__arrow_c_stream__(requested_schema)


def appended(table: client.Table, happens: Callable[[], object]) -> int:
    return table.append(Meanwhile(happens)).version


def overwritten(table: client.Table, happens: Callable[[], object]) -> int:
    return table.overwrite(Meanwhile(happens)).version


def ebb_removed(reads: Callable[[Any], Reads]) -> Callable[[client.Table, Callable[[], object]], int]:
    """The file of a partition goes; `reads` is made of that file."""

    def late(table: client.Table, happens: Callable[[], object]) -> int:
        snapshot = table.snapshot()
        (file,) = [one for one in snapshot.files if "ebb" in one.partition_values.values()]
        gone = {"path": file.path, "deletionTimestamp": snapshot.timestamp, "dataChange": True}
        happens()
        return table.commit_after(snapshot, [{"remove": gone}], reads=reads(file)).version

    return late


PARTITION = ebb_removed(lambda file: Reads(where={"place": "ebb"}))
FILE = ebb_removed(lambda file: Reads(files=[file]))
UNSEEN = ebb_removed(lambda file: Reads())


@dataclass(frozen=True)
class Statement:
    """What Spark does first, and the rows that there are then."""

    text: str
    rows: list[tuple[int, str]]


@dataclass(frozen=True)
class Case:
    """What the client does late, and the error or, after both, the rows that come of it."""

    first: Statement
    late: Callable[[client.Table, Callable[[], object]], int]
    outcome: type[client.ConcurrentChange] | list[tuple[int, str]]


INSERT_EBB = Statement("INSERT INTO {} VALUES (5, 'ebb')", [*FIRST, (5, "ebb")])
INSERT_FLOOD = Statement("INSERT INTO {} VALUES (5, 'flood')", [*FIRST, (5, "flood")])
DELETE_A_ROW = Statement("DELETE FROM {} WHERE id = 1", FIRST[1:])
UPDATE_A_ROW = Statement("UPDATE {} SET id = 7 WHERE id = 3", [*FIRST[:2], (4, "flood"), (7, "flood")])
DELETE_EBB = Statement("DELETE FROM {} WHERE place = 'ebb'", FIRST[2:])
DELETE_FLOOD = Statement("DELETE FROM {} WHERE place = 'flood'", FIRST[:2])
SET_PROPERTY = Statement("ALTER TABLE {} SET TBLPROPERTIES ('color' = 'blue')", FIRST)
ADD_COLUMN = Statement("ALTER TABLE {} ADD COLUMN note STRING", FIRST)
CASES = {
    "append after INSERT": Case(INSERT_EBB, appended, [*INSERT_EBB.rows, *OURS]),
    "append after DELETE": Case(DELETE_A_ROW, appended, [*DELETE_A_ROW.rows, *OURS]),
    "append after UPDATE": Case(UPDATE_A_ROW, appended, [*UPDATE_A_ROW.rows, *OURS]),
    "append after SET TBLPROPERTIES": Case(SET_PROPERTY, appended, client.MetadataChanged),
    "append after ADD COLUMN": Case(ADD_COLUMN, appended, client.MetadataChanged),
    "overwrite after INSERT": Case(INSERT_EBB, overwritten, client.ConcurrentAppend),
    "overwrite after DELETE": Case(DELETE_A_ROW, overwritten, client.ConcurrentAppend),
    "overwrite after DELETE of a partition": Case(DELETE_FLOOD, overwritten, client.ConcurrentDeleteRead),
    "overwrite after SET TBLPROPERTIES": Case(SET_PROPERTY, overwritten, client.MetadataChanged),
    "removal after INSERT elsewhere": Case(INSERT_FLOOD, PARTITION, INSERT_FLOOD.rows[2:]),
    "removal after UPDATE elsewhere": Case(UPDATE_A_ROW, PARTITION, UPDATE_A_ROW.rows[2:]),
    "removal after INSERT": Case(INSERT_EBB, PARTITION, client.ConcurrentAppend),
    "removal after DELETE of rows": Case(DELETE_A_ROW, FILE, client.ConcurrentDeleteRead),
    "removal after DELETE of the same": Case(DELETE_EBB, UNSEEN, client.ConcurrentDeleteDelete),
    "removal after DELETE of rows, unseen": Case(DELETE_A_ROW, UNSEEN, client.ConcurrentDeleteDelete),
}


@pytest.mark.parametrize("case", CASES)
def test_spark_was_first(lake: client.Catalog, sql: Sql, made: str, case: str) -> None:
    one, late = CASES[case], lake.table(made)

    def first() -> None:
        sql(one.first.text.format(made))

    if isinstance(one.outcome, list):
        assert one.late(late, first) == 3
        expected = one.outcome
    else:
        with pytest.raises(one.outcome) as refused:
            one.late(late, first)
        assert type(refused.value) is one.outcome
        assert refused.value.version == 2 == lake.table(made).load().latest_table_version
        expected = one.first.rows
    found = sql(f"SELECT id, place, _metadata.row_id FROM {made}")
    assert sorted((row.id, row.place) for row in found) == sorted(expected)
    assert len({row.row_id for row in found}) == len(expected), "no row has the id of another"


def isolation_of(sql: Sql, table: str, operation: str) -> set[str]:
    return {row.isolationLevel for row in sql(f"DESCRIBE HISTORY {table}") if row.operation == operation}


def test_spark_switched_a_feature_on(lake: client.Catalog, sql: Sql, table: str) -> None:
    """Protocol and metadata change, and rows that were written before are right all the same."""
    lake.create_table(table, COLUMNS).append(dicts(FIRST))
    on = "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"
    late = lake.table(table)
    assert appended(late, lambda: sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({on})")) == 3
    sql(f"DELETE FROM {table} WHERE id IN (1, 8)")
    assert sorted(sql(f"SELECT id, place FROM {table}")) == sorted([*FIRST[1:], OURS[1]])
    assert sorted(row["id"] for row in late.scan().to_arrow().to_pylist()) == [2, 3, 4, 9]
    assert isolation_of(sql, table, "DELETE") == isolation_of(sql, table, "WRITE") == {"Serializable"}


def test_rows_that_spark_appends_stay_beside_an_overwrite_where_only_writes_are_serializable(
    lake: client.Catalog, sql: Sql, table: str
) -> None:
    lake.create_table(table, COLUMNS, properties={"delta.isolationLevel": "WriteSerializable"}).append(dicts(FIRST))
    assert overwritten(lake.table(table), lambda: sql(INSERT_EBB.text.format(table))) == 3
    assert sorted(sql(f"SELECT id, place FROM {table}")) == sorted([(5, "ebb"), *OURS])
    assert isolation_of(sql, table, "WRITE") == {"WriteSerializable"}, "of Spark's commit and of the client's"


def test_progress_that_spark_recorded(lake: client.Catalog, spark: SparkSession, made: str) -> None:
    late = lake.table(made)
    snapshot = late.snapshot()
    rows = spark.createDataFrame([(5, "ebb")], "id BIGINT, place STRING")
    rows.write.format("delta").mode("append").option("txnAppId", "gauge").option("txnVersion", 7).saveAsTable(made)
    with pytest.raises(client.ConcurrentTransaction) as refused:
        late.commit_after(snapshot, [{"txn": {"appId": "gauge", "version": 7}}], reads=Reads())
    assert (refused.value.app_id, refused.value.recorded) == ("gauge", 7)
    assert late.commit_after(snapshot, [{"txn": {"appId": "other", "version": 7}}], reads=Reads()).version == 3


def test_clustering_that_spark_changed(lake: client.Catalog, sql: Sql, table: str) -> None:
    lake.create_table(table, COLUMNS, cluster_by=["id"]).append(dicts(FIRST))
    late = lake.table(table)
    snapshot = late.snapshot()
    sql(f"ALTER TABLE {table} CLUSTER BY (place)")
    with pytest.raises(client.DomainMetadataChanged) as refused:
        late.commit_after(snapshot, [], reads=Reads(domains=["delta.clustering"]))
    assert refused.value.domain == "delta.clustering"


def test_files_that_spark_wrote_by_itself_are_appended(
    lake: client.Catalog, spark: SparkSession, sql: Sql, table: str
) -> None:
    made = lake.create_table(table, COLUMNS)
    folder = Path(made.load().metadata.location.removeprefix("file://"))
    frame = spark.createDataFrame(FIRST, "id BIGINT, place STRING")
    frame.coalesce(1).write.parquet(f"file://{folder}/outside")
    (path,) = (folder / "outside").glob("*.parquet")
    sql(INSERT_EBB.text.format(table))
    add = {"path": f"outside/{path.name}", "partitionValues": {}, "size": path.stat().st_size}
    assert lake.table(table).append_files([{"add": add}]).version == 2
    assert sorted(sql(f"SELECT id, place FROM {table}")) == sorted([*FIRST, (5, "ebb")])
