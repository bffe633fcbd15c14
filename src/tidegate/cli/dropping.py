"""What the commands about dropped tables share: asking the server for them, and finding one by name or id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from tidegate.cli.server import EXTENSIONS, UNITY, Target, ask
from tidegate.domain.errors import InvalidRequest

DROPPED = f"{EXTENSIONS}/dropped-tables"


def table_url(table: str) -> str:
    return f"{UNITY}/tables/{quote(table, safe='')}"


def dropped_url(id: str) -> str:
    return f"{DROPPED}/{quote(id, safe='')}"


def dropped_tables(target: Target) -> Iterator[Mapping[str, Any]]:
    """All of them, the last dropped first."""
    token: str | None = ""
    while token is not None:
        page = ask(target, DROPPED, query={"page_token": token} if token else None, holds="tables")
        yield from page["tables"]
        # A page that brings nothing ends it, whatever it says about a next one.
        token = page["next_page_token"] if page["tables"] else None


def find_dropped(target: Target, name_or_id: str) -> Mapping[str, Any]:
    """The one that is called so. Of several that were dropped under one name, the id must say which is meant."""
    found = [one for one in dropped_tables(target) if name_or_id in {one["full_name"], one["table_id"]}]
    if not found:
        raise InvalidRequest(
            f"There is no dropped table {name_or_id}; it may be purged already. `tidegate dropped` lists them all."
        )
    if len(found) > 1:
        ids = ", ".join(one["table_id"] for one in found[:10])
        raise InvalidRequest(
            f"{len(found)} tables were dropped as {name_or_id}. Say which one by its id, the last dropped first: {ids}."
        )
    return found[0]
