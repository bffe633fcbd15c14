"""`tidegate audit`: who asked for what, from where, and whether it was done; the newest last.

2026-03-01 09:41:07  ada    127.0.0.1  updateTable  main.default.orders  version 7
2026-03-01 09:41:08  bob    10.0.0.7   updateTable  main.default.orders  refused: PermissionDenied: bob may not ...
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, Target, Token, Uri, ask, target_of
from tidegate.domain.errors import InvalidRequest, TidegateError

PAGE_SIZE = 1000
_AGO_MS = {"s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def audit(
    principal: Annotated[str | None, typer.Option(help="Only what this principal asked for.")] = None,
    table: Annotated[
        str | None, typer.Option(help="Only about this table, or this schema or catalog and what is in it.")
    ] = None,
    operation: Annotated[str | None, typer.Option(help="Only this endpoint, such as updateTable.")] = None,
    refused: Annotated[
        bool | None, typer.Option("--refused/--allowed", help="Only what was refused, or only what was done.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="From this moment on: 2026-03-01T09:00, or how long ago: 30min, 2h, 7d.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Up to this moment; as --since.")] = None,
    limit: Annotated[int, typer.Option(help="How many records to show: the newest.", min=1)] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print each record as a line of JSON.")] = False,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Show who asked for what, from where, and whether it was done or why not.

    Changes are in the log from the moment they happened. Refusals are written once a second.
    """
    allowed = None if refused is None else str(not refused).lower()
    try:
        asked = {"principal": principal, "table": table, "operation": operation, "allowed": allowed}
        asked |= {"since": _moment(since), "until": _moment(until)}
        query = {name: value for name, value in asked.items() if value is not None}
        records = list(_records(target_of(uri, token, home), query, limit=limit))
    except TidegateError as error:
        flags.fail(error)
    console = Console(highlight=False, soft_wrap=True)
    for record in reversed(records):
        if as_json:
            typer.echo(json.dumps(record))
        else:
            console.print(_line(record))


def _records(target: Target, query: Mapping[str, object], *, limit: int) -> Iterator[Mapping[str, Any]]:
    """The newest first, page by page; each page begins further back, so this ends."""
    before: int | None = None
    while limit > 0:
        more = {"max_results": min(limit, PAGE_SIZE), **({} if before is None else {"before": before})}
        page = ask(target, f"{EXTENSIONS}/audit", query={**query, **more}, holds="records")
        yield from page["records"]
        limit -= len(page["records"])
        later = page["next_before"]
        if later is None or (before is not None and later >= before):
            return
        before = later


def _line(record: Mapping[str, Any]) -> Text:
    when = datetime.fromtimestamp(record["at"] / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    told = "  ".join(str(record[part] or "-") for part in ("principal", "address", "operation", "subject"))
    line = Text(f"{when}  {told}")
    if record["version"] is not None:
        line.append(f"  version {record['version']}")
    if not record["allowed"]:
        line.append(f"  refused: {record['reason']}: {record['message']}", "red")
    elif record["reason"]:
        line.append(f"  {record['reason']}", "dim")
    if record["times"] > 1:
        line.append(f"  {record['times']} times", "yellow")
    return line


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    ago = re.fullmatch(r"([0-9]{1,9})(s|min|h|d)", text)
    if ago is not None:
        return max(0, int(time.time() * 1000) - int(ago[1]) * _AGO_MS[ago[2]])
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(
            f"{text!r} is no moment. Write 2026-03-01T09:00, or how long ago it was: 30min, 2h, 7d."
        ) from None
