"""`tidegate verify`: proves that the logs of tables are what was ratified, or names the first version that differs.

    main.default.orders   1042 versions: 1040 as ratified, 2 as published
    main.default.clicks   version 17: 00000000000000000017.json in the log holds ... it was ...
    main.default.clicks   latest 23, chain 9d0c...

The exit code is 0 if everything is as it was, 1 if something is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.text import Text

from tidegate.cli import flags
from tidegate.cli.doctor import LOOK_SECONDS_MAX, all_tables
from tidegate.cli.server import EXTENSIONS, Target, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError

_COUNTS = {
    "same_since_ratified": "as ratified",
    "same_since_published": "as published",
    "same_size": "by size only",
    "cleaned": "cleaned up",
    "unpublished": "not published yet",
}


def verify(
    table: Annotated[str | None, typer.Argument(help="Full name of a table. Without it: all managed tables.")] = None,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Prove that the log of a table is what was ratified, or name the first version that differs.

    Looking changes nothing. The chain that is printed stands for everything up to the latest version: write it down
    elsewhere, and whoever changes log and database together is found out, too.
    """
    try:
        target = target_of(uri, token, home)
        found = _verify_all(target, table, quiet=as_json)
    except TidegateError as error:
        flags.fail(error)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _print(found)
    raise typer.Exit(1 if any(one["difference"] for one in found) else 0)


def _verify_all(target: Target, table: str | None, *, quiet: bool) -> list[dict[str, Any]]:
    names = [table] if table is not None else list(all_tables(target, managed=True))
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as progress:
        return [_verify(target, name, progress, progress.add_task(name, total=None)) for name in names]


def _verify(target: Target, name: str, progress: Progress, task: TaskID) -> dict[str, Any]:
    """All pages of one table, added up."""
    total: dict[str, Any] = {}
    after: int | None = None
    while True:
        query: dict[str, object] = {} if after is None else {"after": after}
        path = f"{EXTENSIONS}/tables/{quote(name, safe='')}/verify"
        page = ask(target, path, query=query, holds="difference", seconds_max=LOOK_SECONDS_MAX)
        counts = {key: total.get(key, 0) + page[key] for key in (*_COUNTS, "unchained")}
        first = total.get("first_version", page["first_version"])
        total = {**page, **counts, "first_version": first}
        progress.update(task, completed=page["last_version"] or 0, total=max(page["latest_version"], 1))
        later = page["next_after"]
        if later is None or (after is not None and later <= after):
            return total
        after = later


def _print(found: list[dict[str, Any]]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for one in found:
        console.print(Text.assemble((one["full_name"], "bold cyan"), "  ", *_told(one)))
        console.print(f"  latest {one['latest_version']}, chain {one['chain'] or 'not begun'}")
    wrong = sum(1 for one in found if one["difference"])
    looked = f"{len(found)} table{'' if len(found) == 1 else 's'} verified"
    if wrong:
        console.print(Text(f"{looked}, {wrong} with a difference.", "red"))
    else:
        console.print(Text(f"{looked}, nothing differs.", "green"))


def _told(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    counts = [f"{one[key]} {words}" for key, words in _COUNTS.items() if one[key]]
    told = [(", ".join(counts) or "no versions", "")]
    if one["unchained"]:
        told.append((f" ({one['unchained']} older than the chain)", "yellow"))
    if one["difference"]:
        told.append((f"\n  ✗ version {one['difference']['version']}: {one['difference']['message']}", "bold red"))
    return told
