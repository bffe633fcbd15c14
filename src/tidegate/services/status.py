"""The status of a catalog: its servers, what they do, how far publishing is behind, which alarms stand."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableName
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.publishing import Alarm, Backlog
from tidegate.domain.servers import Activity, ServerInfo, together
from tidegate.services.environment import Environment
from tidegate.services.shared_gauges import waited_seconds

SERVERS_MAX = 200
ALARMS_MAX = 20


@frozen
class Status:
    at: int
    servers: Sequence[ServerInfo]
    activity: Activity
    """Of all servers that are heard of."""
    backlog: Backlog
    waited_seconds: float
    alarms: int
    newest_alarms: Sequence[tuple[TableName, Alarm]]


async def read_status(env: Environment, caller: Principal) -> Status:
    await env.authorize(caller, Operation.WATCH_METASTORE, "metastore")
    return await env.database.read(lambda uow: _read(uow, now=env.clock()))


def _read(uow: UnitOfWork, *, now: int) -> Status:
    servers, backlog = uow.servers.all(limit=SERVERS_MAX), uow.tables.backlog()
    return Status(
        at=now,
        servers=servers,
        activity=together(servers, now=now),
        backlog=backlog,
        waited_seconds=waited_seconds(backlog, now=now),
        alarms=uow.alarms.count(),
        newest_alarms=uow.alarms.newest(limit=ALARMS_MAX),
    )
