"""How the demo speaks: acts with their time, steps while they run, checks with their outcome.

On a terminal there are colours and a spinner for what is going on; in a log every step is a line, printed when it is
done. What was measured and checked is kept for the summary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding

INDENT = 3


@dataclass(frozen=True, slots=True)
class Act:
    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    holds: bool
    detail: str


@dataclass(slots=True)
class Stage:
    console: Console
    clock: Callable[[], float] = time.monotonic
    acts: list[Act] = field(default_factory=list[Act])
    checks: list[Check] = field(default_factory=list[Check])
    numbers: dict[str, Any] = field(default_factory=dict[str, Any])

    @contextmanager
    def act(self, name: str) -> Generator[None]:
        """An act that fails has no time."""
        self.console.print(f"\n[bold cyan]{len(self.acts) + 1}. {escape(name)}[/]")
        start = self.clock()
        yield
        self.acts.append(Act(name, round(self.clock() - start, 2)))

    def say(self, text: str) -> None:
        """A line in Rich's markup."""
        self.show(text)

    def leave_space(self) -> None:
        self.console.print()

    def show(self, what: RenderableType) -> None:
        self.console.print(Padding(what, (0, 0, 0, INDENT), expand=False))

    def log(self, text: str) -> None:
        """A line for logs only: on a terminal the spinner has shown it."""
        if not self.console.is_terminal:
            self.say(f"[dim]{escape(text)}[/]")

    @contextmanager
    def doing(self, what: str) -> Generator[Callable[[str], None]]:
        """A step that takes a while. The function says how far it is: seen on terminals only, and only for now."""
        start = self.clock()
        with self.console.status(f"{escape(what)} ...") as status:
            yield lambda far: status.update(f"{escape(what)} ... {escape(far)}")
        self.say(f"{escape(what)} [dim]({self.clock() - start:.1f} s)[/]")

    def check(self, what: str, *, found: object, expected: object) -> bool:
        """Told, kept, and decisive: a demo with a check that does not hold has failed."""
        return self.check_that(what, found == expected, detail=f"expected {expected}, found {found}")

    def check_that(self, what: str, holds: bool, *, detail: str) -> bool:
        self.checks.append(Check(what, holds, detail))
        self.say(f"[green]✓[/] {escape(what)}" if holds else f"[bold red]✗ {escape(what)}: {escape(detail)}[/]")
        return holds

    @property
    def passed(self) -> bool:
        return bool(self.checks) and all(check.holds for check in self.checks)
