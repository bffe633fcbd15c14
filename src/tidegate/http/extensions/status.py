"""The status of the catalog, as Tidegate's own API shows it."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.domain.servers import ServerInfo, TableActivity
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.status import Status, read_status
from tidegate.wire import tidegate as wire


async def get(call: Call) -> wire.Status:
    return from_status(await read_status(call.env, call.caller))


def from_status(status: Status) -> wire.Status:
    activity, backlog = status.activity, status.backlog
    return wire.Status(
        at=status.at,
        servers=[_from_server(server, now=status.at) for server in status.servers],
        requests_per_second=_rate(activity.requests),
        commits_per_second=_rate(activity.commits),
        conflicts_per_second=_rate(activity.conflicts),
        unpublished=wire.Unpublished(
            tables=backlog.tables,
            commits=backlog.commits,
            largest=backlog.largest,
            seconds=round(status.waited_seconds, 3),
        ),
        hottest_tables=_from_tables(activity.hottest),
        alarms=status.alarms,
        newest_alarms=[
            wire.StandingAlarm(str(name), alarm.version, alarm.reason.value, alarm.message, alarm.raised_at)
            for name, alarm in status.newest_alarms
        ],
    )


def _from_server(server: ServerInfo, *, now: int) -> wire.StatusServer:
    return wire.StatusServer(
        id=server.id,
        host=server.host,
        pid=server.pid,
        url=server.url,
        version=server.version,
        started_at=server.started_at,
        seen_at=server.seen_at,
        silent=server.is_silent(now=now),
        requests_per_second=_rate(server.activity.requests),
        commits_per_second=_rate(server.activity.commits),
        conflicts_per_second=_rate(server.activity.conflicts),
    )


def _from_tables(tables: Sequence[TableActivity]) -> list[wire.HotTable]:
    return [wire.HotTable(table.name, _rate(table.commits), _rate(table.loads)) for table in tables]


def _rate(per_second: float) -> float:
    return round(per_second, 2)


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        "/status",
        "getStatus",
        "The servers of this catalog, what they do at present, how far publishing is behind, which alarms stand.",
        get,
        answer=wire.Status,
    ),
]
