"""What every act of the demo has at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rich.console import RenderableType

from tidegate.demo.place import Place
from tidegate.demo.stage import Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("order_events", "orders", "daily_revenue", "best_customers", "stock")
"""All that the demo makes, in the schema main.shop."""

Timeline = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    stage: Stage
    spark: SparkSession
    place: Place
    timeline: Callable[[str], Timeline]
    """What the catalog knows of the commits of a table."""
    render: Callable[[Iterable[Timeline]], RenderableType]

    def sql(self, statement: str) -> list[Any]:
        return sql(self.spark, statement)


def sql(spark: SparkSession, statement: str) -> list[Any]:
    """The rows of the answer."""
    return cast("Any", spark).sql(statement).collect()


def listed(what: Iterable[str]) -> str:
    return ", ".join(what)
