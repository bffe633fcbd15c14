"""Act 7: what came out of it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from rich.markup import escape

from tidegate.demo.knowledge import ratification_ms
from tidegate.demo.race import Race
from tidegate.demo.refine import Week
from tidegate.demo.scene import Scene, Timeline


def sum_up(scene: Scene, weeks: Sequence[Week], race: Race, timelines: Sequence[Timeline]) -> None:
    stage = scene.stage
    took = ratification_ms(timelines)
    rows = sum(table.rows_inserted + table.rows_updated for week in weeks for table in week.report.tables)
    seconds = sum(week.report.seconds for week in weeks)
    facts = {
        "rows written by the pipeline": f"{rows:,} in {seconds:.1f} s, {rows / seconds:,.0f} a second",
        "versions ratified": f"{len(took)}, median {median(took):.0f} ms after their proposal" if took else "none",
        "conflicts met and solved": str(len(race.conflicts)),
        "seconds": ", ".join(f"{act.seconds:.1f} {act.name.partition(':')[0].lower()}" for act in stage.acts),
        "checks": f"{sum(check.holds for check in stage.checks)} of {len(stage.checks)} hold",
    }
    for what, value in facts.items():
        stage.say(f"{what:<30}[bold]{value}[/]")
    for check in stage.checks:
        if not check.holds:
            stage.say(f"[bold red]✗ {escape(check.what)}[/]")


def numbers(scene: Scene) -> dict[str, Any]:
    """All that was measured and checked, for programs."""
    stage = scene.stage
    return {
        "passed": stage.passed,
        "size": scene.place.plan.orders,
        "seed": scene.place.plan.seed,
        "seconds": round(sum(act.seconds for act in stage.acts), 2),
        "acts": [{"name": act.name, "seconds": act.seconds} for act in stage.acts],
        **stage.numbers,
        "checks": [{"what": check.what, "holds": check.holds, "detail": check.detail} for check in stage.checks],
    }
