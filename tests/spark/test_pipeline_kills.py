"""Pipelines that are killed. Faults to survive, for tables that are added to and for tables that are upserted:

- killed after the checkpoint noted what a batch reads, before the batch is committed
- killed after the batch is committed, before the checkpoint notes that it is done

- interrupted by the user, between two batches or in one
- a full refresh that stops when the old checkpoint is gone, before or after the new rows are there

None loses a row or doubles one. Run as a module, this file is the pipeline that gets killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.servers import ServerProcess
from tests.spark import sessions
from tidegate.spark.pipeline import Event, Pipeline, PipelineFailed, warn
from tidegate.spark.pipeline.streams import BatchWriter

TABLES = ("added", "upserted")
RUN_SECONDS_MAX = 300


def pipeline(schema: str, folder: Path) -> Pipeline:
    """Two streams of the same files: one adds, one upserts."""
    kept = Pipeline("kept", schema=schema, checkpoints=folder / "checkpoints")
    expect = [warn("negative", "amount < 0")]

    @kept.table(stream=True, expect=expect)
    def added(spark: SparkSession) -> DataFrame:
        return spark.readStream.schema("id INT, at INT, amount INT").json(str(folder / "inbox"))

    @kept.table(stream=True, keys="id", sequence_by="at", expect=expect)
    def upserted(spark: SparkSession) -> DataFrame:
        return spark.readStream.schema("id INT, at INT, amount INT").json(str(folder / "inbox"))

    return kept


def put(folder: Path, name: str, *rows: tuple[int, int, int]) -> None:
    (folder / "inbox").mkdir(exist_ok=True)
    lines = (json.dumps(dict(zip(("id", "at", "amount"), row, strict=True))) for row in rows)
    (folder / "inbox" / name).write_text("\n".join(lines))


def die_in_batch(moment: str, java: int) -> None:
    """Both streams come to the same moment of their first batch, and then everything is gone."""
    both_there = threading.Barrier(len(TABLES), action=lambda: _die(java))
    write = BatchWriter.__call__

    def write_and_die(self: BatchWriter, batch: DataFrame, number: int) -> None:
        if moment == "after the commit":
            write(self, batch, number)
        both_there.wait(RUN_SECONDS_MAX)

    BatchWriter.__call__ = write_and_die


def _die(java: int) -> None:
    os.kill(java, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_kill_in_mid_batch_loses_nothing_and_doubles_nothing(
    spark: SparkSession, catalog_server: ServerProcess, schema: str, tmp_path: Path, moment: str
) -> None:
    schema = f"{schema}_{moment.split()[0]}"
    put(tmp_path, "0.json", (1, 1, 10), (2, 1, 20))
    kept = pipeline(schema, tmp_path)
    kept.run(spark, progress=False, parallel=2)
    put(tmp_path, "1.json", (2, 2, 21), (3, 1, 30), (3, 2, 31))

    command = [sys.executable, "-m", __name__, schema, str(tmp_path), moment]
    environment = {**os.environ, "TIDEGATE_URI": catalog_server.url, "TIDEGATE_TOKEN": catalog_server.token}
    killed = subprocess.run(
        command, env=environment, timeout=RUN_SECONDS_MAX, check=False, cwd=Path(__file__).parents[2]
    )
    assert killed.returncode == -signal.SIGKILL
    committed = moment == "after the commit"
    for table in TABLES:
        checkpoint = tmp_path / "checkpoints" / table
        assert (checkpoint / "offsets" / "1").exists() and not (checkpoint / "commits" / "1").exists()
        assert latest(spark, f"{schema}.{table}") == (2 if committed else 1)

    put(tmp_path, "2.json", (4, 1, 40))
    report = kept.run(spark, progress=False, parallel=2)
    for table in TABLES:
        # What was committed before is neither written nor counted again.
        assert report[table].versions == ((3,) if committed else (2, 3))
        assert report[table].rows_checked == (1 if committed else 4)
        assert report[table].expectations[0].broken == report[table].rows_checked
    everything = [(1, 1, 10), (2, 1, 20), (2, 2, 21), (3, 1, 30), (3, 2, 31), (4, 1, 40)]
    assert stored(spark, f"{schema}.added") == everything
    assert stored(spark, f"{schema}.upserted") == [(1, 1, 10), (2, 2, 21), (3, 2, 31), (4, 1, 40)]
    spark.sql(f"DROP SCHEMA {schema} CASCADE")


def test_an_interrupted_run_is_gone_on_with(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    schema = f"{schema}_interrupted"
    numbers = Pipeline("numbers", schema=schema, checkpoints=tmp_path / "checkpoints")
    files_per_batch = 1

    @numbers.table(stream=True)
    def counted(spark: SparkSession) -> DataFrame:
        files = spark.readStream.schema("id INT, at INT, amount INT").option("maxFilesPerTrigger", files_per_batch)
        return files.json(str(tmp_path / "inbox"))

    for number in range(40):
        put(tmp_path, f"{number}.json", (number, 1, 1))

    seen: list[Event] = []

    def interrupt(event: Event) -> None:
        if event.rows and not seen:
            seen.append(event)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        numbers.run(spark, progress=interrupt)
    assert spark.streams.active == []
    assert 0 < len(stored(spark, f"{schema}.counted")) < 40
    files_per_batch = 40
    numbers.run(spark, progress=False)
    assert stored(spark, f"{schema}.counted") == [(number, 1, 1) for number in range(40)]
    spark.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_full_refresh_that_stops_midway_is_never_taken_for_a_beginning(
    spark: SparkSession, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    schema = f"{schema}_refreshed_{moment.split()[0]}"
    put(tmp_path, "0.json", (1, 1, 10), (2, 1, 20))
    kept = pipeline(schema, tmp_path)
    kept.run(spark, progress=False)
    (tmp_path / "inbox" / "0.json").unlink()
    put(tmp_path, "1.json", (3, 1, 30))

    write = BatchWriter.__call__

    def write_and_stop(self: BatchWriter, batch: DataFrame, number: int) -> None:
        if moment == "after the commit":
            write(self, batch, number)
        raise RuntimeError("stopped")

    with monkeypatch.context() as patched:
        patched.setattr(BatchWriter, "__call__", write_and_stop)
        with pytest.raises(PipelineFailed, match="2 of 2 tables failed"):
            kept.run(spark, progress=False, full_refresh=True)

    if moment == "before the commit":
        with pytest.raises(PipelineFailed, match="was written from another checkpoint") as refused:
            kept.run(spark, progress=False)
        assert {table.outcome for table in refused.value.report.tables} == {"failed"}
        assert stored(spark, f"{schema}.added") == stored(spark, f"{schema}.upserted") == [(1, 1, 10), (2, 1, 20)]
        kept.run(spark, progress=False, full_refresh=True)
    else:
        report = kept.run(spark, progress=False)
        assert {table.outcome for table in report.tables} == {"unchanged"}
    assert stored(spark, f"{schema}.added") == stored(spark, f"{schema}.upserted") == [(3, 1, 30)]
    spark.sql(f"DROP SCHEMA {schema} CASCADE")


def stored(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(table).collect())


def latest(spark: SparkSession, table: str) -> int:
    return spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"]


def main(schema: str, folder: Path, moment: str) -> None:
    spark = sessions.connect(
        uri=os.environ["TIDEGATE_URI"], token=os.environ["TIDEGATE_TOKEN"], folder=folder / "killed"
    )
    die_in_batch(moment, spark.sparkContext._gateway.proc.pid)
    pipeline(schema, folder).run(spark, progress=False, parallel=2)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
