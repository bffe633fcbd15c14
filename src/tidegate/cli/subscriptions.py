"""`tidegate subscriptions`: whom the catalog tells of events, and what it could not deliver."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from tidegate.cli import flags, server
from tidegate.cli.events import render_event
from tidegate.cli.results import UNLIMITED_WIDTH
from tidegate.domain.errors import TidegateError

subscriptions = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Tell webhooks, and functions of the server, about events; look at what could not be delivered.",
)

Name = Annotated[str, typer.Argument(help="Name of the subscription.")]
Sequences = Annotated[list[int] | None, typer.Argument(help="Numbers of events.", show_default="all dead letters")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")]


@subscriptions.command("list")
def list_all(
    uri: server.Uri = None, token: server.Token = None, home: flags.Home = None, as_json: AsJson = False
) -> None:
    """List subscriptions, and how far each has come."""
    answer = _call(uri, token, home, "GET", "", holds="subscriptions")
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "target", "of", "up to event", "state", "dead letters"):
        table.add_column(column)
    for one in answer["subscriptions"]:
        target = one["url"] or f"function {one['function']}"
        wanted = ", ".join([one["table"] or "all tables", *one["kinds"], *filter(None, [one["operation"]])])
        table.add_row(one["name"], target, wanted, str(one["cursor"]), _state(one), str(one["dead_letters"]))
    # What goes to a file or another program is not broken into lines as for a terminal.
    Console(highlight=False, width=None if sys.stdout.isatty() else UNLIMITED_WIDTH).print(table)


@subscriptions.command()
def add(
    name: Name,
    url: Annotated[str | None, typer.Option(help="Webhook to call: http://host/path or https://host/path.")] = None,
    function: Annotated[
        str | None, typer.Option(help="Function to run in the server: one that its setting functions names.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Only of this table: its full name, its id, or catalog.schema.* for a schema.")
    ] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only of this kind; may be repeated.")] = None,
    operation: Annotated[str | None, typer.Option(help="Only commits by this operation, such as MERGE.")] = None,
    after: Annotated[int | None, typer.Option(help="Begin after this event.", min=0, show_default="now")] = None,
    uri: server.Uri = None,
    token: server.Token = None,
    home: flags.Home = None,
) -> None:
    """Tell a webhook, or a function of the server, about events.

    The secret with which a webhook's deliveries are signed is printed once: keep it.
    """
    body: dict[str, Any] = {"name": name, "table": table, "kinds": kind, "operation": operation, "after": after}
    body |= {"function": function, "webhook": None if url is None else {"url": url}}
    made = _call(uri, token, home, "POST", "", body=body, holds="name")
    typer.echo(f"{made['name']} gets events after {made['cursor']}.")
    if made["secret"]:
        typer.echo(f"The secret of its signatures, which is not shown again: {made['secret']}")


@subscriptions.command()
def pause(name: Name, uri: server.Uri = None, token: server.Token = None, home: flags.Home = None) -> None:
    """Deliver nothing for now; events wait."""
    _call(uri, token, home, "PATCH", _path(name), body={"paused": True}, holds="name")
    typer.echo(f"{name} is paused.")


@subscriptions.command()
def resume(name: Name, uri: server.Uri = None, token: server.Token = None, home: flags.Home = None) -> None:
    """Go on where it stopped, at once."""
    _call(uri, token, home, "PATCH", _path(name), body={"paused": False}, holds="name")
    typer.echo(f"{name} goes on.")


@subscriptions.command()
def remove(name: Name, uri: server.Uri = None, token: server.Token = None, home: flags.Home = None) -> None:
    """Remove a subscription and its dead letters."""
    _call(uri, token, home, "DELETE", _path(name))
    typer.echo(f"{name} is gone.")


@subscriptions.command("dead-letters")
def dead_letters(
    name: Name, uri: server.Uri = None, token: server.Token = None, home: flags.Home = None, as_json: AsJson = False
) -> None:
    """Show events that could not be delivered, and why."""
    console, after = Console(highlight=False, soft_wrap=True), 0
    while True:
        path = f"{_path(name)}/dead-letters"
        page = _call(uri, token, home, "GET", path, query={"after": after}, holds="dead_letters")
        for letter in page["dead_letters"]:
            if as_json:
                typer.echo(json.dumps(letter))
            else:
                console.print(render_event(letter["event"]))
                console.print(f"         {letter['attempts']} attempts: {letter['error']}", style="yellow")
        after = page["next_after"]
        if after is None:
            return


@subscriptions.command()
def resend(
    name: Name, sequences: Sequences = None, uri: server.Uri = None, token: server.Token = None, home: flags.Home = None
) -> None:
    """Send dead letters again; those that fail once more stay."""
    path = f"{_path(name)}/dead-letters/resend"
    count = _call(uri, token, home, "POST", path, body={"sequences": sequences or None}, holds="count")["count"]
    typer.echo(f"{count} to be sent again.")


@subscriptions.command()
def discard(
    name: Name, sequences: Sequences = None, uri: server.Uri = None, token: server.Token = None, home: flags.Home = None
) -> None:
    """Forget dead letters."""
    path = f"{_path(name)}/dead-letters/discard"
    count = _call(uri, token, home, "POST", path, body={"sequences": sequences or None}, holds="count")["count"]
    typer.echo(f"{count} forgotten.")


def _call(
    uri: str | None, token: str | None, home: Path | None, method: str, path: str, **options: Any
) -> dict[str, Any]:
    try:
        return server.ask(
            server.target_of(uri, token, home), f"{server.EXTENSIONS}/subscriptions{path}", method=method, **options
        )
    except TidegateError as error:
        flags.fail(error)


def _path(name: str) -> str:
    return f"/{quote(name, safe='')}"


def _state(one: dict[str, Any]) -> str:
    state = "paused" if one["paused"] else f"{one['attempts']} failed attempts" if one["attempts"] else "delivers"
    return f"{state}: {one['note']}" if one["note"] else state
