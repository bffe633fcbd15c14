"""What goes wrong arrives as the exception that Spark has for it, with the catalog's own words."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import tidegate.spark
from tests.lake import UNITY
from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, check_lockstep
from tests.spark.second import start_with_catalog

MISSING = {
    "SELECT * FROM {schema}.missing": "TABLE_OR_VIEW_NOT_FOUND",
    "SELECT * FROM main.no_such_schema.missing": "TABLE_OR_VIEW_NOT_FOUND",
    "INSERT INTO {schema}.missing VALUES (1)": "TABLE_OR_VIEW_NOT_FOUND",
    "UPDATE {schema}.missing SET id = 1": "TABLE_OR_VIEW_NOT_FOUND",
    "DELETE FROM {schema}.missing": "TABLE_OR_VIEW_NOT_FOUND",
    "ALTER TABLE {schema}.missing ADD COLUMN x INT": "TABLE_OR_VIEW_NOT_FOUND",
    "DESCRIBE TABLE {schema}.missing": "TABLE_OR_VIEW_NOT_FOUND",
    "DESCRIBE HISTORY {schema}.missing": "TABLE_OR_VIEW_NOT_FOUND",
    "SELECT * FROM main.no_such_schema.nested.missing": "TABLE_OR_VIEW_NOT_FOUND",
    "CREATE TABLE main.no_such_schema.nested.t (id INT)": "NOT_FOUND",
    "SHOW TABLES IN main.no_such_schema": "SCHEMA_NOT_FOUND",
    "DESCRIBE SCHEMA main.no_such_schema": "SCHEMA_NOT_FOUND",
    "USE main.no_such_schema": "SCHEMA_NOT_FOUND",
    "COMMENT ON SCHEMA main.no_such_schema IS 'x'": "SCHEMA_NOT_FOUND",
    "DROP SCHEMA main.no_such_schema": "SCHEMA_NOT_FOUND",
    "CREATE TABLE main.no_such_schema.t (id INT)": "SCHEMA_NOT_FOUND",
    "CREATE TABLE main.no_such_schema.t AS SELECT 1 AS id": "SCHEMA_NOT_FOUND",
    "CREATE OR REPLACE TABLE main.no_such_schema.t AS SELECT 1 AS id": "SCHEMA_NOT_FOUND",
}


@pytest.mark.parametrize("statement", MISSING)
def test_what_is_missing_is_named(sql: Sql, schema: str, statement: str) -> None:
    with pytest.raises(AnalysisException, match=MISSING[statement]) as caught:
        sql(statement.format(schema=schema))
    assert "missing" in str(caught.value) or "no_such_schema" in str(caught.value)


def test_name_that_is_taken(sql: Sql, table: str, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    before = catalog.state(table)
    for statement in (f"CREATE TABLE {table} (id INT)", f"CREATE TABLE {table} AS SELECT 2 AS id"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
            sql(statement)
    assert catalog.state(table) == before


UNSUPPORTED = {
    "CREATE VIEW {schema}.v AS SELECT 1 AS id": "MISSING_CATALOG_ABILITY.*does not support views",
    "CREATE FUNCTION {schema}.f AS 'a.b.C'": "MISSING_CATALOG_ABILITY.*does not support CREATE FUNCTION",
    "SELECT {schema}.f(1)": "UNRESOLVED_ROUTINE",
    "CREATE TABLE {schema}.x (id INT) USING PARQUET": "(?i)format parquet: the catalog main holds Delta tables",
    "CREATE TABLE {schema}.x (id INT) USING CSV": "(?i)format csv: the catalog main holds Delta tables",
    "CREATE TABLE {schema}.x USING JSON AS SELECT 1 AS id": "(?i)format json: the catalog main holds Delta tables",
    "CREATE TABLE {schema}.x (id INT) USING ORC LOCATION '/tmp/x'": "(?i)format orc: the catalog main holds Delta",
}


@pytest.mark.parametrize("statement", UNSUPPORTED)
def test_what_is_not_supported_is_said_so(sql: Sql, schema: str, catalog: Catalog, statement: str) -> None:
    before = catalog.tables_in(schema)
    with pytest.raises(Exception, match=UNSUPPORTED[statement]):
        sql(statement.format(schema=schema))
    assert catalog.tables_in(schema) == before


def test_writer_of_another_format_learns_what_to_say(spark: SparkSession, table: str, catalog: Catalog) -> None:
    with pytest.raises(Exception, match=r'format\("delta"\)'):
        spark.range(1).write.format("parquet").saveAsTable(table)
    assert not catalog.exists(table)


@pytest.fixture(scope="module")
def locked(spark: SparkSession, catalog_server: ServerProcess) -> Iterator[str]:
    """A catalog of the shared server that Spark has a wrong token for. Answers what the server says about it."""
    with catalog_server.http() as http:
        assert http.post(f"{UNITY}/catalogs", json={"name": "locked"}).status_code == 200
        assert http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": "locked"}).status_code == 200
        tidegate.spark.session(uri=catalog_server.url, token="not-the-token", catalogs=["locked"])
        refusal = httpx.get(f"{http.base_url}{UNITY}/schemas", headers={"Authorization": "Bearer not-the-token"})
        yield refusal.json()["message"]
        http.delete(f"{UNITY}/catalogs/locked", params={"force": "true"})


@pytest.mark.parametrize(
    "statement",
    [
        "SHOW SCHEMAS IN locked",
        "SHOW TABLES IN locked.s",
        "SELECT * FROM locked.s.t",
        "CREATE SCHEMA locked.other",
        "CREATE TABLE locked.s.t (id INT)",
        "CREATE TABLE locked.s.t AS SELECT 1 AS id",
        "DROP TABLE locked.s.t",
        "DROP SCHEMA locked.s",
    ],
)
def test_wrong_token_is_told_in_the_words_of_the_server(sql: Sql, locked: str, statement: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        sql(statement)
    assert "Permission denied" in str(caught.value)
    assert locked in str(caught.value)
    assert "not-the-token" not in str(caught.value)


@pytest.fixture(scope="module")
def second(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that tests may stop, with pages of two objects; its catalog is called `second`."""
    server = start_with_catalog(tmp_path_factory.mktemp("second"), "second", page_size_max="2")
    tidegate.spark.session(uri=server.url, token=server.token, catalogs=["second"])
    yield server
    with server.http() as http:
        check_lockstep(Catalog(http, server.home))
    server.stop()


