"""Pipelines on a real server with a real Spark: what they write, what they report, and how they fail."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tidegate.spark.pipeline import Event, ExpectationFailed, Pipeline, PipelineFailed, Report, drop, fail, warn

ORDER = "order_id INT, event_time INT, amount DOUBLE, currency STRING"
WAIT_SECONDS_MAX = 120


class Inbox:
    """A folder into which JSON files come."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True)

    def put(self, *rows: dict[str, Any]) -> None:
        number = len(list(self.folder.iterdir()))
        (self.folder / f"{number}.json").write_text("\n".join(json.dumps(row) for row in rows))

    def stream(self, spark: SparkSession, columns: str = ORDER) -> DataFrame:
        return spark.readStream.schema(columns).json(str(self.folder))


def order(order_id: int | None, event_time: int, amount: float, currency: str = "EUR", **more: Any) -> dict[str, Any]:
    return {"order_id": order_id, "event_time": event_time, "amount": amount, "currency": currency, **more}


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "inbox")


@pytest.fixture
def place(spark: SparkSession, unique: str) -> Iterator[str]:
    """A schema that does not exist yet."""
    name = f"main.pipeline_{unique}"
    yield name
    spark.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def run(pipeline: Pipeline, spark: SparkSession, **options: Any) -> Report:
    return pipeline.run(spark, **{"progress": False, **options})


def run_failing(pipeline: Pipeline, spark: SparkSession, **options: Any) -> PipelineFailed:
    with pytest.raises(PipelineFailed) as raised:
        run(pipeline, spark, **options)
    return raised.value


def outcomes(report: Report) -> dict[str, str]:
    return {table.name: table.outcome for table in report.tables}


def broken(report: Report, table: str) -> dict[str, int]:
    return {expectation.name: expectation.broken for expectation in report[table].expectations}


def rows(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.table(table).collect()), key=repr)


def history(spark: SparkSession, table: str) -> list[Row]:
    return spark.sql(f"DESCRIBE HISTORY {table}").orderBy("version").collect()


def details(spark: SparkSession, table: str) -> Row:
    return spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]


