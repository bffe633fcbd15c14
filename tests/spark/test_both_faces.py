"""One table, two Sparks: one speaks Delta REST v1.0, the other specification v0.1.0, and the catalog decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.logs import Catalog
from tests.spark.wire import Wire
from tests.spark.writers import Task, WriterProcess, perform
from tidegate.spark.connection import connection
from tidegate.spark.settings import catalog_settings

COMMIT = "/delta/preview/commits"
Statement = Callable[[str], list[Any]]


@dataclass(frozen=True)
class Two:
    """The one that begins, and the one that goes on."""

    first: Statement
    second: Statement


@pytest.fixture(params=["v0.1.0 then v1.0", "v1.0 then v0.1.0"])
def two(request: pytest.FixtureRequest, sql: Sql, old: WriterProcess) -> Two:
    return Two(old.sql, sql) if request.param.startswith("v0.1.0") else Two(sql, old.sql)


def test_a_table_of_one_face_is_fully_usable_through_the_other(two: Two, table: str, catalog: Catalog) -> None:
    two.first(f"CREATE TABLE {table} PARTITIONED BY (day) COMMENT 'c' AS SELECT 1 AS id, 'mon' AS day")
    two.second(f"INSERT INTO {table} VALUES (2, 'tue'), (3, 'tue')")
    two.first(f"UPDATE {table} SET id = 20 WHERE id = 2")
    two.second(f"ALTER TABLE {table} ADD COLUMNS (height DOUBLE)")
    two.second(f"DELETE FROM {table} WHERE id = 3")
    two.first(f"""MERGE INTO {table} t USING (SELECT 1 AS id, 'wed' AS day, 3.14D AS height) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""")
    for session in (two.first, two.second):
        assert session(f"SELECT * FROM {table} ORDER BY id") == [(1, "wed", 3.14), (20, "tue", None)]
        assert session(f"SELECT count(*) FROM {table} VERSION AS OF 1") == [(3,)]
    assert catalog.load(table)["latest-table-version"] == 5
    two.second(f"REPLACE TABLE {table} AS SELECT 'new' AS name")
    assert two.first(f"SELECT * FROM {table}") == [("new",)]
    two.second(f"DROP TABLE {table}")
    assert not catalog.exists(table)


def test_no_row_of_two_appenders_is_lost_or_doubled(
    spark: SparkSession, sql: Sql, old: WriterProcess, old_wire: Wire, table: str, catalog: Catalog
) -> None:
    times = 6
    sql(f"CREATE TABLE {table} (who STRING, i INT)")
    old_wire.calls.clear()
    done = race(spark, old, "append", table, times=times)
    assert done == {"new": times, "old": times}
    expected = sorted((who, i) for who in ("new", "old") for i in range(times))
    for session in (sql, old.sql):
        assert sorted(session(f"SELECT who, i FROM {table}")) == expected
    assert catalog.load(table)["latest-table-version"] == 2 * times
    assert old_wire.calls.count(f"POST {COMMIT}") >= times


def test_no_increment_of_two_updaters_is_lost(spark: SparkSession, old: WriterProcess, table: str) -> None:
    times = 4
    old.sql(f"CREATE TABLE {table} AS SELECT 0 AS n")
    race(spark, old, "count up", table, times=times)
    assert old.sql(f"SELECT n FROM {table}") == [(2 * times,)]


def race(spark: SparkSession, old: WriterProcess, work: str, table: str, *, times: int) -> dict[str, int]:
    """Both do the same work, starting together; how often each has done it."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        new_one = pool.submit(perform, spark, Task(work, table, "new", times))
        old_one = pool.submit(old.perform, Task(work, table, "old", times))
        return {"new": new_one.result(timeout=300).done, "old": old_one.result(timeout=300).done}


@dataclass(frozen=True)
class Rivals:
    """The slow one's commit is kept waiting on its way to the catalog, until the quick one's is ratified."""

    slow: Statement
    quick: Statement
    wire: Wire
    commit_path: Callable[[str], str]

    def both(self, slow: str, quick: str, *, table: str) -> Exception | None:
        """Both statements on what the table was before; what the slow one was told, None if it came through."""
        with ThreadPoolExecutor(max_workers=1) as pool:
            with self.wire.holding("POST", self.commit_path(table)) as held:
                running = pool.submit(self.slow, slow)
                held.wait_for()
                self.quick(quick)
            return running.exception(timeout=120)


