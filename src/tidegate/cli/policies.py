"""`tidegate policies`: what a table asks of its commits."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, cast
from urllib.parse import quote

import typer

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, Token, Uri, ask, target_of
from tidegate.domain.errors import TidegateError


class Admission(StrEnum):
    full = "full"
    declared = "declared"


_NO_LIMIT = -1


def policies(
    table: Annotated[str, typer.Argument(help="Full name of the table: catalog.schema.table.")],
    admission: Annotated[
        Admission | None, typer.Option(help="Read every commit (full), or trust what requests declare.")
    ] = None,
    append_only: Annotated[
        bool | None, typer.Option("--append-only/--no-append-only", help="No commit takes data away.")
    ] = None,
    schema_frozen: Annotated[
        bool | None, typer.Option("--schema-frozen/--no-schema-frozen", help="Columns and partitioning stay.")
    ] = None,
    writer: Annotated[list[str] | None, typer.Option(help="Nobody else commits; may be repeated.")] = None,
    any_writer: Annotated[bool, typer.Option("--any-writer", help="All who have the right may commit.")] = False,
    files_max: Annotated[
        int | None, typer.Option(help="The most files that one commit adds; -1: any number.", min=_NO_LIMIT)
    ] = None,
    bytes_max: Annotated[
        int | None, typer.Option(help="The most bytes that one commit adds; -1: any number.", min=_NO_LIMIT)
    ] = None,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Show what a table asks of its commits; with options, change that first."""
    changes: dict[str, Any] = {
        "admission": None if admission is None else admission.value,
        "append_only": append_only,
        "schema_frozen": schema_frozen,
        "writers": writer or None,
        "files_max": files_max,
        "bytes_max": bytes_max,
    }
    body = {key: None if value == _NO_LIMIT else value for key, value in changes.items() if value is not None}
    if any_writer:
        body["writers"] = None
    path = f"{EXTENSIONS}/tables/{quote(table, safe='')}/policies"
    try:
        target = target_of(uri, token, home)
        found = ask(target, path, method="PATCH" if body else "GET", body=body or None, holds="admission")
    except TidegateError as error:
        flags.fail(error)
    for name, value in found.items():
        typer.echo(f"{name:14} {_told(value)}")


def _told(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[object]", value))) or "nobody"
    return "any" if value is None else str(value)
