"""Rows of Spark, printed: as a table for people, as CSV and JSON for programs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

UNLIMITED_WIDTH = 100_000


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, rows_max: int) -> None:
    """`rows` may hold one more than is printed, to tell that there are more."""
    shown = rows[:rows_max]
    table = Table()
    for number, name in enumerate(columns):
        is_number = any(isinstance(row[number], int | float) for row in shown[:1])
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in shown:
        table.add_row(*(Text("NULL", style="dim") if value is None else Text(_text(value)) for value in row))
    # Into a pipe or a file goes the whole line, however long it is.
    Console(width=None if sys.stdout.isatty() else UNLIMITED_WIDTH).print(table)
    if len(rows) > rows_max:
        typer.echo(f"There are more rows: --rows shows more than {rows_max} of them.", err=True)


def print_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow("" if value is None else _text(value) for value in row)
    sys.stdout.flush()


def print_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    for row in rows:
        sys.stdout.write(_json(dict(zip(columns, row, strict=True))) + "\n")
    sys.stdout.flush()


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool() | bytes() | bytearray() | list() | tuple() | dict():
            return _json(value).strip('"')
        case _:
            return str(value)


def _json(value: Any) -> str:
    return _ENCODER.encode(_plain(value)).decode()


def _plain(value: Any) -> Any:
    """Rows become objects with the names of their fields; keys become texts, which JSON wants them to be."""
    as_dict: Callable[[], dict[str, Any]] | None = getattr(value, "asDict", None)
    if as_dict is not None:
        return {name: _plain(field) for name, field in as_dict().items()}
    if isinstance(value, Mapping):
        return {_text(key): _plain(field) for key, field in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    return value


_ENCODER = msgspec.json.Encoder(decimal_format="number", enc_hook=str)
