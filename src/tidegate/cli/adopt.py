"""`tidegate adopt`: a table of a file system becomes one of the catalog."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError

SECONDS_MAX = 300


def adopt(
    location: Annotated[str, typer.Argument(help="Where the table lies: file:///path/to/table.")],
    table: Annotated[str, typer.Argument(help="Its name in the catalog: catalog.schema.table.")],
    external: Annotated[
        bool, typer.Option("--external", help="Only make it known: its file system goes on deciding on commits.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look, and show the commit that would be written. Nothing changes.")
    ] = False,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Take over an existing Delta table, with its data, its history and its place.

    Others may be writing to it meanwhile. What they commit before the table is the catalog's is kept; after that
    their engine refuses to write by path, and they go on through the catalog.
    """
    body = {"location": location, "full_name": table, "external": external, "dry_run": dry_run}
    try:
        target = target_of(uri, token, home)
        done = ask(
            target, f"{EXTENSIONS}/adoptions", method="POST", body=body, holds="table_id", seconds_max=SECONDS_MAX
        )
    except TidegateError as error:
        flags.fail(error)
    if dry_run:
        typer.echo(_plan(done["version"], external=external))
        for action in done["actions"]:
            typer.echo(json.dumps(action, indent=2))
    elif external:
        typer.echo(f"{table} is known as an external table, at version {done['version']}. Nothing was written.")
    else:
        typer.echo(f"{table} is a managed table now, by its version {done['version']}.")


def _plan(version: int, *, external: bool) -> str:
    if external:
        return f"The table can be registered, at version {version}. Nothing would be written."
    return f"The table can be adopted. Version {version} would be:"
