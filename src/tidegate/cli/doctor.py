"""`tidegate doctor`: compares catalog, log and store, and explains what is wrong, a sentence each.

    main.default.orders
      ! versions 5 to 7 are ratified and not published yet. ...                          can be fixed
    17 tables looked at, 1 with findings. `tidegate doctor --fix` mends what is safe to mend.

The exit code is 0 if nothing is wrong, 1 if something is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, UNITY, Target, Token, Uri, ask, target_of
from tidegate.domain.errors import NotFound, PermissionDenied, TidegateError

LOOK_SECONDS_MAX = 600
STORAGE = "the storage of managed tables"
NOT_LOOKED_AT = "not_looked_at"
Finding = Mapping[str, Any]
Found = Mapping[str, Sequence[Finding]]


def doctor(
    table: Annotated[str | None, typer.Argument(help="Full name of a table. Without it: all tables.")] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what is safe to mend.")] = False,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Compare catalog, log and store, and explain what is wrong.

    Looking changes nothing. With --fix, what only completes or tidies is done: commits are published, published
    files are restored from their staged ones, leftovers are removed. Everything else is explained and left to you.
    """
    try:
        target = target_of(uri, token, home)
        found, left_out = _look(target, table, fix=fix, quiet=as_json)
    except TidegateError as error:
        flags.fail(error)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _print(found, left_out, fix=fix)
    left = [finding for findings in found.values() for finding in findings if not (fix and finding["fixable"])]
    raise typer.Exit(1 if left else 0)


def _look(target: Target, table: str | None, *, fix: bool, quiet: bool) -> tuple[Found, list[str]]:
    """What was found, and what was left out because the caller may not maintain it."""
    if table is not None:
        return {table: _findings(target, _page_of(table), fix=fix)}, []
    found: dict[str, Sequence[Finding]] = {}
    left_out: list[str] = []

    def look(subject: str, page: str) -> None:
        try:
            found[subject] = _findings(target, page, fix=fix)
        except PermissionDenied:
            left_out.append(subject)
        except NotFound:
            return  # dropped meanwhile
        except TidegateError as error:
            # One that cannot be looked at is a finding like others, and keeps none of them from being found.
            found[subject] = [
                {"problem": NOT_LOOKED_AT, "subject": subject, "message": error.message, "fixable": False}
            ]

    names = list(all_tables(target))
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as progress:
        for name in progress.track(names, description="Looking at tables"):
            look(name, _page_of(name))
    look(STORAGE, "storage")
    return found, left_out


def _page_of(table: str) -> str:
    return f"tables/{quote(table, safe='')}"


def _findings(target: Target, page: str, *, fix: bool) -> Sequence[Finding]:
    path, method = f"{EXTENSIONS}/doctor/{page}", "POST" if fix else "GET"
    return ask(target, path, method=method, holds="findings", seconds_max=LOOK_SECONDS_MAX)["findings"]


def all_tables(target: Target, *, managed: bool = False) -> Iterator[str]:
    """Full names; with `managed` of managed tables only."""
    for catalog in _pages(target, "catalogs", {}):
        for schema in _pages(target, "schemas", {"catalog_name": catalog["name"]}):
            for table in _pages(target, "tables", {"catalog_name": catalog["name"], "schema_name": schema["name"]}):
                if managed and table.get("table_type") != "MANAGED":
                    continue
                yield f"{catalog['name']}.{schema['name']}.{table['name']}"


def _pages(target: Target, what: str, query: Mapping[str, object]) -> Iterator[Mapping[str, Any]]:
    token: str | None = None
    while True:
        page = ask(target, f"{UNITY}/{what}", query={**query, **({"page_token": token} if token else {})})
        yield from page[what]
        token = page.get("next_page_token")
        if not token or not page[what]:
            return


def _print(found: Found, left_out: Sequence[str], *, fix: bool) -> None:
    console = Console(highlight=False)
    for subject, findings in found.items():
        if findings:
            console.print(Text(subject, "bold cyan"))
        for finding in findings:
            mended = "mended: " if fix else "can be fixed: "
            mark = ("✓ ", "green") if fix and finding["fixable"] else ("! ", "yellow" if finding["fixable"] else "red")
            console.print(Text.assemble("  ", mark, mended if finding["fixable"] else "", finding["message"]))
    wrong = {subject: findings for subject, findings in found.items() if findings}
    fixable = any(finding["fixable"] for findings in wrong.values() for finding in findings)
    looked = f"{counted_tables(len(found) - (STORAGE in found))} looked at"
    if not wrong:
        console.print(Text(f"{looked}, nothing is wrong.", "green"))
    else:
        hint = " `tidegate doctor --fix` mends what is safe to mend." if fixable and not fix else ""
        console.print(f"{looked}, {len(wrong)} with findings.{hint}")
    if left_out:
        count = len(left_out) - (STORAGE in left_out)
        what = [counted_tables(count)] * (count > 0) + ["the storage"] * (STORAGE in left_out)
        console.print(
            Text(f"{' and '.join(what)} were left out: it takes MAINTAIN, and MANAGE for the storage.", "dim")
        )


def counted_tables(count: int) -> str:
    return f"{count} table{'' if count == 1 else 's'}"
