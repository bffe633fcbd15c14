"""The shop's pipeline: from files of events to what the shop wants to know.

files ──▶ order_events ──▶ orders ──▶ daily_revenue
          as delivered     newest      best_customers
          (bronze)         (silver)    (gold)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.spark.pipeline import Pipeline, drop, fail, warn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "main.shop"
BEST_CUSTOMERS = 10


def shop_pipeline(*, files: Path, checkpoints: Path) -> Pipeline:
    """Reads new files in the folder `files`, and notes in `checkpoints` which ones it has read."""
    from pyspark.sql import functions as F

    shop = Pipeline("shop", schema=SCHEMA, checkpoints=checkpoints)

    @shop.table(stream=True, evolve=True, comment="Bronze: the events, as they were delivered")
    def order_events(spark: SparkSession) -> DataFrame:
        # The columns are those that the files have today: a new one is taken along as soon as it appears.
        columns = spark.read.json(str(files)).schema
        events = spark.readStream.schema(columns).json(str(files))
        return events.withColumn("delivered_on", F.to_date(F.substring("_metadata.file_name", 1, 10)))

    @shop.table(
        stream=True,
        keys="order_id",
        sequence_by="event_time",
        evolve=True,
        expect=[
            drop("has id", "order_id IS NOT NULL"),
            drop("not negative", "amount >= 0"),
            warn("on time", "delivered_on = date(event_time)"),
        ],
        comment="Silver: each order once, as its newest event tells it",
    )
    def orders(order_events: DataFrame) -> DataFrame:
        return order_events.withColumns(
            {
                "amount": (F.col("amount_cents") / 100).cast("decimal(12, 2)"),
                "day": F.to_date("ordered_at"),
                "event_time": F.to_timestamp("event_time"),
            }
        ).drop("event_id", "kind", "amount_cents", "ordered_at")

    @shop.view
    def sales(orders: DataFrame) -> DataFrame:
        return orders.where("status IN ('paid', 'shipped')")

    revenue = (F.count("*").alias("orders"), F.sum("amount").alias("revenue"))

    @shop.table(expect=[fail("has revenue", "revenue > 0")], comment="Gold: what each day's orders brought in")
    def daily_revenue(sales: DataFrame) -> DataFrame:
        return sales.groupBy("day").agg(*revenue).orderBy("day")

    @shop.table(comment="Gold: the customers who bought most")
    def best_customers(sales: DataFrame) -> DataFrame:
        return sales.groupBy("customer").agg(*revenue).orderBy(F.desc("revenue"), "customer").limit(BEST_CUSTOMERS)

    return shop
