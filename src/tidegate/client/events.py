"""Events: reading them by number. Whoever keeps `next_after` misses none and gets none twice."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.client.address import TIDEGATE
from tidegate.client.conversations import Conversation, decoded, request
from tidegate.client.wire import EventPage

FOLLOW_WAIT_SECONDS = 30
"""How long the server keeps a question of somebody who follows, while nothing happens."""


def read_events(
    *,
    after: int | None,
    table: str | None,
    kinds: Iterable[str] | None,
    max_results: int | None,
    wait_seconds: int = 0,
) -> Conversation[EventPage]:
    """Without `after`, from the oldest that is kept. Asking changes nothing, so it is asked again when cut off."""
    query = {
        "after": after,
        "table": table,
        "kind": None if kinds is None else ",".join(kinds),
        "max_results": max_results,
        "wait_seconds": wait_seconds,
    }
    answer = yield from request("GET", f"{TIDEGATE}/events", query=query, waits_seconds=wait_seconds)
    return decoded(answer, EventPage)
