"""`tidegate constraints`: primary and foreign keys of tables."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from tidegate.cli import flags
from tidegate.cli.server import EXTENSIONS, UNITY, Target, Token, Uri, ask, target_of
from tidegate.domain.errors import InvalidRequest, TidegateError


def constraints(
    table: Annotated[str, typer.Argument(help="Full name of the table: catalog.schema.table.")],
    primary_key: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Declare a primary key on these columns: id, or day,id.")
    ] = None,
    foreign_key: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Declare a foreign key on these columns.")
    ] = None,
    references: Annotated[
        str | None, typer.Option(metavar="TABLE", help="The table whose primary key the foreign key refers to.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the new key is called.")] = None,
    remove: Annotated[str | None, typer.Option(metavar="NAME", help="Remove the key of this name.")] = None,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="With --remove: also the foreign keys that refer to it.")
    ] = False,
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
) -> None:
    """Show the keys of a table; with options, declare one or remove one first."""
    try:
        if sum(option is not None for option in (primary_key, foreign_key, remove)) > 1:
            raise InvalidRequest("Use one of --primary-key, --foreign-key and --remove at a time.")
        if (foreign_key is None) != (references is None):
            raise InvalidRequest("--foreign-key and --references go together.")
        target = target_of(uri, token, home)
        if primary_key is not None:
            _declare(target, table, {"primary_key_constraint": _key(primary_key, name)})
        elif foreign_key is not None:
            key = {**_key(foreign_key, name), "parent_table": references}
            _declare(target, table, {"foreign_key_constraint": key})
        elif remove is not None:
            query = {"constraint_name": remove, **({"cascade": "true"} if cascade else {})}
            ask(target, f"{UNITY}/constraints/{quote(table, safe='')}", method="DELETE", query=query)
        found = ask(target, f"{EXTENSIONS}/tables/{quote(table, safe='')}/constraints", holds="table_constraints")
    except TidegateError as error:
        flags.fail(error)
    for line in _told(table, found):
        typer.echo(line)


def _key(columns: str, name: str | None) -> dict[str, Any]:
    return {"child_columns": [column.strip() for column in columns.split(",")], "name": name}


def _declare(target: Target, table: str, constraint: dict[str, Any]) -> None:
    body = {"full_name_arg": table, "constraint": constraint}
    ask(target, f"{UNITY}/constraints", method="POST", body=body)


def _told(table: str, found: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for one in found["table_constraints"]:
        primary = one.get("primary_key_constraint")
        if primary is not None:
            lines.append(f"{primary['name']}  primary key ({', '.join(primary['child_columns'])})")
        else:
            lines.append(_foreign(one["foreign_key_constraint"]))
    lines += [f"{_foreign(one['foreign_key_constraint'])} of {one['table']}" for one in found["referred_by"]]
    return lines or [f"{table} has no keys, and none refers to it."]


def _foreign(key: dict[str, Any]) -> str:
    columns, theirs = ", ".join(key["child_columns"]), ", ".join(key["parent_columns"])
    return f"{key['name']}  foreign key ({columns}) references {key['parent_table']} ({theirs})"
