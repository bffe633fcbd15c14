"""Tables come and go: CREATE, CTAS, REPLACE, partitions, clustering, SHOW, RENAME, DROP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, log_folder, replay

REQUIRED_FEATURES = {"catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck", "v2Checkpoint", "deletionVectors"}


@pytest.fixture
def describe(sql: Sql) -> Callable[[str], dict[str, Row]]:
    """The rows of DESCRIBE EXTENDED, by their first column."""
    return lambda table: {row.col_name: row for row in sql(f"DESCRIBE EXTENDED {table}")}


def test_create_registers_every_detail_of_the_declaration(
    sql: Sql, table: str, catalog: Catalog, describe: Callable[[str], dict[str, Row]]
) -> None:
    sql(f"""CREATE TABLE {table} (
        id BIGINT NOT NULL COMMENT 'the key', amount DECIMAL(18, 4), tags ARRAY<STRUCT<k: STRING, v: INT>>,
        levels MAP<STRING, ARRAY<DOUBLE>>, place STRUCT<a: INT, b: STRUCT<c: STRING COMMENT 'leaf', d: DATE>>,
        Spelled_Like_This TIMESTAMP)
        COMMENT 'heights of the tide' TBLPROPERTIES ('team.owner' = 'harbour')""")
    described = describe(table)
    assert (described["id"].data_type, described["id"].comment) == ("bigint", "the key")
    assert described["place"].data_type == "struct<a:int,b:struct<c:string,d:date>>"
    assert described["Type"].data_type == "MANAGED"
    assert described["Provider"].data_type == "delta"
    assert described["Comment"].data_type == "heights of the tide"
    loaded = catalog.load(table)
    assert loaded["metadata"]["columns"]["fields"][0]["nullable"] is False
    assert loaded["metadata"]["columns"]["fields"][5]["name"] == "Spelled_Like_This"
    assert loaded["metadata"]["properties"]["team.owner"] == "harbour"
    assert loaded["latest-table-version"] == 0
    assert replay(loaded).features >= REQUIRED_FEATURES
    assert catalog.describe(table)["comment"] == "heights of the tide"


def test_ctas_has_its_rows_in_version_0(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT id, concat('n', id) AS name FROM range(10)")
    assert sql(f"SELECT count(*), min(name), max(id) FROM {table}") == [(10, "n0", 9)]
    assert catalog.load(table)["latest-table-version"] == 0


@pytest.mark.parametrize("by", ["declaration", "select"])
def test_partitioned_tables(sql: Sql, table: str, catalog: Catalog, by: str) -> None:
    rows = "VALUES (1, 'eu', DATE'2026-01-01'), (2, 'us', DATE'2026-01-02'), (3, NULL, NULL)"
    if by == "declaration":
        sql(f"CREATE TABLE {table} (id INT, region STRING, day DATE) PARTITIONED BY (region, day)")
        sql(f"INSERT INTO {table} {rows}")
    else:
        sql(f"CREATE TABLE {table} PARTITIONED BY (region, day) AS SELECT * FROM {rows} AS v(id, region, day)")
    assert catalog.load(table)["metadata"]["partition-columns"] == ["region", "day"]
    assert sql(f"SELECT id FROM {table} WHERE region = 'eu' AND day = DATE'2026-01-01'") == [(1,)]
    assert sql(f"SELECT id FROM {table} WHERE region IS NULL") == [(3,)]
    assert len(sql(f"SHOW PARTITIONS {table}")) == 3
    assert sql(f"DESCRIBE DETAIL {table}")[0].partitionColumns == ["region", "day"]


def test_clustered_tables(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT, place STRUCT<x: INT>, at TIMESTAMP) CLUSTER BY (id, place.x)")
    sql(f"INSERT INTO {table} VALUES (1, named_struct('x', 7), current_timestamp())")
    assert sql(f"DESCRIBE DETAIL {table}")[0].clusteringColumns == ["id", "place.x"]
    # The domain names columns as the data files do, which rename nothing when a column is renamed.
    assert catalog.load(table)["metadata"]["properties"]["delta.clusteringColumns"].count("col-") == 3
    sql(f"ALTER TABLE {table} CLUSTER BY (at)")
    sql(f"INSERT INTO {table} VALUES (2, NULL, current_timestamp())")
    assert sql(f"DESCRIBE DETAIL {table}")[0].clusteringColumns == ["at"]
    sql(f"ALTER TABLE {table} CLUSTER BY NONE")
    assert sql(f"DESCRIBE DETAIL {table}")[0].clusteringColumns == []
    assert catalog.load(table)["metadata"]["properties"]["delta.clusteringColumns"] == "[]"
    assert sql(f"SELECT count(*) FROM {table}") == [(2,)]


def test_ctas_of_a_clustered_table(sql: Sql, table: str) -> None:
    sql(f"CREATE TABLE {table} CLUSTER BY (id) AS SELECT id FROM range(3)")
    assert sql(f"DESCRIBE DETAIL {table}")[0].clusteringColumns == ["id"]
    assert sql(f"SELECT sum(id) FROM {table}") == [(3,)]


def test_create_if_not_exists_leaves_a_table_as_it_is(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT)")
    before = catalog.state(table)
    sql(f"CREATE TABLE IF NOT EXISTS {table} (other STRING)")
    sql(f"CREATE TABLE IF NOT EXISTS {table} AS SELECT 'x' AS other")
    assert catalog.state(table) == before


REPLACEMENTS = {
    "REPLACE TABLE": "REPLACE TABLE {table} (id INT, z STRING)",
    "REPLACE TABLE AS SELECT": "REPLACE TABLE {table} AS SELECT CAST(id AS INT) AS id, 'z' AS z FROM range(4)",
    "CREATE OR REPLACE TABLE": "CREATE OR REPLACE TABLE {table} (id INT, z STRING) PARTITIONED BY (z)",
    "CREATE OR REPLACE TABLE AS SELECT": "CREATE OR REPLACE TABLE {table} CLUSTER BY (id) "
    "AS SELECT CAST(id AS INT) AS id, 'z' AS z FROM range(4)",
}


@pytest.mark.parametrize("statement", REPLACEMENTS)
def test_replacing_keeps_id_and_history(sql: Sql, table: str, catalog: Catalog, statement: str) -> None:
    sql(f"CREATE TABLE {table} (a INT, b STRING) PARTITIONED BY (b) COMMENT 'old' TBLPROPERTIES ('team' = 'sea')")
    sql(f"INSERT INTO {table} VALUES (1, 'x'), (2, 'y')")
    before = catalog.state(table)
    sql(REPLACEMENTS[statement].format(table=table))
    after = catalog.load(table)
    assert after["metadata"]["table-uuid"] == before["metadata"]["table-uuid"]
    assert after["metadata"]["location"] == before["metadata"]["location"]
    assert after["latest-table-version"] == 2
    assert [field["name"] for field in after["metadata"]["columns"]["fields"]] == ["id", "z"]
    assert "team" not in after["metadata"]["properties"]
    assert catalog.describe(table)["comment"] is None
    assert [row.version for row in sql(f"DESCRIBE HISTORY {table}")] == [2, 1, 0]
    assert len(sql(f"SELECT * FROM {table}")) == (4 if "SELECT" in statement else 0)
    assert sql(f"SELECT * FROM {table} VERSION AS OF 1 ORDER BY a") == [(1, "x"), (2, "y")]


def test_create_or_replace_makes_a_table_that_is_not_there(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE OR REPLACE TABLE {table} AS SELECT id FROM range(5)")
    assert catalog.load(table)["latest-table-version"] == 0
    assert sql(f"SELECT count(*) FROM {table}") == [(5,)]


def test_replace_needs_a_table(sql: Sql, table: str, catalog: Catalog) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(f"REPLACE TABLE {table} (id INT)")
    assert not catalog.exists(table)


def test_show_tables_and_schemas(sql: Sql, schema: str, table: str) -> None:
    namespace, name = schema.partition(".")[2], table.rpartition(".")[2]
    sql(f"CREATE TABLE {table} (id INT)")
    assert (namespace, name, False) in sql(f"SHOW TABLES IN {schema}")
    assert sql(f"SHOW TABLES IN {schema} LIKE '{name}'") == [(namespace, name, False)]
    assert {("default",), (namespace,)} <= set(sql("SHOW SCHEMAS IN main"))
    assert sql(f"SHOW SCHEMAS IN main LIKE '{namespace}'") == [(namespace,)]


def test_renamed_table_is_the_same_table(sql: Sql, table: str, catalog: Catalog) -> None:
    renamed = f"{table}_renamed"
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    id = catalog.load(table)["metadata"]["table-uuid"]
    sql(f"ALTER TABLE {table} RENAME TO {renamed}")
    sql(f"INSERT INTO {renamed} VALUES (100)")
    assert not catalog.exists(table)
    assert catalog.load(renamed)["metadata"]["table-uuid"] == id
    assert sql(f"SELECT max(id), count(*) FROM {renamed}") == [(100, 4)]
    assert [row.version for row in sql(f"DESCRIBE HISTORY {renamed}")] == [1, 0]
    sql(f"CREATE TABLE {table} (another STRING)")
    assert catalog.load(table)["metadata"]["table-uuid"] != id


def test_dropped_name_is_free_at_once_and_its_files_stay(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    dropped = catalog.load(table)["metadata"]
    sql(f"DROP TABLE {table}")
    assert not catalog.exists(table)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(f"SELECT * FROM {table}")
    sql(f"CREATE TABLE {table} (name STRING)")
    assert catalog.load(table)["metadata"]["table-uuid"] != dropped["table-uuid"]
    assert sql(f"SELECT * FROM {table}") == []
    assert Path(log_folder(dropped["location"]), f"{0:020}.json").exists()


def test_query_on_a_dropped_table_does_not_read_its_successor(spark: SparkSession, sql: Sql, table: str) -> None:
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    of_the_dropped = spark.table(table)
    sql(f"DROP TABLE {table}")
    sql(f"CREATE TABLE {table} AS SELECT id FROM range(100, 102)")
    with pytest.raises(Exception, match="Table UUID mismatch"):
        of_the_dropped.collect()
    assert sorted(sql(f"SELECT id FROM {table}")) == [(100,), (101,)]
