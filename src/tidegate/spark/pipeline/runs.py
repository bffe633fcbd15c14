"""Runs a plan: each table when those it needs are done, and a report on all of them.

A table that fails does not stop the others; those that need it are skipped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from tidegate.spark.pipeline.batches import run_batch
from tidegate.spark.pipeline.errors import PipelineError, PipelineFailed
from tidegate.spark.pipeline.history import Commit, Mark, commits_after, latest
from tidegate.spark.pipeline.plan import Declared, Plan, Step
from tidegate.spark.pipeline.progress import Event, Listener
from tidegate.spark.pipeline.readers import Reader
from tidegate.spark.pipeline.report import (
    ExpectationReport,
    Outcome,
    Report,
    TableReport,
    measures,
    rows_text,
    versions_text,
)
from tidegate.spark.pipeline.streams import run_stream
from tidegate.spark.pipeline.writers import Tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REASON_CHARACTERS_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    spark: SparkSession
    plan: Plan
    declared: Declared
    checkpoints: str | None
    listener: Listener
    run_id: str = field(default_factory=lambda: uuid4().hex)
    stopping: threading.Event = field(default_factory=threading.Event)
    errors: list[Exception] = field(default_factory=list[Exception])

    def execute(self, *, parallel: int) -> Report:
        """Runs up to `parallel` tables at once. Raises PipelineFailed, with the report, if a table failed."""
        started, clock = datetime.now(UTC), time.monotonic()
        reports = self._all(parallel)
        tables = tuple(reports[step.table.name] for step in self.plan.steps)
        seconds = round(time.monotonic() - clock, 3)
        report = Report(self.plan.pipeline, self.run_id, started.isoformat(timespec="seconds"), seconds, tables)
        if report.failed:
            raise PipelineFailed(report) from self.errors[0]
        return report

    def _all(self, parallel: int) -> dict[str, TableReport]:
        waiting = {step.table.name: step for step in self.plan.steps}
        running: dict[Future[TableReport], str] = {}
        reports: dict[str, TableReport] = {}
        with ThreadPoolExecutor(parallel, thread_name_prefix="pipeline") as pool:
            try:
                while waiting or running:
                    for name, step in list(waiting.items()):
                        if any(need in waiting or need in running.values() for need in step.needs):
                            continue
                        del waiting[name]
                        bad = [n for n in step.needs if n in reports and reports[n].outcome in {"failed", "skipped"}]
                        if bad:
                            reports[name] = self._skipped(step, bad[0])
                        else:
                            running[pool.submit(self._one, step)] = name
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    reports |= {running.pop(future): future.result() for future in done}
            except BaseException:
                self.stopping.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return reports

    def _one(self, step: Step) -> TableReport:
        table = step.table
        clock = time.monotonic()
        tally, before, error = Tally(), None, None
        commits: list[Commit] = []
        self.listener(Event(table.name, "running"))
        try:
            before = latest(self.spark, table.full_name, missing_ok=True)
            self._write(step, tally, before)
            commits = self._own_commits(step, tally, before)
        except Exception as raised:
            error = raised
            self.errors.append(raised)
            with suppress(Exception):  # batches before the one that failed are in the table
                commits = self._own_commits(step, tally, before)
        outcome: Outcome = "failed" if error else "done" if commits else "unchanged"
        report = TableReport(
            name=table.name,
            table=table.full_name,
            kind=table.kind,
            outcome=outcome,
            reason=_reason(table.name, error) if error else "",
            seconds=round(time.monotonic() - clock, 3),
            versions=tuple(commit.version for commit in commits),
            rows_checked=tally.rows_checked,
            expectations=_expectations(step, tally),
            conflicts=tally.conflicts,
            **measures(commits),
        )
        self._tell(report)
        return report

    def _write(self, step: Step, tally: Tally, before: Commit | None) -> None:
        mark = Mark(pipeline=self.plan.pipeline, table=step.table.name, run=self.run_id)
        if not step.table.stream:
            run_batch(self.spark, self.declared, step, mark=mark, tally=tally, before=before)
            return
        run_stream(
            step,
            Reader(self.spark, self.declared).rows(step.table),
            checkpoint=f"{self.checkpoints}/{step.table.name}",
            mark=mark,
            tally=tally,
            before=before,
            tell=lambda rows: self.listener(Event(step.table.name, "running", rows)),
            stopping=self.stopping,
        )

    def _own_commits(self, step: Step, tally: Tally, before: Commit | None) -> list[Commit]:
        """The commits of this run; the one that creates a table cannot carry a mark."""
        commits = commits_after(self.spark, step.table.full_name, before)
        return [
            commit
            for commit in commits
            if (commit.mark is not None and commit.mark.run == self.run_id) or (tally.created and commit.version == 0)
        ]

    def _skipped(self, step: Step, because: str) -> TableReport:
        table = step.table
        report = TableReport(table.name, table.full_name, table.kind, "skipped", reason=f"needs {because}")
        self._tell(report)
        return report

    def _tell(self, report: TableReport) -> None:
        told = [rows_text(report), versions_text(report.versions), report.reason]
        rows = report.rows_inserted + report.rows_updated + report.rows_deleted
        self.listener(Event(report.name, report.outcome, rows, ", ".join(part for part in told if part)))


def _expectations(step: Step, tally: Tally) -> tuple[ExpectationReport, ...]:
    broken: Iterable[int] = tally.broken or [0] * len(step.table.expect)
    return tuple(ExpectationReport(e.name, e.action, n) for e, n in zip(step.table.expect, broken, strict=True))


def _reason(table: str, error: Exception) -> str:
    """One line; what this package says is a sentence already."""
    text = str(error).strip()
    if not isinstance(error, PipelineError):
        text = f"{table}: {type(error).__name__}: {text.splitlines()[0] if text else ''}"
    return text[:REASON_CHARACTERS_MAX]