def test_orders_flow_from_files_to_aggregates(spark: SparkSession, place: str, inbox: Inbox, tmp_path: Path) -> None:
    spark.sql(f"CREATE SCHEMA {place}_crm")
    spark.sql(
        f"CREATE TABLE {place}_crm.zones AS SELECT * FROM VALUES ('EUR', 'eu'), ('USD', 'us') AS t (currency, zone)"
    )
    shop = Pipeline("shop", schema=place, checkpoints=tmp_path / "checkpoints")

    @shop.table(stream=True, comment="it's as it came", properties={"team": "tides"})
    def bronze(spark: SparkSession) -> DataFrame:
        return inbox.stream(spark)

    @shop.view(inputs={"zones": f"{place}_crm.zones"}, snapshot="zones")
    def zoned(bronze: DataFrame, zones: DataFrame) -> DataFrame:
        return bronze.join(zones, "currency", "left").drop("currency")

    @shop.table(
        stream=True,
        keys="order_id",
        sequence_by="event_time",
        expect=[drop("has id", "order_id IS NOT NULL"), warn("positive", "amount > 0"), fail("zoned", "zone <> ''")],
    )
    def silver(zoned: DataFrame) -> DataFrame:
        return zoned

    @shop.table(partitioned_by="zone", expect=[warn("large", "total > 15")])
    def gold(silver: DataFrame) -> DataFrame:
        return silver.groupBy("zone").agg(F.sum("amount").alias("total"))

    # The first run makes the schema and the tables. Of several events the newest counts, and rows without id do not.
    inbox.put(order(1, 1, 10), order(1, 3, 12), order(1, 2, 11), order(2, 1, 5), order(None, 1, 1), order(3, 1, -4))
    heard: list[Event] = []
    first = run(shop, spark, progress=heard.append)
    assert outcomes(first) == {"bronze": "done", "silver": "done", "gold": "done"}
    assert rows(spark, f"{place}.silver") == [(1, 3, 12.0, "eu"), (2, 1, 5.0, "eu"), (3, 1, -4.0, "eu")]
    assert rows(spark, f"{place}.gold") == [("eu", 13.0)]
    assert (first["bronze"].rows_inserted, first["silver"].rows_inserted, first["gold"].rows_inserted) == (6, 3, 1)
    assert [table.versions for table in first.tables] == [(0, 1)] * 3
    assert first["silver"].rows_checked == 6
    assert broken(first, "silver") == {"has id": 1, "positive": 1, "zoned": 0}
    assert broken(first, "gold") == {"large": 1}
    assert heard[0] == Event("bronze", "running")
    assert heard[-1] == Event("gold", "done", 1, "+1, v0..v1")
    described = details(spark, f"{place}.bronze")
    assert (described["description"], described["properties"]["team"]) == ("it's as it came", "tides")
    assert details(spark, f"{place}.gold")["partitionColumns"] == ["zone"]

    # Nothing new: nothing is written.
    second = run(shop, spark)
    assert outcomes(second) == dict.fromkeys(["bronze", "silver", "gold"], "unchanged")
    assert len(history(spark, f"{place}.gold")) == 2

    # New events: a late one loses, a newer one wins, a new one is added, and gold follows. Someone else's commits in
    # between are not in the report.
    inbox.put(order(1, 2, 99), order(2, 5, 6), order(4, 1, 7, "USD"))
    spark.sql(f"UPDATE {place}.silver SET amount = -5 WHERE order_id = 3")
    third = run(shop, spark, parallel=2)
    assert rows(spark, f"{place}.silver") == [
        (1, 3, 12.0, "eu"),
        (2, 5, 6.0, "eu"),
        (3, 1, -5.0, "eu"),
        (4, 1, 7.0, "us"),
    ]
    assert rows(spark, f"{place}.gold") == [("eu", 13.0), ("us", 7.0)]
    silver_report = third["silver"]
    assert (silver_report.rows_inserted, silver_report.rows_updated, silver_report.rows_deleted) == (1, 1, 0)
    assert silver_report.versions == (3,)
    assert third["gold"].files_added == 2 and third["gold"].files_removed == 1
    assert third["bronze"].versions == (2,) and third["bronze"].rows_inserted == 3

    # What happens to gold itself, or to its code, makes it compute again; its history stays.
    before = details(spark, f"{place}.gold")["properties"]["io.unitycatalog.tableId"]
    spark.sql(f"DELETE FROM {place}.gold WHERE zone = 'us'")
    assert outcomes(run(shop, spark, only="gold")) == {"gold": "done"}
    assert rows(spark, f"{place}.gold") == [("eu", 13.0), ("us", 7.0)]
    rewritten = Pipeline("shop", schema=place)

    @rewritten.table(inputs={"silver": f"{place}.silver"})
    def gold(silver: DataFrame) -> DataFrame:  # noqa: F811
        return silver.groupBy("zone").agg(F.count("*").alias("orders"))

    assert outcomes(run(rewritten, spark)) == {"gold": "done"}
    assert outcomes(run(rewritten, spark)) == {"gold": "unchanged"}
    assert spark.table(f"{place}.gold").columns == ["zone", "orders"]
    assert details(spark, f"{place}.gold")["properties"]["io.unitycatalog.tableId"] == before
    assert [row["version"] for row in history(spark, f"{place}.gold")] == [0, 1, 2, 3, 4, 5]
    spark.sql(f"DROP SCHEMA {place}_crm CASCADE")


def test_a_row_that_must_not_be_stops_its_table_before_anything_is_written(
    spark: SparkSession, place: str, inbox: Inbox, tmp_path: Path
) -> None:
    strict = Pipeline("strict", schema=place, checkpoints=tmp_path / "checkpoints")
    positive = fail("positive", "amount > 0")

    @strict.table(stream=True, expect=[positive, drop("has id", "order_id IS NOT NULL")])
    def added(spark: SparkSession) -> DataFrame:
        return inbox.stream(spark)

    @strict.table(stream=True, keys="order_id", sequence_by=["event_time", "amount"], expect=[positive])
    def upserted(spark: SparkSession) -> DataFrame:
        return inbox.stream(spark)

    @strict.table(expect=[positive])
    def computed(spark: SparkSession) -> DataFrame:
        return spark.read.schema(ORDER).json(str(inbox.folder))

    @strict.table
    def after_added(added: DataFrame) -> DataFrame:
        return added

    @strict.table
    def after_that(after_added: DataFrame) -> DataFrame:
        return after_added

    @strict.table
    def apart(spark: SparkSession) -> DataFrame:
        return spark.range(3).toDF("n")

    inbox.put(order(1, 1, 10), order(1, 1, 11), order(None, 1, 2))
    good = run(strict, spark)
    assert rows(spark, f"{place}.upserted") == [(1, 1, 11.0, "EUR"), (None, 1, 2.0, "EUR")]
    kept = {table.name: rows(spark, table.table) for table in good.tables}

    # NULL is not positive either.
    inbox.put(order(2, 1, 5), {**order(3, 1, 0), "amount": None})
    failed = run_failing(strict, spark)
    assert outcomes(failed.report) == {
        "added": "failed",
        "upserted": "failed",
        "computed": "failed",
        "apart": "done",
        "after_added": "skipped",
        "after_that": "skipped",
    }
    assert failed.report["after_that"].reason == "needs after_added"
    for name in ("added", "upserted", "computed"):
        reason = failed.report[name].reason
        assert reason.startswith(f'{name}: expectation "positive" failed, amount > 0 does not hold for {{"order_id":3,')
        assert name in str(failed)
    assert isinstance(failed.__cause__, ExpectationFailed)
    assert {table.name: rows(spark, table.table) for table in good.tables} == kept

    # With the row gone, the same batch goes through.
    (inbox.folder / "1.json").write_text(json.dumps(order(2, 1, 5)))
    assert "failed" not in outcomes(run(strict, spark, parallel=2)).values()
    assert (
        rows(spark, f"{place}.after_that")
        == rows(spark, f"{place}.added")
        == [(1, 1, 10.0, "EUR"), (1, 1, 11.0, "EUR"), (2, 1, 5.0, "EUR")]
    )


