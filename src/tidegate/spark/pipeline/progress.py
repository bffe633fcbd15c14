"""What is told while a pipeline runs: live on a terminal, line by line elsewhere, or to a function of the user's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tidegate.spark.pipeline.report import COLOURS, Outcome

TOLD_CHARACTERS_MAX = 100


@dataclass(frozen=True, slots=True)
class Event:
    """Where a table is. `rows` are those read so far, and at the end those written; `text` says more for people."""

    table: str
    state: Literal["running"] | Outcome
    rows: int = 0
    text: str = ""


Listener = Callable[[Event], None]


@contextmanager
def listening(wanted: bool | Listener, tables: Sequence[str]) -> Generator[Listener]:
    """The function to tell events to. It is called by one thread at a time."""
    if callable(wanted):
        yield _one_at_a_time(wanted)
    elif not wanted:
        yield lambda event: None
    elif (console := Console(stderr=True)).is_terminal:
        with _live(console, tables) as listener:
            yield _one_at_a_time(listener)
    else:
        yield _one_at_a_time(lambda event: _line(console, event))


@contextmanager
def _live(console: Console, tables: Sequence[str]) -> Generator[Listener]:
    columns = (
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[state]}"),
        TextColumn("{task.fields[told]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        tasks = {table: progress.add_task(table, start=False, total=1, state="waiting", told="") for table in tables}

        def show(event: Event) -> None:
            task = tasks[event.table]
            colour = COLOURS.get(event.state, "cyan")
            told = event.text or (f"{event.rows:,} rows" if event.rows else "")
            progress.update(task, state=f"[{colour}]{event.state}[/]", told=told[:TOLD_CHARACTERS_MAX])
            if event.state == "running":
                progress.start_task(task)
            else:
                progress.update(task, completed=1)

        yield show


def _line(console: Console, event: Event) -> None:
    if event.state == "running" and event.rows:
        return  # a line for each step, not for each look at it
    told = f", {event.text}" if event.text else ""
    console.print(f"{event.table}: {event.state}{told}", markup=False, highlight=False, soft_wrap=True)


def _one_at_a_time(listener: Listener) -> Listener:
    lock = threading.Lock()

    def tell(event: Event) -> None:
        with lock:
            listener(event)

    return tell
