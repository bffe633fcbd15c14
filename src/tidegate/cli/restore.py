"""`tidegate restore`: brings a dropped table back."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli import flags
from tidegate.cli.dropping import dropped_url, find_dropped
from tidegate.cli.server import Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError


def restore(
    table: Annotated[str, typer.Argument(help="Full name under which the table was dropped, or its id.")],
    new_name: Annotated[
        str | None, typer.Option("--as", help="Full name under which it comes back.", show_default="its own")
    ] = None,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Bring a dropped table back, with all its versions, under its own name or another one.

    A table that is being purged cannot be restored.
    """
    try:
        target = target_of(uri, token, home)
        found = find_dropped(target, table)
        body = {} if new_name is None else {"new_full_name": new_name}
        answer = ask(target, f"{dropped_url(found['table_id'])}/restore", method="POST", body=body)
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"{answer['full_name']} is back, at version {answer['latest_version']}.")
