"""Act 5: what the tables said before the second week came, and what has changed since."""

from __future__ import annotations

from collections import Counter

from rich import box
from rich.table import Table

from tidegate.demo.refine import Week
from tidegate.demo.scene import Scene, listed
from tidegate.demo.shop import SCHEMA

ORDERS = f"{SCHEMA}.orders"
REVENUE = f"{SCHEMA}.daily_revenue"
HISTORY_SHOWN = 5
UNSETTLED_DAYS = 2


def look_back(scene: Scene, before: Week, after: Week) -> None:
    _travel(scene, before, after)
    _columns(scene)
    _history(scene)


def _travel(scene: Scene, before: Week, after: Week) -> None:
    """One day's revenue at three moments: by version and by time from before, and as it is now."""
    stage, day = scene.stage, _most_corrected(before, after)
    version = before.version("daily_revenue")
    corrections = after.truth.corrections.get(day, 0) - before.truth.corrections.get(day, 0)
    then = _commit_time(scene, REVENUE, version)
    places = {
        f"{REVENUE} VERSION AS OF {version}": before,
        f"{REVENUE} TIMESTAMP AS OF '{then}'": before,
        REVENUE: after,
    }
    stage.say(f"The revenue of [bold]{day}[/], before and after late events and {corrections} corrections came in:")
    cents = {place: _revenue(scene, place, day) for place in places}
    for place, found in cents.items():
        stage.say(f"  {found / 100:>14,.2f}  [dim]in {place}[/]")
    stage.check(
        "time travel, by version and by time: the revenue as it was known then, and now as it is known now",
        found=list(cents.values()),
        expected=[week.truth.revenue_cents()[day] for week in places.values()],
    )
    orders = f"{ORDERS} VERSION AS OF {before.version('orders')}"
    count = scene.sql(f"SELECT count(*) FROM {orders}")[0][0]  # noqa: S608
    stage.check(f"time travel: there were {count:,} orders then", found=count, expected=len(before.truth.orders))
    stage.numbers["time_travel"] = {"day": day, "corrections": corrections, "cents": cents}


def _most_corrected(before: Week, after: Week) -> str:
    """Of the days whose revenue has changed. The last days of the week do not count: they were not over yet."""
    then, now = before.truth.revenue_cents(), after.truth.revenue_cents()
    corrected = Counter(after.truth.corrections)
    corrected.subtract(before.truth.corrections)
    settled = sorted(then)[:-UNSETTLED_DAYS]
    return max(settled, key=lambda day: (now[day] != then[day], corrected[day]))


def _revenue(scene: Scene, place: str, day: str) -> int:
    return scene.sql(f"SELECT CAST(revenue * 100 AS BIGINT) FROM {place} WHERE day = '{day}'")[0][0]  # noqa: S608


def _commit_time(scene: Scene, table: str, version: int) -> str:
    """To the millisecond, in the session's time zone, as TIMESTAMP AS OF reads it."""
    history = scene.spark.sql(f"DESCRIBE HISTORY {table}")  # pyright: ignore[reportUnknownMemberType]
    return history.where(f"version = {version}").selectExpr("CAST(timestamp AS STRING)").collect()[0][0]


def _columns(scene: Scene) -> None:
    stage = scene.stage
    first = scene.spark.read.option("versionAsOf", 0).table(ORDERS).columns
    now = scene.spark.table(ORDERS).columns
    new = [column for column in now if column not in first]
    stage.leave_space()
    stage.say(f"The columns of [bold]{ORDERS}[/]: {listed(first)}")
    stage.say(f"and since the files have it, also: [bold green]{listed(new)}[/]")
    stage.check(
        "schema evolution: the new column came by itself, the others stayed", found=now, expected=[*first, "channel"]
    )
    stage.numbers["schema_evolution"] = {"before": first, "after": now}


def _history(scene: Scene) -> None:
    rows = scene.sql(f"DESCRIBE HISTORY {ORDERS} LIMIT {HISTORY_SHOWN}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"DESCRIBE HISTORY {ORDERS}", title_justify="left")
    for column in ("version", "operation", "inserted", "updated"):
        table.add_column(column, justify="left" if column == "operation" else "right", no_wrap=True)
    for row in rows:
        metrics = row["operationMetrics"]
        counts = [metrics.get(f"numTargetRows{what}", "") for what in ("Inserted", "Updated")]
        table.add_row(str(row["version"]), row["operation"], *counts)
    scene.stage.show(table)
