"""Act 4: two writers race for one table; the catalog ratifies one version at a time, and no sale is lost."""

from __future__ import annotations

from collections import Counter

from rich import box
from rich.table import Table

from tidegate.demo.race import ON_HAND, STOCK, WRITERS, Race, fill_stock, plan_sales, run_race
from tidegate.demo.scene import Scene, listed


def let_them_race(scene: Scene) -> Race:
    stage = scene.stage
    sales = plan_sales(scene.place.plan.seed)
    with stage.doing(f"Filling {STOCK}: {ON_HAND} of each product"):
        fill_stock(scene.spark)
    before = _versions(scene)
    with stage.doing(f"{len(sales)} sales by two Spark writers at once ({listed(WRITERS)})") as far:
        race = run_race(scene.spark, sales, far)
    versions = {version: sale for version, sale in _versions(scene).items() if version not in before}
    stage.show(_table(race, versions))
    left = {row[0]: row[1] for row in scene.sql(f"SELECT product, on_hand FROM {STOCK}")}  # noqa: S608
    stage.check_that(
        f"they got in each other's way: {len(race.conflicts)} conflicts, each solved by doing the sale again",
        len(race.conflicts) > 0,
        detail="no conflict was met",
    )
    stage.check(
        f"every sale is one version: {len(sales)} of them", found=sorted(versions.values()), expected=_told(race)
    )
    shown = listed(f"{count} {product}" for product, count in race.left().items())
    stage.check(f"the stock is exactly right: {shown} left", found=left, expected=race.left())
    stage.numbers["race"] = {
        "sales": len(sales),
        "conflicts": len(race.conflicts),
        "reasons": dict(Counter(conflict.reason for conflict in race.conflicts)),
        "left": left,
    }
    return race


def _told(race: Race) -> list[str]:
    return sorted(str(sale) for sale in race.sales)


def _versions(scene: Scene) -> dict[int, str]:
    """What each version says of itself: a sale puts its name in its commit."""
    return {row["version"]: row["userMetadata"] or "" for row in scene.sql(f"DESCRIBE HISTORY {STOCK}")}


def _table(race: Race, versions: dict[int, str]) -> Table:
    refused = Counter(str(conflict.sale) for conflict in race.conflicts)
    reasons = {str(conflict.sale): conflict.reason for conflict in race.conflicts}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("version", "sale", "before that"):
        table.add_column(column, justify="right" if column == "version" else "left", no_wrap=True)
    for version, sale in sorted(versions.items()):
        times = refused[sale]
        met = f"[yellow]refused {'once' if times == 1 else f'{times} times'}: {reasons[sale]}[/]" if times else ""
        table.add_row(str(version), sale, met)
    return table
