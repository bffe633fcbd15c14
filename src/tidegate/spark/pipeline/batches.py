"""Runs a batch table: computed as a whole in one commit, and only if something it depends on has changed.

What it was computed from is kept in the mark of that commit: the version of every table it read, and its code. If the
table's last commit has the same, there is nothing to do; a commit of somebody else makes it compute again.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tidegate.spark.pipeline.declarations import fingerprint
from tidegate.spark.pipeline.history import Commit, Mark, latest
from tidegate.spark.pipeline.plan import Declared, Step
from tidegate.spark.pipeline.readers import Reader
from tidegate.spark.pipeline.writers import Tally, create, replace, write_checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_batch(
    spark: SparkSession, declared: Declared, step: Step, *, mark: Mark, tally: Tally, before: Commit | None
) -> None:
    """`before` is the table's last commit, if it exists."""
    table = step.table
    versions = {read.source: latest(spark, read.source) for read in step.reads}
    mark = dataclasses.replace(mark, inputs=_identities(step, versions), code=fingerprint(table, step.views))
    if not step.refresh and _same(before, mark):
        return
    rows = Reader(spark, declared, versions).rows(table)
    tally.created = before is None and create(spark, table, rows.schema)
    write_checked(rows, table, tally, lambda checked: replace(checked, table, mark))


def _identities(step: Step, versions: dict[str, Commit | None]) -> dict[str, str] | None:
    """The versions that were read; None if something may have been read that has none."""
    known = {source: commit.identity for source, commit in versions.items() if commit is not None}
    return None if step.uses_session or len(known) < len(versions) else known


def _same(last: Commit | None, mark: Mark) -> bool:
    if last is None or last.mark is None or mark.inputs is None:
        return False
    return (last.mark.inputs, last.mark.code) == (mark.inputs, mark.code)
