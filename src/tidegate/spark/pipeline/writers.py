"""The ways in which rows get into a table. Each is one commit, and carries a mark.

A write whose mark names a batch of a stream happens once: Delta keeps the number of the last batch of each stream in
the table itself, in the same commit as the rows, and skips a batch that it has. So a process that dies between the
commit of a batch and the checkpoint's note of it may write the batch again, and nothing changes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from tidegate.spark.pipeline.declarations import Table, listed
from tidegate.spark.pipeline.errors import TableError
from tidegate.spark.pipeline.expectations import Counts, check, failed_expectation
from tidegate.spark.pipeline.history import Mark
from tidegate.spark.pipeline.sessions import column_list, sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ATTEMPTS_MAX = 10
BACKOFF_SECONDS = 0.1
BACKOFF_SECONDS_MAX = 5.0
CAUSES_MAX = 20

CONFLICTS = {
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
}

T = TypeVar("T")


@dataclass(slots=True)
class Tally:
    """What is known of a table's writes that its history does not tell."""

    conflicts: int = 0
    created: bool = False
    rows_checked: int = 0
    broken: list[int] = field(default_factory=list[int])

    def add(self, counts: Counts | None) -> None:
        if counts is not None:
            self.rows_checked += counts.rows
            self.broken = [a + b for a, b in zip(self.broken or [0] * len(counts.broken), counts.broken, strict=True)]


def write_checked(
    rows: DataFrame,
    table: Table,
    tally: Tally,
    write: Callable[[DataFrame], None],
    committed: Callable[[], bool] = lambda: True,
) -> None:
    """Writes the rows that the table's expectations let through, again if another writer was faster.

    Rows are counted only if they were `committed` now: a write that Delta skips is not evaluated, so nobody counts.
    """

    def attempt() -> None:
        checked = check(rows, table.expect)
        write(checked.rows)
        if table.expect and committed():
            tally.add(checked.counts())

    try:
        retry_conflicts(attempt, tally)
    except Exception as error:
        failed = failed_expectation(error, table.name, table.expect)
        if failed is None:
            raise
        raise failed from error


def retry_conflicts(write: Callable[[], T], tally: Tally, pause: Callable[[float], None] = time.sleep) -> T:
    """Does it again, a bounded number of times, when another writer's commit came in between."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            return write()
        except Exception as error:
            if not is_conflict(error):
                raise
            tally.conflicts += 1
            if attempt == ATTEMPTS_MAX:
                raise
        longest = min(BACKOFF_SECONDS * 2**attempt, BACKOFF_SECONDS_MAX)
        pause(random.uniform(0, longest))  # noqa: S311
    raise AssertionError("the last attempt returns or raises")


def is_conflict(error: Exception) -> bool:
    """Whether Delta refused a commit because of one that came in between."""
    return any(name.rpartition(".")[2] in CONFLICTS for name in _java_classes(error))


def create(spark: SparkSession, table: Table, schema: StructType) -> bool:
    """Makes the table, empty, unless it is there. Whether it was made now."""
    from pyspark.errors import AnalysisException

    partitioned = f"PARTITIONED BY ({', '.join(_quoted(table.partitioned_by))}) " if table.partitioned_by else ""
    comment = f"COMMENT {_literal(table.comment)} " if table.comment else ""
    pairs = [f"{_literal(key)} = {_literal(value)}" for key, value in table.properties.items()]
    properties = f"TBLPROPERTIES ({', '.join(pairs)})" if pairs else ""
    columns = column_list(spark, schema)
    try:
        sql(spark, f"CREATE TABLE {table.full_name} ({columns}) USING delta {partitioned}{comment}{properties}")
    except AnalysisException as error:
        if error.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS":
            return False
        raise
    return True


def replace(rows: DataFrame, table: Table, mark: Mark) -> None:
    """The rows become all of the table's rows, and their columns its columns. Its id, history and properties stay."""
    from pyspark.sql.functions import lit

    if _laid_out_alike(table, rows):
        rows.writeTo(table.full_name).options(**_options(mark)).overwrite(lit(True))
        return
    # Where columns or partitions change, Spark replaces the table, and loses what was observed on the way.
    computed = rows.localCheckpoint(eager=True) if table.expect else rows
    writer = computed.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy(*table.partitioned_by).options(**_options(mark)).saveAsTable(table.full_name)


