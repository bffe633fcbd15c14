"""`tidegate grant`, `revoke`, `can`, `give` and `guard`: who may do what.

An object is named by its full name, whose parts say what it is: `main`, `main.sales`, `main.sales.orders`; and
`metastore`.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, Target, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError

UNITY = "/api/2.1/unity-catalog"
KINDS = ("catalog", "schema", "table")

Privilege = Annotated[str, typer.Argument(help="The privilege, such as SELECT or 'USE CATALOG'.")]
On = Annotated[str, typer.Argument(help="Full name of a catalog, schema or table; or metastore.")]
Who = Annotated[str, typer.Argument(help="A user, service account or group.")]


def grant(
    who: Who, privilege: Privilege, on: On, uri: Uri = None, token: Token = None, home: flags.Home = None
) -> None:
    """Give a privilege on an object, and on everything below it."""
    _change(uri, token, home, who, on, {"add": [_spelled(privilege)], "remove": []})
    typer.echo(f"{who} has {_spelled(privilege)} on {on}.")


def revoke(
    who: Who, privilege: Privilege, on: On, uri: Uri = None, token: Token = None, home: flags.Home = None
) -> None:
    """Take a privilege on an object away. What was granted above or below it stays."""
    _change(uri, token, home, who, on, {"add": [], "remove": [_spelled(privilege)]})
    typer.echo(f"{who} has no {_spelled(privilege)} on {on} itself.")


def can(
    privilege: Privilege,
    on: On,
    who: Annotated[
        str | None, typer.Option("--who", help="Somebody else: for those who may manage the object.")
    ] = None,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Say whether a privilege can be exercised on an object, and why or why not. Exits with 1 for a no."""
    query = {"privilege": _spelled(privilege), **({} if who is None else {"principal": who})}
    try:
        told = ask(target_of(uri, token, home), f"{_access(on)}/can", query=query, holds="why")
    except TidegateError as error:
        flags.fail(error)
    typer.echo(f"{'yes' if told['allowed'] else 'no'}: {told['why']}")
    if not told["allowed"]:
        raise typer.Exit(1)


def give(on: On, who: Who, uri: Uri = None, token: Token = None, home: flags.Home = None) -> None:
    """Give a catalog, schema or table to another owner."""
    _set(target_of(uri, token, home), on, {"owner": who})
    typer.echo(f"{on} belongs to {who}.")


def guard(
    table: Annotated[str, typer.Argument(help="Full name of the table: catalog.schema.table.")],
    off: Annotated[bool, typer.Option("--off", help="MODIFY is enough again.")] = False,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Guard a table's metadata: to change it takes MODIFY METADATA, which MODIFY does not bring along then."""
    _set(target_of(uri, token, home), table, {"guarded": not off})
    typer.echo(f"{table} is {'not guarded any more' if off else 'guarded'}.")


def _change(uri: str | None, token: str | None, home: Any, who: str, on: str, change: dict[str, Any]) -> None:
    path = f"{UNITY}/permissions/{_place(on)}"
    body = {"changes": [{"principal": who, **change}]}
    try:
        ask(target_of(uri, token, home), path, method="PATCH", body=body, holds="privilege_assignments")
    except TidegateError as error:
        flags.fail(error)


def _set(target: Target, on: str, body: dict[str, Any]) -> None:
    try:
        ask(target, _access(on), method="PATCH", body=body, holds="guarded")
    except TidegateError as error:
        flags.fail(error)


def _access(on: str) -> str:
    return f"{EXTENSIONS}/access/{_place(on)}"


def _place(on: str) -> str:
    kind = "metastore" if on == "metastore" else KINDS[min(on.count("."), 2)]
    return f"{kind}/{quote(on, safe='')}"


def _spelled(privilege: str) -> str:
    return privilege.upper().replace("_", " ")
