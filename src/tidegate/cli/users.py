"""`tidegate users`: the users and service accounts of a catalog."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli import flags
from tidegate.cli.identities import URL, listed, url_of
from tidegate.cli.server import Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError

users = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Users and service accounts.",
)

Name = Annotated[str, typer.Argument(help="The name, such as ada@example.org.")]
Service = Annotated[bool, typer.Option("--service", help="A service account, for a program.")]


@users.command("list")
def list_users(uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """List them."""
    try:
        found = listed(target_of(uri, token, home), "user", "service account")
    except TidegateError as error:
        flags.fail(error)
    for one in found:
        typer.echo(one["name"] + ("  (service account)" if one["kind"] == "service account" else ""))
    if not found:
        typer.echo("There is nobody but the admin.")


@users.command("add")
def add_user(
    name: Name, service: Service = False, uri: Uri = None, token: Token = None, home: flags.Home = None
) -> None:
    """Add one, who has no token and no rights yet."""
    kind = "service account" if service else "user"
    try:
        made = ask(target_of(uri, token, home), URL, method="POST", body={"name": name, "kind": kind}, holds="name")
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"{made['name']} is a {kind} now. Make a token with: tidegate tokens create --for {made['name']}")


@users.command("remove")
def remove_user(name: Name, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """Remove one, with tokens, memberships and grants. What they own is the admin's then."""
    try:
        ask(target_of(uri, token, home), url_of(name), method="DELETE")
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"{name} is removed.")
