"""Expectations: conditions on the rows of a table, and what happens to rows that break them.

    warn("positive", "amount > 0")              the row is counted, and written
    drop("has id", "order_id IS NOT NULL")      the row is counted, and left out
    fail("known", "currency IN ('EUR', 'USD')") nothing of the batch is written

A condition that is NULL for a row is broken by it. Every expectation looks at every row the table's function returned,
also at rows that another one drops. Rows are counted while they are written, not by a query of its own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tidegate.spark.pipeline.errors import DeclarationError, ExpectationFailed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

Action = Literal["warn", "drop", "fail"]

COUNTS_WAIT_SECONDS_MAX = 30
ROW_CHARACTERS_MAX = 300


@dataclass(frozen=True, slots=True)
class Expectation:
    name: str
    condition: str
    action: Action


def warn(name: str, condition: str) -> Expectation:
    """Rows that break the condition are counted in the report."""
    return Expectation(name, condition, "warn")


def drop(name: str, condition: str) -> Expectation:
    """Rows that break the condition are counted and not written."""
    return Expectation(name, condition, "drop")


def fail(name: str, condition: str) -> Expectation:
    """A row that breaks the condition fails the table, before anything of its batch is written."""
    return Expectation(name, condition, "fail")


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows that were looked at, and for each expectation how many broke it."""

    rows: int
    broken: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """Rows to write, and what will be known about them once they are written."""

    rows: DataFrame
    counts: Callable[[], Counts | None]
    """None when Spark did not tell. To be asked once the rows are written: before, it waits in vain."""


def require_conditions(table: str, expectations: Sequence[Expectation], rows: DataFrame) -> None:
    """Fails for the first condition that Spark cannot evaluate on these rows."""
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql.functions import expr

    for expectation in expectations:
        try:
            rows.filter(expr(expectation.condition))
        except (AnalysisException, ParseException) as error:
            raise DeclarationError(
                f'{table}: the condition of expectation "{expectation.name}" is not valid: {expectation.condition}: '
                f"{str(error).strip().splitlines()[0]}"
            ) from error


def check(rows: DataFrame, expectations: Sequence[Expectation]) -> Checked:
    """The rows that may be written, with counters in their plan."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    if not expectations:
        return Checked(rows, lambda: None)
    holds = [F.coalesce(F.expr(expectation.condition), F.lit(False)) for expectation in expectations]
    observation = Observation()
    # Spark pushes no filter below an observation: what follows sees the rows as the function returned them.
    checked = rows.observe(
        observation,
        F.count(F.lit(1)).alias("rows"),
        *(F.count_if(~held).alias(f"broken_{index}") for index, held in enumerate(holds)),
    )
    for index, (expectation, held) in enumerate(zip(expectations, holds, strict=True)):
        if expectation.action == "fail":
            checked = checked.filter(F.when(held, F.lit(True)).otherwise(_raise(index)))
    for expectation, held in zip(expectations, holds, strict=True):
        if expectation.action == "drop":
            checked = checked.filter(held)
    return Checked(checked, lambda: _counts(observation, len(expectations)))


def _counts(observation: Observation, expectations: int) -> Counts | None:
    """What was observed. Spark tells it by an event, and an overloaded Spark drops events: the wait has an end."""
    told: list[dict[str, int]] = []

    def ask() -> None:
        with suppress(Exception):
            told.append(observation.get)

    waiting = threading.Thread(target=ask, daemon=True)
    waiting.start()
    waiting.join(COUNTS_WAIT_SECONDS_MAX)
    if not told or "rows" not in told[0]:
        return None
    return Counts(told[0]["rows"], tuple(told[0][f"broken_{index}"] for index in range(expectations)))


def _raise(index: int) -> Column:
    """Evaluated for a row, fails the query with a text that `failed_expectation` recognises."""
    from pyspark.sql import functions as F

    row = F.substring(F.to_json(F.struct("*")), 1, ROW_CHARACTERS_MAX)
    return F.raise_error(F.concat(F.lit(f"tidegate-expectation-{index}: "), row)).cast("boolean")


def failed_expectation(error: Exception, table: str, expectations: Sequence[Expectation]) -> ExpectationFailed | None:
    """The expectation that made Spark fail, if it was one."""
    told = re.search(r"tidegate-expectation-(\d+): (.*?)(?: SQLSTATE: \w+)?$", str(error), re.MULTILINE)
    if told is None:
        return None
    expectation = expectations[int(told[1])]
    return ExpectationFailed(table, expectation.name, expectation.condition, told[2])
