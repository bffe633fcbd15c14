"""What commits did, read from their files when somebody wants to know: a commit itself pays nothing for it.

As far as the store answers: a file that cannot be read leaves out what only it knows, and never fails an answer. What
was read is remembered, in bounds; commits do not change.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import replace
from typing import Any

from tidegate.domain.commit_descriptions import NOTHING_KNOWN, CommitDescription, describe_commit
from tidegate.domain.commits import Commit
from tidegate.domain.errors import TidegateError
from tidegate.domain.events import Event, EventKind, NumberedEvent
from tidegate.domain.names import TableId, Version
from tidegate.domain.storage_ports import DeltaLogs

HEAD_BYTES_MAX = 1024 * 1024
"""Of a commit's file; beyond it files are not counted."""
READ_AT_ONCE = 16
READ_SECONDS_MAX = 5.0
"""For all commits of an answer together."""

Key = tuple[TableId, Version]
Placed = Mapping[Key, tuple[Commit, str]]
"""Commits, each with its table's location."""

log = logging.getLogger(__name__)


class CommitDescriptions:
    """For one event loop."""

    def __init__(self, logs: DeltaLogs, *, remembered_max: int) -> None:
        self._logs = logs
        self._remembered_max = remembered_max
        self._remembered: OrderedDict[Key, CommitDescription] = OrderedDict()

    async def describe(
        self, events: Several[NumberedEvent], placed: Placed, contents: Mapping[Key, bytes]
    ) -> list[NumberedEvent]:
        """The events, with what is known of their commits; `placed` are those, and `contents` what is kept of them."""
        for key, content in contents.items():
            self._remember(key, describe_commit(content, whole=True))
        found = await self._read(placed)
        return [_described(event, placed, found) for event in events]

    async def _read(self, placed: Placed) -> dict[Key, CommitDescription]:
        found = {key: self._remembered[key] for key in placed if key in self._remembered}
        failures: list[Exception] = []
        turns = asyncio.Semaphore(READ_AT_ONCE)

        async def read(key: Key, commit: Commit, location: str) -> None:
            async with turns:
                try:
                    head = await self._logs.read_head(location, commit, bytes_max=HEAD_BYTES_MAX)
                except TidegateError as error:
                    failures.append(error)
                    return
            if head is not None:
                found[key] = describe_commit(head, whole=commit.file_size <= HEAD_BYTES_MAX)
                self._remember(key, found[key])

        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                await asyncio.gather(*(read(key, *placed[key]) for key in placed if key not in found))
        except TimeoutError as late:
            failures.append(late)
        if failures:
            log.warning("commits could not be looked at: %r", failures[0])
        return found

    def _remember(self, key: Key, description: CommitDescription) -> None:
        self._remembered[key] = description
        if len(self._remembered) > self._remembered_max:
            self._remembered.popitem(last=False)


def _key(numbered: NumberedEvent) -> Key | None:
    event = numbered.event
    return (event.table_id, event.version) if event.kind is EventKind.COMMITTED and event.version is not None else None


def _described(numbered: NumberedEvent, placed: Placed, found: Mapping[Key, CommitDescription]) -> NumberedEvent:
    key = _key(numbered)
    if key is None or key not in placed:
        return numbered
    commit, known = placed[key][0], found.get(key, NOTHING_KNOWN)
    told: dict[str, Any] = {
        "timestamp": commit.timestamp,
        "file_name": commit.file_name,
        "file_size": commit.file_size,
        "operation": known.operation,
        "rows": known.rows,
        "files_added": known.files_added,
        "files_removed": known.files_removed,
        "txn_id": known.txn_id,
        "engine": known.engine,
    }
    data = {**numbered.event.data, **{name: value for name, value in told.items() if value is not None}}
    return replace(numbered, event=replace(numbered.event, data=data))


def operation_of(event: Event) -> str | None:
    """Of an event that was described."""
    return event.data.get("operation")
