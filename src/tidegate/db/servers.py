"""Servers in the database: one row for each that is heard of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tidegate.db.schema import servers
from tidegate.domain.servers import Activity, ServerInfo, TableActivity


class SqlServers:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def put(self, server: ServerInfo) -> None:
        row = {
            "host": server.host,
            "pid": server.pid,
            "url": server.url,
            "version": server.version,
            "started_at": server.started_at,
            "seen_at": server.seen_at,
            "activity": _encode(server.activity),
        }
        # Nobody else writes this row.
        changed = self._connection.execute(servers.update().where(servers.c.id == server.id).values(**row))
        if changed.rowcount == 0:
            self._connection.execute(servers.insert().values(id=server.id, **row))

    def all(self, *, limit: int) -> Sequence[ServerInfo]:
        rows = self._connection.execute(sa.select(servers).order_by(servers.c.started_at, servers.c.id).limit(limit))
        return [
            ServerInfo(
                id=row.id,
                host=row.host,
                pid=row.pid,
                url=row.url,
                version=row.version,
                started_at=row.started_at,
                seen_at=row.seen_at,
                activity=_decode(row.activity),
            )
            for row in rows
        ]

    def remove(self, id: str) -> None:
        self._connection.execute(servers.delete().where(servers.c.id == id))

    def remove_before(self, moment: int) -> None:
        # Locked in one order: two servers that clean up at once would else wait for each other.
        old = sa.select(servers.c.id).where(servers.c.seen_at < moment).order_by(servers.c.id)
        found = self._connection.scalars(old.with_for_update(skip_locked=True)).all()
        if found:
            self._connection.execute(servers.delete().where(servers.c.id.in_(found)))


def _encode(activity: Activity) -> str:
    return json.dumps(
        {
            "requests": activity.requests,
            "commits": activity.commits,
            "conflicts": activity.conflicts,
            "hottest": [[table.name, table.commits, table.loads] for table in activity.hottest],
        },
        separators=(",", ":"),
    )


def _decode(text: str) -> Activity:
    """Servers of another version may tell more, or less."""
    told: dict[str, Any] = json.loads(text)
    return Activity(
        requests=told.get("requests", 0.0),
        commits=told.get("commits", 0.0),
        conflicts=told.get("conflicts", 0.0),
        hottest=tuple(TableActivity(name, commits, loads) for name, commits, loads in told.get("hottest", [])),
    )
