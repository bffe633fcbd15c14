"""`tidegate adoptable`: where tables may be adopted from, besides the storage of managed tables."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError

_URL = f"{EXTENSIONS}/adoptable-locations"

adoptable = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Places outside the storage of managed tables where tables may be adopted.",
)

Place = Annotated[str, typer.Argument(help="A folder, which stands for all below it too: file:///path.")]


@adoptable.command("list")
def list_places(uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """List them."""
    try:
        found = ask(target_of(uri, token, home), _URL, holds="locations")["locations"]
    except TidegateError as error:
        flags.fail(error)
    for place in found:
        typer.echo(place["location"])
    if not found:
        typer.echo("Tables may be adopted from the storage of managed tables only.")


@adoptable.command("add")
def add_place(location: Place, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """Allow to adopt tables there."""
    try:
        added = ask(target_of(uri, token, home), _URL, method="POST", body={"location": location}, holds="location")
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"Tables may be adopted from {added['location']} and below.")


@adoptable.command("remove")
def remove_place(location: Place, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """Allow it no longer. Tables that were adopted from there stay."""
    try:
        ask(target_of(uri, token, home), _URL, method="DELETE", query={"location": location})
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"Tables may no longer be adopted from {location}.")
