"""Runs a streaming table: everything that is new since the last run, once, batch by batch.

    checkpoint: what was read ──▶ micro-batch n ──▶ one commit, with (checkpoint id, n) in it ──▶ checkpoint: n is done

A crash anywhere on this way is met by the next run, which begins with batch n: the same rows, because the checkpoint
noted them before they were read, and the same (checkpoint id, n), so that a commit that happened is not repeated.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from threading import Event as Flag
from typing import TYPE_CHECKING

from tidegate.spark.pipeline.errors import TableError
from tidegate.spark.pipeline.history import Commit, Mark, commits_after, streams_of
from tidegate.spark.pipeline.plan import Step
from tidegate.spark.pipeline.sessions import delete_folder, empty
from tidegate.spark.pipeline.writers import (
    Tally,
    append,
    create,
    newest,
    replace,
    require_same_columns,
    upsert,
    write_checked,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_SECONDS = 1


@dataclass(slots=True)
class BatchWriter:
    """Writes the micro-batches of one table."""

    step: Step
    mark: Mark
    tally: Tally
    before: Commit | None
    """The table's last commit when the run began."""
    batches: int = 0
    error: Exception | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        try:
            self._write(batch, number)
        except Exception as error:
            # Spark makes a text of it on the way through the JVM.
            self.error = error
            raise
        self.batches += 1

    def _write(self, batch: DataFrame, number: int) -> None:
        table = self.step.table
        # Batches run in the thread of their stream, which knows the checkpoint's id.
        stream = str(batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
        mark = dataclasses.replace(self.mark, stream=stream, batch=number)
        from_nothing = self.step.refresh and number == 0
        if number == 0 and not (from_nothing or self.tally.created):
            self._require_no_other_checkpoint(batch.sparkSession, stream)

        def write(rows: DataFrame) -> None:
            if from_nothing:
                replace(newest(rows, table) if table.keys else rows, table, mark)
            elif table.keys:
                upsert(rows, table, mark)
            else:
                append(rows, table, mark)

        def committed() -> bool:
            return self.batches > 0 or self._has_committed(batch.sparkSession)

        write_checked(batch, table, self.tally, write, committed)

    def _has_committed(self, spark: SparkSession) -> bool:
        """Whether this run has: only its first batch can be one that an earlier run committed."""
        written = commits_after(spark, self.step.table.full_name, self.before)
        return any(commit.mark is not None and commit.mark.run == self.mark.run for commit in written)

    def _require_no_other_checkpoint(self, spark: SparkSession, stream: str) -> None:
        table = self.step.table
        known = streams_of(spark, table.full_name, self.mark.pipeline)
        if known and stream not in known:
            raise TableError(
                f"{table.name}: {table.full_name} was written from another checkpoint, and what that one had read "
                "would be written again. Bring the checkpoint back, or run with "
                f"full_refresh=[{table.name!r}] to compute the table from nothing."
            )


def run_stream(
    step: Step,
    rows: DataFrame,
    *,
    checkpoint: str,
    mark: Mark,
    tally: Tally,
    before: Commit | None,
    tell: Callable[[int], None],
    stopping: Flag,
) -> None:
    """Reads all that is there now, writes it, and ends. `tell` is told how many rows were read so far."""
    spark, table = rows.sparkSession, step.table
    if step.refresh:
        delete_folder(spark, checkpoint)
    elif before is not None:
        require_same_columns(table, spark.table(table.full_name).columns, rows.columns)
    tally.created = before is None and create(spark, table, rows.schema)
    writer = BatchWriter(step, mark, tally, before)
    query = (
        rows.writeStream.foreachBatch(writer)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        _wait(query, tell, stopping)
    except Exception as error:
        raise writer.error or error from None
    finally:
        query.stop()
    if step.refresh and writer.batches == 0:
        # There was nothing to read, so no batch has taken the old rows away.
        replace(empty(spark, rows.schema), table, dataclasses.replace(mark, stream=query.id))


def _wait(query: StreamingQuery, tell: Callable[[int], None], stopping: Flag) -> None:
    rows, last = 0, -1
    while not query.awaitTermination(POLL_SECONDS):
        for progress in query.recentProgress:
            if progress.batchId > last:
                rows, last = rows + progress.numInputRows, progress.batchId
        tell(rows)
        if stopping.is_set():
            raise TableError("The run was interrupted; the next one goes on where this one stopped.")
