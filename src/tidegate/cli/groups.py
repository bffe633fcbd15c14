"""`tidegate groups`: groups of users and service accounts."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from tidegate.cli import flags
from tidegate.cli.identities import URL, listed, url_of
from tidegate.cli.server import EXTENSIONS, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError

groups = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Groups of users and service accounts.",
)

Group = Annotated[str, typer.Argument(help="The name of the group.")]
Member = Annotated[str, typer.Argument(help="A user or a service account.")]


@groups.command("list")
def list_groups(uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """List them."""
    try:
        found = listed(target_of(uri, token, home), "group")
    except TidegateError as error:
        flags.fail(error)
    for one in found:
        typer.echo(one["name"])
    if not found:
        typer.echo("There are no groups.")


@groups.command("add")
def add_group(group: Group, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """Add a group, with nobody in it."""
    try:
        ask(target_of(uri, token, home), URL, method="POST", body={"name": group, "kind": "group"}, holds="name")
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"{group} is a group now.")


@groups.command("remove")
def remove_group(group: Group, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """Remove a group, with all that was granted to it. Its members stay."""
    try:
        ask(target_of(uri, token, home), url_of(group), method="DELETE")
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"{group} is removed.")


@groups.command("members")
def list_members(group: Group, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """List who is in a group."""
    try:
        found = ask(target_of(uri, token, home), _members(group), holds="members")["members"]
    except TidegateError as error:
        flags.fail(error)
    for member in found:
        typer.echo(member)
    if not found:
        typer.echo("Nobody is in it.")


@groups.command("join")
def join_group(group: Group, member: Member, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """Add somebody to a group."""
    try:
        ask(target_of(uri, token, home), _member(group, member), method="PUT", holds="members")
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"{member} is in {group}.")


@groups.command("leave")
def leave_group(group: Group, member: Member, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """Take somebody out of a group."""
    try:
        ask(target_of(uri, token, home), _member(group, member), method="DELETE", holds="members")
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"{member} is no longer in {group}.")


def _members(group: str) -> str:
    return f"{EXTENSIONS}/groups/{quote(group, safe='')}/members"


def _member(group: str, member: str) -> str:
    return f"{_members(group)}/{quote(member, safe='')}"
