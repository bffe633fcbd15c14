"""`tidegate release`: a managed table goes back to its file system."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError

SECONDS_MAX = 300


def release(
    table: Annotated[str, typer.Argument(help="Full name of the table: catalog.schema.table.")],
    forget: Annotated[
        bool, typer.Option("--forget", help="The catalog forgets the table, instead of keeping it as an external one.")
    ] = False,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Give a managed table back to its file system, with its data and all of its history.

    Its commits are published, a last one takes the catalog's mark from it, and from then on engines
    read and write it by its path. No file is removed.
    """
    body = {"keep": "nothing" if forget else "external"}
    path = f"{EXTENSIONS}/tables/{quote(table, safe='')}/release"
    try:
        target = target_of(uri, token, home)
        done = ask(target, path, method="POST", body=body, holds="location", seconds_max=SECONDS_MAX)
    except TidegateError as error:
        flags.fail(error)
    kept = "The catalog has forgotten it." if forget else "The catalog keeps it as an external table."
    typer.echo(f"{table} is released by version {done['version']}: it is {done['location']}. {kept}")
