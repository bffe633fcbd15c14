"""ALTER TABLE: columns added, widened and commented; properties set and unset; what must not be changed."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, replay


def properties(catalog: Catalog, table: str) -> dict[str, str]:
    return catalog.load(table)["metadata"]["properties"]


def test_added_columns_stand_where_they_were_put(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id, named_struct('x', 7) AS place")
    sql(f"ALTER TABLE {table} ADD COLUMN height DOUBLE COMMENT 'in metres'")
    sql(f"ALTER TABLE {table} ADD COLUMNS (station STRING FIRST, at TIMESTAMP AFTER id, place.y INT)")
    assert sql(f"SELECT * FROM {table}") == [(None, 1, None, (7, None), None)]
    fields = catalog.load(table)["metadata"]["columns"]["fields"]
    assert [field["name"] for field in fields] == ["station", "id", "at", "place", "height"]
    assert fields[4]["metadata"]["comment"] == "in metres"
    sql(f"ALTER TABLE {table} ALTER COLUMN station AFTER height")
    assert [field.col_name for field in sql(f"DESCRIBE {table}")] == ["id", "at", "place", "height", "station"]


def test_columns_added_by_a_writer(spark: SparkSession, sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    wider = spark.sql("SELECT 2 AS id, array(named_struct('k', 'a')) AS tags")
    wider.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(table)
    assert sql(f"SELECT id, tags[0].k FROM {table} ORDER BY id") == [(1, None), (2, "a")]
    narrower = spark.sql("SELECT 'x' AS other")
    narrower.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(table)
    assert [field["name"] for field in catalog.load(table)["metadata"]["columns"]["fields"]] == ["other"]
    assert sql(f"SELECT * FROM {table}") == [("x",)]


def test_columns_are_widened_without_rewriting_them(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (a SMALLINT, b INT, c FLOAT, d DECIMAL(6, 2), e STRUCT<f: INT>)")
    sql(f"INSERT INTO {table} VALUES (1, 2, 0.5, 3.25, named_struct('f', 4))")
    with pytest.raises(Exception, match="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"):
        sql(f"ALTER TABLE {table} ALTER COLUMN b TYPE BIGINT")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    for column, wider in (("a", "INT"), ("b", "BIGINT"), ("c", "DOUBLE"), ("d", "DECIMAL(12, 4)"), ("e.f", "BIGINT")):
        sql(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {wider}")
    sql(f"INSERT INTO {table} VALUES (100000, {2**40}, 1e300, 12345678.1234, named_struct('f', {2**41}))")
    rows = sql(f"SELECT a, b, c, CAST(d AS STRING), e.f FROM {table} ORDER BY a")
    assert rows == [(1, 2, 0.5, "3.2500", 4), (100000, 2**40, 1e300, "12345678.1234", 2**41)]
    loaded = catalog.load(table)
    assert [str(f["type"]) for f in loaded["metadata"]["columns"]["fields"]][:4] == [
        "integer",
        "long",
        "double",
        "decimal(12,4)",
    ]
    assert "typeWidening" in replay(loaded).features
    assert loaded["metadata"]["columns"]["fields"][0]["metadata"]["delta.typeChanges"]


def test_comments_on_columns_and_on_the_table(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT COMMENT 'old', place STRUCT<x: INT>)")
    sql(f"ALTER TABLE {table} ALTER COLUMN id COMMENT 'the \"key\"'")
    sql(f"ALTER TABLE {table} ALTER COLUMN place.x COMMENT 'east, °'")
    sql(f"COMMENT ON TABLE {table} IS 'heights of the tide'")
    assert {row.col_name: row.comment for row in sql(f"DESCRIBE {table}")}["id"] == 'the "key"'
    fields = catalog.load(table)["metadata"]["columns"]["fields"]
    assert fields[1]["type"]["fields"][0]["metadata"]["comment"] == "east, °"
    assert catalog.describe(table)["comment"] == "heights of the tide"
    sql(f"COMMENT ON TABLE {table} IS NULL")
    assert not catalog.describe(table)["comment"]


def test_properties_are_set_and_unset(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT) TBLPROPERTIES ('team' = 'sea')")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'harbour', 'grade' = 'a=b;\"c\"')")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    shown = {row.key: row.value for row in sql(f"SHOW TBLPROPERTIES {table}")}
    assert {key: shown[key] for key in ("team", "grade")} == {"team": "harbour", "grade": 'a=b;"c"'}
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        sql(f"DELETE FROM {table} WHERE id = 1")
    sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('team', 'delta.appendOnly')")
    sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ('team', 'never')")
    after = properties(catalog, table)
    assert after["grade"] == 'a=b;"c"'
    assert not {"team", "delta.appendOnly"} & after.keys()


def test_features_are_added_with_what_needs_them(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT)")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')")
    sql(f"ALTER TABLE {table} ADD COLUMN local TIMESTAMP_NTZ")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    assert {"timestampNtz", "changeDataFeed"} <= replay(catalog.load(table)).features
    assert properties(catalog, table)["delta.feature.timestampNtz"] == "supported"


BREACHES = {
    "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')": "the property delta.enableDeletionVectors=true",
    "UNSET TBLPROPERTIES ('delta.checkpointPolicy')": "needs the property delta.checkpointPolicy=v2",
    "SET TBLPROPERTIES ('delta.checkpointPolicy' = 'classic')": "needs the property delta.checkpointPolicy=v2",
    "SET TBLPROPERTIES ('io.unitycatalog.tableId' = 'another')": "needs the property io.unitycatalog.tableId=",
    "UNSET TBLPROPERTIES ('delta.enableInCommitTimestamps')": "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES",
    "DROP FEATURE catalogManaged": "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
    "DROP FEATURE deletionVectors": "needs the property delta.enableDeletionVectors=true",
}


@pytest.fixture(scope="module")
def kept(spark: SparkSession, schema: str) -> str:
    """A table that nobody manages to spoil."""
    spark.sql(f"CREATE TABLE {schema}.kept AS SELECT 1 AS id")
    return f"{schema}.kept"


@pytest.mark.parametrize("change", BREACHES)
def test_contract_of_managed_tables_cannot_be_broken(sql: Sql, kept: str, catalog: Catalog, change: str) -> None:
    before = catalog.state(kept)
    with pytest.raises(Exception, match=BREACHES[change]):
        sql(f"ALTER TABLE {kept} {change}")
    assert catalog.state(kept) == before
    assert sql(f"SELECT * FROM {kept}") == [(1,)]


MAINTENANCE = ["OPTIMIZE {table}", "VACUUM {table}", "REORG TABLE {table} APPLY (PURGE)"]


@pytest.mark.parametrize("statement", MAINTENANCE)
def test_maintenance_is_left_to_the_catalog(sql: Sql, kept: str, catalog: Catalog, statement: str) -> None:
    before = catalog.state(kept)
    with pytest.raises(Exception, match="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"):
        sql(statement.format(table=kept))
    assert catalog.state(kept) == before


def test_change_that_was_refused_does_not_stop_the_next_one(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    for _ in range(2):
        with pytest.raises(Exception, match="needs the property"):
            sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('delta.checkpointPolicy')")
        sql(f"INSERT INTO {table} VALUES (2)")
    assert sql(f"SELECT count(*) FROM {table}") == [(3,)]
    assert catalog.load(table)["latest-table-version"] == 2
