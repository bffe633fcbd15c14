"""What the history of a table tells: its versions, and which of them a pipeline wrote.

Every commit of a run carries a `Mark` as its userMetadata, so that a run finds its own commits among those of others,
and a batch table finds what it was computed from. Mark and rows are committed together: neither is there without the
other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tidegate.spark.pipeline.sessions import sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Who wrote a commit, and from what."""

    pipeline: str
    table: str
    run: str
    stream: str | None = None
    """The id of the checkpoint, and the number of the batch."""
    batch: int | None = None
    inputs: Mapping[str, str] | None = None
    """For a batch table: the version of each table that was read. None: it read something without versions."""
    code: str | None = None

    def to_json(self) -> str:
        return json.dumps({"tidegate": {key: value for key, value in asdict(self).items() if value is not None}})


@dataclass(frozen=True, slots=True)
class Commit:
    version: int
    time_ms: int
    metrics: Mapping[str, str] = field(default_factory=dict[str, str])
    mark: Mark | None = None

    @property
    def identity(self) -> str:
        """Tells versions apart, also of a table that was dropped and made anew."""
        return f"{self.version}@{self.time_ms}"


def latest(spark: SparkSession, table: str, *, missing_ok: bool = False) -> Commit | None:
    """The last commit; None for a table that has no versions, and with `missing_ok` for one that is not there."""
    from pyspark.errors import AnalysisException

    # Asked for first: a statement that fails shows in Spark's log as an error, however well it is met.
    if missing_ok and not spark.catalog.tableExists(table):
        return None
    try:
        return _commit(_history(spark, table, limit=1).collect()[0])
    except AnalysisException as error:
        if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND" and not missing_ok:
            raise
        return None


def commits_after(spark: SparkSession, table: str, before: Commit | None) -> list[Commit]:
    """The commits after that one, or all, oldest first."""
    last = latest(spark, table)
    if last is None or last == before:
        return []
    new = last.version + 1 if before is None else last.version - before.version
    if new == 1:
        return [last]
    rows = _history(spark, table, limit=max(new, 1)).collect()
    return sorted((_commit(row) for row in rows), key=lambda commit: commit.version)


def streams_of(spark: SparkSession, table: str, pipeline: str) -> set[str]:
    """The ids of the checkpoints from which the pipeline wrote the table, as far back as the history goes."""
    rows = _history(spark, table).select("userMetadata").distinct().collect()
    marks = (parse_mark(row[0]) for row in rows)
    return {mark.stream for mark in marks if mark is not None and mark.pipeline == pipeline and mark.stream}


def parse_mark(text: str | None) -> Mark | None:
    """None for what others write there."""
    try:
        return Mark(**json.loads(text or "")["tidegate"])
    except (ValueError, TypeError, KeyError):
        return None


def _history(spark: SparkSession, table: str, limit: int | None = None) -> DataFrame:
    return sql(spark, f"DESCRIBE HISTORY {table}" + (f" LIMIT {limit}" if limit is not None else ""))


def _commit(row: Row) -> Commit:
    told = row.asDict()
    time_ms = round(told["timestamp"].timestamp() * 1000)
    return Commit(told["version"], time_ms, told["operationMetrics"] or {}, parse_mark(told["userMetadata"]))
