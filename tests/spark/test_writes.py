"""Rows: INSERT, INSERT OVERWRITE, UPDATE, DELETE, MERGE, deletion vectors, row tracking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, log_folder, replay


@pytest.fixture
def days(sql: Sql, table: str) -> str:
    """A table with one row in each of three partitions."""
    sql(f"""CREATE TABLE {table} PARTITIONED BY (day)
        AS SELECT * FROM VALUES (1, 'mon'), (2, 'tue'), (3, 'wed') AS v(id, day)""")
    return table


def test_every_form_of_insert(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT, name STRING)")
    sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    sql(f"INSERT INTO {table} (name, id) VALUES ('c', 3)")
    sql(f"INSERT INTO {table} BY NAME SELECT 'd' AS name, 4 AS id")
    sql(f"INSERT INTO {table} (id) VALUES (5)")
    sql(f"INSERT INTO {table} SELECT id + 10, name FROM {table} WHERE id = 1")
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, None), (11, "a")]
    assert catalog.load(table)["latest-table-version"] == 5


def test_insert_that_does_not_fit_changes_nothing(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT NOT NULL)")
    before = catalog.state(table)
    for rows, complaint in (
        ("(NULL)", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
        ("(1, 2)", "DELTA_METADATA_MISMATCH"),
        ("('x')", "CAST_INVALID_INPUT"),
    ):
        with pytest.raises(Exception, match=complaint):
            sql(f"INSERT INTO {table} VALUES {rows}")
    assert catalog.state(table) == before


def test_insert_overwrite_replaces_all_rows(sql: Sql, table: str) -> None:
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(5)")
    sql(f"INSERT OVERWRITE {table} VALUES (100), (101)")
    assert sql(f"SELECT id FROM {table} ORDER BY id") == [(100,), (101,)]
    assert sql(f"SELECT count(*) FROM {table} VERSION AS OF 0") == [(5,)]


def test_insert_overwrite_of_one_partition(sql: Sql, days: str) -> None:
    sql(f"INSERT OVERWRITE {days} PARTITION (day = 'tue') SELECT 20")
    assert sql(f"SELECT * FROM {days} ORDER BY id") == [(1, "mon"), (3, "wed"), (20, "tue")]


def test_insert_overwrite_with_dynamic_partitions(spark: SparkSession, sql: Sql, days: str) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        sql(f"INSERT OVERWRITE {days} VALUES (10, 'mon'), (40, 'thu')")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert sql(f"SELECT * FROM {days} ORDER BY id") == [(2, "tue"), (3, "wed"), (10, "mon"), (40, "thu")]


def test_writer_overwrites_dynamic_partitions(spark: SparkSession, sql: Sql, days: str) -> None:
    rows = spark.sql("SELECT * FROM VALUES (10, 'mon') AS v(id, day)")
    rows.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").insertInto(days)
    rows.replace(10, 11).writeTo(days).overwritePartitions()
    assert sql(f"SELECT * FROM {days} ORDER BY id") == [(2, "tue"), (3, "wed"), (11, "mon")]


def test_replace_where_in_sql_and_in_a_writer(spark: SparkSession, sql: Sql, days: str) -> None:
    sql(f"INSERT INTO {days} REPLACE WHERE day = 'mon' VALUES (10, 'mon'), (11, 'mon')")
    replacing = spark.sql("SELECT 30 AS id, 'wed' AS day").write.format("delta").mode("overwrite")
    replacing.option("replaceWhere", "id = 3 OR id = 30").saveAsTable(days)
    assert sql(f"SELECT * FROM {days} ORDER BY id") == [(2, "tue"), (10, "mon"), (11, "mon"), (30, "wed")]


def test_replace_where_refuses_rows_that_lie_elsewhere(sql: Sql, days: str, catalog: Catalog) -> None:
    before = catalog.state(days)
    with pytest.raises(Exception, match="DELTA_REPLACE_WHERE_MISMATCH"):
        sql(f"INSERT INTO {days} REPLACE WHERE day = 'mon' VALUES (10, 'tue')")
    assert catalog.state(days) == before


def test_update_and_delete(sql: Sql, table: str) -> None:
    sql(f"CREATE TABLE {table} AS SELECT id, 'old' AS state FROM range(6)")
    assert sql(f"UPDATE {table} SET state = 'new', id = id + 100 WHERE id % 3 = 0") == [(2,)]
    assert sql(f"DELETE FROM {table} WHERE state = 'old' AND id > 3") == [(2,)]
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "old"), (2, "old"), (100, "new"), (103, "new")]
    sql(f"DELETE FROM {table}")
    assert sql(f"SELECT * FROM {table}") == []
    assert [row.operation for row in sql(f"DESCRIBE HISTORY {table}")][:3] == ["DELETE", "DELETE", "UPDATE"]


def test_statement_that_touches_no_row_makes_no_version(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    before = catalog.state(table)
    assert sql(f"UPDATE {table} SET id = 0 WHERE id > 10") == [(0,)]
    assert sql(f"DELETE FROM {table} WHERE id > 10") == [(0,)]
    assert catalog.state(table) == before


def test_merge_with_every_clause(sql: Sql, table: str) -> None:
    sql(f"CREATE TABLE {table} AS SELECT * FROM VALUES (1, 'keep'), (2, 'old'), (3, 'gone'), (9, 'x') AS v(id, state)")
    source = "SELECT * FROM VALUES (1, 'keep'), (2, 'new'), (3, 'delete'), (4, 'added') AS v(id, state)"
    result = sql(f"""MERGE INTO {table} t USING ({source}) s ON t.id = s.id
        WHEN MATCHED AND s.state = 'delete' THEN DELETE
        WHEN MATCHED AND s.state <> t.state THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET state = 'orphan'""")
    assert result == [(4, 2, 1, 1)]
    expected = [(1, "keep"), (2, "new"), (4, "added"), (9, "orphan")]
    assert sql(f"SELECT * FROM {table} ORDER BY id") == expected


def test_merge_that_brings_a_new_column(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'a' AS name")
    sql(f"""MERGE WITH SCHEMA EVOLUTION INTO {table} t
        USING (SELECT * FROM VALUES (1, 'b', 7), (2, 'c', 8) AS v(id, name, height)) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""")
    assert sql(f"SELECT id, name, height FROM {table} ORDER BY id") == [(1, "b", 7), (2, "c", 8)]
    assert [f["name"] for f in catalog.load(table)["metadata"]["columns"]["fields"]] == ["id", "name", "height"]


def test_merge_with_two_rows_for_one_changes_nothing(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'a' AS name")
    before = catalog.state(table)
    with pytest.raises(Exception, match="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"):
        sql(f"""MERGE INTO {table} t USING (SELECT * FROM VALUES (1, 'b'), (1, 'c') AS v(id, name)) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET *""")
    assert catalog.state(table) == before


def test_rows_are_deleted_by_vectors_not_by_rewriting_files(spark: SparkSession, sql: Sql, table: str) -> None:
    spark.range(1000).coalesce(1).writeTo(table).using("delta").create()
    sql(f"DELETE FROM {table} WHERE id % 10 = 3")
    sql(f"UPDATE {table} SET id = -1 WHERE id = 5")
    detail, history = sql(f"DESCRIBE DETAIL {table}")[0], sql(f"DESCRIBE HISTORY {table}")
    assert history[1].operationMetrics["numDeletionVectorsAdded"] == "1"
    assert history[1].operationMetrics["numRemovedFiles"] == "0"
    assert detail.numFiles == 2
    assert any(Path(detail.location.removeprefix("file:")).rglob("deletion_vector_*.bin"))
    assert sql(f"SELECT count(*), count_if(id % 10 = 3), count_if(id = 5), min(id) FROM {table}") == [(900, 0, 0, -1)]
    assert sql(f"SELECT count(*) FROM {table} VERSION AS OF 0") == [(1000,)]


def test_row_ids_stay_with_their_rows(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT, name STRING) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    sql(f"INSERT INTO {table} VALUES (3, 'c')")
    select = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table} ORDER BY id"
    before = {row.id: row.row_id for row in sql(select)}
    assert sorted(before.values()) == [0, 1, 2]
    sql(f"UPDATE {table} SET name = 'z' WHERE id = 2")
    sql(f"""MERGE INTO {table} t USING (SELECT 3 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'y'""")
    after = sql(select)
    assert {row.id: row.row_id for row in after} == before
    assert {row.id: row.row_commit_version for row in after} == {1: 1, 2: 3, 3: 4}
    assert int(replay(catalog.load(table)).marks[-1]) >= 2


def test_row_tracking_can_be_switched_on_later(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} TBLPROPERTIES ('delta.enableRowTracking' = 'false') AS SELECT id FROM range(3)")
    assert catalog.load(table)["metadata"]["properties"]["delta.enableRowTracking"] == "false"
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    sql(f"INSERT INTO {table} VALUES (3)")
    ids = [row.row_id for row in sql(f"SELECT _metadata.row_id FROM {table}")]
    assert len(set(ids)) == 4
    assert catalog.load(table)["metadata"]["properties"]["delta.enableRowTracking"] == "true"


def test_truncate_keeps_the_history(sql: Sql, table: str) -> None:
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    sql(f"TRUNCATE TABLE {table}")
    assert sql(f"SELECT * FROM {table}") == []
    assert sql(f"SELECT count(*) FROM {table} VERSION AS OF 0") == [(3,)]


def test_writes_are_marked_as_the_writers_own(spark: SparkSession, table: str, catalog: Catalog) -> None:
    """A batch writer that repeats itself after a crash is recognised by its transaction id, as a stream is."""
    rows = spark.range(3)
    for _ in range(2):
        writer = rows.write.format("delta").mode("append")
        writer.option("txnAppId", "loader").option("txnVersion", "7").saveAsTable(table)
    assert spark.table(table).count() == 3
    first = log_folder(catalog.load(table)["metadata"]["location"]) / f"{0:020}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    assert [a["txn"]["appId"] for a in actions if "txn" in a] == ["loader"]
