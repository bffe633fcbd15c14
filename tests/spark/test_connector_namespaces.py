"""Schemas through Spark: create, list, describe, alter, use, drop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.lake import UNITY
from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, log_folder


@pytest.fixture
def namespace(catalog_server: ServerProcess, unique: str) -> Iterator[str]:
    """The full name of a schema that does not exist yet; it is gone after the test."""
    name = f"main.namespace_{unique}"
    yield name
    with catalog_server.http() as http:
        http.delete(f"{UNITY}/schemas/{name}", params={"force": "true"})


@pytest.fixture
def in_catalog(catalog_server: ServerProcess, namespace: str) -> Iterator[Any]:
    """What the server says of that schema."""
    with catalog_server.http() as http:
        yield lambda: http.get(f"{UNITY}/schemas/{namespace}").json()


def described(sql: Sql, namespace: str) -> dict[str, str]:
    return {row.info_name: row.info_value for row in sql(f"DESCRIBE SCHEMA EXTENDED {namespace}")}


def test_schema_is_created_listed_and_described(sql: Sql, namespace: str, in_catalog: Any) -> None:
    name = namespace.partition(".")[2]
    sql(f"CREATE SCHEMA {namespace} COMMENT 'heights' WITH DBPROPERTIES ('team' = 'sea', 'grade' = 'a')")
    assert in_catalog()["comment"] == "heights"
    assert in_catalog()["properties"] == {"team": "sea", "grade": "a"}
    assert (name,) in sql("SHOW SCHEMAS IN main")
    assert sql(f"SHOW SCHEMAS IN main LIKE '{name}'") == [(name,)]
    information = described(sql, namespace)
    assert information["Catalog Name"] == "main"
    assert information["Namespace Name"] == name
    assert information["Comment"] == "heights"
    assert "(team,sea)" in information["Properties"]


def test_schema_that_exists_is_not_created_again(sql: Sql, namespace: str, in_catalog: Any) -> None:
    sql(f"CREATE SCHEMA {namespace} COMMENT 'first'")
    before = in_catalog()
    with pytest.raises(AnalysisException, match="SCHEMA_ALREADY_EXISTS"):
        sql(f"CREATE SCHEMA {namespace} COMMENT 'second'")
    sql(f"CREATE SCHEMA IF NOT EXISTS {namespace} COMMENT 'third'")
    assert in_catalog() == before


def test_comment_and_properties_are_altered(sql: Sql, namespace: str, in_catalog: Any) -> None:
    sql(f"CREATE SCHEMA {namespace} COMMENT 'old' WITH DBPROPERTIES ('team' = 'sea', 'grade' = 'a')")
    sql(f"COMMENT ON SCHEMA {namespace} IS 'new'")
    assert in_catalog()["comment"] == "new"
    sql(f"ALTER SCHEMA {namespace} SET DBPROPERTIES ('team' = 'harbour', 'more' = 'x')")
    sql(f"ALTER SCHEMA {namespace} UNSET DBPROPERTIES ('grade')")
    assert in_catalog()["properties"] == {"team": "harbour", "more": "x"}
    assert in_catalog()["comment"] == "new"
    assert described(sql, namespace)["Comment"] == "new"


def test_comment_is_cleared(sql: Sql, namespace: str, in_catalog: Any) -> None:
    sql(f"CREATE SCHEMA {namespace} COMMENT 'old'")
    sql(f"COMMENT ON SCHEMA {namespace} IS NULL")
    assert not in_catalog()["comment"]


def test_location_stays_where_it_is(sql: Sql, namespace: str, in_catalog: Any) -> None:
    sql(f"CREATE SCHEMA {namespace}")
    before = in_catalog()
    with pytest.raises(Exception, match="The location of a schema cannot be changed"):
        sql(f"ALTER SCHEMA {namespace} SET LOCATION 'file:///tmp/elsewhere'")
    assert in_catalog() == before


def test_tables_of_a_schema_with_a_location_lie_there(
    sql: Sql, namespace: str, catalog: Catalog, tmp_path: Path
) -> None:
    sql(f"CREATE SCHEMA {namespace} LOCATION 'file://{tmp_path}/harbour'")
    sql(f"CREATE TABLE {namespace}.t AS SELECT 1 AS id")
    assert log_folder(catalog.load(f"{namespace}.t")["metadata"]["location"]).is_relative_to(tmp_path / "harbour")
    assert sql(f"SELECT * FROM {namespace}.t") == [(1,)]
    assert described(sql, namespace)["Location"].startswith(f"file://{tmp_path}/harbour")


def test_schema_with_tables_is_dropped_by_cascade_only(sql: Sql, namespace: str, catalog: Catalog) -> None:
    sql(f"CREATE SCHEMA {namespace}")
    for name in ("one", "two"):
        sql(f"CREATE TABLE {namespace}.{name} (id INT)")
    for statement in (f"DROP SCHEMA {namespace}", f"DROP SCHEMA IF EXISTS {namespace} RESTRICT"):
        with pytest.raises(AnalysisException, match="SCHEMA_NOT_EMPTY"):
            sql(statement)
    assert len(catalog.tables_in(namespace)) == 2
    sql(f"DROP SCHEMA {namespace} CASCADE")
    assert namespace not in catalog.schemas()
    sql(f"CREATE SCHEMA {namespace}")
    assert sql(f"SHOW TABLES IN {namespace}") == []


def test_schema_without_tables_is_dropped(sql: Sql, namespace: str, catalog: Catalog) -> None:
    sql(f"CREATE SCHEMA {namespace}")
    sql(f"DROP SCHEMA {namespace}")
    assert namespace not in catalog.schemas()
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        sql(f"DROP SCHEMA {namespace}")
    sql(f"DROP SCHEMA IF EXISTS {namespace}")


def test_names_are_short_in_the_schema_in_use(spark: SparkSession, sql: Sql, namespace: str, catalog: Catalog) -> None:
    sql(f"CREATE SCHEMA {namespace}")
    try:
        sql(f"USE {namespace}")
        sql("CREATE TABLE short AS SELECT 7 AS id")
        assert sql("SELECT id, current_catalog(), current_schema() FROM short")[0][:2] == (7, "main")
        assert [row.tableName for row in sql("SHOW TABLES")] == ["short"]
        assert spark.catalog.currentDatabase() == namespace.partition(".")[2]
        assert spark.catalog.databaseExists(namespace.partition(".")[2])
        assert namespace.partition(".")[2] in [database.name for database in spark.catalog.listDatabases()]
    finally:
        sql("USE spark_catalog.default")
    assert catalog.exists(f"{namespace}.short")


def test_catalog_in_use_has_a_default_schema(spark: SparkSession, sql: Sql) -> None:
    try:
        spark.catalog.setCurrentCatalog("main")
        assert spark.catalog.currentDatabase() == "default"
    finally:
        sql("USE spark_catalog.default")


def test_names_with_quotes(sql: Sql, namespace: str, catalog: Catalog) -> None:
    quoted = f"main.`{namespace.partition('.')[2]}`"
    sql(f"CREATE SCHEMA {quoted}")
    sql(f"CREATE TABLE {quoted}.`spring-tide@husum` AS SELECT 1 AS id")
    assert sql(f"SELECT * FROM {quoted}.`spring-tide@husum`") == [(1,)]
    assert catalog.tables_in(namespace) == [f"{namespace}.spring-tide@husum"]
    for impossible in ("`a.b`", "`a b`", "`ä`", "`a/b`"):
        with pytest.raises(Exception, match="cannot be the name of a"):
            sql(f"CREATE TABLE {quoted}.{impossible} (id INT)")
        with pytest.raises(Exception, match=r"cannot be the name of a|is not a schema's full name"):
            sql(f"CREATE SCHEMA main.{impossible}")
    assert len(catalog.tables_in(namespace)) == 1
