"""What the demo refuses before it starts anything, and how it speaks."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tidegate.demo.race import ON_HAND, PRODUCTS, WRITERS, Race, plan_sales
from tidegate.demo.stage import Stage


def refused(*arguments: str, without_pyspark: bool = False) -> str:
    hidden = "sys.modules['pyspark'] = None; " if without_pyspark else ""
    script = f"import sys; {hidden}from tidegate.cli.main import app; app(sys.argv[1:])"
    ran = subprocess.run(
        [sys.executable, "-c", script, "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    return ran.stderr


def test_without_pyspark_it_says_how_to_get_it(tmp_path: Path) -> None:
    told = refused("--home", str(tmp_path / "home"), without_pyspark=True)
    assert told == 'tidegate: PySpark is not installed: pip install "tidegate[spark]".\n'
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["nowhere/numbers.json", "."])
def test_a_file_that_cannot_be_written_is_refused_before_the_work_is_done(file: str, tmp_path: Path) -> None:
    told = refused("--home", str(tmp_path / "home"), "--json", str(tmp_path / file))
    assert "cannot be written" in told
    assert len(told.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "notes", "told"),
    [
        (["--seed", "8"], json.dumps({"orders": 300, "seed": 7}), "was begun with --size 300 --seed 7"),
        (["--size", "301"], json.dumps({"orders": 300, "seed": 7}), "was begun with --size 300 --seed 7"),
        ([], json.dumps({"orders": 300}), "cannot be read as the notes of a demo"),
        ([], "nonsense", "cannot be read as the notes of a demo"),
    ],
)
def test_a_home_goes_on_as_it_was_begun_or_not_at_all(
    arguments: list[str], notes: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "shop.json").write_text(notes)
    said = refused("--home", str(tmp_path), *arguments)
    assert told in said
    assert len(said.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_too_few_orders_are_refused() -> None:
    assert "--size" in refused("--size", "99")


def test_a_check_that_does_not_hold_is_told_and_decides() -> None:
    stage = Stage(Console(file=io.StringIO(), width=100))
    assert not stage.passed, "without a check nothing is known"
    stage.check("a tide comes", found=1, expected=1)
    assert stage.passed
    stage.check("a tide goes", found=[1, 2], expected=[1])
    stage.check("another comes", found=1, expected=1)
    assert not stage.passed
    assert told_by(stage) == ["   ✓ a tide comes", "   ✗ a tide goes: expected [1], found [1, 2]", "   ✓ another comes"]


def test_in_a_log_a_step_is_one_line_with_its_seconds_when_it_is_done() -> None:
    ticks = iter([0.0, 10.0, 12.5, 20.0])
    stage = Stage(Console(file=io.StringIO(), width=100), clock=lambda: next(ticks))
    with stage.act("Tides: up and down"), stage.doing("Waiting for [the] water") as far:
        far("half way")
        stage.log("ankle deep")
    assert told_by(stage) == ["", "1. Tides: up and down", "   ankle deep", "   Waiting for [the] water (2.5 s)"]
    assert [(act.name, act.seconds) for act in stage.acts] == [("Tides: up and down", 20.0)]


def told_by(stage: Stage) -> list[str]:
    file = stage.console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("seed", range(5))
def test_in_each_round_of_the_race_every_writer_sells_the_same_product(seed: int) -> None:
    sales = plan_sales(seed)
    assert plan_sales(seed) == sales
    assert len({str(sale) for sale in sales}) == len(sales), "a sale is known by what it says of itself"
    for number in {sale.round for sale in sales}:
        rivals = [sale for sale in sales if sale.round == number]
        assert {sale.writer for sale in rivals} == set(WRITERS)
        assert len({sale.product for sale in rivals}) == 1
    left = Race(sales).left()
    assert set(left) == set(PRODUCTS)
    assert sum(left.values()) == ON_HAND * len(PRODUCTS) - sum(sale.quantity for sale in sales)
    assert all(0 < count < ON_HAND for count in left.values())
