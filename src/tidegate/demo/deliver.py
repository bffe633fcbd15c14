"""Act 2: the shop's systems deliver two weeks of events, half of them now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from tidegate.demo.events import CHANNEL_SINCE, DAYS_PER_RUN, Event, day_of, delivered, facts, write_files
from tidegate.demo.scene import Scene


@dataclass(frozen=True, slots=True)
class Delivery:
    """The daily files of a week."""

    files: dict[int, list[Event]]

    @property
    def days(self) -> str:
        return f"{day_of(min(self.files))} to {day_of(max(self.files))}"


def make_deliveries(scene: Scene) -> list[Delivery]:
    """The two weeks that follow what was delivered before, each to be handed over when its time has come."""
    stage, plan = scene.stage, scene.place.plan
    begin = len(scene.place.files())
    with stage.doing(f"Making up {plan.orders:,} orders"):
        files = delivered(range(begin, begin + DAYS_PER_RUN), orders_per_run=plan.orders, seed=plan.seed)
    found = facts(files)
    whole = Delivery(files)
    stage.say(f"[bold]{found.events:,} events[/] in {len(files)} daily files of JSON, {whole.days}:")
    stage.say(
        f"{found.late:,} come late, {found.duplicate:,} come twice, {found.corrected:,} correct an order, "
        f"{found.broken:,} are broken"
    )
    if CHANNEL_SINCE in files:
        stage.say(f"from {day_of(CHANNEL_SINCE)} on they have a field that was not there before: [bold]channel[/]")
    stage.numbers["deliveries"] = {"first_day": str(day_of(begin)), "files": len(files), **asdict(found)}
    return list(_weeks(files))


def hand_over(scene: Scene, delivery: Delivery) -> None:
    write_files(scene.place.orders, delivery.files)


def _weeks(files: dict[int, list[Event]]) -> Iterator[Delivery]:
    days = sorted(files)
    half = len(days) // 2
    for week in (days[:half], days[half:]):
        yield Delivery({day: files[day] for day in week})
