"""The events of a shop's orders, as its systems deliver them: in daily files, and not in good order.

An event carries the state of its order after something happened to it: the newest one (by `event_time`) tells what is
true. What makes the files interesting:

- late: some events are delivered days after they happened, often behind newer events of the same order;
- duplicate: some are delivered twice, in the same file or in a later one;
- corrected: some orders get another quantity and amount, days later;
- broken: some rows have no order id, some a negative amount;
- a new field: from CHANNEL_SINCE on, events say through which channel the order came.

Each day's orders come from the seed and the day alone: the days can be generated in one go or one after the other, and
are always the same.

    delivered(range(0, 14), orders_per_run=20_000, seed=7)[3]   # the events in the file of the fourth day
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from datetime import date, datetime, time, timedelta
from pathlib import Path
from random import Random

FIRST_DAY = date(2026, 3, 1)
DAYS_PER_RUN = 14
CHANNEL_SINCE = 7
# A day's orders are heard of for the last time so many days later: shipped by 3, corrected by 7, late by 10.
HORIZON_DAYS = 12

PAID_SHARE = 0.92
SHIPPED_SHARE = 0.45
CORRECTED_SHARE = 0.06
LATE_SHARE = 0.04
DUPLICATE_SHARE = 0.05
BROKEN_SHARE = 0.002

CUSTOMERS = 400
CHANNELS = ("web", "app", "store")
PRICES_CENTS: Mapping[str, int] = {
    "buoy": 14_900,
    "chart": 2_450,
    "compass": 8_990,
    "flare": 1_875,
    "lantern": 5_400,
    "oilskin": 12_000,
    "rope": 1_999,
    "sextant": 32_500,
    "tide table": 995,
}


@dataclass(frozen=True, slots=True)
class Event:
    event_id: str
    order_id: str | None
    kind: str
    status: str
    customer: str
    product: str
    quantity: int
    amount_cents: int
    ordered_at: datetime
    event_time: datetime
    channel: str | None

    def line(self) -> str:
        """JSON, with moments in UTC. Before there were channels, there was no such field."""
        fields = {field.name: getattr(self, field.name) for field in dataclass_fields(self)}
        fields["ordered_at"], fields["event_time"] = _moment(self.ordered_at), _moment(self.event_time)
        if self.channel is None:
            del fields["channel"]
        return json.dumps(fields)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is in some files, in rows. A row may be late and a duplicate at once."""

    events: int
    late: int
    duplicate: int
    corrected: int
    broken: int


def day_of(index: int) -> date:
    return FIRST_DAY + timedelta(days=index)


def delivered(days: range, *, orders_per_run: int, seed: int) -> dict[int, list[Event]]:
    """What the file of each of these days holds, in the order in which it was delivered."""
    files: dict[int, list[Event]] = {day: [] for day in days}
    for origin in range(max(0, days.start - HORIZON_DAYS), days.stop):
        for day, event in _deliveries(origin, orders=_orders_on(origin, orders_per_run), seed=seed):
            if day in files:
                files[day].append(event)
    for day, events in files.items():
        dice = Random(f"{seed} file {day}")  # noqa: S311
        events += list(_broken(events, dice))
        dice.shuffle(events)
    return files


def facts(files: Mapping[int, list[Event]]) -> Facts:
    every = [event for events in files.values() for event in events]
    good = [event for event in every if event.order_id is not None and event.amount_cents >= 0]
    return Facts(
        events=len(every),
        late=sum(_happened_on(event) < day for day, events in files.items() for event in events),
        duplicate=len(good) - len(set(good)),
        corrected=sum(event.kind == "corrected" for event in set(good)),
        broken=len(every) - len(good),
    )


