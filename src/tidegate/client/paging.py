"""Listings come in pages; a list is all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from tidegate.client.conversations import Conversation, decoded, request
from tidegate.client.errors import NotATidegate

T = TypeVar("T")

PAGES_MAX = 10_000
"""More than any catalog has: a server that goes on for ever is broken."""


class Page(Protocol):
    @property
    def next_page_token(self) -> str | None: ...


P = TypeVar("P", bound=Page)


def list_all(
    path: str, page_type: type[P], items: Callable[[P], Sequence[T]], query: Mapping[str, str | int] | None = None
) -> Conversation[list[T]]:
    found: list[T] = []
    token: str | None = None
    for _ in range(PAGES_MAX):
        answer = yield from request("GET", path, query={**(query or {}), "page_token": token})
        page = decoded(answer, page_type)
        found += items(page)
        token = page.next_page_token
        if not token:
            return found
    raise NotATidegate(path, f"it listed {PAGES_MAX} pages and did not end")
