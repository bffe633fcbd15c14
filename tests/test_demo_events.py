"""The demo's data: always the same, and as untidy as it claims to be."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path

import pytest

from tidegate.demo import events as demo_events
from tidegate.demo.events import CHANNEL_SINCE, DAYS_PER_RUN, FIRST_DAY, HORIZON_DAYS, Event, day_of, delivered
from tidegate.demo.truth import read_truth

ORDERS = 6000
RUN = range(DAYS_PER_RUN)
LONG = range(DAYS_PER_RUN + HORIZON_DAYS)

Files = dict[int, list[Event]]


@pytest.fixture(scope="module")
def files() -> Files:
    """The days of a run, and those on which its last orders are heard of."""
    return delivered(LONG, orders_per_run=ORDERS, seed=7)


@pytest.fixture(scope="module")
def good(files: Files) -> list[tuple[int, Event]]:
    """Every good event of the first run's orders with the day of its delivery, duplicates included."""
    return [
        (day, event)
        for day, events in files.items()
        for event in events
        if is_good(event) and event.ordered_at.date() < day_of(DAYS_PER_RUN)
    ]


def is_good(event: Event) -> bool:
    return event.order_id is not None and event.amount_cents >= 0


def happened_on(event: Event) -> int:
    return (event.event_time.date() - FIRST_DAY).days


def test_a_seed_gives_the_same_files_every_time_and_another_seed_others() -> None:
    first = delivered(RUN, orders_per_run=300, seed=1)
    assert delivered(RUN, orders_per_run=300, seed=1) == first
    assert delivered(RUN, orders_per_run=300, seed=2) != first


@pytest.mark.parametrize("cut", [1, 7, 13])
def test_days_generated_one_after_the_other_are_those_generated_in_one_go(cut: int) -> None:
    whole = delivered(range(20), orders_per_run=300, seed=1)
    parts = delivered(range(cut), orders_per_run=300, seed=1) | delivered(range(cut, 20), orders_per_run=300, seed=1)
    assert parts == whole


@pytest.mark.parametrize("size", [100, 999, 6000])
def test_the_days_of_a_run_have_as_many_orders_as_were_asked_for(size: int) -> None:
    placed = [
        event
        for events in delivered(LONG, orders_per_run=size, seed=3).values()
        for event in events
        if event.ordered_at.date() < day_of(DAYS_PER_RUN)
    ]
    assert len({event.order_id for event in placed if event.order_id}) == size


def test_nothing_is_delivered_after_the_horizon(good: list[tuple[int, Event]]) -> None:
    waits = [day - (event.ordered_at.date() - FIRST_DAY).days for day, event in good]
    assert 7 <= max(waits) <= HORIZON_DAYS


def test_nothing_is_delivered_before_it_happened(good: list[tuple[int, Event]]) -> None:
    assert all(day >= happened_on(event) for day, event in good)


@pytest.mark.parametrize(
    ("kind", "share"),
    [("placed", 1.0), ("paid", 0.92), ("cancelled", 0.08), ("shipped", 0.92 * 0.45), ("corrected", 0.06)],
)
def test_orders_live_in_the_claimed_proportions(good: list[tuple[int, Event]], kind: str, share: float) -> None:
    kinds = Counter(event.kind for event in {event for _, event in good})
    assert kinds[kind] / ORDERS == pytest.approx(share, abs=0.02)


def test_the_events_of_an_order_are_told_apart_by_their_time(good: list[tuple[int, Event]]) -> None:
    times: defaultdict[str | None, list[object]] = defaultdict(list)
    for event in {event for _, event in good}:
        times[event.order_id].append(event.event_time)
    assert all(len(set(each)) == len(each) for each in times.values())


def test_a_correction_comes_last_and_changes_the_amount_but_not_the_state(good: list[tuple[int, Event]]) -> None:
    lives: defaultdict[str | None, list[Event]] = defaultdict(list)
    for event in sorted({event for _, event in good}, key=lambda event: event.event_time):
        lives[event.order_id].append(event)
    corrected = [life for life in lives.values() if life[-1].kind == "corrected"]
    assert len(corrected) == sum(event.kind == "corrected" for life in lives.values() for event in life)
    for *_, before, correction in corrected:
        assert correction.status == before.status
        assert correction.amount_cents != before.amount_cents
        assert correction.amount_cents == correction.quantity * demo_events.PRICES_CENTS[correction.product]
        assert correction.quantity > 0
        assert correction.event_time - before.event_time >= timedelta(days=1)


def test_duplicates_are_the_same_event_delivered_twice(good: list[tuple[int, Event]]) -> None:
    times = Counter(event for _, event in good)
    assert len({event.event_id for event in times}) == len(times), "one id never stands for two different events"
    twice = [event for event, count in times.items() if count == 2]
    assert set(times.values()) == {1, 2}
    assert len(twice) / len(times) == pytest.approx(0.05, abs=0.01)
    days = defaultdict(set)
    for day, event in good:
        days[event].add(day)
    assert {len(days[event]) for event in twice} == {1, 2}, "some in the same file, some in a later one"


