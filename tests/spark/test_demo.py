"""The demo as a user runs it: a real catalog, real Spark, and tables that plain Python agrees with.

One small demo is run and kept; a second one goes on in its home after somebody has tampered with a table.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from tests.spark.conftest import Sql
from tests.spark.test_cli import processes_with
from tidegate.demo.events import DAYS_PER_RUN, Event, delivered
from tidegate.demo.place import DemoRefused, open_place
from tidegate.demo.scene import Scene
from tidegate.demo.stage import Stage
from tidegate.demo.story import enter

RUN_SECONDS_MAX = 590
SIZE = 400
SEED = 11
# Its story is over before the second demo begins, so nothing puts right what was done to it in between.
OLD_ORDER = "20260301-00000"

STATEMENTS = f"""
SELECT order_id, status, customer, quantity, CAST(amount * 100 AS BIGINT) AS cents, channel FROM main.shop.orders;
SELECT CAST(day AS STRING), orders, CAST(revenue * 100 AS BIGINT) AS cents FROM main.shop.daily_revenue;
SELECT customer, orders, CAST(revenue * 100 AS BIGINT) AS cents FROM main.shop.best_customers;
UPDATE main.shop.orders SET quantity = quantity + 100 WHERE order_id = '{OLD_ORDER}';
"""

pytestmark = pytest.mark.timeout(1200)


@dataclass(frozen=True)
class Told:
    code: int
    output: str
    errors: str
    numbers: dict[str, Any]

    def check(self, beginning: str) -> list[dict[str, Any]]:
        return [check for check in self.numbers["checks"] if check["what"].startswith(beginning)]


def demo(home: Path, *arguments: str) -> Told:
    file = home.parent / "numbers.json"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tidegate", "demo", "--home", str(home), "--json", str(file), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    assert file.is_file(), ran.stdout + ran.stderr
    return Told(ran.returncode, ran.stdout, ran.stderr, json.loads(file.read_text()))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "home"


@pytest.fixture(scope="module")
def kept(home: Path) -> Iterator[Told]:
    """A demo that has left its catalog running, which is stopped in the end as the demo says."""
    told = demo(home, "--size", str(SIZE), "--seed", str(SEED), "--keep")
    said = re.search(r"^  kill (\d+) ", told.output, re.MULTILINE)
    assert said is not None, told.output + told.errors
    yield told
    if processes_with(f"--home {home} "):
        os.kill(int(said[1]), signal.SIGTERM)


@pytest.fixture(scope="module")
def newest() -> dict[str, Event]:
    """The last event of each order, from the generator itself."""
    files = delivered(range(DAYS_PER_RUN), orders_per_run=SIZE, seed=SEED)
    good = [e for events in files.values() for e in events if e.order_id is not None and e.amount_cents >= 0]
    return {str(event.order_id): event for event in sorted(good, key=lambda event: event.event_time)}


@pytest.fixture(scope="module")
def asked(kept: Told) -> list[dict[str, Any]]:
    """Rows of the tables, asked for with the very command that the demo prints. Afterwards an order is changed."""
    command = next(line for line in kept.output.splitlines() if line.startswith("  tidegate sql "))
    connected, _, _ = command.strip().removeprefix("tidegate").rpartition(' "SELECT')
    ran = subprocess.run(
        f"{sys.executable} -m tidegate{connected} --format json --master 'local[2]' --conf spark.driver.memory=1g -",
        shell=True,
        input=STATEMENTS,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_it_tells_the_story_to_the_end_and_every_check_holds(kept: Told) -> None:
    assert kept.code == 0, kept.output + kept.errors
    assert kept.numbers["passed"] is True
    assert all(check["holds"] for check in kept.numbers["checks"])
    assert len(kept.numbers["checks"]) > 15
    headings = re.findall(r"^(\d)\. (\w+)", kept.output, re.MULTILINE)
    assert [int(number) for number, _ in headings] == list(range(1, 8))
    assert [act["name"].split()[0].rstrip(":") for act in kept.numbers["acts"]] == [word for _, word in headings]
    assert "All checks hold." in kept.output


def test_in_a_log_it_is_plain_lines_and_spark_says_nothing(kept: Told) -> None:
    assert kept.errors == ""
    assert "\x1b" not in kept.output


def test_the_second_week_is_taken_in_without_reading_the_first_again(kept: Told) -> None:
    files = delivered(range(DAYS_PER_RUN), orders_per_run=SIZE, seed=SEED)
    weeks = [sum(len(files[day]) for day in range(begin, begin + 7)) for begin in (0, 7)]
    for run, rows in zip(kept.numbers["runs"], weeks, strict=True):
        tables = {table["name"]: table for table in run["tables"]}
        assert tables["order_events"]["rows_inserted"] == rows
        assert tables["orders"]["rows_checked"] == rows
    assert kept.numbers["deliveries"]["events"] == sum(weeks)


def test_broken_rows_are_left_out_and_late_ones_counted(kept: Told) -> None:
    files = delivered(range(DAYS_PER_RUN), orders_per_run=SIZE, seed=SEED)
    every = [event for events in files.values() for event in events]
    counts = {"has id": 0, "not negative": 0, "on time": 0}
    for run in kept.numbers["runs"]:
        for expectation in next(t for t in run["tables"] if t["name"] == "orders")["expectations"]:
            counts[expectation["name"]] += expectation["broken"]
    assert counts["has id"] == sum(event.order_id is None for event in every)
    assert counts["not negative"] == sum(event.amount_cents < 0 for event in every)
    assert counts["on time"] == kept.numbers["deliveries"]["late"] > 0


def test_the_writers_of_the_race_met_and_the_catalog_saw_it(kept: Told) -> None:
    race = kept.numbers["race"]
    stock = next(table for table in kept.numbers["tables"] if table["table"] == "main.shop.stock")
    assert race["conflicts"] == sum(race["reasons"].values()) > 0
    assert stock["conflicts"] >= race["conflicts"]
    assert stock["latest_version"] == 1 + race["sales"], "created, filled, and one version for each sale"


def test_the_tables_say_what_plain_python_says(asked: list[dict[str, Any]], newest: dict[str, Event]) -> None:
    orders = {row["order_id"]: row for row in asked if "order_id" in row}
    assert orders.keys() == newest.keys()
    for order_id, event in newest.items():
        assert orders[order_id] == {
            "order_id": order_id,
            "status": event.status,
            "customer": event.customer,
            "quantity": event.quantity,
            "cents": event.amount_cents,
            "channel": event.channel,
        }
    assert {row["day"]: (row["orders"], row["cents"]) for row in asked if "day" in row} == sold(newest, "day")
    customers = sold(newest, "customer")
    best = sorted(customers, key=lambda name: (-customers[name][1], name))[:10]
    assert {row["customer"]: (row["orders"], row["cents"]) for row in asked if len(row) == 3 and "customer" in row} == {
        name: customers[name] for name in best
    }


def sold(newest: dict[str, Event], by: str) -> dict[str, tuple[int, int]]:
    """How many orders were paid for, and for how much."""
    totals: dict[str, tuple[int, int]] = {}
    for event in newest.values():
        if event.status in {"paid", "shipped"}:
            key = str(event.ordered_at.date()) if by == "day" else event.customer
            count, cents = totals.get(key, (0, 0))
            totals[key] = (count + 1, cents + event.amount_cents)
    return totals


def test_a_kept_catalog_answers_until_it_is_stopped(kept: Told, home: Path) -> None:
    uri = kept.numbers["catalog"]["uri"]
    assert f"the catalog goes on at {uri}, its token is in {home / 'admin.token'}" in kept.output
    headers = {"Authorization": f"Bearer {(home / 'admin.token').read_text().strip()}"}
    answer = httpx.get(f"{uri}/api/2.1/unity-catalog/tables?catalog_name=main&schema_name=shop", headers=headers).json()
    assert sorted(table["name"] for table in answer["tables"]) == [
        "best_customers",
        "daily_revenue",
        "order_events",
        "orders",
        "stock",
    ]


def test_a_second_demo_goes_on_with_the_next_weeks_and_fails_for_the_order_that_was_changed(
    kept: Told, asked: list[dict[str, Any]], home: Path
) -> None:
    assert asked[-1] == {"num_affected_rows": 1}
    told = demo(home)
    assert told.numbers["deliveries"]["first_day"] == "2026-03-15"
    assert told.numbers["size"] == SIZE
    assert told.code == 1
    failed = [check for check in told.numbers["checks"] if not check["holds"]]
    assert [check["what"].split(":")[0] for check in failed] == ["silver", "silver"], told.output
    assert all(check["detail"].startswith(f"{OLD_ORDER}: ") for check in failed)
    assert "Not all checks hold." in told.output
    assert len(told.numbers["checks"]) == len(kept.numbers["checks"])
    assert len(processes_with(f"--home {home} ")) == 1, "only the kept one is left"


def test_what_is_interrupted_stops_everything_and_leaves_nothing(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "demo", "--size", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith("3. "):
            break
    assert processes_with(str(tmp_path)) != []
    os.killpg(running.pid, signal.SIGINT)  # Ctrl-C: a terminal tells everything that runs in it
    said, errors = running.communicate(timeout=120)
    assert (running.returncode, errors) == (130, "")
    assert "Stopped" in said
    assert processes_with(str(tmp_path)) == []
    assert list(tmp_path.glob("tidegate-*")) == []


def scene_in(home: Path, spark: SparkSession) -> Scene:
    stage = Stage(Console(file=io.StringIO()))
    place = open_place(home, orders=None, seed=None)
    return Scene(stage=stage, spark=spark, place=place, timeline=lambda _: {}, render=lambda _: "")


def test_a_schema_that_the_demo_has_not_made_is_left_alone(spark: SparkSession, sql: Sql, tmp_path: Path) -> None:
    sql("CREATE SCHEMA main.shop")
    try:
        with pytest.raises(DemoRefused, match="give another --home"):
            enter(scene_in(tmp_path, spark))
        assert list(tmp_path.iterdir()) == []
    finally:
        sql("DROP SCHEMA main.shop")


def test_where_its_tables_were_dropped_the_demo_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    before = scene_in(tmp_path, spark)
    before.place.prepare()
    (before.place.orders / "2026-03-01.json").touch()
    (before.place.checkpoints / "orders").mkdir(parents=True)
    enter(before)
    assert before.place.files() == []
    assert not before.place.checkpoints.exists()
    assert before.place.used
