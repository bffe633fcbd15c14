"""`tidegate top`: a live view of the servers of a catalog and of what they do.

    Tidegate 0.1.0 at http://127.0.0.1:8080  2 servers, 1240 requests/s, 310 commits/s, 4 conflicts/s
    publishing  12 commits of 3 tables wait, the oldest for 0.4 s, at most 9 of one table

     server         pid   up for  requests/s  commits/s  conflicts/s
     10.0.0.1:8080  4117     2 h         800        210            3

     hottest tables       commits/s  loads/s
     main.default.orders        200      400

    alarms  none

With `--once` it is printed once, for scripts. Without, it goes on until Ctrl-C, also while the server is away.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidegate.cli import flags
from tidegate.cli.server import Target, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError, Unavailable

ASK_SECONDS_MAX = 5.0
"""An answer that takes longer is as good as none: the view would stand still."""
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def top(
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once and exit.")] = False,
    interval: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.2, max=3600)] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON, once.")] = False,
) -> None:
    """Watch the servers of a catalog: what they do, hottest tables, conflicts, publishing, alarms."""
    try:
        target = target_of(uri, token, home)
        if once or as_json:
            status = fetch_status(target)
            typer.echo(json.dumps(status, indent=2)) if as_json else _console().print(render_status(target, status))
        else:
            watch(target, interval)
    except TidegateError as error:
        flags.fail(error)
    except KeyboardInterrupt:
        return


def fetch_status(target: Target) -> dict[str, Any]:
    path = "/api/tidegate/v1/status"
    return ask(target, path, holds="hottest_tables", seconds_max=ASK_SECONDS_MAX)


def watch(target: Target, interval: float) -> None:
    """For ever. A server that is away is tried again; a refusal ends it. Where there is no terminal to draw on, every
    look is printed below the one before.
    """
    console, away_since = _console(), None
    shown: RenderableType = Text(f"Asking {target.uri} ...", "dim")
    with Live(shown, console=console, auto_refresh=False, transient=not console.is_terminal) as live:
        while True:
            try:
                shown, away_since = render_status(target, fetch_status(target)), None
                view = shown
            except Unavailable as error:
                away_since = away_since or time.monotonic()
                view = Group(_away(error, time.monotonic() - away_since), shown)
            if console.is_terminal:
                live.update(view, refresh=True)
            else:
                console.print(view)
            time.sleep(interval)


def _console() -> Console:
    return Console(highlight=False)


def _away(error: Unavailable, seconds: float) -> Text:
    told = f"{error.message} Trying again; away for {_lasting(seconds)}. What follows is old."
    return Text(told, "bold red")


# What people see


def render_status(target: Target, status: Mapping[str, Any]) -> RenderableType:
    return Group(
        _head(target, status),
        _publishing(status["unpublished"]),
        _servers(status),
        _tables(status["hottest_tables"]),
        *_alarms(status),
    )


def _head(target: Target, status: Mapping[str, Any]) -> Text:
    silent, servers = sum(server["silent"] for server in status["servers"]), _count(len(status["servers"]), "server")
    versions = " and ".join(sorted({server["version"] for server in status["servers"]}))
    head = Text.assemble(("Tidegate", "bold cyan"), f" {versions} at {target.uri}  ", (servers, "bold"))
    if silent:
        head.append(f" ({silent} silent)", "red")
    requests, commits = _rate(status["requests_per_second"]), _rate(status["commits_per_second"])
    head.append(f", {requests} requests/s, {commits} commits/s, ")
    conflicts = status["conflicts_per_second"]
    return head.append(f"{_rate(conflicts)} conflicts/s", "yellow" if conflicts else "")


def _publishing(unpublished: Mapping[str, Any]) -> Text:
    line = Text.assemble(("publishing", "bold"), "  ")
    if not unpublished["commits"]:
        return line.append("nothing waits", "green")
    waits = f"{_count(unpublished['commits'], 'commit')} of {_count(unpublished['tables'], 'table')} wait, "
    rest = f"the oldest for {_lasting(unpublished['seconds'])}, at most {unpublished['largest']} of one table"
    return line.append(waits + rest, "yellow" if unpublished["seconds"] > 10 else "")


def _servers(status: Mapping[str, Any]) -> Table:
    table = _grid("server", "pid", "up for", "requests/s", "commits/s", "conflicts/s")
    for server in status["servers"]:
        silent = f"silent {_lasting((status['at'] - server['seen_at']) / 1000)}"
        table.add_row(
            (server["url"] or server["host"]).removeprefix("http://"),
            str(server["pid"]),
            Text(silent, "red") if server["silent"] else _lasting((status["at"] - server["started_at"]) / 1000),
            *(_rate(server[rate]) for rate in ("requests_per_second", "commits_per_second", "conflicts_per_second")),
        )
    return table


def _tables(hottest: list[Mapping[str, Any]]) -> RenderableType:
    if not hottest:
        return Text("no table was read or written in the last seconds", "dim")
    table = _grid("hottest tables", "commits/s", "loads/s")
    for hot in hottest:
        table.add_row(hot["full_name"], _rate(hot["commits_per_second"]), _rate(hot["loads_per_second"]))
    return table


def _alarms(status: Mapping[str, Any]) -> list[RenderableType]:
    if not status["alarms"]:
        return [Text.assemble(("alarms", "bold"), "  ", ("none", "green"))]
    head = Text.assemble(("alarms", "bold"), "  ", (str(status["alarms"]), "bold red"))
    return [head, *(_alarm(alarm) for alarm in status["newest_alarms"])]


def _alarm(alarm: Mapping[str, Any]) -> Text:
    about = f"{alarm['full_name']} version {alarm['version']}"
    return Text.assemble(" ", (about, "red"), f"  {alarm['message']}")


def _grid(first: str, *others: str) -> Table:
    """The first column gives way where the terminal is narrow."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, overflow="fold", min_width=14)
    for column in others:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _rate(per_second: float) -> str:
    return f"{per_second:.0f}" if per_second >= 10 or per_second == int(per_second) else f"{per_second:.1f}"


def _lasting(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= size * (1 if unit == "s" else 2):
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.1f} s"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
