"""Update: requirements and actions, all or none; the way in which commits are ratified.

The publication report is verified before the request joins its group: looking at files takes time, and a group holds
its tables' rows locked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

from tidegate.domain.audit import said_transaction
from tidegate.domain.commit_contents import CommitContent
from tidegate.domain.errors import BacklogFull, CommitVersionConflict, NoSuchTable, Unavailable
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.ratification import (
    Conflict,
    Limits,
    Outcome,
    Proposal,
    Ratified,
    Rejected,
    Replay,
    ToPut,
    ToRead,
    conflict_of,
    decide,
    moved_away,
    table_moved,
)
from tidegate.domain.requirements import Requirement, Requirements, collect_requirements
from tidegate.domain.rights import Allowed
from tidegate.domain.tables import Table
from tidegate.domain.updates import Action, ReportPublished, check_actions, find
from tidegate.services.audit import origin
from tidegate.services.authorized_table import is_about, moved_to
from tidegate.services.environment import Environment
from tidegate.services.look_at_commit import glance_at_log, looked_at, looked_at_early
from tidegate.services.put_commits import put_commit, recognised
from tidegate.services.stage_inline_commits import with_files, with_files_after_commit
from tidegate.services.verify_report import verify_report
from tidegate.telemetry.current import note, note_recorded

BACKLOG_WAIT_SECONDS_MAX = 10.0
"""How long a commit waits for the publisher when its table has too many unpublished ones."""


async def update_table(
    env: Environment,
    caller: Principal,
    name: TableName,
    *,
    requirements: Sequence[Requirement],
    actions: Sequence[Action],
    seen: CommitContent | None = None,
) -> Table:
    """`seen` is what the proposed commit says, for a caller who has read it already."""
    proposed_at = env.clock()
    needed = collect_requirements(requirements)
    check_actions(actions)
    allowed = await authorize_proposal(env, caller, name, needed)
    glance = None if seen is not None else await glance_at_log(env, name, needed.table_id, actions)
    if glance is None:
        reported = await verify_report(env, name, needed.table_id, find(actions, ReportPublished))
    else:
        reported, seen = glance
    proposal = Proposal(
        name=name,
        principal=caller.name,
        requirements=needed,
        actions=tuple(actions),
        proposed_at=proposed_at,
        verified=reported.verified,
        digests=reported.digests,
        changes_metadata=allowed.changes_metadata,
        origin=origin(),
        seen=seen,
        content_sha256=None if seen is None else seen.sha256,
        said_txn_id=None if seen is None else said_transaction(seen.info),
    )
    await check_asserted(env, caller, allowed, proposal)
    try:
        decided = await propose(env, proposal)
    except CommitVersionConflict as conflict:
        raise await _with_winners(env, proposal, conflict) from None
    return await with_files_after_commit(env, decided.table)


async def authorize_proposal(env: Environment, caller: Principal, name: TableName, needed: Requirements) -> Allowed:
    try:
        allowed = await env.authorize(caller, Operation.MODIFY_TABLE, name)
        if is_about(allowed, needed.table_id):
            return allowed
        # Another server may have given the name to another table a moment ago.
        env.access.epoch.advance()
        return await env.authorize(caller, Operation.MODIFY_TABLE, name)
    except NoSuchTable as missing:
        now_named = await moved_to(env, caller, needed.table_id)
        raise missing if now_named is None else moved_away(name, needed.table_id, now_named) from None


async def check_asserted(env: Environment, caller: Principal, allowed: Allowed, proposal: Proposal) -> None:
    """Whether the asserted table exists under another name is not for those to know who may not see it."""
    asserted = proposal.requirements.table_id
    if not is_about(allowed, asserted):
        raise table_moved(proposal, now_named=await moved_to(env, caller, asserted))


async def _with_winners(env: Environment, proposal: Proposal, conflict: CommitVersionConflict) -> CommitVersionConflict:
    """Who is told of commits finds their files. Where they cannot be written, the loser loads the table."""
    if any(winner.inline for winner in conflict.winners):
        known = env.database.known_table(proposal.requirements.table_id)
        try:
            if known is None or known.published >= conflict.winners[0].version:
                raise Unavailable("the table has moved on")
            await with_files(env, known)
        except (Unavailable, NoSuchTable):
            conflict.winners = ()
    return conflict


async def propose(env: Environment, proposal: Proposal) -> Ratified | Replay:
    """What was decided, unless it is a no, which is raised."""
    name, id = proposal.name, proposal.requirements.table_id
    version = None if proposal.commit is None else proposal.commit.version
    note(name, version, "ratified")
    measures = env.measures
    decision = _lost_already(env, proposal) or await _ratify(env, proposal)
    match decision:
        case Ratified(table, commit):
            note_recorded(None if commit is None else commit.version, proposal.transaction)
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
            return decision
        case Replay(table, commit):
            replayed(env, table, version)
            return decision
        case Conflict(_, error):
            raise await lost(env, name, id, error)
        case Rejected(error):
            measures.rejected.value += 1
            measures.rejections.at(type(error).__name__).value += 1
            raise error


async def lost(env: Environment, name: TableName, id: TableId, error: CommitVersionConflict) -> CommitVersionConflict:
    """Counted; and what is raised once it is the loser's turn to be told: of everything that has happened by then."""
    env.measures.conflicts.value += 1
    env.outcomes.count_conflict(id)
    await env.turns.wait(id)
    known = env.database.known_table(id)
    if known is None or known.name != name or known.latest <= error.latest:
        return error
    return conflict_of(known, Version(error.proposed))


def replayed(env: Environment, table: Table, version: Version | None) -> None:
    note(table.name, version, "replay")
    env.measures.replays.value += 1
    env.outcomes.count_replay(table.id)


async def _ratify(env: Environment, proposal: Proposal) -> Outcome:
    """A table that fell too far behind is published first: its writer waits, and does not see a limit."""
    patient_until = monotonic() + BACKLOG_WAIT_SECONDS_MAX
    if _puts_if_absent(env, proposal):
        return await put_commit(env, proposal)
    proposal = await looked_at_early(env, proposal)
    while True:
        decision = await env.database.ratify(proposal)
        if isinstance(decision, ToRead):
            proposal = await looked_at(env, proposal, decision.table)
            continue
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
    if proposal.commit is None and proposal.append is None:
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
