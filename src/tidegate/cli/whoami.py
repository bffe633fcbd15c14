"""`tidegate whoami`: who the caller is to the server."""

from __future__ import annotations

import typer

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError


def whoami(uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """Show who the token belongs to, and which groups that is in."""
    try:
        found = ask(target_of(uri, token, home), f"{EXTENSIONS}/whoami", holds="groups")
    except TidegateError as error:
        flags.fail(error)
    kind = f", {found['kind']}" if found["kind"] else ""
    groups = f", in {', '.join(found['groups'])}" if found["groups"] else ""
    typer.echo(found["name"] + kind + groups)
