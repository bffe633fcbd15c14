"""Four Spark writers at once on one table: two in this process, two in processes of their own.

Writers of one process share Delta's view of the log; those of different processes share nothing but the catalog. So
every kind of race is there, and nothing may be lost or done twice in any of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.logs import Catalog
from tests.spark.writers import Outcome, Task, WriterProcess, perform

HERE = ("north", "south")
ELSEWHERE = ("east", "west")
WRITERS = (*HERE, *ELSEWHERE)


@pytest.fixture(scope="module")
def processes(
    catalog_server: ServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, WriterProcess]]:
    started = {who: WriterProcess(catalog_server, tmp_path_factory.mktemp(who)) for who in ELSEWHERE}
    try:
        for process in started.values():
            process.wait_until_ready()
        yield started
    finally:
        for process in started.values():
            process.stop()


class Race:
    """All four writers do the same work, starting together."""

    def __init__(self, spark: SparkSession, processes: dict[str, WriterProcess]) -> None:
        self._spark = spark
        self._processes = processes
        self._pool = ThreadPoolExecutor(max_workers=len(WRITERS))

    def start(self, work: str, table: str, *, times: int) -> dict[str, Future[Outcome]]:
        tasks = {who: Task(work, table, who, times) for who in WRITERS}
        here = {who: self._pool.submit(perform, self._spark, tasks[who]) for who in HERE}
        return here | {who: self._pool.submit(self._processes[who].perform, tasks[who]) for who in ELSEWHERE}

    def run(self, work: str, table: str, *, times: int) -> dict[str, Outcome]:
        return {who: future.result(timeout=400) for who, future in self.start(work, table, times=times).items()}


@pytest.fixture
def race(spark: SparkSession, processes: dict[str, WriterProcess]) -> Race:
    return Race(spark, processes)


def test_every_row_of_four_writers_is_there_once(sql: Sql, table: str, catalog: Catalog, race: Race) -> None:
    times = 5
    sql(f"CREATE TABLE {table} (who STRING, i INT)")
    outcomes = race.run("append", table, times=times)
    assert outcomes == {who: Outcome(done=times, conflicts=0) for who in WRITERS}
    assert sorted(sql(f"SELECT who, i FROM {table}")) == sorted((who, i) for who in WRITERS for i in range(times))
    assert catalog.load(table)["latest-table-version"] == len(WRITERS) * times


def test_rows_appear_in_versions_that_only_grow(sql: Sql, table: str, race: Race) -> None:
    """A reader beside the writers: each answer holds what the one before held, and the writers really took turns."""
    times = 3
    sql(f"CREATE TABLE {table} (who STRING, i INT)")
    running = race.start("append", table, times=times)
    seen: set[tuple[str, int]] = set()
    while True:
        ended = all(future.done() for future in running.values())
        now = {tuple(row) for row in sql(f"SELECT who, i FROM {table}")}
        assert seen <= now
        seen = now
        if ended:
            break
    assert {future.result().done for future in running.values()} == {times}
    assert len(seen) == len(WRITERS) * times
    order = [sql(f"SELECT who FROM {table} VERSION AS OF {version}") for version in range(1, len(seen) + 1)]
    assert [len(rows) for rows in order] == list(range(1, len(seen) + 1))


def test_no_increment_is_lost(sql: Sql, table: str, catalog: Catalog, race: Race) -> None:
    times = 3
    sql(f"CREATE TABLE {table} AS SELECT 0 AS n")
    outcomes = race.run("count up", table, times=times)
    assert sql(f"SELECT n FROM {table}") == [(len(WRITERS) * times,)]
    assert catalog.load(table)["latest-table-version"] == len(WRITERS) * times
    # All of them changed the one row there is: without a single conflict it would have been no race.
    assert sum(outcome.conflicts for outcome in outcomes.values()) > 0


def test_upserts_of_the_same_keys_add_up(sql: Sql, table: str, race: Race) -> None:
    keys = 2
    sql(f"CREATE TABLE {table} (key INT, n INT)")
    race.run("merge", table, times=keys)
    assert sql(f"SELECT key, n FROM {table} ORDER BY key") == [(key, len(WRITERS)) for key in range(keys)]


def test_of_four_creations_of_a_name_one_succeeds(sql: Sql, table: str, race: Race) -> None:
    names = 3
    outcomes = race.run("create", table, times=names)
    assert sum(outcome.done for outcome in outcomes.values()) == names
    winners = Counter(sql(f"SELECT who FROM {table}_{number}")[0].who for number in range(names))
    assert {who: outcome.done for who, outcome in outcomes.items() if outcome.done} == winners
