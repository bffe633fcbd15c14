"""`tidegate timeline`: when the commits of a table were proposed, ratified and published.

    main.default.orders  latest 12, verified up to 10, 3 conflicts and 1 replay since 2026-03-01 09:30:02
     version  when                  ratified after  published after      size
          12  2026-03-01 09:41:07             4 ms          not yet  1.2 kB
          11  2026-03-01 09:41:05             3 ms             8 ms  1.1 kB
          10  2026-03-01 09:40:59             5 ms          12 ms ✓  1.1 kB

`fetch_timeline` and `render_timelines` are for other commands that have a story to tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, Target, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def timeline(
    table: Annotated[str, typer.Argument(help="Full name of the table: catalog.schema.table.")],
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
    limit: Annotated[int, typer.Option(help="How many commits to show, newest first.", min=1)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")] = False,
) -> None:
    """Show when a table's commits were proposed, ratified and published.

    Also the latest version, how far publication is verified (✓), and the conflicts and
    repeated proposals that the server has met since it started.
    """
    try:
        answer = fetch_timeline(target_of(uri, token, home), table, limit=limit)
    except TidegateError as error:
        flags.fail(error)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    else:
        Console(highlight=False, soft_wrap=True).print(render_timelines([answer]))


# What the server says


def fetch_timeline(target: Target, table: str, *, limit: int) -> dict[str, Any]:
    """The server's answer, decoded, with at most `limit` commits; asks for as many pages as that takes."""
    answer = _get(target, table, {"max_results": limit})
    while answer["next_page_token"] and len(answer["commits"]) < limit:
        wanted = {"max_results": limit - len(answer["commits"]), "page_token": answer["next_page_token"]}
        page = _get(target, table, wanted)
        # An answer that brings nothing ends it, whatever it says about a next page.
        answer["next_page_token"] = page["next_page_token"] if page["commits"] else None
        answer["commits"] += page["commits"]
    return answer


def _get(target: Target, table: str, query: Mapping[str, object]) -> dict[str, Any]:
    return ask(target, f"{EXTENSIONS}/tables/{quote(table, safe='')}/timeline", query=query, holds="commits")


# What people see


def render_timelines(timelines: Iterable[Mapping[str, Any]]) -> RenderableType:
    """Decoded answers, one table below the other."""
    parts: list[RenderableType] = []
    for one in timelines:
        parts += [
            _head(one),
            *_alarms(one),
            _table(one) if one["commits"] else Text("  no commits that the catalog decides\n"),
        ]
    return Group(*parts)


def _head(timeline: Mapping[str, Any]) -> Text:
    head = Text.assemble((timeline["full_name"], "bold cyan"), "  ")
    if timeline["latest_version"] is None:
        return head.append("external: its commits are decided elsewhere")
    latest, verified = timeline["latest_version"], timeline["verified_version"]
    head.append(f"latest {latest}", "bold")
    head.append(f", verified up to {verified}, ", "green" if latest == verified else "yellow")
    head.append(_count(timeline["conflicts"], "conflict"), "yellow" if timeline["conflicts"] else "")
    head.append(f" and {_count(timeline['replays'], 'replay')} since {_moment(timeline['since'])}")
    return head


def _alarms(timeline: Mapping[str, Any]) -> list[Text]:
    # A server of an earlier version knows none.
    return [Text(f"  ALARM: {alarm['message']}", "bold red") for alarm in timeline.get("alarms", [])]


def _table(timeline: Mapping[str, Any]) -> Table:
    older = timeline["commits"][-1]["version"]
    hidden = f"{_count(older, 'older version')} not shown" if older else None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=hidden, caption_justify="left")
    for column in ("version", "when", "ratified after", "published after", "size"):
        table.add_column(column, justify="left" if column == "when" else "right", no_wrap=True)
    alarming = {alarm["version"] for alarm in timeline.get("alarms", [])}
    for commit in timeline["commits"]:
        published = Text("ALARM", "bold red") if commit["version"] in alarming else _published(commit)
        when = commit["timestamp"] or commit["ratified_at"]
        size = "" if commit["file_size"] is None else decimal(commit["file_size"])
        table.add_row(str(commit["version"]), _moment(when), _ratified(commit), published, size)
    return table


def _ratified(commit: Mapping[str, Any]) -> str:
    if commit["version"] == 0:
        return "created"
    return _between(commit["proposed_at"], commit["ratified_at"])


def _published(commit: Mapping[str, Any]) -> Text:
    """Version 0 is published before the table is made of it."""
    verified = commit["verified"]
    if commit["published_at"] is None:
        # Published once, and since then removed by the clean-up of old log files, or out of our sight.
        return Text("- ✓", "dim") if verified else Text("not yet", "yellow")
    took = "before" if commit["version"] == 0 else _between(commit["ratified_at"], commit["published_at"])
    return Text(f"{took} ✓", "green") if verified else Text(took)


def _between(start: int | None, end: int | None) -> str:
    """Stores may know whole seconds only, and clocks differ: what seems to come too early came at once."""
    if start is None or end is None:
        return "-"
    took = max(0, end - start)
    for size, unit in _UNITS:
        if took >= size:
            return f"{took / size:.1f} {unit}"
    return f"{took} ms"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
