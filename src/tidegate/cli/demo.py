"""`tidegate demo`: a catalog and Spark of its own, and the story of `tidegate.demo` on them."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Generator
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.markup import escape

from tidegate.cli.connected import connected, exit_on_refusal
from tidegate.cli.embedded import EmbeddedCatalog, embedded_catalog
from tidegate.cli.statements import in_one_line
from tidegate.cli.timeline import Target, fetch_timeline, render_timelines
from tidegate.compose import TOKEN_FILE
from tidegate.demo.place import ORDERS, ORDERS_MIN, SEED, Place, open_place
from tidegate.demo.scene import Scene
from tidegate.demo.stage import Stage
from tidegate.demo.story import enter, tell
from tidegate.demo.summary import numbers
from tidegate.domain.errors import TidegateError
from tidegate.spark.jars import delta_jars, spark_jars_folder
from tidegate.spark.java import find_java
from tidegate.spark.pipeline import PipelineFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS_MAX = 1000
LOG_WIDTH = 120
ELSEWHERE = ("TIDEGATE_CONFIG", "TIDEGATE_DATABASE", "TIDEGATE_STORAGE_ROOT")
"""Where the catalog of this machine may be: not that of a demo, which has everything in its own home."""


def demo(
    home: Annotated[
        Path | None, typer.Option(help="Folder to make everything in, and keep it; a second run goes on from there.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(min=ORDERS_MIN, help="How many orders to make up.", show_default=str(ORDERS))
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Another seed makes up other orders.", show_default=str(SEED))
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="Cores that Spark may use.")] = 2,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the catalog running and say how to reach it.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for what was measured and checked.")] = None,
) -> None:
    """Run a pipeline on made-up orders, let two writers race, look back, and show what the catalog knows of it.

    It starts a catalog and Spark, and takes about two minutes on two cores. Everything is made in a temporary folder
    and removed at the end, unless --home or --keep is given. Every result is checked: the exit code is 1 if a check
    does not hold.
    """
    for name in ELSEWHERE:
        os.environ.pop(name, None)
    stage = Stage(_console())
    with exit_on_refusal():
        spark_jars_folder()
        find_java()
        _require_writable(json_file)
    try:
        with _home(home, keep=keep) as folder:
            with exit_on_refusal():
                place = open_place(folder, orders=size, seed=seed)
            _perform(stage, place, cores=cores, keep=keep, json_file=json_file)
    except KeyboardInterrupt:
        stage.console.print("\n[yellow]Stopped, with the catalog and Spark.[/]")
        raise typer.Exit(130) from None
    if not stage.passed:
        raise typer.Exit(1)


def _perform(stage: Stage, place: Place, *, cores: int, keep: bool, json_file: Path | None) -> None:
    with contextlib.ExitStack() as stack:
        with stage.act("Start: a catalog and a Spark session"):
            with exit_on_refusal():
                delta_jars(say=lambda line: stage.say(escape(line)))
                with stage.doing("Starting the catalog"):
                    catalog = stack.enter_context(embedded_catalog(place.home))
            stage.say(f"{catalog.uri}, database and tables in {escape(str(place.home))}")
            with stage.doing(f"Starting Spark on {cores} cores"):
                spark = stack.enter_context(_spark(catalog, place, cores))
        scene = _scene(stage, spark, place, Target(catalog.uri, catalog.token))
        with exit_on_refusal():
            enter(scene)
        with _explained(stage):
            tell(scene)
        if json_file is not None:
            told = {**numbers(scene), "catalog": {"uri": catalog.uri, "home": str(place.home), "kept": keep}}
            json_file.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        if keep:
            catalog.detach()
        _say_what_next(stage, catalog, keep=keep)


@contextlib.contextmanager
def _home(given: Path | None, *, keep: bool) -> Generator[Path]:
    """One that was not given is removed, unless the demo came to its end and is to be kept."""
    if given is not None:
        yield given.expanduser().resolve()
        return
    temporary = Path(tempfile.mkdtemp(prefix="tidegate-demo-"))
    kept = False
    try:
        yield temporary
        kept = keep
    finally:
        if not kept:
            shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def _spark(catalog: EmbeddedCatalog, place: Place, cores: int) -> Generator[SparkSession]:
    conf = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # What takes time in a short life on a small machine is compiling and planning, not the data.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.local.dir": str(place.scratch / "local"),
        "spark.sql.warehouse.dir": str(place.scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.databricks.delta.snapshotPartitions": str(cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with connected(
        uri=catalog.uri,
        token=catalog.token,
        catalogs=["main"],
        home=None,
        master=f"local[{cores}]",
        conf=None,
        own_conf=conf,
    ) as found:
        yield found.spark


def _scene(stage: Stage, spark: SparkSession, place: Place, target: Target) -> Scene:
    return Scene(
        stage=stage,
        spark=spark,
        place=place,
        timeline=lambda table: fetch_timeline(target, table, limit=COMMITS_MAX),
        render=render_timelines,
    )


@contextlib.contextmanager
def _explained(stage: Stage) -> Generator[None]:
    """What Spark, the pipeline or the catalog failed at, in a line instead of a Java stack trace."""
    from py4j.protocol import Py4JError  # pyright: ignore[reportMissingTypeStubs]
    from pyspark.errors import PySparkException

    try:
        yield
        return
    except PipelineFailed as failed:
        failed.report.print(stage.console)
        told = str(failed)
    except TidegateError as error:
        told = error.message
    except (Py4JError, PySparkException) as error:
        told = in_one_line(error)
    stage.console.print(f"[bold red]The demo has failed:[/] {escape(told)}", soft_wrap=True)
    raise typer.Exit(1)


def _say_what_next(stage: Stage, catalog: EmbeddedCatalog, *, keep: bool) -> None:
    told = "[bold green]All checks hold.[/]" if stage.passed else "[bold red]Not all checks hold.[/]"
    lines = [f"\n{told} Where to look next:"]
    if keep:
        home, token = escape(str(catalog.home)), escape(shlex.quote(str(catalog.home / TOKEN_FILE)))
        server = f'--uri {catalog.uri} --token "$(cat {token})"'
        lines += [
            f"  the catalog goes on at [bold]{catalog.uri}[/], its token is in [bold]{token}[/]",
            f'  tidegate sql {server} "SELECT * FROM main.shop.daily_revenue"',  # noqa: S608
            f"  tidegate timeline {server} main.shop.stock",
            f"  tidegate shell {server}",
            f"  kill {catalog.process.pid}   [dim]# stops it; everything it has is in {home}[/]",
        ]
    else:
        lines += [
            "  tidegate demo --keep    [dim]# and look around in the tables with tidegate sql, shell and timeline[/]",
            "  src/tidegate/demo/shop.py, the pipeline, and docs/getting-started.md, to begin with one of your own",
        ]
    for line in lines:
        stage.console.print(line, soft_wrap=True)


def _require_writable(file: Path | None) -> None:
    """Known before the work is done, not after it."""
    if file is not None and (
        file.is_dir() or not os.access(file if file.exists() else file.absolute().parent, os.W_OK)
    ):
        raise ValueError(f"--json {file} cannot be written: give a file in a folder that is there.")


def _console() -> Console:
    """Logs have no width of their own, and may have an encoding without a check mark."""
    if hasattr(sys.stdout, "reconfigure"):
        cast("TextIOWrapper[Any]", sys.stdout).reconfigure(errors="replace")
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    return console
