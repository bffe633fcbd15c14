"""Tables through Spark's own interfaces: the catalog API, and writers that make the tables they write to."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from tests.spark.conftest import Sql
from tests.spark.logs import Catalog


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES (1, 'mon'), (2, 'tue') AS v(id, day)")


@pytest.fixture
def other_rows(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT 3 AS id, 'tue' AS day")


def test_existence_and_listing(spark: SparkSession, sql: Sql, schema: str, table: str) -> None:
    assert not spark.catalog.tableExists(table)
    assert not spark.catalog.tableExists("main.no_such_schema.t")
    sql(f"CREATE TABLE {table} (id INT) COMMENT 'c'")
    assert spark.catalog.tableExists(table)
    namespace, name = table.split(".")[1:]
    assert name in [listed.name for listed in spark.catalog.listTables(schema)]
    assert [listed.name for listed in spark.catalog.listTables(schema, f"{name}*")] == [name]
    found = spark.catalog.getTable(table)
    assert (found.name, found.catalog, found.namespace, found.tableType) == (name, "main", [namespace], "MANAGED")
    assert [column.name for column in spark.catalog.listColumns(table)] == ["id"]


def test_show_tables_like(sql: Sql, schema: str, table: str) -> None:
    name = table.rpartition(".")[2]
    for suffix in ("_flood", "_ebb", ""):
        sql(f"CREATE TABLE {table}{suffix} (id INT)")
    for pattern, suffixes in (("*", ["", "_ebb", "_flood"]), ("_e*|{0}_f*", ["_ebb", "_flood"]), ("_x*", [])):
        shown = sql(f"SHOW TABLES IN {schema} LIKE '{name}{pattern.format(name)}'")
        assert [row.tableName for row in shown] == [f"{name}{suffix}" for suffix in suffixes]


def test_rename_to_a_name_that_is_taken(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    sql(f"CREATE TABLE {table}_taken AS SELECT 2 AS id")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        sql(f"ALTER TABLE {table} RENAME TO {table}_taken")
    assert sql(f"SELECT * FROM {table} UNION ALL SELECT * FROM {table}_taken") == [(1,), (2,)]


def test_rename_of_what_is_not_there(sql: Sql, table: str) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(f"ALTER TABLE {table} RENAME TO {table}_new")


def test_table_keeps_its_schema_when_renamed(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT)")
    with pytest.raises(Exception, match="A table keeps its schema"):
        sql(f"ALTER TABLE {table} RENAME TO main.default.elsewhere")
    assert catalog.exists(table)
    assert not catalog.exists("main.default.elsewhere")


def test_drop_of_what_is_not_there(sql: Sql, table: str) -> None:
    sql(f"DROP TABLE IF EXISTS {table}")
    sql("DROP TABLE IF EXISTS main.no_such_schema.t")
    for statement in (f"DROP TABLE {table}", "DROP TABLE main.no_such_schema.t"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            sql(statement)


def test_purge_is_not_promised(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT)")
    with pytest.raises(Exception, match="PURGE"):
        sql(f"DROP TABLE {table} PURGE")
    assert catalog.exists(table)


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore"])
def test_save_as_table_makes_the_table_in_every_mode(
    rows: DataFrame, sql: Sql, table: str, catalog: Catalog, mode: str
) -> None:
    rows.write.format("delta").mode(mode).partitionBy("day").option("comment", "c").saveAsTable(table)
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "mon"), (2, "tue")]
    loaded = catalog.load(table)
    assert (loaded["metadata"]["table-type"], loaded["latest-table-version"]) == ("MANAGED", 0)
    assert loaded["metadata"]["partition-columns"] == ["day"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("append", [(1, "mon"), (2, "tue"), (3, "tue")]),
        ("overwrite", [(3, "tue")]),
        ("ignore", [(1, "mon"), (2, "tue")]),
    ],
)
def test_save_as_table_on_a_table_that_is_there(
    rows: DataFrame, other_rows: DataFrame, sql: Sql, table: str, catalog: Catalog, mode: str, expected: list[object]
) -> None:
    rows.write.saveAsTable(table)
    id = catalog.load(table)["metadata"]["table-uuid"]
    other_rows.write.format("delta").mode(mode).saveAsTable(table)
    assert sql(f"SELECT * FROM {table} ORDER BY id") == expected
    assert catalog.load(table)["metadata"]["table-uuid"] == id


def test_save_as_table_minds_a_table_that_is_there(rows: DataFrame, table: str, catalog: Catalog) -> None:
    rows.write.saveAsTable(table)
    before = catalog.state(table)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        rows.write.saveAsTable(table)
    assert catalog.state(table) == before


def test_create_with_everything_a_writer_can_say(rows: DataFrame, sql: Sql, table: str, catalog: Catalog) -> None:
    rows.writeTo(table).using("delta").partitionedBy(col("day")).tableProperty("team", "sea").create()
    metadata = catalog.load(table)["metadata"]
    assert (metadata["partition-columns"], metadata["properties"]["team"]) == (["day"], "sea")
    assert sql(f"SELECT count(*) FROM {table}") == [(2,)]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        rows.writeTo(table).using("delta").create()
    assert catalog.load(table)["latest-table-version"] == 0


def test_tables_without_a_format_are_delta_tables(rows: DataFrame, sql: Sql, table: str) -> None:
    rows.writeTo(f"{table}_created").create()
    rows.write.saveAsTable(f"{table}_saved")
    sql(f"CREATE TABLE {table}_declared (id INT)")
    for way in ("created", "saved", "declared"):
        assert sql(f"DESCRIBE DETAIL {table}_{way}")[0].format == "delta"


def test_create_or_replace_and_replace(
    rows: DataFrame, other_rows: DataFrame, sql: Sql, table: str, catalog: Catalog
) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows.writeTo(table).using("delta").replace()
    rows.writeTo(table).using("delta").createOrReplace()
    id = catalog.load(table)["metadata"]["table-uuid"]
    other_rows.selectExpr("id", "day AS renamed").writeTo(table).using("delta").createOrReplace()
    other_rows.selectExpr("id AS only").writeTo(table).using("delta").replace()
    assert sql(f"SELECT * FROM {table}") == [(3,)]
    loaded = catalog.load(table)
    assert (loaded["metadata"]["table-uuid"], loaded["latest-table-version"]) == (id, 2)
    assert [field["name"] for field in loaded["metadata"]["columns"]["fields"]] == ["only"]


def test_append_and_overwrite_by_a_writer(rows: DataFrame, other_rows: DataFrame, sql: Sql, table: str) -> None:
    rows.writeTo(table).using("delta").partitionedBy(col("day")).create()
    other_rows.writeTo(table).append()
    assert sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,), (3,)]
    other_rows.writeTo(table).overwritePartitions()
    assert sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (3,)]
    rows.where("day = 'mon'").writeTo(table).overwrite(col("day") == "mon")
    other_rows.write.insertInto(table)
    assert sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (3,), (3,)]


@pytest.mark.parametrize("action", ["append", "overwritePartitions"])
def test_writers_that_do_not_create_need_a_table(rows: DataFrame, table: str, catalog: Catalog, action: str) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        getattr(rows.writeTo(table), action)()
    assert not catalog.exists(table)


def test_query_that_fails_leaves_no_table_behind(spark: SparkSession, sql: Sql, table: str, catalog: Catalog) -> None:
    with pytest.raises(Exception, match="tide is out"):
        sql(f"CREATE TABLE {table} AS SELECT CAST(raise_error('tide is out') AS INT) AS id")
    assert not catalog.exists(table)
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    assert sql(f"SELECT * FROM {table}") == [(1,)]
