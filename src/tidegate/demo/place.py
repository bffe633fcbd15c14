"""Where a demo keeps its files, in the home of its catalog, and what it remembers from run to run.

home/demo/shop.json       the size and the seed: a home has one of each
home/demo/orders/         the daily files, as the shop delivered them
home/demo/checkpoints/    what the pipeline has read of them
home/demo/spark/          Spark's own scratch files
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

ORDERS = 20_000
ORDERS_MIN = 100
SEED = 7


class DemoRefused(ValueError):
    """The demo cannot run as asked; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Plan:
    orders: int
    """A run's."""
    seed: int


@dataclass(frozen=True, slots=True)
class Place:
    home: Path
    plan: Plan

    @property
    def folder(self) -> Path:
        return self.home / "demo"

    @property
    def orders(self) -> Path:
        return self.folder / "orders"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def scratch(self) -> Path:
        return self.folder / "spark"

    @property
    def used(self) -> bool:
        """Whether a demo was here before."""
        return _plan_file(self.home).is_file()

    def files(self) -> list[Path]:
        """What was delivered so far, oldest first."""
        return sorted(self.orders.glob("*.json"))

    def prepare(self) -> None:
        self.orders.mkdir(parents=True, exist_ok=True)
        _plan_file(self.home).write_text(json.dumps(asdict(self.plan)) + "\n", encoding="utf-8")

    def forget(self) -> None:
        """As if no demo had been here; Spark may be running, and keeps its scratch files."""
        for folder in (self.orders, self.checkpoints):
            shutil.rmtree(folder, ignore_errors=True)
        _plan_file(self.home).unlink(missing_ok=True)


def open_place(home: Path, *, orders: int | None, seed: int | None) -> Place:
    """A home that had a demo goes on with its size and seed."""
    known = _known_plan(home)
    plan = Plan(
        orders=orders if orders is not None else known.orders if known else ORDERS,
        seed=seed if seed is not None else known.seed if known else SEED,
    )
    if known is not None and plan != known:
        raise DemoRefused(
            f"The demo in {home} was begun with --size {known.orders} --seed {known.seed}: go on with these, or give "
            "another --home."
        )
    return Place(home, plan)


def _known_plan(home: Path) -> Plan | None:
    file = _plan_file(home)
    try:
        return Plan(**json.loads(file.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError):
        raise DemoRefused(f"{file} cannot be read as the notes of a demo: give another --home.") from None


def _plan_file(home: Path) -> Path:
    return home / "demo" / "shop.json"
