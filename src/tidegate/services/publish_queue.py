"""Which tables the server publishes next.

A writer publishes its own commits, as a rule, within moments. So the server looks after a commit only when it has
waited for a while, and at once when a table falls far behind:

    commit 7 is ratified at 0.0 s    ->   looked at after 1 s: published by its writer, nothing to do
    commit 8 is ratified at 5.0 s    ->   looked at after 1 s: not published, the server does it
    50 commits wait                  ->   looked at now

A table whose storage fails is looked at again after 1 s, 2 s, 4 s ... up to 5 minutes, and holds up nobody else. What
is forgotten here, with the server or beyond `tables_max`, is found again by the sweep, which asks the database.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from tidegate.domain.names import TableId, Version

MANY = 50
"""Commits that wait for one table; beyond it the table is looked at without delay."""
EVERYTHING = Version(2**62)
"""Later than any version."""
BACKOFF_SECONDS = 1.0
BACKOFF_SECONDS_MAX = 300.0


@dataclass(slots=True)
class _Entry:
    due: float
    version: Version
    """Commits up to this one have waited long enough once it is due."""


@dataclass(slots=True)
class _Failure:
    attempts: int = 0
    until: float = 0.0


@dataclass(slots=True)
class PublishQueue:
    """For one event loop. `clock` rises steadily, in seconds. With `tables_max` 0 the server publishes nothing."""

    clock: Callable[[], float]
    delay_seconds: float
    tables_max: int
    _entries: dict[TableId, _Entry] = field(default_factory=lambda: cast("dict[TableId, _Entry]", {}))
    _heap: list[tuple[float, TableId]] = field(default_factory=lambda: cast("list[tuple[float, TableId]]", []))
    _running: set[TableId] = field(default_factory=lambda: cast("set[TableId]", set()))
    _failures: dict[TableId, _Failure] = field(default_factory=lambda: cast("dict[TableId, _Failure]", {}))
    _waiting: dict[TableId, list[asyncio.Future[None]]] = field(
        default_factory=lambda: cast("dict[TableId, list[asyncio.Future[None]]]", {})
    )
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def notice(self, id: TableId, latest: Version, *, waiting: int) -> None:
        """A commit was ratified; `waiting` are not published. Called with every commit, so next to free."""
        entry = self._entries.get(id)
        if entry is None:
            if len(self._entries) < self.tables_max:
                now = self.clock()
                self._add(id, latest, due=now if waiting >= MANY else now + self.delay_seconds)
        elif waiting >= MANY and entry.version < latest:
            entry.version = latest
            if entry.due > self.clock():
                self._add(id, latest, due=self.clock())

    def hurry(self, id: TableId) -> None:
        """Somebody waits for it, or knows that it is behind: look now, unless its storage fails."""
        if id in self._entries or len(self._entries) < self.tables_max:
            self._add(id, EVERYTHING, due=self.clock())

    async def relief(self, id: TableId, *, seconds_max: float) -> bool:
        """Whether the table was looked at within `seconds_max`. False at once if its storage fails at present."""
        failure = self._failures.get(id)
        if self.tables_max == 0 or (failure is not None and failure.until > self.clock()):
            return False
        looked_at: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id, []).append(looked_at)
        self.hurry(id)
        try:
            async with asyncio.timeout(seconds_max):
                await looked_at
            return True
        except TimeoutError:
            return False
        finally:
            waiting = self._waiting.get(id)
            if waiting is not None and looked_at in waiting:
                waiting.remove(looked_at)
                if not waiting:
                    del self._waiting[id]

    async def next(self) -> tuple[TableId, Version]:
        """The next table that is due, and the version up to which its commits have waited long enough. `done` or
        `failed` must follow.
        """
        while True:
            self._news.clear()
            wait: float | None = None
            while self._heap:
                due, id = self._heap[0]
                entry = self._entries.get(id)
                if entry is None or entry.due != due or id in self._running:
                    heapq.heappop(self._heap)  # an older plan, or one that `done` makes anew
                    continue
                wait = due - self.clock()
                if wait > 0:
                    break
                heapq.heappop(self._heap)
                del self._entries[id]
                self._running.add(id)
                return id, entry.version
            try:
                async with asyncio.timeout(wait):
                    await self._news.wait()
            except TimeoutError:
                continue

    def done(self, id: TableId) -> None:
        self._failures.pop(id, None)
        self._finish(id)

    def failed(self, id: TableId, version: Version) -> float:
        """It is looked at again after a while; how many seconds that is."""
        failure = self._failures.setdefault(id, _Failure())
        seconds = min(BACKOFF_SECONDS * 2**failure.attempts, BACKOFF_SECONDS_MAX) * random.uniform(0.8, 1.2)  # noqa: S311
        failure.attempts = min(failure.attempts + 1, 30)
        failure.until = self.clock() + seconds
        self._entries.pop(id, None)
        self._finish(id)
        self._add(id, version, due=failure.until)
        return seconds

    @property
    def failing(self) -> int:
        return len(self._failures)

    def _finish(self, id: TableId) -> None:
        self._running.discard(id)
        for looked_at in self._waiting.pop(id, ()):
            if not looked_at.done():
                looked_at.set_result(None)
        if id in self._entries:
            heapq.heappush(self._heap, (self._entries[id].due, id))
            self._news.set()

    def _add(self, id: TableId, version: Version, *, due: float) -> None:
        failure = self._failures.get(id)
        due = due if failure is None else max(due, failure.until)
        self._entries[id] = _Entry(due, version)
        if id not in self._running:
            heapq.heappush(self._heap, (due, id))
            self._news.set()
