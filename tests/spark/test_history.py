"""The past of a table: time travel, RESTORE, DESCRIBE HISTORY and DETAIL, the change data feed."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, replay


@pytest.fixture(scope="module")
def tide(spark: SparkSession, schema: str) -> str:
    """A table with the versions 0 (no row) to 4, whose change data feed is on. Tests here only read it."""
    table = f"{schema}.tide"
    spark.sql(f"CREATE TABLE {table} (id INT, v STRING) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(f"UPDATE {table} SET v = 'bb' WHERE id = 2")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    spark.sql(f"""MERGE INTO {table} t USING (SELECT * FROM VALUES (1, 'aa'), (4, 'd') AS v(id, v)) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""")
    return table


AT = {
    0: [],
    1: [(1, "a"), (2, "b"), (3, "c")],
    2: [(1, "a"), (2, "bb"), (3, "c")],
    3: [(1, "a"), (2, "bb")],
    4: [(1, "aa"), (2, "bb"), (4, "d")],
}


def moments(spark: SparkSession, table: str) -> dict[int, str]:
    """By version, when it was committed."""
    history = spark.sql(f"DESCRIBE HISTORY {table}").selectExpr("version", "CAST(timestamp AS STRING) AS at")
    return {row.version: row.at for row in history.collect()}


def test_time_travel_by_version(spark: SparkSession, sql: Sql, tide: str) -> None:
    for version, rows in AT.items():
        assert sql(f"SELECT * FROM {tide} VERSION AS OF {version} ORDER BY id") == rows
    assert spark.read.option("versionAsOf", 2).table(tide).orderBy("id").collect() == AT[2]


def test_time_travel_by_timestamp(spark: SparkSession, sql: Sql, tide: str) -> None:
    for version, at in moments(spark, tide).items():
        assert sql(f"SELECT * FROM {tide} TIMESTAMP AS OF '{at}' ORDER BY id") == AT[version]
    at = moments(spark, tide)[3]
    assert spark.read.option("timestampAsOf", at).table(tide).orderBy("id").collect() == AT[3]


@pytest.mark.parametrize(
    ("moment", "complaint"),
    [
        ("VERSION AS OF 5", "DELTA_VERSION_NOT_FOUND"),
        ("TIMESTAMP AS OF '2020-01-01'", "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        ("TIMESTAMP AS OF '2199-01-01'", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ],
)
def test_time_travel_outside_of_the_history_is_refused(sql: Sql, tide: str, moment: str, complaint: str) -> None:
    with pytest.raises(Exception, match=complaint):
        sql(f"SELECT * FROM {tide} {moment}")


def test_history_tells_every_version_with_its_timestamp(sql: Sql, tide: str, catalog: Catalog) -> None:
    history = sql(f"DESCRIBE HISTORY {tide}")
    assert [(row.version, row.operation) for row in history] == [
        (4, "MERGE"),
        (3, "DELETE"),
        (2, "UPDATE"),
        (1, "WRITE"),
        (0, "CREATE TABLE"),
    ]
    log = replay(catalog.load(tide))
    assert {row.version: round(row.timestamp.timestamp() * 1000) for row in history} == log.timestamps
    assert log.operations == [row.operation for row in reversed(history)]
    assert list(log.timestamps.values()) == sorted(set(log.timestamps.values()))
    assert [row.version for row in sql(f"DESCRIBE HISTORY {tide} LIMIT 2")] == [4, 3]


def test_detail_agrees_with_the_catalog(sql: Sql, tide: str, catalog: Catalog) -> None:
    detail, loaded = sql(f"DESCRIBE DETAIL {tide}")[0], catalog.load(tide)
    log = replay(loaded)
    assert (detail.format, detail.name, detail.numFiles) == ("delta", tide, len(log.files))
    assert detail.location == loaded["metadata"]["location"].replace("file:///", "file:/")
    assert set(detail.tableFeatures) == log.features
    served = loaded["metadata"]["properties"]
    assert {key: served[key] for key in detail.properties} == detail.properties


def test_restore_to_a_version_and_to_a_timestamp(spark: SparkSession, sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    sql(f"INSERT INTO {table} VALUES (2)")
    sql(f"DELETE FROM {table} WHERE id = 1")
    sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
    assert sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,)]
    sql(f"RESTORE TABLE {table} TO TIMESTAMP AS OF '{moments(spark, table)[2]}'")
    assert sql(f"SELECT id FROM {table} ORDER BY id") == [(2,)]
    assert [row.operation for row in sql(f"DESCRIBE HISTORY {table}")][:2] == ["RESTORE", "RESTORE"]
    assert catalog.load(table)["latest-table-version"] == 4


def test_restore_brings_schema_and_properties_back(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} TBLPROPERTIES ('team' = 'sea') AS SELECT 1 AS id, 'a' AS name")
    sql(f"ALTER TABLE {table} ADD COLUMN height INT")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'harbour', 'more' = 'x')")
    sql(f"ALTER TABLE {table} DROP COLUMN name")
    sql(f"RESTORE TABLE {table} TO VERSION AS OF 0")
    assert sql(f"SELECT * FROM {table}") == [(1, "a")]
    metadata = catalog.load(table)["metadata"]
    assert [field["name"] for field in metadata["columns"]["fields"]] == ["id", "name"]
    assert metadata["properties"]["team"] == "sea"
    assert "more" not in metadata["properties"]
    sql(f"INSERT INTO {table} VALUES (2, 'b')")
    assert sql(f"SELECT count(*) FROM {table}") == [(2,)]


CHANGES = [
    (1, "insert", 1, "a"),
    (1, "insert", 2, "b"),
    (1, "insert", 3, "c"),
    (2, "update_postimage", 2, "bb"),
    (2, "update_preimage", 2, "b"),
    (3, "delete", 3, "c"),
    (4, "insert", 4, "d"),
    (4, "update_postimage", 1, "aa"),
    (4, "update_preimage", 1, "a"),
]
COLUMNS = ("_commit_version", "_change_type", "id", "v")


def test_change_data_feed_by_versions(spark: SparkSession, tide: str) -> None:
    changes = spark.sql(f"SELECT * FROM table_changes('{tide}', 0)").select(*COLUMNS)
    assert sorted(changes.collect()) == CHANGES
    reader = spark.read.option("readChangeFeed", "true").option("startingVersion", 2).option("endingVersion", 3)
    assert sorted(reader.table(tide).select(*COLUMNS).collect()) == CHANGES[3:6]


def test_change_data_feed_by_timestamps(spark: SparkSession, tide: str) -> None:
    at = moments(spark, tide)
    changes = spark.sql(f"SELECT * FROM table_changes('{tide}', '{at[2]}', '{at[3]}')").select(*COLUMNS)
    assert sorted(changes.collect()) == CHANGES[3:6]


def test_change_data_feed_exists_from_when_it_was_switched_on(spark: SparkSession, sql: Sql, table: str) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'a' AS v")
    with pytest.raises(Exception, match="DELTA_MISSING_CHANGE_DATA"):
        sql(f"SELECT * FROM table_changes('{table}', 0)")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    sql(f"DELETE FROM {table} WHERE id = 1")
    changes = spark.sql(f"SELECT * FROM table_changes('{table}', 1)").select(*COLUMNS)
    assert changes.collect() == [(2, "delete", 1, "a")]


def test_change_data_feed_from_the_first_row_on_needs_create_and_insert(sql: Sql, table: str, catalog: Catalog) -> None:
    """Delta takes a CTAS with column mapping for a change of mapping, which it does not mix with the feed."""
    with pytest.raises(Exception, match="DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION"):
        sql(f"CREATE TABLE {table} TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') AS SELECT 1 AS id")
    assert not catalog.exists(table)
    mapping = "'delta.columnMapping.mode' = 'none'"
    sql(f"CREATE TABLE {table} TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', {mapping}) AS SELECT 1 AS id")
    assert sql(f"SELECT id, _change_type FROM table_changes('{table}', 0)") == [(1, "insert")]
