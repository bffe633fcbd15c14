"""Listing in pages: by name, so that nothing is missed or repeated while objects come and go."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.names import Version, is_name

T = TypeVar("T")


@frozen
class PageRequest:
    max_results: int | None = None
    token: str | None = None


@frozen
class Page(Generic[T]):
    items: Sequence[T]
    next_token: str | None


def read_page(
    request: PageRequest,
    fetch: Callable[[str, int], Sequence[T]],
    name_of: Callable[[T], str],
    *,
    size_max: int,
    valid: Callable[[str], bool] = is_name,
) -> Page[T]:
    """`fetch(after, limit)` gives the objects whose names follow `after`, in order."""
    size = _page_size(request.max_results, size_max)
    found = fetch(_decode(request.token, valid), size + 1)
    items = found[:size]
    return Page(items, _encode(name_of(items[-1])) if len(found) > size else None)


def version_in(token: str) -> Version | None:
    """For pages of versions, newest first: the version that the token was made of, None at the start."""
    if not token:
        return None
    if not token.isascii() or not token.isdigit() or len(token) > 18:
        raise bad_token()
    return Version(int(token))


def bad_token() -> InvalidRequest:
    return InvalidRequest("The page_token is not one that this server gave out. Start again without it.")


def _page_size(max_results: int | None, size_max: int) -> int:
    if max_results is not None and max_results < 0:
        raise InvalidRequest(f"max_results is {max_results}. Use a positive number, or 0 for the server's own.")
    return min(max_results, size_max) if max_results else size_max


def _encode(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _decode(token: str | None, valid: Callable[[str], bool]) -> str:
    if not token:
        return ""
    try:
        name = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        name = ""
    if not valid(name):
        raise bad_token()
    return name
