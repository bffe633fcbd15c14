"""Stock Spark on a server that publishes: with room for two unpublished commits nobody meets the limit, and what a
session leaves unpublished when it goes is published by the server.

The stock client publishes after each commit, beside its work, and tells the catalog with its next commit: at any time
one or two of its commits wait. A limit that low would stop it at once, and for minutes, if the server did not publish.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

import tidegate.spark
from tests.lake import DELTA, Lake
from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.logs import Catalog, check_lockstep
from tests.spark.second import start_with_catalog

COMMITS = 12
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def narrow(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = start_with_catalog(
        tmp_path_factory.mktemp("narrow"), "narrow", unpublished_commits_max="2", publish_after_ms="60000"
    )
    tidegate.spark.session(uri=server.url, token=server.token, catalogs=["narrow"])
    yield server
    with server.http() as http:
        check_lockstep(Catalog(http, server.home))
    server.stop()


def test_a_writer_that_commits_as_fast_as_it_can_never_meets_the_limit(sql: Sql, narrow: ServerProcess) -> None:
    sql("CREATE SCHEMA narrow.s")
    sql("CREATE TABLE narrow.s.t (id INT)")
    started = time.monotonic()
    for number in range(COMMITS):
        sql(f"INSERT INTO narrow.s.t VALUES ({number})")
    # One refusal alone is retried by the stock client for minutes.
    assert time.monotonic() - started < 10 * COMMITS
    assert sorted(row.id for row in sql("SELECT id FROM narrow.s.t")) == list(range(COMMITS))
    assert sql("DESCRIBE HISTORY narrow.s.t")[0].version == COMMITS


def test_nobody_meets_the_limit_while_writers_of_both_kinds_commit_as_fast_as_they_can(
    sql: Sql, narrow: ServerProcess
) -> None:
    """5,000 commits over REST, published by nobody but the server, and those of Spark beside them."""
    sql("CREATE SCHEMA narrow.both")
    sql("CREATE TABLE narrow.both.spark (id INT)")

    def write(name: str) -> set[int]:
        with narrow.http() as http:
            table = Lake(http, "narrow", "both").new_table(name)
            return {table.commit(version).status_code for version in range(1, 2501)}

    number = 0
    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(write, f"rest{each}") for each in range(2)]
        while number < COMMITS or not all(one.done() for one in writing):
            sql(f"INSERT INTO narrow.both.spark VALUES ({number})")
            number += 1
        assert [one.result() for one in writing] == [{200}, {200}]
    assert sorted(row.id for row in sql("SELECT id FROM narrow.both.spark")) == list(range(number))
    with narrow.http() as http:
        assert 'status="200"' in (told := http.get("/metrics").text)
        assert 'status="429"' not in told


def test_what_a_session_leaves_unpublished_is_published_by_the_server(sql: Sql, narrow: ServerProcess) -> None:
    """Its next commit, which would tell the catalog what it has published, never comes."""
    sql("CREATE SCHEMA narrow.tail")
    sql("CREATE TABLE narrow.tail.t AS SELECT 1 AS id")
    for number in range(3):
        sql(f"INSERT INTO narrow.tail.t VALUES ({number})")
    narrow.settings["publish_after_ms"] = "50"
    narrow.stop()
    narrow.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    with narrow.http() as http:
        while (table := http.get(f"{DELTA}/catalogs/narrow/schemas/tail/tables/t").json())["commits"]:
            assert time.monotonic() < deadline, table["commits"]
            time.sleep(0.1)
    assert table["latest-table-version"] == 3
    assert sorted(row.id for row in sql("SELECT id FROM narrow.tail.t")) == [0, 1, 1, 2]
