"""Act 6: what the catalog itself knows of the tables, asked without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from rich import box
from rich.filesize import decimal
from rich.table import Table

from tidegate.demo.race import Race
from tidegate.demo.scene import TABLES, Scene, Timeline
from tidegate.demo.shop import SCHEMA

COMMITS_SHOWN = 5


def show_knowledge(scene: Scene, race: Race) -> list[Timeline]:
    stage = scene.stage
    with stage.doing("Asking the catalog for the timeline of each table, and Delta for the sizes"):
        timelines = [scene.timeline(f"{SCHEMA}.{name}") for name in TABLES]
        details = [scene.sql(f"DESCRIBE DETAIL {one['full_name']}")[0] for one in timelines]
        latest = [scene.sql(f"DESCRIBE HISTORY {one['full_name']} LIMIT 1")[0]["version"] for one in timelines]
    stage.show(_overview(timelines, details))
    stage.show(scene.render([{**one, "commits": one["commits"][:COMMITS_SHOWN]} for one in timelines]))
    stage.check(
        "the catalog's latest version of each table is Delta's",
        found=[one["latest_version"] for one in timelines],
        expected=latest,
    )
    stage.check_that(
        "each version was ratified once, in order, and not before it was proposed",
        all(_in_order(one["commits"]) for one in timelines),
        detail="a version is missing, doubled or out of order",
    )
    stock = next(one for one in timelines if one["full_name"].endswith(".stock"))
    stage.check_that(
        f"the catalog counted the conflicts of the race: {stock['conflicts']}",
        stock["conflicts"] >= len(race.conflicts),
        detail=f"the writers met {len(race.conflicts)}",
    )
    stage.numbers["tables"] = [
        _numbers(one, detail, version) for one, detail, version in zip(timelines, details, latest, strict=True)
    ]
    return timelines


def ratification_ms(timelines: Sequence[Timeline]) -> list[int]:
    """From proposal to ratification, for every commit that the catalog timed."""
    return [
        commit["ratified_at"] - commit["proposed_at"]
        for one in timelines
        for commit in one["commits"]
        if commit["proposed_at"] is not None and commit["ratified_at"] is not None
    ]


def _in_order(commits: Sequence[dict[str, Any]]) -> bool:
    """The newest is first. Version 0 is made by the writer: nobody proposed it."""
    versions = [commit["version"] for commit in commits]
    decided = [commit for commit in commits if commit["version"] > 0]
    times = [commit["ratified_at"] for commit in decided]
    return (
        versions == list(range(versions[0], -1, -1))
        and times == sorted(times, reverse=True)
        and all(commit["proposed_at"] <= commit["ratified_at"] for commit in decided)
    )


def _overview(timelines: Sequence[Timeline], details: Sequence[Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("table", "versions", "conflicts", "ratified after", "log", "files", "data"):
        table.add_column(column, justify="left" if column == "table" else "right", no_wrap=True)
    for one, detail in zip(timelines, details, strict=True):
        log = sum(commit["file_size"] or 0 for commit in one["commits"])
        took = ratification_ms([one])
        table.add_row(
            one["full_name"],
            str(one["latest_version"] + 1),
            str(one["conflicts"]),
            f"{median(took):.0f} ms" if took else "-",
            decimal(log),
            str(detail["numFiles"]),
            decimal(detail["sizeInBytes"]),
        )
    return table


def _numbers(timeline: Timeline, detail: Any, delta_version: int) -> dict[str, Any]:
    return {
        "table": timeline["full_name"],
        "latest_version": timeline["latest_version"],
        "verified_version": timeline["verified_version"],
        "delta_version": delta_version,
        "commits": len(timeline["commits"]),
        "conflicts": timeline["conflicts"],
        "replays": timeline["replays"],
        "files": detail["numFiles"],
        "bytes": detail["sizeInBytes"],
    }
