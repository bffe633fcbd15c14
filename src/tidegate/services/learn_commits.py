"""Learning: commits that others have put into the log of a table become known to the catalog.

Only on tables whose commits are put there (`domain/put_if_absent.py`). Somebody has put the file and the catalog does
not know: a server that died before it could record it, another server a moment ago, or a writer of its own accord. The
next one who asks for the table, or the sweep, learns of it:

    latest 4; the log has 5.json and 6.json, sound    ->   5 and 6 are recorded as ratified and published, with events
    latest 4; the log has 5.json, not sound           ->   an alarm; the table is served as it was, at 4

A table whose commits are ratified pays nothing for this, not even a look at its log.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256

from tidegate.domain.errors import InvalidRequest, NotFound, Unavailable
from tidegate.domain.events import SYSTEM
from tidegate.domain.learned_commits import learned_commit
from tidegate.domain.names import TableId, Version
from tidegate.domain.publishing import AlarmReason, Obstacle, PublishedFile
from tidegate.domain.ratification import Conflict, Proposal, Ratified, Rejected, Replay, ToPut, ToRead
from tidegate.domain.requirements import AssertTableId, collect_requirements
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment
from tidegate.services.publish_commits import PublishingBlocked, publish_commits
from tidegate.services.raise_alarm import raise_alarm
from tidegate.steps import reached

LEARNED_MAX = 1000
"""Versions that one call learns; the next call goes on."""
LOOK_SECONDS_MAX = 10.0
LEARN_SECONDS_MAX = 120.0
"""What was learned until then stays learned."""
PUBLISHING_ATTEMPTS_MAX = 50
PUBLISHING_PAUSE_SECONDS = 0.1


async def up_to_date(env: Environment, table: Table) -> Table:
    """The table with all that its log has. It is what it was, at no cost, if its commits are not put there."""
    if not _learns(table) or await _find_next(env, table) is None:
        return table
    async with env.one_at_a_time(table.id):
        try:
            async with asyncio.timeout(LEARN_SECONDS_MAX):
                return await learn_commits(env, table.id)
        except TimeoutError:
            raise _silent(table) from None


async def learn_commits(env: Environment, id: TableId, *, up_to: Version | None = None) -> Table:
    """The table after everything that can be learned, or no more than up to this version. The caller has the turn of
    this table. Raises NoSuchTable, and Unavailable if the store fails.
    """
    table = await env.database.read(lambda uow: uow.tables.get_by_id(id))
    for _ in range(LEARNED_MAX):
        if not _learns(table) or (up_to is not None and table.latest >= up_to):
            break
        file = await _find_next(env, table)
        after = None if file is None else await _learn_next(env, table, file)
        if after is None:
            break
        table = after
    return table


def _learns(table: Table) -> bool:
    """The next file in the log of a table that is being given back may be the one that does so: it is not learned."""
    return table.puts_if_absent and table.releasing is None


async def publish_ratified(env: Environment, table: Table) -> None:
    """What was ratified before the table's commits were put into the log has to be there first.

    Raises PublishingBlocked if an alarm stands in the way.
    """
    if not table.unpublished:
        return
    for attempt in range(1, PUBLISHING_ATTEMPTS_MAX + 1):
        try:
            left = await publish_commits(env, table.id, up_to=table.latest)
        except Unavailable:
            # The publisher may be at it; one of the two does it.
            if attempt == PUBLISHING_ATTEMPTS_MAX:
                raise
            await asyncio.sleep(PUBLISHING_PAUSE_SECONDS)
        else:
            if left is None or left.latest - left.waiting >= table.latest:
                return
    raise Unavailable(f"{table.name} has many commits that are not published yet. Try again in a moment.")


async def _find_next(env: Environment, table: Table) -> PublishedFile | None:
    """The file of the version after the latest, unless it is known not to be sound."""
    version = Version(table.latest + 1)
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            file = await env.delta_logs.find_published(table.location, version)
    except TimeoutError:
        raise _silent(table) from None
    return None if file is None or env.refused.has(table.id, version, file) else file


def _silent(table: Table) -> Unavailable:
    return Unavailable(f"The log of {table.name} does not answer in time. Check its store, and try again.")


async def _learn_next(env: Environment, table: Table, file: PublishedFile) -> Table | None:
    """The table after one more version; None if there is nothing to learn."""
    version = Version(table.latest + 1)
    try:
        content = await env.delta_logs.read_published(table.location, version)
        if content is None:
            return None
        learned = await asyncio.to_thread(learned_commit, table, version, content, file)
    except InvalidRequest as error:
        await _refuse(env, table, version, file, error)
        return None
    try:
        await publish_ratified(env, table)
    except PublishingBlocked:
        return None  # its alarm says it all
    if not await env.delta_logs.is_put(table.location, version, content):
        return None  # moved away meanwhile
    reached("learn.read")
    proposal = Proposal(
        name=table.name,
        principal=SYSTEM,
        requirements=collect_requirements([AssertTableId(table.id)]),
        actions=learned.actions,
        proposed_at=env.clock(),
        put=True,
        content_sha256=sha256(content).digest(),
        txn_id=learned.txn_id,
    )
    match await env.database.ratify(proposal):
        case Ratified(after):
            env.measures.learned.value += 1
            env.feed.notice()
            reached("learn.recorded")
            return after
        case Replay(after):
            return after  # somebody else has learned it meanwhile
        case Rejected(InvalidRequest() as error):
            await _refuse(env, table, version, file, error)
            return None
        case Rejected(NotFound()) | Conflict() | ToPut() | ToRead():
            return None  # dropped, renamed or restored meanwhile: the next look sees it as it is then
        case Rejected(error):
            raise error


async def _refuse(env: Environment, table: Table, version: Version, file: PublishedFile, error: InvalidRequest) -> None:
    try:
        now = await env.database.read(lambda uow: uow.tables.get_by_id(table.id))
    except NotFound:
        return
    if now.latest != table.latest or not _learns(now):
        return  # it has moved on, or was given back by that very file
    message = (
        f"The file that was put into the log of {table.name} as version {version} cannot be taken for it: "
        f"{error.message} The table stays at version {table.latest}. Move that file away."
    )
    await raise_alarm(env, table, Obstacle(version, AlarmReason.UNSOUND_COMMIT, message))
    env.refused.put(table.id, version, file, reason=message)