@pytest.fixture(scope="module")
def shore(spark: SparkSession, second: ServerProcess) -> str:
    """A table on the server that is stopped."""
    spark.sql("CREATE SCHEMA second.s")
    spark.sql("CREATE TABLE second.s.shore AS SELECT 1 AS id")
    return "second.s.shore"


def test_listings_are_read_to_their_last_page(sql: Sql, second: ServerProcess) -> None:
    names = [f"page_{number}" for number in range(5)]
    for name in names:
        sql(f"CREATE SCHEMA second.{name}")
        sql(f"CREATE TABLE second.page_0.{name} (id INT)")
    assert set(names) <= {row.namespace for row in sql("SHOW SCHEMAS IN second")}
    assert [row.tableName for row in sql("SHOW TABLES IN second.page_0")] == names
    for name in names:
        sql(f"DROP SCHEMA second.{name} CASCADE")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SHOW TABLES IN second.s", [("s", "shore", False)]),
        ("SELECT id FROM {shore}", [(1,)]),
        ("CREATE SCHEMA IF NOT EXISTS second.s", []),
    ],
)
def test_restart_of_the_server_goes_unnoticed(
    sql: Sql, second: ServerProcess, shore: str, statement: str, expected: list[object]
) -> None:
    second.stop()
    restart = threading.Timer(1.0, second.start)
    restart.start()
    try:
        assert sql(statement.format(shore=shore)) == expected
    finally:
        restart.join()


def test_writer_outlives_a_restart_of_the_server(sql: Sql, second: ServerProcess, shore: str) -> None:
    before = sql(f"SELECT count(*) FROM {shore}")[0][0]
    second.kill()
    restart = threading.Timer(1.0, second.start)
    restart.start()
    try:
        sql(f"INSERT INTO {shore} VALUES (2)")
    finally:
        restart.join()
    assert sql(f"SELECT count(*) FROM {shore}") == [(before + 1,)]


@pytest.mark.parametrize("statement", ["SHOW SCHEMAS IN second", "SELECT * FROM {shore}"])
def test_server_that_stays_away_is_named(sql: Sql, second: ServerProcess, shore: str, statement: str) -> None:
    second.stop()
    try:
        with pytest.raises(AnalysisException, match="Cannot reach the catalog at") as caught:
            sql(statement.format(shore=shore))
        assert second.url in str(caught.value)
    finally:
        second.start()
    assert sql(f"SELECT count(*) > 0 FROM {shore}") == [(True,)]
