"""Declaring and planning a pipeline: all that needs no Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tidegate.spark.pipeline import (
    DeclarationError,
    ExpectationReport,
    Pipeline,
    PipelineFailed,
    Report,
    TableReport,
    drop,
    warn,
)
from tidegate.spark.pipeline.declarations import Table, View, fingerprint
from tidegate.spark.pipeline.history import Commit, Mark, parse_mark
from tidegate.spark.pipeline.progress import Event, listening
from tidegate.spark.pipeline.report import measures, versions_text
from tidegate.spark.pipeline.writers import ATTEMPTS_MAX, Tally, retry_conflicts


def shop() -> Pipeline:
    """bronze -> silver -> daily, and a view on bronze that a second batch table reads."""
    pipeline = Pipeline("shop", schema="main.shop", checkpoints="/checkpoints")

    @pipeline.table
    def daily(silver: Any) -> Any: ...

    @pipeline.table(stream=True, keys="id", sequence_by=["at"], expect=[drop("has id", "id IS NOT NULL")])
    def silver(bronze: Any) -> Any: ...

    @pipeline.view
    def errors(bronze: Any) -> Any: ...

    @pipeline.table(name="main.audit.errors", inputs={"people": "main.crm.people"})
    def audit(errors: Any, people: Any, limit: int = 10) -> Any: ...

    @pipeline.table(stream=True)
    def bronze(spark: Any) -> Any: ...

    return pipeline


def order(pipeline: Pipeline, **options: Any) -> list[str]:
    return [step.table.name for step in pipeline.plan(**options).steps]


def refreshed(pipeline: Pipeline, **options: Any) -> list[str]:
    return [step.table.name for step in pipeline.plan(**options).steps if step.refresh]


def test_tables_run_after_those_they_need_and_else_as_declared() -> None:
    assert order(shop()) == ["bronze", "silver", "daily", "audit"]


def test_only_takes_some_tables_in_the_same_order() -> None:
    assert order(shop(), only=["daily", "silver"]) == ["silver", "daily"]
    assert order(shop(), only="audit") == ["audit"]


def test_a_plan_shows_what_would_run() -> None:
    assert shop().describe().splitlines() == [
        "shop: 4 tables",
        "1. bronze  stream <- spark",
        "2. silver  upsert by id <- bronze (stream); expects has id (drop)",
        "3. daily   batch <- silver",
        "4. audit   batch <- bronze, main.crm.people",
    ]


def test_what_is_read_through_a_view_is_read_by_the_table() -> None:
    audit = next(step for step in shop().plan().steps if step.table.name == "audit")
    assert [(read.source, read.table, read.streamed) for read in audit.reads] == [
        ("main.shop.bronze", "bronze", False),
        ("main.crm.people", None, False),
    ]
    assert audit.table.full_name == "main.audit.errors"
    assert [view.name for view in audit.views] == ["errors"]
    assert not audit.uses_session


def test_a_view_is_a_stream_for_a_streaming_table_unless_it_is_a_snapshot() -> None:
    pipeline = shop()

    @pipeline.table(stream=True)
    def followed(errors: Any) -> Any: ...

    @pipeline.table(stream=True, snapshot=["errors"], inputs={"raw": "main.shop.bronze"})
    def joined(raw: Any, errors: Any) -> Any: ...

    steps = {step.table.name: step for step in pipeline.plan().steps}
    assert [str(read) for read in steps["followed"].reads] == ["bronze (stream)"]
    assert [str(read) for read in steps["joined"].reads] == ["bronze (stream)", "bronze"]


def test_a_full_refresh_takes_along_what_streams_from_the_table() -> None:
    assert refreshed(shop()) == []
    assert refreshed(shop(), full_refresh=True) == ["bronze", "silver", "daily", "audit"]
    assert refreshed(shop(), full_refresh=["bronze"]) == ["bronze", "silver"]
    assert refreshed(shop(), full_refresh="daily") == ["daily"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ["sliver"]}, "only= names sliver; the tables of the pipeline are bronze, silver, daily, audit."),
        ({"only": ["errors"]}, "only= names errors; the tables"),
        ({"full_refresh": ["x"]}, "full_refresh= names x; the tables"),
        (
            {"only": ["bronze"], "full_refresh": True},
            r"silver has to be refreshed \(it streams from bronze\), and only=",
        ),
        ({"only": ["bronze"], "full_refresh": "daily"}, r"daily has to be refreshed \(full_refresh= names it\)"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        shop().plan(**options)


def unknown_input(pipeline: Pipeline) -> None:
    @pipeline.table
    def gold(sliver: Any) -> Any: ...


def circle(pipeline: Pipeline) -> None:
    @pipeline.table
    def egg(hen: Any) -> Any: ...

    @pipeline.view
    def hen(egg: Any) -> Any: ...


def streams_from_upserts(pipeline: Pipeline) -> None:
    @pipeline.table(stream=True)
    def gold(silver: Any) -> Any: ...


def streams_from_a_batch_table(pipeline: Pipeline) -> None:
    @pipeline.table(stream=True)
    def gold(daily: Any) -> Any: ...


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            unknown_input,
            "gold takes sliver, which is no table of the pipeline: it knows daily, silver, errors, audit, br",
        ),
        (unknown_input, r"inputs=\{'sliver': 'catalog.schema.table'\}"),
        (circle, "Tables cannot need each other: egg -> hen -> egg."),
        (
            streams_from_upserts,
            "gold cannot stream from silver, which is upserted by its keys: only tables that are add",
        ),
        (streams_from_a_batch_table, "gold cannot stream from daily, which is computed as a whole"),
    ],
)
def test_declarations_that_do_not_fit_together_are_refused_by_the_plan(
    declare: Callable[[Pipeline], None], message: str
) -> None:
    pipeline = shop()
    declare(pipeline)
    with pytest.raises(DeclarationError, match=message):
        pipeline.plan()


def test_a_streaming_table_needs_a_folder_for_checkpoints() -> None:
    pipeline = Pipeline("p", schema="main.p")
    pipeline.table(stream=True)(some_table)
    with pytest.raises(DeclarationError, match="some_table is a streaming table and needs a place"):
        pipeline.plan()


def some_table(spark: Any, other: Any = None) -> Any: ...


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": ["id"]}, "keys=, snapshot= and evolve= are for streaming tables"),
        ({"evolve": True}, "keys=, snapshot= and evolve= are for streaming tables"),
        ({"stream": True, "keys": ["id"]}, "keys= and sequence_by= go together"),
        ({"stream": True, "sequence_by": ["at"]}, "keys= and sequence_by= go together"),
        ({"expect": [warn("a", "x > 0"), drop("a", "y > 0")]}, "several expectations named a"),
        ({"inputs": {"ordres": "main.a.b"}}, "inputs= names ordres, and the function takes none."),
        ({"stream": True, "snapshot": "spark"}, "snapshot= names spark, and the function takes none."),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    pipeline = Pipeline("p", schema="main.p")
    with pytest.raises(DeclarationError, match=f"some_table: .*{message}"):
        pipeline.table(**options)(some_table)
    assert order(pipeline) == []


def test_a_name_is_given_once() -> None:
    pipeline = Pipeline("p", schema="main.p")
    pipeline.table(some_table)
    with pytest.raises(DeclarationError, match="p has a some_table already"):
        pipeline.view(some_table)
    with pytest.raises(DeclarationError, match=r"other and some_table are both stored as main.p.some_table"):

        @pipeline.table(name="some_table")
        def other() -> Any: ...


def test_a_function_named_like_the_session_is_refused() -> None:
    def spark() -> Any: ...

    with pytest.raises(DeclarationError, match="A function named spark"):
        Pipeline("p", schema="main.p").table(spark)


def test_decorated_functions_stay_ordinary_functions() -> None:
    pipeline = Pipeline("p", schema="main.p", checkpoints=Path("/tmp/c"))

    @pipeline.table(stream=True)
    def doubled(numbers: list[int]) -> Any:
        return [2 * number for number in numbers]

    assert doubled([1, 2]) == [2, 4]


def test_a_fingerprint_follows_the_code_of_the_table_and_of_its_views() -> None:
    def first(bronze: Any) -> Any:
        return bronze.select("a")

    def second(bronze: Any) -> Any:
        return bronze.select("b")

    def table(function: Any, **options: Any) -> Table:
        return Table(name="t", full_name="main.p.t", function=function, **options)

    typed_at_a_prompt: dict[str, Any] = {}
    exec("def first(bronze): return bronze.select('a')", typed_at_a_prompt)
    tables = [
        table(first),
        table(second),
        table(first, expect=(warn("a", "a > 0"),)),
        table(first, inputs={"bronze": "main.p.other"}),
        table(typed_at_a_prompt["first"]),
    ]
    prints = [fingerprint(one, []) for one in tables]
    prints += [fingerprint(tables[0], [View(name="v", function=function)]) for function in (first, second)]
    assert len(set(prints)) == len(prints)
    assert prints[0] == fingerprint(table(first), [])


def test_marks_of_commits_are_read_back_and_those_of_others_ignored() -> None:
    mark = Mark(pipeline="shop", table="t", run="r", inputs={"main.a.b": "3@1"}, code="c")
    assert parse_mark(mark.to_json()) == mark
    for foreign in (None, "", "nightly load", "3", "{}", '{"tidegate": 3}', '{"tidegate": {"pipeline": "shop"}}'):
        assert parse_mark(foreign) is None


def report(outcome: Any = "done", reason: str = "") -> Report:
    table = TableReport(
        name="silver",
        table="main.shop.silver",
        kind="upsert",
        outcome=outcome,
        reason=reason,
        seconds=1.25,
        versions=(3, 4, 5, 7),
        rows_inserted=1200,
        rows_updated=3,
        files_added=2,
        files_removed=1,
        rows_checked=1300,
        expectations=(ExpectationReport("has id", "drop", 97),),
        conflicts=2,
    )
    return Report("shop", "r1", "2026-01-01T00:00:00+00:00", 1.5, (table,))


def test_a_report_is_a_table_for_people() -> None:
    console = Console(width=160, record=True, file=None, quiet=False)
    with console.capture() as captured:
        report().print(console)
    text = captured.get()
    for shown in ("silver", "upsert", "done", "+1,200 ~3", "+2 -1", "v3..v5, v7", "has id (drop): 97", "2", "1.2"):
        assert shown in text


def test_a_report_is_json_for_programs(tmp_path: Path) -> None:
    report().write(tmp_path / "report.json")
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["tables"][0]["versions"] == [3, 4, 5, 7]
    assert told["tables"][0]["expectations"] == [{"name": "has id", "action": "drop", "broken": 97}]
    assert (told["pipeline"], told["seconds"]) == ("shop", 1.5)


def test_a_failed_run_says_which_tables_failed_and_why() -> None:
    failed = report("failed", "silver: [no] space left")
    assert failed.failed and not report().failed
    assert str(PipelineFailed(failed)) == "1 of 1 tables failed\nsilver: [no] space left"
    console = Console(width=160)
    with console.capture() as captured:
        failed.print(console)
    assert "[no] space left" in captured.get()


@pytest.mark.parametrize(
    ("versions", "text"), [((), ""), ((0,), "v0"), ((0, 1), "v0..v1"), ((1, 3, 4, 9), "v1, v3..v4, v9")]
)
def test_versions_are_shown_as_ranges(versions: tuple[int, ...], text: str) -> None:
    assert versions_text(versions) == text


def test_measures_add_up_over_the_commits_of_a_run() -> None:
    merge = {
        "numTargetRowsInserted": "2",
        "numTargetRowsUpdated": "1",
        "numOutputRows": "9",
        "numTargetFilesAdded": "1",
    }
    write = {"numOutputRows": "5", "numFiles": "2", "numRemovedFiles": "4"}
    assert measures([Commit(1, 0, merge), Commit(2, 0, write), Commit(3, 0)]) == {
        "rows_inserted": 7,
        "rows_updated": 1,
        "rows_deleted": 0,
        "files_added": 3,
        "files_removed": 4,
    }


class JavaException:
    """As PySpark shows one of the JVM."""

    def __init__(self, name: str, cause: JavaException | None = None) -> None:
        self.name = name
        self.cause = cause

    def getClass(self) -> JavaException:
        return self

    def getName(self) -> str:
        return self.name

    def getCause(self) -> JavaException | None:
        return self.cause


class RaisedByJava(Exception):
    def __init__(self, name: str, cause: JavaException | None = None) -> None:
        self.java_exception = JavaException(name, cause)


def test_a_lost_race_is_run_again_with_longer_and_longer_pauses() -> None:
    race = RaisedByJava(
        "org.apache.spark.SparkException", JavaException("io.delta.exceptions.ConcurrentAppendException")
    )
    raised = iter([race, race])
    tally, pauses = Tally(), list[float]()

    def write() -> str:
        for error in raised:
            raise error
        return "written"

    assert retry_conflicts(write, tally, pauses.append) == "written"
    assert tally.conflicts == len(pauses) == 2


def test_races_are_not_run_for_ever_and_other_errors_not_again() -> None:
    def always(error: Exception) -> int:
        tally, tries = Tally(), list[int]()

        def write() -> None:
            tries.append(1)
            raise error

        with pytest.raises(type(error)):
            retry_conflicts(write, tally, lambda seconds: None)
        return len(tries)

    assert always(RaisedByJava("io.delta.exceptions.ConcurrentDeleteReadException")) == ATTEMPTS_MAX
    assert always(RaisedByJava("java.io.IOException")) == 1
    assert always(ValueError()) == 1


def test_without_a_terminal_progress_is_one_line_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(True, ["silver"]) as tell:
        tell(Event("silver", "running"))
        tell(Event("silver", "running", 500))
        tell(Event("silver", "done", 500, "+500, v3"))
    with listening(False, ["silver"]) as tell:
        tell(Event("silver", "running"))
    assert capsys.readouterr().err.splitlines() == ["silver: running", "silver: done, +500, v3"]


def test_on_a_terminal_progress_is_live(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with listening(True, ["silver", "gold"]) as tell:
        tell(Event("silver", "running", 1500))
        tell(Event("silver", "failed", text="[NO] space left"))
    shown = capsys.readouterr().err
    assert "gold" in shown and "waiting" in shown and "[NO] space left" in shown


def test_progress_may_be_told_to_a_function() -> None:
    heard: list[Event] = []
    with listening(heard.append, ["silver"]) as tell:
        tell(Event("silver", "running", 7))
    assert heard == [Event("silver", "running", 7)]
