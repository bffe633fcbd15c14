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
from tidegate.cli.doctor import LOOK_SECONDS_MAX, all_tables, counted_tables
from tidegate.cli.server import EXTENSIONS, Target, Token, Uri, ask, target_of
from tidegate.domain.errors import NotFound, PermissionDenied, TidegateError

_NOT_VERIFIED = "not_verified"
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
        found, left_out = _verify_all(target, table, quiet=as_json)
    except TidegateError as error:
        flags.fail(error)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _print(found, left_out)
    raise typer.Exit(1 if any(_is_wrong(one) for one in found) else 0)


def _is_wrong(one: Mapping[str, Any]) -> bool:
    return _NOT_VERIFIED in one or bool(one["difference"])


def _verify_all(target: Target, table: str | None, *, quiet: bool) -> tuple[list[dict[str, Any]], int]:
    """What was found, and how many tables were left out because the caller may not read them."""
    found: list[dict[str, Any]] = []
    left_out = 0
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as progress:
        if table is not None:
            return [_verify(target, table, progress, progress.add_task(table, total=None))], 0
        for name in list(all_tables(target, managed=True)):
            try:
                found.append(_verify(target, name, progress, progress.add_task(name, total=None)))
            except PermissionDenied:
                left_out += 1
            except NotFound:
                continue  # dropped meanwhile
            except TidegateError as error:
                # One that cannot be looked at keeps none of the others from being verified.
                found.append({"full_name": name, _NOT_VERIFIED: error.message})
    return found, left_out


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


def _print(found: list[dict[str, Any]], left_out: int) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for one in found:
        if _NOT_VERIFIED in one:
            console.print(Text.assemble((one["full_name"], "bold cyan"), (f"  ✗ {one[_NOT_VERIFIED]}", "bold red")))
            continue
        console.print(Text.assemble((one["full_name"], "bold cyan"), "  ", *_told(one)))
        console.print(f"  latest {one['latest_version']}, chain {one['chain'] or 'not begun'}")
    failed = sum(1 for one in found if _NOT_VERIFIED in one)
    wrong = sum(1 for one in found if _is_wrong(one)) - failed
    looked = f"{counted_tables(len(found) - failed)} verified"
    if wrong or failed:
        told = [f"{wrong} with a difference"] * (wrong > 0) + [f"{failed} could not be verified"] * (failed > 0)
        console.print(Text(f"{', '.join([looked, *told])}.", "red"))
    else:
        console.print(Text(f"{looked}, nothing differs.", "green"))
    if left_out:
        console.print(Text(f"{counted_tables(left_out)} left out: it takes SELECT.", "dim"))


def _told(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    counts = [f"{one[key]} {words}" for key, words in _COUNTS.items() if one[key]]
    told = [(", ".join(counts) or "no versions", "")]
    if one["unchained"]:
        told.append((f" ({one['unchained']} older than the chain)", "yellow"))
    if one["difference"]:
        told.append((f"\n  ✗ version {one['difference']['version']}: {one['difference']['message']}", "bold red"))
    return told
