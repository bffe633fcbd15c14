"""`tidegate events`: what happened to tables, and with --follow what happens.

12  2026-03-01 09:41:07  table.committed  main.default.orders  version 7: WRITE, 120 rows, +3 files, by ada
13  2026-03-01 09:41:08  table.published  main.default.orders  version 7, by tidegate
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from tidegate.cli import flags, server
from tidegate.domain.errors import TidegateError, Unavailable

WAIT_SECONDS = 20
AGAIN_SECONDS = 1.0
_COLOURS = {"table.alarm": "bold red", "table.dropped": "yellow", "table.purged": "yellow", "table.created": "green"}


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on, and show events as they happen.")] = False,
    after: Annotated[
        int | None, typer.Option(help="Show events after this number.", min=0, show_default="from the oldest kept")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Only of this table: its full name, its id, or catalog.schema.* for a schema.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Only of this kind, such as table.committed; several with commas between.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
    uri: server.Uri = None,
    token: server.Token = None,
    home: flags.Home = None,
) -> None:
    """Show what happened to tables: created, committed, published, renamed, dropped, alarms.

    Every event has a number. Give the last one you have seen with --after to go on from there; with
    --follow the command waits for more until you press Ctrl-C.
    """
    console = Console(highlight=False, soft_wrap=True)
    query = {name: value for name, value in (("after", after), ("table", table), ("kind", kind)) if value is not None}
    try:
        for event in read_events(server.target_of(uri, token, home), query, follow=follow):
            if as_json:
                typer.echo(json.dumps(event))
            else:
                console.print(render_event(event))
    except TidegateError as error:
        flags.fail(error)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def read_events(target: server.Target, query: Mapping[str, object], *, follow: bool) -> Iterator[dict[str, Any]]:
    """Page by page; with `follow` for ever, also while a server that has answered once is away."""
    asked: dict[str, object] = dict(query)
    while True:
        try:
            page = _ask(target, asked)
        except Unavailable:
            if "wait_seconds" not in asked:
                raise
            time.sleep(AGAIN_SECONDS)
            continue
        yield from page["events"]
        if not follow and page["next_after"] >= page["last"]:
            return
        asked["after"] = page["next_after"]
        if follow:
            asked["wait_seconds"] = WAIT_SECONDS


def _ask(target: server.Target, query: Mapping[str, object]) -> dict[str, Any]:
    path = f"{server.EXTENSIONS}/events"
    return server.ask(target, path, query=query, holds="next_after", seconds_max=WAIT_SECONDS + 30)


def render_event(event: Mapping[str, Any]) -> Text:
    when = datetime.fromtimestamp(event["at"] / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    text = Text(f"{event['sequence']:>7}  {when}  ")
    text.append(f"{event['kind']:<22}", _COLOURS.get(event["kind"], "cyan"))
    return text.append(f"  {event['table']}  ").append(f"{_details(event)}by {event['by']}", "dim")


def _details(event: Mapping[str, Any]) -> str:
    data: dict[str, Any] = event["data"]
    parts = [str(data[name]) for name in ("operation", "message") if name in data]
    parts += [f"{data['rows']} rows"] if "rows" in data else []
    parts += [f"+{data['files_added']} files"] if data.get("files_added") else []
    parts += [f"-{data['files_removed']} files"] if data.get("files_removed") else []
    parts += [f"now {data['to']}"] if "to" in data else []
    parts += [", ".join(data["changed"])] if data.get("changed") else []
    version = "" if event["version"] is None else f"version {event['version']}"
    said = ": ".join(part for part in (version, ", ".join(parts)) if part)
    return f"{said}, " if said else ""
