"""`tidegate drop`: drops a table, so that it can be restored for a while, or for good."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidegate.cli import flags
from tidegate.cli.dropping import dropped_tables, dropped_url, table_url
from tidegate.cli.server import Target, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError


def drop(
    table: Annotated[str, typer.Argument(help="Full name of the table: catalog.schema.table.")],
    purge: Annotated[bool, typer.Option("--purge", help="For good: it cannot be restored, its files go.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also if foreign keys refer to it: they are removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a purge.")] = False,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Drop a table. Its name is free at once; it can be restored until its retention ends.

    With --purge there is no way back: the files of a managed table are removed in the
    background. Those of an external table are never touched.
    """
    try:
        target = target_of(uri, token, home)
        found = ask(target, table_url(table), holds="table_id")
        if purge and not yes:
            _confirm(table, found)
        ask(target, table_url(table), method="DELETE", query={"force": "true"} if force else None)
        typer.echo(_purge(target, table, found) if purge else _dropped(target, table, found))
    except TidegateError as error:
        flags.fail(error)


def _confirm(table: str, found: dict[str, Any]) -> None:
    files = "" if found["table_type"] == "EXTERNAL" else f" and all files in {found['storage_location']}"
    typer.confirm(f"Purge {table}{files}? There is no way back.", abort=True, err=True)


def _purge(target: Target, table: str, found: dict[str, Any]) -> str:
    state = ask(target, dropped_url(found["table_id"]), method="DELETE")["state"]
    if state == "GONE":
        return f"{table} is purged. Its files were never the catalog's, and stay."
    return f"{table} is dropped and being purged. `tidegate dropped` shows how far it is."


def _dropped(target: Target, table: str, found: dict[str, Any]) -> str:
    id = found["table_id"]
    kept = next((one for one in dropped_tables(target) if one["table_id"] == id), None)
    if kept is None or kept["state"] != "DROPPED":
        return f"{table} is dropped."
    hours = round((kept["purge_at"] - kept["dropped_at"]) / 3_600_000)
    return f"{table} is dropped. For {hours} hours it can be restored: tidegate restore {id}"
