"""What `tidegate users` and `tidegate groups` have in common: names of a kind, listed and removed."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tidegate.cli.server import EXTENSIONS, Target, ask

URL = f"{EXTENSIONS}/identities"


def listed(target: Target, *kinds: str) -> list[dict[str, Any]]:
    """Those of these kinds, by name."""
    found: list[dict[str, Any]] = []
    page: str | None = ""
    while page is not None:
        answer = ask(target, URL, query={"page_token": page} if page else None, holds="identities")
        found += [one for one in answer["identities"] if one["kind"] in kinds]
        page = answer["next_page_token"]
    return found


def url_of(name: str) -> str:
    return f"{URL}/{quote(name, safe='')}"
