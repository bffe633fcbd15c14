"""Purging a dropped table: first it is marked, then its files go, then its rows.

    1. marked           from here on it cannot be restored
    2. files removed    by background work, in batches; killed anywhere, it goes on where it was
    3. rows removed     with the event that tells of it

Of an external table only the rows go, at once: its files are somebody else's.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.domain.dropped_tables import DroppedTable
from tidegate.domain.events import SYSTEM, Event, EventKind
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.removals import Removal, RemovalCause
from tidegate.domain.tables import TableType
from tidegate.services.environment import Environment
from tidegate.steps import reached

MARKED_AT_ONCE = 100
COMMITS_FORGOTTEN_AT_ONCE = 5000


def begin_purge(uow: UnitOfWork, dropped: DroppedTable, *, by: str, now: int) -> DroppedTable | None:
    """Marks a dropped table that is locked, or keeps the mark that it has. None if there was nothing else to do."""
    if dropped.removal is not None:
        return dropped
    removal = Removal(
        table_id=dropped.id,
        cause=RemovalCause.PURGE,
        name=dropped.shown_name,
        location=dropped.location,
        begun_at=now,
        begun_by=by,
    )
    if dropped.type is TableType.EXTERNAL:
        uow.dropped_tables.forget(dropped.id)
        uow.events.add([_purged(removal, now)])
        return None
    uow.removals.lock_places()
    uow.removals.add(removal)
    return replace(dropped, removal=removal)


async def mark_overdue(env: Environment) -> int:
    """Marks tables whose retention is over: how many. To be called again if it marked as many as it may."""
    now = env.patient_clock()
    before = now - env.retentions.dropped_ms
    overdue = await env.database.read(
        lambda uow: uow.dropped_tables.overdue(dropped_before=before, limit=MARKED_AT_ONCE)
    )
    for dropped in overdue:
        await env.database.write(lambda uow: _mark(uow, dropped, before=before, now=now))  # noqa: B023
        reached("purge.marked")
    return len(overdue)


def _mark(uow: UnitOfWork, found: DroppedTable, *, before: int, now: int) -> None:
    dropped = uow.dropped_tables.find_locked(found.id)
    # Restored meanwhile, and perhaps dropped again.
    if dropped is not None and dropped.dropped_at <= before:
        begin_purge(uow, dropped, by=SYSTEM, now=now)


async def end_purge(env: Environment, removal: Removal) -> None:
    """Its files are gone, now its rows go: the commits in parts, so that nobody waits for them all to be removed."""
    limit = COMMITS_FORGOTTEN_AT_ONCE
    while await env.database.write(lambda uow: uow.dropped_tables.forget_commits(removal.table_id, limit=limit)):
        reached("purge.commits_forgotten")

    def work(uow: UnitOfWork) -> None:
        if uow.removals.remove(removal):
            uow.dropped_tables.forget(removal.table_id)
            uow.events.add([_purged(removal, env.clock())])

    await env.database.write(work)


def _purged(removal: Removal, now: int) -> Event:
    data = {"files_removed": removal.files_removed}
    return Event(EventKind.PURGED, removal.table_id, removal.name, now, removal.begun_by, None, data)
