"""What can go wrong with a pipeline.

PipelineError
├── DeclarationError      the tables as declared cannot be planned: names, inputs, options, cycles
├── TableError            one table cannot be written as its function and the stored table are now
│   └── ExpectationFailed a row broke an expectation that was declared with fail()
└── PipelineFailed        a run is over and at least one table failed; carries the report
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.spark.pipeline.report import Report


class PipelineError(Exception):
    """The root of this package's errors."""


class DeclarationError(PipelineError, ValueError):
    """The pipeline cannot be planned as it is declared."""


class TableError(PipelineError):
    """A table of the pipeline cannot be written."""


class ExpectationFailed(TableError):
    """A row broke an expectation that must hold. Nothing of its batch was written."""

    def __init__(self, table: str, expectation: str, condition: str, row: str) -> None:
        super().__init__(
            f'{table}: expectation "{expectation}" failed, {condition} does not hold for {row}; nothing was written.'
        )
        self.table = table
        self.expectation = expectation


class PipelineFailed(PipelineError):
    """At least one table of a run failed."""

    def __init__(self, report: Report) -> None:
        failed = [table for table in report.tables if table.outcome == "failed"]
        super().__init__(
            "\n".join([f"{len(failed)} of {len(report.tables)} tables failed", *(t.reason for t in failed)])
        )
        self.report = report
