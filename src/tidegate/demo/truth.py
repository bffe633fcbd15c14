"""What the tables must say, computed from the files without Spark: the demo's checks compare with it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOLD = ("paid", "shipped")


@dataclass(frozen=True, slots=True)
class Order:
    order_id: str
    status: str
    customer: str
    product: str
    quantity: int
    amount_cents: int
    day: str
    channel: str | None


@dataclass(frozen=True, slots=True)
class Truth:
    rows: int
    """Lines in the files."""
    without_id: int
    negative: int
    late: int
    """Lines that were delivered on a later day than that of their event."""
    orders: dict[str, Order]
    """The newest state of each order."""
    corrections: dict[str, int]
    """By the day of the order: how many corrections were delivered, each counted once."""

    @property
    def broken(self) -> int:
        """A line without an order id has no negative amount."""
        return self.without_id + self.negative

    def revenue_cents(self) -> dict[str, int]:
        """By the day of the order."""
        return self._revenue_by(lambda order: order.day)

    def customer_cents(self) -> dict[str, int]:
        return self._revenue_by(lambda order: order.customer)

    def _revenue_by(self, key: Callable[[Order], str]) -> dict[str, int]:
        cents: defaultdict[str, int] = defaultdict(int)
        for order in self.orders.values():
            if order.status in SOLD:
                cents[key(order)] += order.amount_cents
        return dict(cents)


def read_truth(files: Iterable[Path]) -> Truth:
    lines = [line for file in files for line in _lines(file)]
    good = [line for line in lines if line["order_id"] is not None and line["amount_cents"] >= 0]
    newest: dict[str, dict[str, Any]] = {}
    for line in good:
        known = newest.get(line["order_id"])
        if known is None or line["event_time"] > known["event_time"]:
            newest[line["order_id"]] = line
    return Truth(
        rows=len(lines),
        without_id=sum(line["order_id"] is None for line in lines),
        negative=sum(line["amount_cents"] < 0 for line in lines),
        late=sum(line["delivered_on"] > line["event_time"][:10] for line in lines),
        orders={order_id: _order(line) for order_id, line in newest.items()},
        corrections=_corrections(good),
    )


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        yield {"delivered_on": file.stem, **json.loads(line)}


def _order(line: dict[str, Any]) -> Order:
    return Order(
        order_id=line["order_id"],
        status=line["status"],
        customer=line["customer"],
        product=line["product"],
        quantity=line["quantity"],
        amount_cents=line["amount_cents"],
        day=line["ordered_at"][:10],
        channel=line.get("channel"),
    )


def _corrections(lines: Iterable[dict[str, Any]]) -> dict[str, int]:
    counts: defaultdict[str, int] = defaultdict(int)
    for _, day in {(line["event_id"], line["ordered_at"][:10]) for line in lines if line["kind"] == "corrected"}:
        counts[day] += 1
    return dict(counts)