def test_a_merge_that_loses_to_another_writer_is_done_again(
    spark: SparkSession, place: str, inbox: Inbox, tmp_path: Path
) -> None:
    racing = Pipeline("racing", schema=place, checkpoints=tmp_path / "checkpoints")
    reading, go = tmp_path / "reading", tmp_path / "go"
    go.touch()

    def hold_up(amount):  # without types, which Spark would take for its own
        """Lets the merge wait when it has looked at the table already."""
        reading.touch()
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not go.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return amount

    slowly = F.udf(hold_up, "double")

    @racing.table(stream=True, keys="order_id", sequence_by="event_time", expect=[warn("small", "amount < 20")])
    def upserted(spark: SparkSession) -> DataFrame:
        return inbox.stream(spark).withColumn("amount", slowly("amount"))

    inbox.put(order(1, 1, 10), order(2, 1, 20))
    assert run(racing, spark)["upserted"].conflicts == 0

    inbox.put(order(1, 2, 11), order(3, 1, 30))
    go.unlink()
    reading.unlink()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, racing, spark)
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not reading.exists():
            assert time.monotonic() < deadline and not running.done()
            time.sleep(0.05)
        spark.sql(f"UPDATE {place}.upserted SET amount = 21 WHERE order_id = 2")
        go.touch()
        report = running.result(timeout=WAIT_SECONDS_MAX)["upserted"]
    assert (report.conflicts, report.versions, report.rows_inserted, report.rows_updated) == (1, (3,), 1, 1)
    assert (report.rows_checked, report.expectations[0].broken) == (2, 1)
    assert rows(spark, f"{place}.upserted") == [(1, 2, 11.0, "EUR"), (2, 1, 21.0, "EUR"), (3, 1, 30.0, "EUR")]


