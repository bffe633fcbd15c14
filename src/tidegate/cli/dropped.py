"""`tidegate dropped`: the tables that were dropped and are not purged yet.

table                 dropped               by      purged
main.default.orders   2026-03-01 09:41:07   admin   2026-03-08 09:41:07
main.default.old      2026-02-20 10:00:00   admin   now: 120,000 files removed
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from tidegate.cli import flags
from tidegate.cli.dropping import dropped_tables
from tidegate.cli.results import UNLIMITED_WIDTH
from tidegate.cli.server import Token, Uri, target_of
from tidegate.domain.errors import TidegateError


def dropped(
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")] = False,
) -> None:
    """List the tables that were dropped and are not purged yet, the last dropped first.

    Those that are being purged are shown with how far that is, and what is in the way.
    """
    try:
        found = list(dropped_tables(target_of(uri, token, home)))
    except TidegateError as error:
        flags.fail(error)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    elif not found:
        typer.echo("No table is waiting to be restored or purged.")
    else:
        _print(found)


def _print(found: Sequence[Mapping[str, Any]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("table", "id", "dropped", "by", "purged"):
        table.add_column(column, no_wrap=column != "purged")
    for one in found:
        table.add_row(one["full_name"], one["table_id"], _moment(one["dropped_at"]), one["dropped_by"], _purged(one))
    Console(highlight=False, width=None if sys.stdout.isatty() else UNLIMITED_WIDTH).print(table)


def _purged(one: Mapping[str, Any]) -> str:
    if one["state"] == "DROPPED":
        return _moment(one["purge_at"])
    removed = f"now: {one['files_removed']:,} files removed"
    return removed if one["problem"] is None else f"{removed}. {one['problem']}"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
