"""What Spark has written, others read; what others have written, Spark reads.

Spark creates tables as the catalog suggests, with column mapping: the files name columns otherwise than the table does.
DuckDB 1.5.5 overlooks that when it writes, and for partition columns when it reads. Two tests say so: the day they
fail, docs/clients.md is to change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError
from pyspark.sql import Row, SparkSession

from tests.clients.duck import Duck
from tests.clients.matrix import DELTALAKE, DUCKDB, POLARS, Refused, can, cannot
from tests.clients.test_deltalake import NEEDS_THE_CATALOG
from tests.lake import UNITY, Lake
from tests.spark.logs import Catalog, published_file

PUBLISHED_SECONDS_MAX = 30
UNMAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
Sql = Callable[[str], list[Row]]


@pytest.fixture
def sql(spark: SparkSession) -> Sql:
    return lambda statement: spark.sql(statement).collect()


@pytest.fixture
def table(schema: str, unique: str) -> str:
    """The full name of a table that does not exist yet; each knows its columns best."""
    return f"{schema}.{unique}"


def in_duckdb(table: str) -> str:
    return table.replace("main.", "lake.", 1)


def rows_of(spark: SparkSession, table: str) -> list[str]:
    return sorted(repr(_plain(tuple(row))) for row in spark.table(table).collect())


def _plain(value: Any) -> Any:
    """Rows within rows as DuckDB shows them."""
    if isinstance(value, Row):
        return {name: _plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(inner) for inner in value)
    return bytes(value) if isinstance(value, bytearray) else value


WRITTEN: dict[str, list[str]] = {
    "deleted rows": [
        "CREATE TABLE {} AS SELECT id, id * 2 AS twice FROM range(100)",
        "DELETE FROM {} WHERE id % 3 = 0",
    ],
    "merged rows in clusters": [
        "CREATE TABLE {} CLUSTER BY (id) AS SELECT id, 'old' AS state FROM range(5)",
        "MERGE INTO {} t USING (SELECT id + 3 AS id, 'new' AS state FROM range(4)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ],
    "other columns than before, and checkpoints": [
        "CREATE TABLE {} TBLPROPERTIES ('delta.checkpointInterval' = '4') AS SELECT 1 AS id, 'x' AS name, 5 AS gone",
        "ALTER TABLE {} RENAME COLUMN name TO `long title`",
        "ALTER TABLE {} DROP COLUMN gone",
        "ALTER TABLE {} ADD COLUMNS (place STRUCT<lat: DOUBLE, names: ARRAY<STRING>>)",
        "INSERT INTO {} VALUES (2, 'Cuxhaven', named_struct('lat', 53.9, 'names', array('a', 'b'))), (3, NULL, NULL)",
    ],
    "every type": [
        "CREATE TABLE {} AS SELECT true AS flag, 1Y AS tiny, 2S AS small, 3 AS plain, 4L AS large, 1.5F AS narrow, "
        "2.5D AS wide, 1.2345BD AS exact, X'00FF' AS bytes, DATE'2026-01-01' AS day, array(1, NULL) AS many, "
        "map('k', 1.0D) AS named, named_struct('x', named_struct('y', 'z')) AS inside"
    ],
}


@can(DUCKDB, "read")
@pytest.mark.parametrize("case", WRITTEN)
def test_duckdb_reads_what_spark_reads(spark: SparkSession, sql: Sql, table: str, reader: Duck, case: str) -> None:
    for statement in WRITTEN[case]:
        sql(statement.format(table))
    assert sorted(map(repr, reader(f"FROM {in_duckdb(table)}"))) == rows_of(spark, table)


@can(DUCKDB, "filter, project", "join", "unpublished commits")
def test_duckdb_filters_and_joins_what_spark_has_just_written(
    sql: Sql, table: str, reader: Duck, catalog: Catalog
) -> None:
    sql(f"CREATE TABLE {table} AS SELECT * FROM VALUES (1, 'Husum'), (2, 'Büsum') AS v(id, name)")
    sql(f"CREATE TABLE {table}_heights (station INT, height DOUBLE)")
    sql(f"INSERT INTO {table}_heights VALUES (1, 3.14), (1, -1.5), (2, 2.96)")
    unpublish(catalog.load(f"{table}_heights"), version=1)
    found = reader(f"""SELECT name, height FROM {in_duckdb(table)} JOIN {in_duckdb(table)}_heights ON id = station
        WHERE height > 0 ORDER BY height""")
    assert found == [("Büsum", 2.96), ("Husum", 3.14)]


def unpublish(loaded: dict[str, Any], *, version: int) -> None:
    """As if Spark had ended before it published: the catalog has not been told that it did."""
    assert [commit["version"] for commit in loaded["commits"]] == [version]
    file = published_file(loaded["metadata"]["location"], version)
    deadline = time.monotonic() + PUBLISHED_SECONDS_MAX
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    file.unlink()


PARTITIONED = "CREATE TABLE {} {} PARTITIONED BY (region) AS SELECT 1 AS id, 'north' AS region, 'Husum' AS name"


def test_duckdb_reads_partition_columns_of_tables_without_column_mapping(sql: Sql, table: str, reader: Duck) -> None:
    sql(PARTITIONED.format(table, UNMAPPED))
    assert reader(f"SELECT id, region, name FROM {in_duckdb(table)} WHERE region = 'north'") == [(1, "north", "Husum")]


def test_duckdb_loses_partition_columns_of_tables_with_column_mapping(sql: Sql, table: str, reader: Duck) -> None:
    sql(PARTITIONED.format(table, ""))
    assert reader(f"SELECT id, region FROM {in_duckdb(table)}") != [(1, "north")]


@can(DUCKDB, "append")
def test_spark_and_duckdb_write_to_one_table_in_turn(sql: Sql, table: str, writer: Duck, catalog: Catalog) -> None:
    sql(f"CREATE TABLE {table} {UNMAPPED} AS SELECT 1 AS id, 'Spark' AS name")
    writer(f"INSERT INTO {in_duckdb(table)} VALUES (2, 'DuckDB'), (3, 'DuckDB')")
    sql(f"UPDATE {table} SET name = 'both' WHERE id = 2")
    writer.attach()
    writer(f"INSERT INTO {in_duckdb(table)} VALUES (4, NULL)")
    expected = [(1, "Spark"), (2, "both"), (3, "DuckDB"), (4, None)]
    assert sql(f"SELECT * FROM {table} ORDER BY id") == expected
    assert writer(f"FROM {in_duckdb(table)} ORDER BY id") == expected
    assert catalog.load(table)["latest-table-version"] == 3


def test_duckdb_appends_to_a_table_from_which_column_mapping_was_taken_away(sql: Sql, table: str, writer: Duck) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'Spark' AS name")
    sql(f"ALTER TABLE {table} SET {UNMAPPED}")
    writer(f"INSERT INTO {in_duckdb(table)} VALUES (2, 'DuckDB')")
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "Spark"), (2, "DuckDB")]


@cannot(DUCKDB, "append", saying="The table has column mapping: in its files that column is called")
def test_duckdb_does_not_append_to_tables_with_column_mapping_what_nobody_else_can_read(
    sql: Sql, table: str, writer: Duck, refused: Refused
) -> None:
    sql(f"CREATE TABLE {table} (id INT, name STRING)")
    with refused(duckdb.Error):
        writer(f"INSERT INTO {in_duckdb(table)} VALUES (1, 'Husum')")
    assert sql(f"SELECT * FROM {table}") == []


@cannot(DUCKDB, "append", saying="DeltaKernel MissingColumnError (12): Column stats.nullCount.`col-")
def test_duckdb_does_not_append_to_clustered_tables_with_column_mapping(
    sql: Sql, table: str, writer: Duck, refused: Refused
) -> None:
    sql(f"CREATE TABLE {table} (id INT, name STRING) CLUSTER BY (id)")
    with refused(duckdb.TransactionException):
        writer(f"INSERT INTO {in_duckdb(table)} VALUES (1, 'Husum')")
    assert sql(f"SELECT count(*) FROM {table}") == [(0,)]


GUARDED = {
    "generatedColumns": "CREATE TABLE {} (id INT, twice INT GENERATED ALWAYS AS (id * 2))",
    "checkConstraints": "CREATE TABLE {} (id INT, twice INT) TBLPROPERTIES ('delta.constraints.positive' = 'id > 0')",
    "typeWidening": "CREATE TABLE {} (id INT, twice INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
}


@cannot(DUCKDB, "append", saying="DeltaKernel UnsupportedError (35): Unsupported: Feature '")
@pytest.mark.parametrize("feature", GUARDED)
def test_duckdb_appends_only_where_it_knows_the_rules(
    sql: Sql, table: str, writer: Duck, refused: Refused, feature: str
) -> None:
    sql(GUARDED[feature].format(table))
    with refused(duckdb.IOException, feature):
        writer(f"INSERT INTO {in_duckdb(table)} VALUES (1, 2)")
    assert sql(f"SELECT count(*) FROM {table}") == [(0,)]


@pytest.fixture
def own_schema(shore: Lake, unique: str) -> Iterator[str]:
    """A schema that other tests do not look into."""
    assert shore.http.post(f"{UNITY}/schemas", json={"name": unique, "catalog_name": "main"}).status_code == 200
    yield f"main.{unique}"
    assert shore.http.delete(f"{UNITY}/schemas/main.{unique}", params={"force": "true"}).status_code == 200


@cannot(DUCKDB, "read", saying="Not implemented Error: Tried to fallback to unknown type for '")
@pytest.mark.parametrize("kind", ["VARIANT", "ARRAY<TIMESTAMP_NTZ>"])
def test_a_column_of_a_type_that_duckdb_does_not_know_hides_the_whole_schema(
    sql: Sql, own_schema: str, reader: Duck, refused: Refused, kind: str
) -> None:
    sql(f"CREATE TABLE {own_schema}.known (id INT)")
    assert reader(f"FROM {in_duckdb(own_schema)}.known") == []
    sql(f"CREATE TABLE {own_schema}.unknown (id INT, odd {kind})")
    reader.attach("READ_ONLY")
    with refused(duckdb.NotImplementedException):
        reader(f"FROM {in_duckdb(own_schema)}.known")


READERS: dict[str, Callable[[str], object]] = {"deltalake": DeltaTable, "Polars": pl.read_delta}


@pytest.mark.parametrize("reader", READERS)
def test_managed_tables_of_spark_are_refused_as_those_made_by_hand(
    sql: Sql, table: str, catalog: Catalog, reader: str
) -> None:
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    with pytest.raises(DeltaError, match="Max catalog version is required") as told:
        READERS[reader](catalog.load(table)["metadata"]["location"])
    assert NEEDS_THE_CATALOG in str(told.value)


def test_an_external_table_is_shared_by_all(sql: Sql, table: str, writer: Duck, tmp_path: Path) -> None:
    place = str(tmp_path / "shared")
    sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING DELTA LOCATION '{place}'")
    sql(f"INSERT INTO {table} VALUES (1, 'Spark')")
    writer(f"INSERT INTO {in_duckdb(table)} VALUES (2, 'DuckDB')")
    write_deltalake(place, pl.DataFrame({"id": [3], "name": ["deltalake"]}), mode="append")
    pl.DataFrame({"id": [4], "name": ["Polars"]}).write_delta(place, mode="append")
    expected = [(1, "Spark"), (2, "DuckDB"), (3, "deltalake"), (4, "Polars")]
    assert sql(f"SELECT * FROM {table} ORDER BY id") == expected
    assert writer(f"FROM {in_duckdb(table)} ORDER BY id") == expected
    assert pl.read_delta(place).sort("id").rows() == expected


@pytest.fixture(scope="module")
def odd(spark: SparkSession, schema: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """External tables with a row each, by the property that makes them what not everybody knows."""
    properties = ("delta.enableTypeWidening", "delta.enableInCommitTimestamps", "delta.columnMapping.mode")
    folder = tmp_path_factory.mktemp("odd")
    for number, name in enumerate(properties):
        value = "name" if name.endswith("mode") else "true"
        spark.sql(
            f"CREATE TABLE {schema}.odd_{number} USING DELTA LOCATION '{folder}/{number}' "
            f"TBLPROPERTIES ('{name}' = '{value}') AS SELECT 1L AS id"
        )
    return {name: f"{folder}/{number}" for number, name in enumerate(properties)}


def all_rows(place: str) -> list[tuple[Any, ...]]:
    """As deltalake reads them."""
    asked = QueryBuilder().register("t", DeltaTable(place)).execute("SELECT * FROM t")
    return pl.DataFrame(asked.read_all()).rows()


@cannot(DELTALAKE, "read external", saying="Unsupported table features required: [TypeWidening]")
def test_deltalake_reads_no_external_table_with_a_feature_that_it_does_not_know(
    odd: dict[str, str], refused: Refused
) -> None:
    with refused(DeltaError):
        all_rows(odd["delta.enableTypeWidening"])


UNKNOWN = "Unsupported table features required: [InCommitTimestamp]"


@cannot(DELTALAKE, "append to external", saying=UNKNOWN)
def test_deltalake_writes_to_no_external_table_with_a_feature_that_it_does_not_know(
    odd: dict[str, str], refused: Refused
) -> None:
    place = odd["delta.enableInCommitTimestamps"]
    with refused(CommitFailedError):
        write_deltalake(place, pl.DataFrame({"id": [2]}), mode="append")
    assert all_rows(place) == [(1,)]


@cannot(POLARS, "append to external", saying=UNKNOWN)
def test_polars_writes_to_no_external_table_with_a_feature_that_deltalake_does_not_know(
    odd: dict[str, str], refused: Refused
) -> None:
    place = odd["delta.enableInCommitTimestamps"]
    with refused(CommitFailedError):
        pl.DataFrame({"id": [2]}).write_delta(place, mode="append")
    assert pl.read_delta(place).rows() == [(1,)]


@cannot(
    POLARS,
    "read external",
    saying="delta table requires reader version 2 (column mapping), which polars does not support",
)
def test_polars_reads_no_external_table_with_column_mapping(odd: dict[str, str], refused: Refused) -> None:
    place = odd["delta.columnMapping.mode"]
    with refused(DeltaProtocolError):
        pl.read_delta(place)
    assert all_rows(place) == [(1,)]