def test_late_events_come_days_later_and_some_behind_newer_ones(good: list[tuple[int, Event]]) -> None:
    first: dict[Event, int] = {}
    for day, event in good:
        first[event] = min(day, first.get(event, day))
    delays = Counter(day - happened_on(event) for event, day in first.items())
    assert set(delays) == {0, 1, 2, 3}
    assert 1 - delays[0] / len(first) == pytest.approx(0.04, abs=0.01)
    by_order: defaultdict[str | None, list[tuple[int, Event]]] = defaultdict(list)
    for event, day in first.items():
        by_order[event.order_id].append((day, event))
    overtaken = [
        event
        for event, day in first.items()
        if any(earlier < day and other.event_time > event.event_time for earlier, other in by_order[event.order_id])
    ]
    assert len(overtaken) > 10


def test_every_file_has_a_few_broken_rows_of_both_kinds(files: Files) -> None:
    for events in files.values():
        without_id = [event for event in events if event.order_id is None]
        negative = [event for event in events if event.amount_cents < 0]
        assert without_id
        assert negative
        assert not set(without_id) & set(negative)
    every = [event for events in files.values() for event in events]
    assert statistics.mean(not is_good(event) for event in every) == pytest.approx(0.004, abs=0.002)


def test_the_channel_is_told_from_its_day_on_and_never_before(files: Files) -> None:
    every = [event for events in files.values() for event in events]
    assert all((event.channel is None) == (happened_on(event) < CHANNEL_SINCE) for event in every)
    before = [json.loads(event.line()) for day in range(CHANNEL_SINCE) for event in files[day]]
    assert not any("channel" in line for line in before)
    late = [event for day in range(CHANNEL_SINCE, DAYS_PER_RUN) for event in files[day] if event.channel is None]
    assert late, "events from before come after it, too"
    told = defaultdict(set)
    for event in every:
        if event.channel and event.order_id:
            told[event.order_id].add(event.channel)
    assert all(len(channels) == 1 for channels in told.values())


def test_some_customers_come_much_more_often_than_others(good: list[tuple[int, Event]]) -> None:
    orders = Counter(event.customer for event in {event for _, event in good} if event.kind == "placed")
    counts = [count for _, count in orders.most_common()]
    assert counts[0] > 3 * statistics.median(counts)


def test_files_are_lines_of_json_with_moments_in_utc(tmp_path: Path) -> None:
    files = delivered(range(2), orders_per_run=140, seed=1)
    written = demo_events.write_files(tmp_path / "orders", files)
    assert [file.name for file in written] == ["2026-03-01.json", "2026-03-02.json"]
    assert sorted((tmp_path / "orders").iterdir()) == written, "nothing unfinished is left"
    for file, events in zip(written, files.values(), strict=True):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert [line["event_id"] for line in lines] == [event.event_id for event in events]
        assert [line["event_time"] for line in lines] == [f"{event.event_time.isoformat()}Z" for event in events]
        assert all(set(line) == set(Event.__slots__) - {"channel"} for line in lines)


def test_the_truth_is_the_newest_event_of_each_order(tmp_path: Path) -> None:
    """The demo's own checks against a fold over the events themselves."""
    files = delivered(range(10), orders_per_run=2000, seed=5)
    truth = read_truth(demo_events.write_files(tmp_path, files))
    every = [event for events in files.values() for event in events]
    assert truth.rows == len(every)
    assert truth.broken == sum(not is_good(event) for event in every)
    assert truth.without_id == sum(event.order_id is None for event in every)
    assert truth.late == sum(happened_on(event) < day for day, events in files.items() for event in events)
    newest = {event.order_id: event for event in sorted(filter(is_good, every), key=lambda event: event.event_time)}
    assert set(truth.orders) == set(newest)
    for order_id, order in truth.orders.items():
        event = newest[order_id]
        assert (order.status, order.quantity, order.amount_cents) == (event.status, event.quantity, event.amount_cents)
        assert (order.customer, order.product, order.channel) == (event.customer, event.product, event.channel)
    sold = [event for event in newest.values() if event.status in {"paid", "shipped"}]
    first = str(FIRST_DAY)
    assert truth.revenue_cents()[first] == sum(e.amount_cents for e in sold if e.ordered_at.date() == FIRST_DAY)
    assert sum(truth.revenue_cents().values()) == sum(event.amount_cents for event in sold)
    assert sum(truth.customer_cents().values()) == sum(event.amount_cents for event in sold)
    corrected = {event.event_id for event in every if is_good(event) and event.kind == "corrected"}
    assert sum(truth.corrections.values()) == len(corrected) > 0
    found = demo_events.facts(files)
    assert (found.events, found.late, found.broken) == (truth.rows, truth.late, truth.broken)
    assert found.corrected == len(corrected)
    assert found.duplicate == sum(count - 1 for count in Counter(filter(is_good, every)).values()) > 0
