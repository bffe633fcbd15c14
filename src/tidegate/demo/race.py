"""Two writers sell from one stock, at the same time and on purpose.

Both read the table, both compute how many are left, and both propose the next version: the catalog ratifies one of
them. Delta tells the other that what it had read is no longer true, and the other does its sale again, on what is there
now. So no sale is lost and none is counted twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from tidegate.demo.scene import sql
from tidegate.spark.pipeline.writers import Tally, retry_conflicts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOCK = "main.shop.stock"
ON_HAND = 100
PRODUCTS = ("compass", "lantern", "rope")
WRITERS = ("harbour shop", "web shop")
ROUNDS = 5
# Both writers wait for each other before each sale, but not for one that has died.
WAIT_SECONDS_MAX = 300

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True, slots=True)
class Sale:
    round: int
    writer: str
    product: str
    quantity: int

    def __str__(self) -> str:
        return f"round {self.round}, {self.writer}: {self.quantity} x {self.product}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A sale that was refused because another came first."""

    sale: Sale
    reason: str


@dataclass(slots=True)
class Race:
    sales: Sequence[Sale]
    conflicts: list[Conflict] = field(default_factory=list[Conflict])

    def left(self) -> dict[str, int]:
        """What must be on hand in the end."""
        return {
            product: ON_HAND - sum(sale.quantity for sale in self.sales if sale.product == product)
            for product in PRODUCTS
        }


def plan_sales(seed: int) -> list[Sale]:
    """In each round every writer sells some of the same product."""
    dice = Random(f"{seed} race")  # noqa: S311
    return [
        Sale(number, writer, PRODUCTS[number % len(PRODUCTS)], dice.randint(1, 5))
        for number in range(1, ROUNDS + 1)
        for writer in WRITERS
    ]


def fill_stock(spark: SparkSession) -> None:
    sql(spark, f"CREATE TABLE IF NOT EXISTS {STOCK} (product STRING, on_hand INT) COMMENT 'What is left to sell'")
    rows = ", ".join(f"('{product}', {ON_HAND})" for product in PRODUCTS)
    sql(spark, f"INSERT OVERWRITE {STOCK} VALUES {rows}")  # noqa: S608


def run_race(spark: SparkSession, sales: Sequence[Sale], tell: Callable[[str], None]) -> Race:
    """All sales of all writers, each writer in a session and a thread of its own."""
    race = Race(sales)
    start = threading.Barrier(len(WRITERS))

    def sell(writer: str) -> None:
        own = spark.newSession()
        try:
            for sale in (sale for sale in sales if sale.writer == writer):
                start.wait(WAIT_SECONDS_MAX)
                tell(str(sale))
                _sell(own, sale, race.conflicts)
        except BaseException:
            start.abort()
            raise

    with ThreadPoolExecutor(len(WRITERS), thread_name_prefix="writer") as pool:
        try:
            _finish([pool.submit(sell, writer) for writer in WRITERS])
        except BaseException:
            start.abort()  # who is interrupted does not wait for the sales that are left
            raise
    return race


def _sell(spark: SparkSession, sale: Sale, conflicts: list[Conflict]) -> None:
    """Delta refuses what was computed from a state that is gone; then it is computed again, but not for ever."""
    spark.conf.set(USER_METADATA, str(sale))

    def update() -> None:
        try:
            sql(
                spark,
                f"UPDATE {STOCK} SET on_hand = on_hand - {sale.quantity} WHERE product = '{sale.product}'",  # noqa: S608
            )
        except Exception as error:
            refusals.append(Conflict(sale, _reason(error)))
            raise

    refusals: list[Conflict] = []
    retry_conflicts(update, Tally())
    conflicts += refusals


def _finish(writers: Iterable[Future[None]]) -> None:
    """A writer that waits for one that failed fails as well: the one that failed first is the one to tell."""
    failures = [error for writer in writers if (error := writer.exception()) is not None]
    for error in sorted(failures, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error


def _reason(error: Exception) -> str:
    """The name of Delta's exception, as it is written in its documentation."""
    behind = getattr(error, "java_exception", None)
    return type(error).__name__ if behind is None else str(behind.getClass().getSimpleName())