def write_files(folder: Path, files: Mapping[int, list[Event]]) -> list[Path]:
    """One file of JSON lines a day. Each appears complete or not at all: a stream may be watching the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for day, events in sorted(files.items()):
        file = folder / f"{day_of(day)}.json"
        unfinished = folder / f".{file.name}"
        unfinished.write_text("".join(f"{event.line()}\n" for event in events), encoding="utf-8")
        written.append(unfinished.replace(file))
    return written


def _orders_on(day: int, orders_per_run: int) -> int:
    """So that the days of a run have as many orders together as was asked for."""
    position = day % DAYS_PER_RUN
    return orders_per_run * (position + 1) // DAYS_PER_RUN - orders_per_run * position // DAYS_PER_RUN


def _deliveries(origin: int, *, orders: int, seed: int) -> Iterator[tuple[int, Event]]:
    """The events of the orders of one day, each with the day on which it is delivered."""
    dice = Random(f"{seed} day {origin}")  # noqa: S311
    for number in range(orders):
        for event in _life(_placed(f"{day_of(origin):%Y%m%d}-{number:05}", origin, dice), dice):
            happened = _happened_on(event)
            told = event if happened >= CHANNEL_SINCE else replace(event, channel=None)
            day = happened + (dice.randint(1, 3) if dice.random() < LATE_SHARE else 0)
            yield day, told
            if dice.random() < DUPLICATE_SHARE:
                yield day + dice.randint(0, 2), told


def _life(event: Event, dice: Random) -> Iterator[Event]:
    """What happens to an order that was placed, oldest first. No two of its events have the same time."""
    yield event
    if dice.random() < PAID_SHARE:
        yield (event := _next(event, "paid", hours=(1, 20), dice=dice))
        if dice.random() < SHIPPED_SHARE:
            yield (event := _next(event, "shipped", hours=(24, 40), dice=dice))
    else:
        yield (event := _next(event, "cancelled", hours=(1, 20), dice=dice))
    if dice.random() < CORRECTED_SHARE:
        corrected = _next(event, "corrected", hours=(24, 96), dice=dice)
        quantity = event.quantity + (dice.choice((-1, 1, 2)) if event.quantity > 1 else 1)
        amount = quantity * PRICES_CENTS[event.product]
        yield replace(corrected, status=event.status, quantity=quantity, amount_cents=amount)


def _placed(order_id: str, origin: int, dice: Random) -> Event:
    at = datetime.combine(day_of(origin), time()) + timedelta(seconds=dice.randrange(86_400))
    product = dice.choice(tuple(PRICES_CENTS))
    quantity = dice.randint(1, 4)
    # Squaring favours the small numbers: some customers come much more often than others.
    customer = int(CUSTOMERS * dice.random() ** 2)
    return Event(
        event_id=f"{order_id}-placed",
        order_id=order_id,
        kind="placed",
        status="placed",
        customer=f"customer {customer:03}",
        product=product,
        quantity=quantity,
        amount_cents=quantity * PRICES_CENTS[product],
        ordered_at=at,
        event_time=at,
        channel=dice.choice(CHANNELS),
    )


def _next(event: Event, kind: str, *, hours: tuple[int, int], dice: Random) -> Event:
    at = event.event_time + timedelta(seconds=dice.randint(hours[0] * 3600, hours[1] * 3600))
    return replace(event, event_id=f"{event.order_id}-{kind}", kind=kind, status=kind, event_time=at)


def _broken(events: list[Event], dice: Random) -> Iterator[Event]:
    """Rows of no use, at least one of each kind: copies of good ones, told apart by their event id."""
    count = max(1, round(len(events) * BROKEN_SHARE)) if events else 0
    for number, event in enumerate(dice.sample(events, k=min(2 * count, len(events)))):
        if number % 2:
            yield replace(event, event_id=f"{event.event_id}-no-id", order_id=None)
        else:
            yield replace(event, event_id=f"{event.event_id}-negative", amount_cents=-event.amount_cents)


def _happened_on(event: Event) -> int:
    return (event.event_time.date() - FIRST_DAY).days


def _moment(at: datetime) -> str:
    return f"{at.isoformat(timespec='seconds')}Z"
