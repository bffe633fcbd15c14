"""The timeline: what the catalog knows about a table's commits, and what the store says of their published files.

Table and commits come from one snapshot. The store is asked afterwards and as far as it answers: a file that cannot be
looked at is shown as if it were not published, and never fails the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from tidegate.domain.errors import TidegateError
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.publishing import Alarm, PublishedFile
from tidegate.domain.tables import Table, TableType, require_delta
from tidegate.domain.timeline import Entry, entries_of, first_entry, with_published
from tidegate.services.authorized_table import still
from tidegate.services.environment import Environment
from tidegate.services.outcomes import Counts
from tidegate.services.paging import Page, PageRequest, read_page, version_in

PAGE_SIZE = 100
"""Where the caller names none. Every entry costs a look into the store."""
PAGE_SIZE_MAX = 1000
LOOKS_AT_ONCE = 16
LOOK_SECONDS_MAX = 5.0
"""For all entries of a page together."""

log = logging.getLogger(__name__)


@frozen
class Timeline:
    """`latest` and `verified` are None for an external table: its commits are decided elsewhere."""

    name: TableName
    table_id: TableId
    table_type: TableType
    latest: Version | None
    verified: Version | None
    counts: Counts
    alarms: Sequence[Alarm]
    entries: Sequence[Entry]
    next_token: str | None


async def read_timeline(env: Environment, caller: Principal, name: TableName, page: PageRequest) -> Timeline:
    allowed = await env.authorize(caller, Operation.DESCRIBE_TABLE, name)
    table, alarms, found = await env.database.read(lambda uow: _read(uow, name, page, size_max=env.page_size_max))
    still(allowed, table)
    managed = table.decided_here
    files = await _look(env, table, [entry.version for entry in found.items])
    return Timeline(
        name=table.name,
        table_id=table.id,
        table_type=table.type,
        latest=table.latest if managed else None,
        verified=table.published if managed else None,
        counts=env.outcomes.of(table.id),
        alarms=alarms,
        entries=[with_published(entry, files) for entry in found.items],
        next_token=found.next_token,
    )


def _read(
    uow: UnitOfWork, name: TableName, page: PageRequest, *, size_max: int
) -> tuple[Table, Sequence[Alarm], Page[Entry]]:
    table = require_delta(uow.tables.get(name))
    entries = read_page(
        PageRequest(page.max_results or PAGE_SIZE, page.token),
        lambda after, limit: _entries(uow, table, before=version_in(after), limit=limit),
        lambda entry: str(entry.version),
        size_max=min(size_max, PAGE_SIZE_MAX),
    )
    return table, uow.alarms.of(table.id), entries


def _entries(uow: UnitOfWork, table: Table, *, before: Version | None, limit: int) -> list[Entry]:
    if not table.decided_here:
        return []
    entries = entries_of(table, uow.tables.history(table.id, before=before, limit=limit))
    if len(entries) < limit and before != 0:
        entries.append(first_entry(table))
    return entries


async def _look(env: Environment, table: Table, versions: Sequence[Version]) -> dict[Version, PublishedFile]:
    found: dict[Version, PublishedFile] = {}
    failures: list[Exception] = []
    turns = asyncio.Semaphore(LOOKS_AT_ONCE)

    async def look(version: Version) -> None:
        async with turns:
            try:
                file = await env.delta_logs.find_published(table.location, version)
            except TidegateError as error:
                failures.append(error)
                return
        if file is not None:
            found[version] = file

    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            await asyncio.gather(*(look(version) for version in versions))
    except TimeoutError as late:
        failures.append(late)
    if failures:
        log.warning("published files of %s could not be looked at: %r", table.name, failures[0])
    return found
