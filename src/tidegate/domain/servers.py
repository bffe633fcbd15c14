"""Servers that share a database, as each tells the others by its heartbeat, and what they do together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate.domain.frozen import frozen

SILENT_AFTER_MS = 15_000
"""A server that was not heard of for as long has died, hangs, or cannot reach the database."""
FORGOTTEN_AFTER_MS = 60_000
HOTTEST_MAX = 10
"""Tables by commits, and as many by loads."""


@frozen
class TableActivity:
    """Of one table, per second."""

    name: str
    commits: float
    loads: float


@frozen
class Activity:
    """Per second, over the time between the last two heartbeats."""

    requests: float = 0.0
    commits: float = 0.0
    conflicts: float = 0.0
    hottest: tuple[TableActivity, ...] = ()


@frozen
class ServerInfo:
    id: str
    host: str
    pid: int
    url: str
    """Where it is reached, as far as it knows itself."""
    version: str
    started_at: int
    seen_at: int
    activity: Activity

    def is_silent(self, *, now: int) -> bool:
        return now - self.seen_at > SILENT_AFTER_MS


def hottest(tables: Iterable[TableActivity], *, limit: int = HOTTEST_MAX) -> tuple[TableActivity, ...]:
    """The first by commits and the first by loads; those with most commits come first."""
    busy = sorted(tables, key=lambda table: (-table.commits, -table.loads, table.name))
    by_loads = sorted(busy, key=lambda table: -table.loads)[:limit]
    return tuple(table for at, table in enumerate(busy) if at < limit or table in by_loads)


def together(servers: Sequence[ServerInfo], *, now: int) -> Activity:
    """What the servers do that are heard of."""
    heard = [server.activity for server in servers if not server.is_silent(now=now)]
    tables: dict[str, TableActivity] = {}
    for table in (table for activity in heard for table in activity.hottest):
        before = tables.get(table.name, TableActivity(table.name, 0, 0))
        tables[table.name] = TableActivity(table.name, before.commits + table.commits, before.loads + table.loads)
    return Activity(
        requests=sum(activity.requests for activity in heard),
        commits=sum(activity.commits for activity in heard),
        conflicts=sum(activity.conflicts for activity in heard),
        hottest=hottest(tables.values()),
    )
