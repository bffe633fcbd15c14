"""Update: requirements and actions, all or none; the way in which commits are ratified.

The publication report is verified before the request joins its group: looking at files takes time, and a group holds
its tables' rows locked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from time import monotonic

from tidegate.domain.commits import Commit, RatifiedCommit
from tidegate.domain.errors import (
    BacklogFull,
    CommitVersionConflict,
    InternalFailure,
    NoSuchTable,
    TidegateError,
    Unavailable,
)
from tidegate.domain.events import Event, update_events
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.ports import Clock, UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.publishing import commits_to_verify
from tidegate.domain.ratification import (
    Conflict,
    Decision,
    Limits,
    Outcome,
    Proposal,
    Ratified,
    Rejected,
    Replay,
    ToPut,
    conflict_of,
    decide,
    table_moved,
)
from tidegate.domain.requirements import Requirement, collect_requirements
from tidegate.domain.tables import Table, require_delta
from tidegate.domain.updates import Action, ReportPublished, check_actions, find
from tidegate.services.environment import Environment
from tidegate.services.put_commits import put_commit, recognised
from tidegate.services.raise_alarm import raise_alarm
from tidegate.telemetry.current import note
from tidegate.telemetry.logs import about

BACKLOG_WAIT_SECONDS_MAX = 10.0
"""How long a commit waits for the publisher when its table has too many unpublished ones."""

log = logging.getLogger(__name__)


async def update_table(
    env: Environment,
    caller: Principal,
    name: TableName,
    *,
    requirements: Sequence[Requirement],
    actions: Sequence[Action],
) -> Table:
    proposed_at = env.clock()
    needed = collect_requirements(requirements)
    check_actions(actions)
    env.authorize(caller, Operation.MODIFY_TABLE, name)
    proposal = Proposal(
        name=name,
        principal=caller.name,
        requirements=needed,
        actions=tuple(actions),
        proposed_at=proposed_at,
        verified=await _verify_report(env, name, needed.table_id, find(actions, ReportPublished)),
    )
    version = None if proposal.commit is None else proposal.commit.version
    note(name, version, "ratified")
    measures = env.measures
    match _lost_already(env, proposal) or await _ratify(env, proposal):
        case Ratified(table, commit):
            if commit is None:
                measures.updated.value += 1
            else:
                measures.ratified.value += 1
                env.activity.count_commit(table)
            env.feed.notice()
            if commit is not None:
                if table.unpublished:
                    env.publishing.notice(table.id, table.latest, waiting=len(table.unpublished))
                if env.turns.pass_on(table.id):
                    # Who lost before is answered first: who just won would else win again and again.
                    await asyncio.sleep(0)
            return table
        case Replay(table):
            note(name, version, "replay")
            measures.replays.value += 1
            env.outcomes.count_replay(table.id)
            return table
        case Conflict(_, error):
            measures.conflicts.value += 1
            env.outcomes.count_conflict(needed.table_id)
            await env.turns.wait(needed.table_id)
            raise _as_it_stands(env, proposal, error)
        case Rejected(error):
            measures.rejected.value += 1
            measures.rejections.at(type(error).__name__).value += 1
            raise error


async def _ratify(env: Environment, proposal: Proposal) -> Outcome:
    """A table that fell too far behind is published first: its writer waits, and does not see a limit."""
    patient_until = monotonic() + BACKLOG_WAIT_SECONDS_MAX
    if _puts_if_absent(env, proposal):
        return await put_commit(env, proposal)
    while True:
        decision = await env.database.ratify(proposal)
        # A table that was not known before may be one whose log has to be looked at first.
        failed = isinstance(decision, Conflict | Rejected)
        if isinstance(decision, ToPut) or (failed and _puts_if_absent(env, proposal)):
            return await put_commit(env, proposal)
        if isinstance(decision, Conflict):
            return await recognised(env, proposal, decision)
        if not (isinstance(decision, Rejected) and isinstance(decision.error, BacklogFull)):
            return decision
        left = patient_until - monotonic()
        if left <= 0 or not await env.publishing.relief(proposal.requirements.table_id, seconds_max=left):
            return decision


def _puts_if_absent(env: Environment, proposal: Proposal) -> bool:
    if proposal.commit is None:
        return False
    known = env.database.known_table(proposal.requirements.table_id)
    return known is not None and known.puts_if_absent


def _lost_already(env: Environment, proposal: Proposal) -> Conflict | None:
    """The conflict, if another commit is known to have the version: what is ratified stays so, whatever came after.

    Most losers of a race are told by this, and need no transaction to learn what is known.
    """
    known = env.database.known_table(proposal.requirements.table_id)
    if known is None or proposal.commit is None or proposal.commit.version > known.latest:
        return None
    holder = known.ratified(proposal.commit.version)
    if holder is None or known.name != proposal.name:
        return None
    # A version that is taken is a conflict or a replay, whatever the limits and the time are.
    decision = decide(known, proposal, ratified=holder, limits=Limits(unpublished_max=0), now=0)
    return decision if isinstance(decision, Conflict) else None


def _as_it_stands(env: Environment, proposal: Proposal, error: CommitVersionConflict) -> CommitVersionConflict:
    """Who had to wait for its turn is told of everything that happened meanwhile."""
    known = env.database.known_table(proposal.requirements.table_id)
    if known is None or known.name != proposal.name or known.latest <= error.latest:
        return error
    return conflict_of(known, Version(error.proposed))


async def _verify_report(
    env: Environment, name: TableName, id: TableId, report: ReportPublished | None
) -> Version | None:
    """How far the published files were seen to hold the ratified bytes, in order and without a gap.

    A past state of the table is good enough to look at: what was ratified then is what was ratified.
    """
    if report is None or report.version == 0:
        return None
    try:
        table = env.database.known_table(id) or await env.database.table(name)
    except NoSuchTable:
        return None
    if table.id != id:
        return None
    verified = table.published
    try:
        for commit in commits_to_verify(table, report.version):
            if not await env.delta_logs.is_published(table.location, commit):
                await _look_closer(env, table, commit)
                break
            verified = commit.version
    except Unavailable as error:
        # What could not be read is not verified; the commit that the report rides along with goes on.
        log.warning("the report about %s could not be verified: %s", name, error.message)
    return verified


async def _look_closer(env: Environment, table: Table, commit: Commit) -> None:
    """A report of what is not there is a mistake; one of a file with other bytes is an alarm."""
    obstacle = await env.delta_logs.find_obstacle(table.location, commit)
    if obstacle is not None:
        await raise_alarm(env, table, obstacle)


def ratify_group(uow: UnitOfWork, proposals: Sequence[Proposal], *, limits: Limits, clock: Clock) -> list[Decision]:
    """Decides the proposals one after the other against the locked rows of their tables, and writes the outcome."""
    locked = uow.tables.lock([proposal.requirements.table_id for proposal in proposals])
    # Read with the rows locked: who waited for another server's group is decided on after that group.
    now = clock()
    published = uow.tables.ratified(_published_versions(proposals, locked))
    current, won, happened = dict(locked), list[tuple[TableId, RatifiedCommit]](), list[Event]()
    decisions: list[Decision] = []
    for proposal in proposals:
        table = current.get(proposal.requirements.table_id)
        if table is None or table.name != proposal.name:
            decisions.append(_lost(uow, proposal, table))
            continue
        holder = _holder(proposal, table, locked[table.id], published)
        decision = _decide_one(table, proposal, holder, limits=limits, now=now)
        if isinstance(decision, Ratified):
            current[table.id] = decision.table
            happened += update_events(table, decision.table, at=now, by=proposal.principal)
            if decision.commit is not None:
                won.append((table.id, RatifiedCommit(decision.commit, proposal.proposed_at, now)))
        decisions.append(decision)
    uow.tables.save(locked, current, won=won, happened=happened)
    return decisions


def _holder(
    proposal: Proposal, table: Table, before: Table, published: Mapping[tuple[TableId, Version], Commit]
) -> Commit | None:
    """The commit that has the proposed version; the group may have ratified it, or seen it published, a moment ago."""
    if proposal.commit is None:
        return None
    version = proposal.commit.version
    return table.ratified(version) or before.ratified(version) or published.get((table.id, version))


def _decide_one(table: Table, proposal: Proposal, holder: Commit | None, *, limits: Limits, now: int) -> Decision:
    try:
        return decide(require_delta(table), proposal, ratified=holder, limits=limits, now=now)
    except TidegateError as error:
        return Rejected(error)
    except Exception:
        # A defect must not take the neighbours in the group down with it.
        version = None if proposal.commit is None else proposal.commit.version
        of = about(table=str(proposal.name), version=version, principal=proposal.principal)
        log.exception("deciding on %s failed", proposal.name, extra=of)
        return Rejected(InternalFailure())


def _published_versions(
    proposals: Sequence[Proposal], locked: Mapping[TableId, Table]
) -> list[tuple[TableId, Version]]:
    """The proposed versions that are published already: who has them is not known without looking."""
    taken: list[tuple[TableId, Version]] = []
    for proposal in proposals:
        table = locked.get(proposal.requirements.table_id)
        if table is not None and proposal.commit is not None and proposal.commit.version <= table.published:
            taken.append((table.id, proposal.commit.version))
    return taken


def _lost(uow: UnitOfWork, proposal: Proposal, table: Table | None) -> Rejected:
    if table is not None:
        return Rejected(table_moved(proposal, now_named=table.name))
    if uow.tables.exists(proposal.name):
        return Rejected(table_moved(proposal, now_named=None))
    return Rejected(NoSuchTable(proposal.name))
