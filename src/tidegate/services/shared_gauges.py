"""Numbers that all servers of one database share: each reads them there, so all say the same.

A further one is a further line in SHARED_GAUGES.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Several

from tidegate.domain.errors import TidegateError
from tidegate.domain.events import Sequence
from tidegate.domain.frozen import frozen
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.publishing import Backlog
from tidegate.domain.subscriptions import Subscription
from tidegate.services.environment import Environment
from tidegate.telemetry.exposition import render
from tidegate.telemetry.measures import Family, Sample


@frozen
class Shared:
    """What the gauges are read from: one snapshot, at one moment."""

    uow: UnitOfWork
    backlog: Backlog
    last_event: Sequence
    subscriptions: Several[Subscription]
    now: int


@frozen
class SharedGauge:
    name: str
    help: str
    read: Callable[[Shared], float]


SHARED_GAUGES: list[SharedGauge] = [
    SharedGauge(
        "tidegate_unpublished_commits", "Ratified commits that wait to be published.", lambda of: of.backlog.commits
    ),
    SharedGauge("tidegate_unpublished_tables", "Tables that have such commits.", lambda of: of.backlog.tables),
    SharedGauge(
        "tidegate_unpublished_seconds",
        "How long the oldest of them has waited: the publish lag.",
        lambda of: waited_seconds(of.backlog, now=of.now),
    ),
    SharedGauge("tidegate_largest_backlog", "Those of the table that has most of them.", lambda of: of.backlog.largest),
    SharedGauge("tidegate_alarms", "Alarms that stand.", lambda of: of.uow.alarms.count()),
    SharedGauge("tidegate_events_last_sequence", "Number of the newest event.", lambda of: of.last_event),
    SharedGauge(
        "tidegate_events_kept", "Events that can be read.", lambda of: of.last_event - of.uow.events.forgotten()
    ),
    SharedGauge(
        "tidegate_undelivered_events",
        "How far behind the newest event the slowest subscription is that is not paused.",
        lambda of: max((of.last_event - one.cursor for one in of.subscriptions if not one.paused), default=0),
    ),
    SharedGauge(
        "tidegate_paused_subscriptions",
        "Subscriptions that get nothing until somebody resumes them.",
        lambda of: sum(one.paused for one in of.subscriptions),
    ),
    SharedGauge(
        "tidegate_dead_letters",
        "Events that receivers refused too often.",
        lambda of: sum(one.dead_letters for one in of.subscriptions),
    ),
    SharedGauge(
        "tidegate_staging_tables", "Staging tables that wait to be finished.", lambda of: of.uow.staging_tables.count()
    ),
    SharedGauge(
        "tidegate_dropped_tables", "Dropped tables whose rows are kept.", lambda of: of.uow.tables.count_dropped()
    ),
    SharedGauge("tidegate_removals", "Folders of tables that are being removed.", lambda of: of.uow.removals.count()),
    SharedGauge(
        "tidegate_removals_failing",
        "Those that do not go on, and are tried again.",
        lambda of: of.uow.removals.count(failing=True),
    ),
]


def waited_seconds(backlog: Backlog, *, now: int) -> float:
    """Clocks differ: who seems to have waited less than no time has not waited."""
    return 0.0 if backlog.oldest_at is None else max(0, now - backlog.oldest_at) / 1000


async def scrape(env: Environment, caller: Principal) -> str:
    """All numbers as text. Without the database there are fewer of them, one of which says so."""
    await env.authorize(caller, Operation.WATCH_METASTORE, "metastore")
    try:
        shared = await env.database.read(lambda uow: read_shared(uow, now=env.clock()))
    except TidegateError:
        shared = shared_families(None)
        env.measures.database_up.value = 0
    else:
        env.measures.database_up.value = 1
    return render(env.measures.all.families(), also=env.measures.labels) + render(shared)


def read_shared(uow: UnitOfWork, *, now: int) -> list[Family]:
    return shared_families(Shared(uow, uow.tables.backlog(), uow.events.last(), uow.subscriptions.all(), now))


def shared_families(of: Shared | None) -> list[Family]:
    """Without values if there is nothing to read them from."""
    values = [(gauge, [] if of is None else [Sample("", (), gauge.read(of))]) for gauge in SHARED_GAUGES]
    return [Family(gauge.name, "gauge", gauge.help, samples) for gauge, samples in values]
