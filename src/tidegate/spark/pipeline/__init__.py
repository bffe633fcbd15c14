"""A small declarative way to write a pipeline of tables. `Pipeline` says how; docs/pipelines.md shows it whole."""

from tidegate.spark.pipeline.errors import (
    DeclarationError,
    ExpectationFailed,
    PipelineError,
    PipelineFailed,
    TableError,
)
from tidegate.spark.pipeline.expectations import Expectation, drop, fail, warn
from tidegate.spark.pipeline.pipelines import Pipeline
from tidegate.spark.pipeline.plan import Plan
from tidegate.spark.pipeline.progress import Event
from tidegate.spark.pipeline.report import ExpectationReport, Report, TableReport

__all__ = [
    "DeclarationError",
    "Event",
    "Expectation",
    "ExpectationFailed",
    "ExpectationReport",
    "Pipeline",
    "PipelineError",
    "PipelineFailed",
    "Plan",
    "Report",
    "TableError",
    "TableReport",
    "drop",
    "fail",
    "warn",
]
