"""An alarm: the log of a table does not say what was ratified. Told once for each reason, by an event and in the
server's log.

The commit is kept and still served, so readers of the catalog go on; nothing after it is published until somebody has
looked. The alarm is over when its version is published after all.
"""

from __future__ import annotations

import logging

from tidegate.domain.events import SYSTEM, EventKind, table_event
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.publishing import Alarm, Obstacle
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment
from tidegate.telemetry.logs import about

log = logging.getLogger(__name__)


async def raise_alarm(env: Environment, table: Table, obstacle: Obstacle) -> None:
    alarm = Alarm(table.id, obstacle.version, obstacle.reason, obstacle.message, env.clock())
    if await env.database.read(lambda uow: _stands(uow, alarm)):
        return

    def work(uow: UnitOfWork) -> bool:
        locked = uow.tables.lock([table.id]).get(table.id)
        if locked is None or locked.published >= alarm.version or not uow.alarms.add(alarm):
            return False
        said = {"reason": alarm.reason.value, "message": alarm.message}
        event = table_event(EventKind.ALARM, locked, at=alarm.raised_at, by=SYSTEM, version=alarm.version, **said)
        uow.events.add([event])
        return True

    if await env.database.write(work, audited=False):
        of = about(table=str(table.name), version=alarm.version, principal=SYSTEM)
        log.error("alarm for %s: %s", table.name, alarm.message, extra=of)


def _stands(uow: UnitOfWork, alarm: Alarm) -> bool:
    return any((one.version, one.reason) == (alarm.version, alarm.reason) for one in uow.alarms.of(alarm.table_id))
