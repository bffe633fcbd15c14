"""What a run did, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tidegate.spark.pipeline.declarations import Kind
from tidegate.spark.pipeline.expectations import Action
from tidegate.spark.pipeline.history import Commit

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Outcome = Literal["done", "unchanged", "failed", "skipped"]

COLOURS: dict[str, str] = {"done": "green", "unchanged": "dim", "failed": "bold red", "skipped": "yellow"}


@dataclass(frozen=True, slots=True)
class ExpectationReport:
    name: str
    action: Action
    broken: int
    """Rows that broke it, in batches that were written."""


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table of a run. Rows, files and versions are those of this run's own commits, whoever else writes."""

    name: str
    table: str
    kind: Kind
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    versions: tuple[int, ...] = ()
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files_added: int = 0
    files_removed: int = 0
    rows_checked: int = 0
    expectations: tuple[ExpectationReport, ...] = ()
    conflicts: int = 0
    """Commits that lost to another writer and were tried again."""


@dataclass(frozen=True, slots=True)
class Report:
    pipeline: str
    run: str
    started: str
    seconds: float
    tables: tuple[TableReport, ...]

    @property
    def failed(self) -> bool:
        return any(table.outcome == "failed" for table in self.tables)

    def __getitem__(self, name: str) -> TableReport:
        return {table.name: table for table in self.tables}[name]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    def write(self, path: str | PathLike[str]) -> None:
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def print(self, console: Console | None = None) -> None:
        from rich.console import Console

        (console or Console()).print(self)

    def __rich__(self) -> RenderableType:
        from rich.table import Table

        shown = Table(title=f"{self.pipeline}, {self.seconds:.1f} s", title_justify="left")
        for heading in ("table", "kind", "outcome", "rows", "files", "versions", "expectations"):
            shown.add_column(heading)
        shown.add_column("conflicts", justify="right")
        shown.add_column("seconds", justify="right")
        for table in self.tables:
            colour = COLOURS[table.outcome]
            told = f": {table.reason}" if table.reason else ""
            shown.add_row(
                table.name,
                table.kind,
                f"[{colour}]{table.outcome}[/]{_escaped(told)}",
                rows_text(table),
                _changes({"+": table.files_added, "-": table.files_removed}),
                versions_text(table.versions),
                "\n".join(f"{_escaped(e.name)} ({e.action}): {e.broken:,}" for e in table.expectations),
                str(table.conflicts or ""),
                f"{table.seconds:.1f}",
            )
        return shown


def measures(commits: Iterable[Commit]) -> dict[str, int]:
    """Rows and files of commits, by the fields of `TableReport`. Delta names them by operation."""
    fields = {
        "rows_inserted": ("numTargetRowsInserted", "numOutputRows"),
        "rows_updated": ("numTargetRowsUpdated", "numUpdatedRows"),
        "rows_deleted": ("numTargetRowsDeleted", "numDeletedRows"),
        "files_added": ("numTargetFilesAdded", "numFiles", "numAddedFiles"),
        "files_removed": ("numTargetFilesRemoved", "numRemovedFiles"),
    }
    totals = dict.fromkeys(fields, 0)
    for commit in commits:
        for field, keys in fields.items():
            totals[field] += int(next((commit.metrics[key] for key in keys if key in commit.metrics), 0))
    return totals


def rows_text(table: TableReport) -> str:
    return _changes({"+": table.rows_inserted, "~": table.rows_updated, "-": table.rows_deleted})


def versions_text(versions: Sequence[int]) -> str:
    """v3..v5, v7"""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ", ".join(f"v{run[0]}" if len(run) == 1 else f"v{run[0]}..v{run[-1]}" for run in runs)


def _changes(counts: dict[str, int]) -> str:
    return " ".join(f"{sign}{count:,}" for sign, count in counts.items() if count)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