def test_columns_come_with_evolve_and_a_full_refresh_starts_from_nothing(
    spark: SparkSession, place: str, inbox: Inbox, tmp_path: Path
) -> None:
    def pipeline(columns: str, *, evolve: bool = False) -> Pipeline:
        grown = Pipeline("grown", schema=place, checkpoints=tmp_path / "checkpoints")

        @grown.table(stream=True, evolve=evolve)
        def added(spark: SparkSession) -> DataFrame:
            return inbox.stream(spark, columns)

        @grown.table(stream=True, keys="order_id", sequence_by="event_time", evolve=evolve)
        def upserted(added: DataFrame) -> DataFrame:
            return added

        return grown

    narrow, wide = "order_id INT, event_time INT", "order_id INT, event_time INT, note STRING"
    inbox.put(order(1, 1, 10), order(2, 1, 20))
    run(pipeline(narrow), spark)
    table_ids = [
        details(spark, f"{place}.{name}")["properties"]["io.unitycatalog.tableId"] for name in ("added", "upserted")
    ]

    inbox.put(order(2, 2, 21, note="two"), order(3, 1, 30, note="three"))
    refused = run_failing(pipeline(wide), spark)
    assert "added: its function returns other columns than" in refused.report["added"].reason
    assert "(new: note; gone: none). Declare it with evolve=True" in refused.report["added"].reason
    run(pipeline(wide, evolve=True), spark)
    assert rows(spark, f"{place}.upserted") == [(1, 1, None), (2, 2, "two"), (3, 1, "three")]
    assert spark.table(f"{place}.added").where("note IS NULL").count() == 2

    # A column fewer, and a file that is gone: only from nothing. What streams from the table goes along.
    (inbox.folder / "0.json").unlink()
    report = run(pipeline(narrow), spark, full_refresh="added")
    assert rows(spark, f"{place}.added") == rows(spark, f"{place}.upserted") == [(2, 2), (3, 1)]
    assert report["added"].rows_inserted == 2 and report["added"].files_removed > 0
    assert [
        details(spark, f"{place}.{name}")["properties"]["io.unitycatalog.tableId"] for name in ("added", "upserted")
    ] == table_ids
    assert spark.sql(f"SELECT * FROM {place}.added VERSION AS OF 1").count() == 2
    assert set(outcomes(run(pipeline(narrow), spark)).values()) == {"unchanged"}

    # A checkpoint that is gone would write everything twice.
    shutil.rmtree(tmp_path / "checkpoints" / "added")
    lost = run_failing(pipeline(narrow), spark).report
    assert f"added: {place}.added was written from another checkpoint" in lost["added"].reason
    assert rows(spark, f"{place}.added") == [(2, 2), (3, 1)]

    # From nothing, when there is nothing: empty tables, that go on when something comes.
    (inbox.folder / "1.json").unlink()
    assert set(outcomes(run(pipeline(narrow), spark, full_refresh=True)).values()) == {"done"}
    assert rows(spark, f"{place}.added") == rows(spark, f"{place}.upserted") == []
    inbox.put(order(4, 1, 40))
    run(pipeline(narrow), spark)
    assert rows(spark, f"{place}.added") == rows(spark, f"{place}.upserted") == [(4, 1)]


def test_mistakes_get_one_clear_sentence_and_write_nothing(
    spark: SparkSession, place: str, inbox: Inbox, tmp_path: Path
) -> None:
    wrong = Pipeline("wrong", schema=place, checkpoints=tmp_path / "checkpoints")

    def batch(spark: SparkSession) -> DataFrame:
        return spark.range(3).toDF("n")

    def stream(spark: SparkSession) -> DataFrame:
        return inbox.stream(spark)

    def nothing(spark: SparkSession) -> Any:
        return None

    def declare(name: str, function: Any, **options: Any) -> None:
        def renamed(spark: SparkSession) -> Any:
            return function(spark)

        renamed.__name__ = name
        wrong.table(**options)(renamed)

    declare("returns_nothing", nothing)
    declare("is_no_stream", batch, stream=True)
    declare("is_a_stream", stream)
    declare("has_other_keys", stream, stream=True, keys=["id", "order_id"], sequence_by="event_time")
    declare("has_other_sequence", stream, stream=True, keys="order_id", sequence_by="time")
    declare("has_other_partitions", batch, partitioned_by="day")
    declare("expects_a_typo", batch, expect=[warn("small", "m < 5")])
    declare("expects_nonsense", stream, stream=True, expect=[warn("small", "amount <")])
    declare("expects_a_number", batch, expect=[warn("small", "n + 1")])

    @wrong.table(inputs={"missing": f"{place}.missing"})
    def reads_what_is_not_there(missing: DataFrame) -> DataFrame:
        return missing

    report = run_failing(wrong, spark, parallel=2).report
    reasons = {table.name: table.reason for table in report.tables}
    columns = "its function returns order_id, event_time, amount, currency."
    assert set(outcomes(report).values()) == {"failed"}
    assert reasons["returns_nothing"] == "returns_nothing returned NoneType: its function has to return a DataFrame."
    assert (
        "is_no_stream is a streaming table, and its function returned a DataFrame that is no" in reasons["is_no_stream"]
    )
    assert "is_a_stream is a batch table, and its function returned a stream: add stream=True" in reasons["is_a_stream"]
    assert reasons["has_other_keys"] == f"has_other_keys: keys= names id; {columns}"
    assert reasons["has_other_sequence"] == f"has_other_sequence: sequence_by= names time; {columns}"
    assert "has_other_partitions: partitioned_by= names day; its function returns n." in reasons["has_other_partitions"]
    assert (
        'expects_a_typo: the condition of expectation "small" is not valid: m < 5: [UNRES' in reasons["expects_a_typo"]
    )
    assert 'the condition of expectation "small" is not valid: amount <: [PARSE' in reasons["expects_nonsense"]
    assert 'the condition of expectation "small" is not valid: n + 1: [' in reasons["expects_a_number"]
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in reasons["reads_what_is_not_there"]
    assert spark.sql(f"SHOW TABLES IN {place}").collect() == []
