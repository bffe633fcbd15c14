"""`tidegate sql`: run statements, print what they answer."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from tidegate.cli import flags
from tidegate.cli.connected import Catalogs, Conf, Master, Token, Uri, connected
from tidegate.cli.results import print_csv, print_json, print_table
from tidegate.cli.statements import in_one_line, split_statements

TABLE_ROWS_MAX = 1000


class Format(StrEnum):
    table = "table"
    csv = "csv"
    json = "json"


def sql(
    statements: Annotated[
        str | None, typer.Argument(help="Statements, separated by semicolons; - reads them from the standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="File to read the statements from.")] = None,
    format: Annotated[Format, typer.Option(help="How to print rows; json is one object per line.")] = Format.table,
    rows: Annotated[
        int, typer.Option(min=1, help="Rows of a table to print; csv and json print all.")
    ] = TABLE_ROWS_MAX,
    uri: Uri = None,
    token: Token = None,
    catalog: Catalogs = None,
    home: flags.Home = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Run SQL statements and print their results.

    Without --uri, a catalog server is started on --home, and stopped at the end. The first statement that fails ends
    the run with exit code 1.
    """
    wanted = split_statements(_read(statements, file))
    if not wanted:
        _fail('There is nothing to run: give statements, as in tidegate sql "SHOW SCHEMAS", or --file.', code=2)
    own_conf = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    with connected(
        uri=uri, token=token, catalogs=catalog, home=home, master=master, conf=conf, own_conf=own_conf
    ) as found:
        for number, statement in enumerate(wanted, start=1):
            where = f"statement {number}: " if len(wanted) > 1 else ""
            _run(found.spark, statement, format, rows_max=rows, where=where)


def _read(statements: str | None, file: Path | None) -> str:
    if statements is not None and file is not None:
        _fail("Give statements or --file, not both.", code=2)
    try:
        if file is not None:
            return file.read_text(encoding="utf-8")
        if statements is None or statements == "-":
            return "" if statements is None and sys.stdin.isatty() else sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        _fail(f"The statements cannot be read: {error}.", code=2)
    return statements


def _run(spark: Any, statement: str, format: Format, *, rows_max: int, where: str) -> None:
    from py4j.protocol import Py4JError  # pyright: ignore[reportMissingTypeStubs]
    from pyspark.errors import PySparkException

    try:
        with Console(stderr=True).status("Running"):
            answer = spark.sql(statement)
            columns = answer.columns
            # Only a table has to know all of its rows before it can print the first.
            found = answer.take(rows_max + 1) if format is Format.table else answer.toLocalIterator()
        if not columns:
            return
        match format:
            case Format.table:
                print_table(columns, list(found), rows_max=rows_max)
            case Format.csv:
                print_csv(columns, found)
            case Format.json:
                print_json(columns, found)
    except (PySparkException, Py4JError) as error:
        _fail(where + in_one_line(error), code=1)


def _fail(message: str, *, code: int) -> NoReturn:
    typer.secho(f"tidegate: {message}", err=True, fg=typer.colors.RED)
    raise typer.Exit(code)
