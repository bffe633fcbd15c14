"""Publishing by the catalog: ratified commits of one table go into its log, in order, and are verified there.

What was verified is recorded like a writer's report, in a group with the commits of the moment. An obstacle, such as a
published file with other bytes or a staged file that vanished, raises an alarm, once; the commit stays listed, and
nothing after it is published. When the obstacle is gone publishing goes on, and the alarm is over.
"""

from __future__ import annotations

import logging

from tidegate.domain.errors import NoSuchTable
from tidegate.domain.events import SYSTEM
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, Version
from tidegate.domain.publishing import Publication
from tidegate.domain.ratification import Proposal, Ratified
from tidegate.domain.requirements import AssertTableId, collect_requirements
from tidegate.domain.tables import Table
from tidegate.domain.updates import ReportPublished
from tidegate.services.environment import Environment
from tidegate.services.inline_contents import publish
from tidegate.services.raise_alarm import raise_alarm
from tidegate.steps import reached
from tidegate.telemetry.logs import about

BATCH_MAX = 100
"""Commits of one table that are published before the catalog is told; then it is another table's turn."""

log = logging.getLogger(__name__)


@frozen
class Left:
    """What is not published after a look at a table."""

    latest: Version
    waiting: int


async def publish_commits(env: Environment, id: TableId, *, up_to: Version) -> Left | None:
    """Publishes what waits, up to this version. Returns what is left, None if nothing is.

    Raises Unavailable if the store fails, and PublishingBlocked after an alarm.
    """
    table = await _find(env, id)
    if table is None or not table.decided_here:
        return None
    due = [commit for commit in table.unpublished if commit.version <= up_to][:BATCH_MAX]
    if due:
        reached("publish.started")
        publication = await publish(env, table, due)
        reached("publish.verified")
        if publication.verified is not None:
            await _record(env, table, publication, publication.verified)
            env.measures.published.value += publication.verified - table.published
            reached("publish.recorded")
        if publication.obstacle is not None:
            await raise_alarm(env, table, publication.obstacle)
            raise PublishingBlocked(publication.obstacle.message)
        table = env.database.known_table(id) or table
    waiting = table.latest - table.published
    return Left(table.latest, waiting) if waiting else None


class PublishingBlocked(Exception):
    """An obstacle that only a person can remove; the message says how."""


async def _find(env: Environment, id: TableId) -> Table | None:
    known = env.database.known_table(id)
    if known is not None and not known.unpublished:
        return known
    try:
        return await env.database.read(lambda uow: uow.tables.get_by_id(id))
    except NoSuchTable:
        return None


async def _record(env: Environment, table: Table, publication: Publication, verified: Version) -> None:
    decision = await env.database.ratify(
        Proposal(
            name=table.name,
            principal=SYSTEM,
            requirements=collect_requirements([AssertTableId(table.id)]),
            actions=(ReportPublished(verified),),
            proposed_at=env.clock(),
            verified=verified,
            digests=publication.digests,
        )
    )
    if not isinstance(decision, Ratified):
        # Dropped or renamed meanwhile; if it is still there, the next look finds the files as they are.
        of = about(table=str(table.name), version=verified)
        log.info("what was published of %s up to version %s is recorded later", table.name, verified, extra=of)
