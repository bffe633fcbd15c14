"""Act 3: the pipeline takes in each week, and its tables are compared with what plain Python makes of the files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.demo.deliver import Delivery, hand_over
from tidegate.demo.scene import Scene
from tidegate.demo.shop import BEST_CUSTOMERS, SCHEMA, shop_pipeline
from tidegate.demo.truth import Order, Truth, read_truth
from tidegate.spark.pipeline import Event, Pipeline, Report

DIFFERENCES_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class Week:
    """Where things stood when a week had been taken in."""

    days: str
    truth: Truth
    report: Report

    def version(self, table: str) -> int:
        """The last one that the week's run wrote."""
        return self.report[table].versions[-1]


def take_in(scene: Scene, deliveries: list[Delivery]) -> list[Week]:
    pipeline = shop_pipeline(files=scene.place.orders, checkpoints=scene.place.checkpoints)
    if scene.place.files():
        _run(scene, pipeline, "Catching up with what an earlier demo may have left undone")
    known = read_truth(scene.place.files())
    weeks: list[Week] = []
    for delivery in deliveries:
        hand_over(scene, delivery)
        scene.stage.leave_space()
        scene.stage.say(f"[bold]{delivery.days}[/]")
        report = _run(scene, pipeline, "Running the pipeline")
        week = Week(delivery.days, read_truth(scene.place.files()), report)
        scene.stage.show(report)
        _check(scene, week, known)
        known = week.truth
        weeks.append(week)
    scene.stage.numbers["runs"] = [json.loads(week.report.to_json()) for week in weeks]
    return weeks


def _run(scene: Scene, pipeline: Pipeline, what: str) -> Report:
    with scene.stage.doing(what) as far:

        def tell(event: Event) -> None:
            rows = f", {event.rows:,} rows" if event.rows else ""
            far(f"{event.table}: {event.state}{rows}")
            if event.state != "running":
                scene.stage.log(f"{event.table}: {event.state}{rows}")

        return pipeline.run(scene.spark, progress=tell)


def _check(scene: Scene, week: Week, before: Truth) -> None:
    """The tables, against the files; and what was read now, against what is new in them."""
    stage, truth, report = scene.stage, week.truth, week.report
    new = truth.rows - before.rows
    read = report["order_events"].rows_inserted
    stage.check(f"bronze: the {new:,} new rows were read, and no others", found=read, expected=new)
    stored = scene.sql(f"SELECT count(*) FROM {SCHEMA}.order_events")[0][0]  # noqa: S608
    stage.check(f"bronze: it has as many rows as all files, {truth.rows:,}", found=stored, expected=truth.rows)
    stage.check(
        f"silver: {truth.broken - before.broken} broken rows left out, {truth.late - before.late:,} late ones noticed",
        found=[expectation.broken for expectation in report["orders"].expectations],
        expected=[truth.without_id - before.without_id, truth.negative - before.negative, truth.late - before.late],
    )
    _check_same(
        scene, f"silver: {len(truth.orders):,} orders, each as its newest event says", _orders(scene), truth.orders
    )
    days = truth.revenue_cents()
    _check_same(
        scene, f"gold: the revenue of {len(days)} days, to the cent", _cents(scene, "daily_revenue", "day"), days
    )
    best = sorted(truth.customer_cents().items(), key=lambda one: (-one[1], one[0]))[:BEST_CUSTOMERS]
    _check_same(scene, "gold: the best customers", _cents(scene, "best_customers", "customer"), dict(best))


def _orders(scene: Scene) -> dict[str, Order]:
    has_channel = "channel" in scene.spark.table(f"{SCHEMA}.orders").columns
    rows = scene.sql(
        "SELECT order_id, status, customer, product, quantity, CAST(amount * 100 AS BIGINT), CAST(day AS STRING), "  # noqa: S608
        f"{'channel' if has_channel else 'NULL'} FROM {SCHEMA}.orders"
    )
    return {row[0]: Order(*row) for row in rows}


def _cents(scene: Scene, table: str, key: str) -> dict[str, int]:
    statement = f"SELECT CAST({key} AS STRING), CAST(revenue * 100 AS BIGINT) FROM {SCHEMA}.{table}"  # noqa: S608
    return {row[0]: row[1] for row in scene.sql(statement)}


def _check_same(scene: Scene, what: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    different = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
    shown = [f"{key}: expected {expected.get(key)}, found {found.get(key)}" for key in different]
    more = f" and {len(shown) - DIFFERENCES_SHOWN_MAX} more" if len(shown) > DIFFERENCES_SHOWN_MAX else ""
    scene.stage.check_that(what, not different, detail="; ".join(shown[:DIFFERENCES_SHOWN_MAX]) + more)
