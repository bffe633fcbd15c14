"""External Delta tables: at a LOCATION of the user's, with a log that nobody ratifies."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, check_registration, published_versions


def test_new_external_table(sql: Sql, table: str, catalog: Catalog, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/tides"
    sql(f"""CREATE TABLE {table} (id INT NOT NULL, day STRING) USING DELTA PARTITIONED BY (day)
        COMMENT 'c' TBLPROPERTIES ('team' = 'sea') LOCATION '{place}'""")
    check_registration(catalog, table)
    loaded = catalog.load(table)
    assert (loaded["metadata"]["table-type"], loaded["metadata"]["location"]) == ("EXTERNAL", place)
    assert loaded["metadata"]["properties"]["team"] == "sea"
    assert "latest-table-version" not in loaded
    sql(f"INSERT INTO {table} VALUES (1, 'mon'), (2, 'tue')")
    sql(f"UPDATE {table} SET id = 3 WHERE id = 2")
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "mon"), (3, "tue")]
    assert published_versions(place) == [0, 1, 2]
    assert not list((tmp_path / "tides" / "_delta_log").glob("_staged_commits/*"))


def test_external_table_over_an_existing_one(
    spark: SparkSession, sql: Sql, table: str, catalog: Catalog, tmp_path: Path
) -> None:
    place = f"file://{tmp_path}/tides"
    spark.sql("SELECT 0 AS id, 'sun' AS day").write.format("delta").partitionBy("day").save(place)
    spark.sql("SELECT 1 AS id, 'mon' AS day").write.format("delta").mode("overwrite").save(place)
    sql(f"CREATE TABLE {table} USING DELTA LOCATION '{place}'")
    check_registration(catalog, table)
    assert sql(f"SELECT * FROM {table}") == [(1, "mon")]
    sql(f"INSERT INTO {table} VALUES (2, 'tue')")
    assert sql(f"SELECT count(*) FROM delta.`{place}`") == [(2,)]
    sql(f"INSERT INTO delta.`{place}` VALUES (3, 'wed')")
    assert sql(f"SELECT count(*) FROM {table}") == [(3,)]


def test_external_table_that_says_otherwise_than_its_log(
    spark: SparkSession, sql: Sql, table: str, catalog: Catalog, tmp_path: Path
) -> None:
    place = f"file://{tmp_path}/tides"
    spark.sql("SELECT 1 AS id").write.format("delta").save(place)
    with pytest.raises(Exception, match="DELTA_CREATE_TABLE_SCHEME_MISMATCH"):
        sql(f"CREATE TABLE {table} (other STRING) USING DELTA LOCATION '{place}'")
    assert not catalog.exists(table)
    assert published_versions(place) == [0]


@pytest.mark.parametrize("way", ["ctas", "saveAsTable", "writeTo"])
def test_external_table_made_from_rows(
    spark: SparkSession, sql: Sql, table: str, catalog: Catalog, tmp_path: Path, way: str
) -> None:
    place = f"file://{tmp_path}/tides"
    match way:
        case "ctas":
            sql(f"CREATE TABLE {table} USING DELTA LOCATION '{place}' AS SELECT id FROM range(3)")
        case "saveAsTable":
            spark.range(3).write.format("delta").option("path", place).saveAsTable(table)
        case _:
            spark.range(3).writeTo(table).using("delta").tableProperty("location", place).create()
    check_registration(catalog, table)
    assert catalog.load(table)["metadata"]["location"] == place
    assert sql(f"SELECT count(*) FROM {table}") == [(3,)]
    assert published_versions(place) == [0]


def test_clustered_external_table(sql: Sql, table: str, catalog: Catalog, tmp_path: Path) -> None:
    sql(f"CREATE TABLE {table} (id INT) USING DELTA CLUSTER BY (id) LOCATION 'file://{tmp_path}/tides'")
    check_registration(catalog, table)
    assert sql(f"DESCRIBE DETAIL {table}")[0].clusteringColumns == ["id"]


def test_dropping_leaves_the_files_to_their_owner(sql: Sql, table: str, catalog: Catalog, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/tides"
    sql(f"CREATE TABLE {table} USING DELTA LOCATION '{place}' AS SELECT id FROM range(3)")
    sql(f"DROP TABLE {table}")
    assert not catalog.exists(table)
    assert sql(f"SELECT count(*) FROM delta.`{place}`") == [(3,)]
    sql(f"CREATE TABLE {table} USING DELTA LOCATION '{place}'")
    assert sql(f"SELECT count(*) FROM {table}") == [(3,)]


def test_external_table_is_renamed(sql: Sql, table: str, catalog: Catalog, tmp_path: Path) -> None:
    sql(f"CREATE TABLE {table} USING DELTA LOCATION 'file://{tmp_path}/tides' AS SELECT id FROM range(3)")
    sql(f"ALTER TABLE {table} RENAME TO {table}_renamed")
    sql(f"INSERT INTO {table}_renamed VALUES (3)")
    assert sql(f"SELECT count(*) FROM {table}_renamed") == [(4,)]
    assert not catalog.exists(table)


def test_schema_of_an_external_table_is_that_of_its_log(sql: Sql, table: str, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/tides"
    sql(f"CREATE TABLE {table} USING DELTA LOCATION '{place}' AS SELECT id FROM range(3)")
    sql(f"ALTER TABLE {table} ADD COLUMN height DOUBLE")
    sql(f"ALTER TABLE delta.`{place}` ADD COLUMN station STRING")
    assert sql(f"SELECT id, height, station FROM {table} WHERE id = 0") == [(0, None, None)]
    sql(f"INSERT INTO {table} VALUES (4, 3.5, 'Husum')")
    assert sql(f"SELECT height, station FROM {table} WHERE id = 4") == [(3.5, "Husum")]


def test_places_of_others_are_refused_before_anything_is_written(
    sql: Sql, table: str, catalog: Catalog, tmp_path: Path
) -> None:
    sql(f"CREATE TABLE {table} USING DELTA LOCATION 'file://{tmp_path}/tides' AS SELECT 1 AS id")
    sql(f"CREATE TABLE {table}_managed AS SELECT 1 AS id")
    managed = catalog.load(f"{table}_managed")["metadata"]["location"]
    for place in (f"file://{tmp_path}/tides", f"file://{tmp_path}/tides/below", managed, f"{managed}/below"):
        with pytest.raises(Exception, match=r"may not overlap|lies in the storage of managed tables"):
            sql(f"CREATE TABLE {table}_other (id INT) USING DELTA LOCATION '{place}'")
        assert not catalog.exists(f"{table}_other")
    assert not (tmp_path / "tides" / "below").exists()
