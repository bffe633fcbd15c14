"""Events, as Tidegate's own API shows them: by number, on request, after a wait, or as a stream.

The stream is one of server-sent events: a client that reconnects says which it saw last, and goes on from there.

    id: 7
    event: table.committed
    data: {"sequence":7,"kind":"table.committed", ...}
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from time import monotonic

import msgspec

from tidegate.domain import errors
from tidegate.domain.event_filters import parse_filter
from tidegate.domain.events import NumberedEvent, Sequence
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.read_events import PAGE_SIZE, PAGE_SIZE_MAX, EventPage, EventsRequest, read_events
from tidegate.wire import events as wire

HEARTBEAT_SECONDS = 10.0
RECONNECT_MS = 1000
_encode = msgspec.json.Encoder().encode


async def get(call: Call) -> wire.Events:
    query: wire.EventsQuery = call.query
    request = EventsRequest(
        after=None if query.after is None else Sequence(query.after),
        limit=_limit(query.max_results),
        wanted=parse_filter(table=query.table, kinds=_kinds(query.kind)),
        wait_seconds=query.wait_seconds,
    )
    page = await read_events(call.env, call.caller, request, ending=call.ending)
    return wire.Events([from_event(numbered) for numbered in page.events], page.next_after, page.last)


async def stream(call: Call) -> AsyncIterator[bytes]:
    """The first look comes before the answer begins, so that what is wrong with the request is an error as usual."""
    query: wire.StreamQuery = call.query
    after = query.after if call.last_event_id is None else _last_seen(call.last_event_id)
    request = EventsRequest(
        after=None if after is None else Sequence(after),
        wanted=parse_filter(table=query.table, kinds=_kinds(query.kind)),
    )
    first = await read_events(call.env, call.caller, request)
    return _stream(call, request, first, until=monotonic() + query.seconds_max)


async def _stream(call: Call, request: EventsRequest, page: EventPage, *, until: float) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % RECONNECT_MS
    while True:
        # The number alone, without an event, moves the client past what a filter passed over, and shows that we live.
        told = b"".join(_sent(numbered) for numbered in page.events)
        yield told + b": so far\nid: %d\n\n" % page.next_after
        left = until - monotonic()
        if left <= 0 or call.ending is None or call.ending.done():
            return
        request = replace(request, after=page.next_after, wait_seconds=min(left, HEARTBEAT_SECONDS))
        try:
            page = await read_events(call.env, call.caller, request, ending=call.ending)
        except errors.TidegateError as error:
            code = TIDEGATE.code_of(type(error))
            yield b"event: error\ndata: " + _encode(TIDEGATE.error_body(code, error)) + b"\n\n"
            return


def _sent(numbered: NumberedEvent) -> bytes:
    head = f"id: {numbered.sequence}\nevent: {numbered.event.kind.value}\ndata: ".encode()
    return head + _encode(from_event(numbered)) + b"\n\n"


def from_event(numbered: NumberedEvent) -> wire.Event:
    event = numbered.event
    return wire.Event(
        sequence=numbered.sequence,
        kind=event.kind.value,
        table_id=event.table_id,
        table=event.table,
        at=event.at,
        by=event.by,
        version=event.version,
        data=dict(event.data),
    )


def _limit(max_results: int | None) -> int:
    if max_results is not None and max_results < 0:
        raise errors.InvalidRequest(f"max_results is {max_results}. Use 1 to {PAGE_SIZE_MAX}, or leave it out.")
    return max_results or PAGE_SIZE


def _kinds(text: str | None) -> list[str]:
    return [] if text is None else [kind.strip() for kind in text.split(",")]


def _last_seen(header: str) -> int:
    if not (header.isascii() and header.isdigit() and len(header) <= 18):
        raise errors.InvalidRequest(f"Last-Event-ID is the number of an event, not {header[:100]!r}.")
    return int(header)


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        "/events",
        "readEvents",
        "What happened to tables, by number; waits up to wait_seconds for the next event.",
        get,
        query=wire.EventsQuery,
        answer=wire.Events,
        errors=(errors.InvalidRequest, errors.EventsForgotten),
        patient=True,
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        "/events/stream",
        "streamEvents",
        "What happens to tables, as server-sent events; goes on after Last-Event-ID.",
        stream,
        query=wire.StreamQuery,
        answer=wire.Event,
        errors=(errors.InvalidRequest, errors.EventsForgotten),
        patient=True,
        content_type=b"text/event-stream",
    ),
]
