"""`tidegate tokens`: personal tokens, which are shown once, when they are made."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

import typer

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError

_URL = f"{EXTENSIONS}/tokens"

tokens = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Personal tokens.",
)

For = Annotated[str | None, typer.Option("--for", help="Whose; for an administrator.", show_default="one's own")]
Hours = Annotated[int, typer.Option(help="How long it lives.", min=1)]
Secret = Annotated[bool, typer.Option("--secret", help="A client secret, for a service account to get tokens with.")]
Comment = Annotated[str, typer.Option(help="What it is for.")]


@tokens.command("create")
def create_token(
    whose: For = None,
    hours: Hours = 2160,
    comment: Comment = "",
    secret: Secret = False,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Make a token, and print it: nobody can show it again."""
    body: dict[str, object] = {"principal": whose, "comment": comment, "lifetime_seconds": hours * 3600}
    if secret:
        body["kind"] = "client secret"
    try:
        made = ask(target_of(uri, token, home), _URL, method="POST", body=body, holds="token")
    except TidegateError as error:
        flags.fail(error)
    info = made["info"]
    typer.echo(f"For {info['principal']}, until {_moment(info['expires_at'])}, id {info['id']}:", err=True)
    typer.echo(made["token"])


@tokens.command("list")
def list_tokens(whose: For = None, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """List tokens: all of them but the secrets."""
    query = {} if whose is None else {"principal": whose}
    try:
        found = ask(target_of(uri, token, home), _URL, query=query, holds="tokens")["tokens"]
    except TidegateError as error:
        flags.fail(error)
    for one in found:
        what = "client secret  " if one.get("kind") == "client secret" else ""
        typer.echo(f"{one['id']}  until {_moment(one['expires_at'])}  {what}{one['comment']}".rstrip())
    if not found:
        typer.echo("There are no tokens.")


@tokens.command("revoke")
def revoke_token(
    id: Annotated[str, typer.Argument(help="The id that `tidegate tokens list` shows.")],
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Revoke a token: it opens nothing any more."""
    try:
        ask(target_of(uri, token, home), f"{_URL}/{quote(id, safe='')}", method="DELETE")
    except TidegateError as error:
        flags.fail(error)
    typer.echo("The token is revoked.")


def _moment(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