def append(rows: DataFrame, table: Table, mark: Mark) -> None:
    writer = rows.writeTo(table.full_name).options(**_options(mark))
    (writer.option("mergeSchema", "true") if table.evolve else writer).append()


def upsert(rows: DataFrame, table: Table, mark: Mark) -> None:
    """Updates the rows that are there by their keys, if they are older, and inserts the others."""
    spark = rows.sparkSession
    for name, value in _options(mark).items():
        spark.conf.set(MERGE_SETTINGS[name], value)
    # Evaluated once, whatever the plan: else a row could be counted or raise twice, or change on the way.
    spark.conf.set("spark.databricks.delta.merge.materializeSource", "all")
    view = f"tidegate_{uuid4().hex}"
    newest(rows, table).createOrReplaceTempView(view)
    try:
        sql(
            spark,
            f"MERGE {'WITH SCHEMA EVOLUTION ' if table.evolve else ''}INTO {table.full_name} AS stored "
            f"USING {view} AS new ON {' AND '.join(f'new.{key} <=> stored.{key}' for key in _quoted(table.keys))} "
            f"WHEN MATCHED AND {_sequence('new', table)} > {_sequence('stored', table)} THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *",
        )
    finally:
        spark.catalog.dropTempView(view)


def newest(rows: DataFrame, table: Table) -> DataFrame:
    """For each key the row that comes last in sequence."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rank = "__tidegate_rank"
    by_sequence = Window.partitionBy(*_quoted(table.keys)).orderBy(F.struct(*_quoted(table.sequence_by)).desc())
    return rows.withColumn(rank, F.row_number().over(by_sequence)).filter(F.col(rank) == 1).drop(rank)


def require_same_columns(table: Table, stored: list[str], returned: list[str]) -> None:
    """Columns may come and go only with evolve."""
    new = [name for name in returned if name.lower() not in {column.lower() for column in stored}]
    gone = [name for name in stored if name.lower() not in {column.lower() for column in returned}]
    if table.evolve or not (new or gone):
        return
    raise TableError(
        f"{table.name}: its function returns other columns than {table.full_name} has (new: {listed(new)}; gone: "
        f"{listed(gone)}). Declare it with evolve=True to add columns and leave gone ones NULL, or run with "
        f"full_refresh=[{table.name!r}] to compute it from nothing."
    )


MERGE_SETTINGS = {
    "userMetadata": "spark.databricks.delta.commitInfo.userMetadata",
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
}
"""MERGE takes no options. These are settings of a session, so an upsert needs one of its own, as every stream has."""


def _options(mark: Mark) -> dict[str, str]:
    once = {} if mark.batch is None else {"txnAppId": str(mark.stream), "txnVersion": str(mark.batch)}
    return {"userMetadata": mark.to_json(), **once}


def _laid_out_alike(table: Table, rows: DataFrame) -> bool:
    """Whether the stored table has the columns and partitions that it is to have."""
    stored = rows.sparkSession.table(table.full_name).schema
    columns = rows.sparkSession.catalog.listColumns(table.full_name)
    partitions = {column.name.lower() for column in columns if column.isPartition}
    same_partitions = partitions == {column.lower() for column in table.partitioned_by}
    return same_partitions and stored.simpleString() == rows.schema.simpleString()


def _sequence(side: str, table: Table) -> str:
    """A struct compares field by field, and takes NULL for the smallest."""
    return f"struct({', '.join(f'{side}.{column}' for column in _quoted(table.sequence_by))})"


def _quoted(columns: Iterable[str]) -> list[str]:
    return ["`" + column.replace("`", "``") + "`" for column in columns]


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _java_classes(error: Exception) -> Iterator[str]:
    """The names of the Java exception behind an error and of its causes."""
    behind: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(CAUSES_MAX):
        if behind is None:
            return
        yield behind.getClass().getName()
        behind = behind.getCause()
