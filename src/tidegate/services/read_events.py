"""Reading events by their numbers: nobody misses one, and nobody gets one twice.

A reader says after which number it goes on, and is told the number for its next question. That one counts events which
its filter passed over too, so a filter that matches little never makes it read the same part again:

    after=0, kind=table.dropped    ->   [7 dropped], next_after 7
    after=7, kind=table.dropped    ->   [], next_after 12: there are 12 by now, and none of them was a drop

Each question looks at a bounded number of events. Who waits is told when there is something, or when the time is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Several
from time import monotonic

from tidegate.domain.errors import EventsForgotten, InvalidRequest
from tidegate.domain.event_filters import EVERYTHING, EventFilter
from tidegate.domain.events import NumberedEvent, Sequence
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, Version
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.rights import Names, sees
from tidegate.services.describe_commits import Key, Placed, operation_of
from tidegate.services.environment import Environment
from tidegate.services.event_feed import Ending

PAGE_SIZE = 100
"""Where the caller names none."""
PAGE_SIZE_MAX = 1000
SCANNED_AT_ONCE = 10_000
SCANS_MAX = 10
"""For one question; the next goes on where this one stopped."""


@frozen
class EventsRequest:
    after: Sequence | None = None
    """None: from the oldest that is kept."""
    limit: int = PAGE_SIZE
    wanted: EventFilter = EVERYTHING
    wait_seconds: float = 0.0


@frozen
class EventPage:
    events: Several[NumberedEvent]
    next_after: Sequence
    last: Sequence


async def read_events(
    env: Environment, caller: Principal, request: EventsRequest, *, ending: Ending | None = None
) -> EventPage:
    """Those of tables that the caller sees now, dropped ones included."""
    allowed = await env.authorize(caller, Operation.USE_METASTORE, "metastore")
    seen_by = None if allowed.sees_all else allowed.names
    return await next_events(env, request, ending=ending, seen_by=seen_by)


async def next_events(
    env: Environment, request: EventsRequest, *, ending: Ending | None = None, seen_by: Names | None = None
) -> EventPage:
    """For the server itself, which sees everything."""
    patient_until, after, scans = monotonic() + request.wait_seconds, request.after, 0
    while True:
        page = await _read_page(env, after, request, seen_by)
        if page.events:
            return page
        after = page.next_after
        if after < page.last:
            scans += 1
            if scans == SCANS_MAX:
                return page
            continue
        left = patient_until - monotonic()
        if left <= 0 or not await env.feed.newer_than(after, seconds_max=left, ending=ending):
            return page


async def _read_page(
    env: Environment, after: Sequence | None, request: EventsRequest, seen_by: Names | None
) -> EventPage:
    page, placed, contents, unnumbered = await env.database.read(lambda uow: _read(uow, after, request, seen_by))
    if unnumbered and page.next_after == page.last:
        # Who has come to the end is told of everything that has happened; who is on the way gets there.
        await env.database.write(lambda uow: uow.events.number())
        page, placed, contents, _ = await env.database.read(lambda uow: _read(uow, after, request, seen_by))
    events = await env.descriptions.describe(page.events, placed, contents)
    wanted = [one for one in events if request.wanted.matches(one.event, operation=operation_of(one.event))]
    return EventPage(wanted, page.next_after, page.last)


def _read(
    uow: UnitOfWork, after: Sequence | None, request: EventsRequest, seen_by: Names | None
) -> tuple[EventPage, Placed, Mapping[Key, bytes], bool]:
    forgotten, last = uow.events.forgotten(), uow.events.last()
    after = forgotten if after is None else after
    if after < forgotten:
        raise EventsForgotten(after=after, forgotten=forgotten)
    if after > last:
        raise InvalidRequest(f"There is no event {after} yet: the last one is {last}. Go on with after={last}.")
    limit = min(request.limit, PAGE_SIZE_MAX)
    up_to = Sequence(min(after + SCANNED_AT_ONCE, last))
    found = uow.events.after(after, up_to=up_to, limit=limit, wanted=request.wanted)
    next_after = found[-1].sequence if len(found) == limit else up_to
    if seen_by is not None:
        found = _seen(uow, found, seen_by)
    placed = uow.events.commits_of([numbered.event for numbered in found])
    return EventPage(found, next_after, last), placed, _contents(uow, placed), uow.events.unnumbered()


def _seen(uow: UnitOfWork, found: Several[NumberedEvent], by: Names) -> list[NumberedEvent]:
    """Of a table that is purged nobody knows any more who could see it."""
    ids = {numbered.event.table_id for numbered in found}
    shown = {id for id, path in uow.rights.paths(sorted(ids), by).items() if sees(by, path)}
    return [numbered for numbered in found if numbered.event.table_id in shown]


def _contents(uow: UnitOfWork, placed: Placed) -> dict[Key, bytes]:
    """Of those commits that came with their content and are not published: the others have files."""
    inline: dict[TableId, list[Version]] = {}
    for (id, version), (commit, _) in placed.items():
        if commit.inline:
            inline.setdefault(id, []).append(version)
    return {
        (id, version): content
        for id, versions in inline.items()
        for version, content in uow.inline_commits.contents(id, first=min(versions), last=max(versions)).items()
    }