@pytest.fixture(scope="module")
def new_wire(catalog_server: ServerProcess) -> Iterator[Wire]:
    with Wire(catalog_server) as wire:
        yield wire


@pytest.fixture(scope="module")
def new_over_wire(spark: SparkSession, catalog_server: ServerProcess, new_wire: Wire) -> SparkSession:
    """Spark on v1.0 over a wire. It is for tables that `spark` does not use: both know a table in one way only."""
    session = spark.newSession()
    for name, value in catalog_settings(
        connection(uri=new_wire.url, token=catalog_server.token, catalogs=["main"])
    ).items():
        session.conf.set(name, value)
    return session


@pytest.fixture(params=["v0.1.0 is late", "v1.0 is late"])
def rivals(
    request: pytest.FixtureRequest,
    sql: Sql,
    old: WriterProcess,
    old_wire: Wire,
    new_over_wire: SparkSession,
    new_wire: Wire,
) -> Rivals:
    if request.param.startswith("v0.1.0"):
        return Rivals(old.sql, sql, old_wire, lambda table: COMMIT)
    return Rivals(lambda statement: new_over_wire.sql(statement).collect(), old.sql, new_wire, _path_of_v1)


def _path_of_v1(table: str) -> str:
    catalog, schema, name = table.split(".")
    return f"/delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{name}"


def test_of_two_changes_of_one_row_exactly_one_happens(
    rivals: Rivals, old: WriterProcess, table: str, catalog: Catalog
) -> None:
    old.sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'before' AS name")
    told = rivals.both(
        f"UPDATE {table} SET name = 'late' WHERE id = 1", f"UPDATE {table} SET name = 'first' WHERE id = 1", table=table
    )
    assert "DELTA_CONCURRENT" in str(told)
    assert old.sql(f"SELECT * FROM {table}") == [(1, "first")]
    assert catalog.load(table)["latest-table-version"] == 1


def test_of_two_deletions_of_one_row_exactly_one_happens(
    rivals: Rivals, old: WriterProcess, table: str, catalog: Catalog
) -> None:
    old.sql(f"CREATE TABLE {table} AS SELECT id FROM range(2)")
    told = rivals.both(f"DELETE FROM {table} WHERE id = 1", f"DELETE FROM {table} WHERE id = 1", table=table)
    assert "DELTA_CONCURRENT" in str(told)
    assert old.sql(f"SELECT * FROM {table}") == [(0,)]
    assert catalog.load(table)["latest-table-version"] == 1


def test_an_append_that_comes_late_is_committed_after_the_other(
    rivals: Rivals, old: WriterProcess, table: str, catalog: Catalog
) -> None:
    old.sql(f"CREATE TABLE {table} (name STRING)")
    commit = f"POST {rivals.commit_path(table)}"
    before = rivals.wire.calls.count(commit)
    assert (
        rivals.both(f"INSERT INTO {table} VALUES ('late')", f"INSERT INTO {table} VALUES ('first')", table=table)
        is None
    )
    assert old.sql(f"SELECT name FROM {table} VERSION AS OF 1") == [("first",)]
    assert sorted(old.sql(f"SELECT name FROM {table}")) == [("first",), ("late",)]
    assert rivals.wire.calls.count(commit) - before >= 2, "the late one was refused once, and came again"
    assert catalog.load(table)["latest-table-version"] == 2


def test_of_two_creations_of_one_name_exactly_one_happens(rivals: Rivals, old: WriterProcess, table: str) -> None:
    creation = Rivals(rivals.slow, rivals.quick, rivals.wire, lambda _: _creation_path(rivals, table))
    told = creation.both(
        f"CREATE TABLE {table} AS SELECT 'late' AS who", f"CREATE TABLE {table} AS SELECT 'first' AS who", table=table
    )
    assert "TABLE_OR_VIEW_ALREADY_EXISTS" in str(told)
    assert old.sql(f"SELECT * FROM {table}") == [("first",)]


def _creation_path(rivals: Rivals, table: str) -> str:
    return "/tables" if rivals.commit_path(table) == COMMIT else _path_of_v1(table).rpartition("/")[0]
