"""Stock Spark on a table whose commits are put into the log: it notices nothing, and nothing of it is ever unpublished.

The shared server publishes only what was left for a minute, so what is in the log here was put there as the commit.
"""

from __future__ import annotations

from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, log_folder

PUTTING = "TBLPROPERTIES ('tidegate.commits' = 'put-if-absent')"


def assert_all_in_the_log(catalog: Catalog, table: str, latest: int) -> None:
    """And by the staged file's very bytes: the writer that publishes after its commit finds its work done."""
    loaded = catalog.load(table)
    assert (loaded["latest-table-version"], loaded["commits"]) == (latest, [])
    log = log_folder(loaded["metadata"]["location"])
    ratified = catalog.ratified(loaded["metadata"]["table-uuid"])
    assert sorted(ratified) == list(range(1, latest + 1))
    for version, commit in ratified.items():
        staged = (log / "_staged_commits" / commit.file_name).read_bytes()
        assert (log / f"{version:020}.json").read_bytes() == staged


def test_spark_creates_appends_updates_alters_and_reads(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} (id INT, v STRING) {PUTTING}")
    assert catalog.load(table)["metadata"]["properties"]["tidegate.commits"] == "put-if-absent"
    sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    assert_all_in_the_log(catalog, table, 1)
    sql(f"UPDATE {table} SET v = 'bb' WHERE id = 2")
    sql(f"ALTER TABLE {table} ADD COLUMN w INT")
    sql(f"INSERT INTO {table} VALUES (3, 'c', 7)")
    assert_all_in_the_log(catalog, table, 4)
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "a", None), (2, "bb", None), (3, "c", 7)]
    assert sql(f"SELECT * FROM {table} VERSION AS OF 1 ORDER BY id") == [(1, "a"), (2, "b")]
    history = [(row.version, row.operation) for row in sql(f"DESCRIBE HISTORY {table}")]
    assert history == [(4, "WRITE"), (3, "ADD COLUMNS"), (2, "UPDATE"), (1, "WRITE"), (0, "CREATE TABLE")]


def test_spark_begins_with_it_and_ends_it_on_a_table_that_is_there(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    sql(f"INSERT INTO {table} VALUES (2)")
    sql(f"ALTER TABLE {table} SET {PUTTING}")
    sql(f"INSERT INTO {table} VALUES (3)")
    assert_all_in_the_log(catalog, table, 3)
    sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('tidegate.commits')")
    assert_all_in_the_log(catalog, table, 4)
    sql(f"INSERT INTO {table} VALUES (4)")
    assert catalog.load(table)["latest-table-version"] == 5
    assert sorted(row.id for row in sql(f"SELECT id FROM {table}")) == [1, 2, 3, 4]
