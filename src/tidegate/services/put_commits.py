"""Commits of tables on which a file in the log is the commit: decided as ever, put if absent, then recorded.

    learn what the log has before it      others put files too
    decide                                by the same rules as everywhere; a commit that is refused leaves no trace
    put _delta_log/<v>.json               THE COMMIT: whoever is first has the version
    record it, ratified and published     one transaction; if it fails, whoever looks at the log next learns of it

    A and B put 5, on two servers; A is first   ->   A records 5; B learns 5, and is told that it is taken
    A's server dies after it has put 5          ->   A sends it again: 5.json holds A's bytes, so A succeeds

Once the file stands nobody is told that the commit failed: at worst that the outcome is not known.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from hashlib import sha256

from tidegate.domain.commits import Commit
from tidegate.domain.errors import InvalidRequest, NoSuchTable, OutcomeUnknown, TooManyRequests, Unavailable
from tidegate.domain.names import TableId, Version
from tidegate.domain.ports import UnitOfWork
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
    ToRead,
    assigned,
    decide,
)
from tidegate.domain.tables import Table, require_delta
from tidegate.domain.updates import Action, AddCommit
from tidegate.services.environment import Environment
from tidegate.services.learn_commits import learn_commits, publish_ratified
from tidegate.services.look_at_commit import looked_at
from tidegate.services.publish_commits import PublishingBlocked
from tidegate.steps import reached
from tidegate.telemetry.logs import about

ATTEMPTS_MAX = 5
"""Each that fails has learned of somebody else's commit."""
SECONDS_MAX = 120.0
"""For all of them, with all that has to be learned and published before."""
RECORDING_ATTEMPTS_MAX = 20
RECORDING_PAUSE_SECONDS = 0.1

log = logging.getLogger(__name__)


async def put_commit(env: Environment, proposal: Proposal) -> Outcome:
    """Ratifies and publishes the proposed commit in one step. Raises OutcomeUnknown where that may have happened, now
    or when it was sent before.
    """
    try:
        async with env.one_at_a_time(proposal.requirements.table_id), asyncio.timeout(SECONDS_MAX):
            for _ in range(ATTEMPTS_MAX):
                decision = await _attempt(env, proposal)
                if isinstance(decision, ToRead):
                    proposal = await looked_at(env, proposal, decision.table)
                elif not isinstance(decision, ToPut):
                    return await recognised(env, proposal, decision)
    except TimeoutError:
        raise _unknown(f"The store of {proposal.name} has not answered for {SECONDS_MAX:.0f} s.") from None
    except Unavailable as error:
        raise _unknown(error.message) from error
    return Rejected(
        Unavailable(
            f"The commit could not be put into the log of {proposal.name}, and has not happened: its name is taken by "
            "something that is no file, or the log changes too fast. Look at the log, and send the commit again."
        )
    )


async def recognised(env: Environment, proposal: Proposal, outcome: Outcome) -> Outcome:
    """A conflict with a commit that the catalog has learned from the log is none if that holds the very bytes of the
    proposed one: it is sent again by who did not hear that it succeeded.
    """
    if not isinstance(outcome, Conflict) or outcome.learned is None or proposal.commit is None:
        return outcome
    table = env.database.known_table(proposal.requirements.table_id)
    if table is None or not await _is_in_log(env, table, proposal, proposal.commit):
        return outcome
    return Replay(table, outcome.learned)


async def _is_in_log(env: Environment, table: Table, proposal: Proposal, commit: Commit) -> bool:
    if proposal.content is not None:
        return await env.delta_logs.is_put(table.location, commit.version, proposal.content)
    return await env.delta_logs.verified_sha256(table.location, commit) is not None


async def _attempt(env: Environment, proposal: Proposal) -> Decision:
    """ToPut: somebody else was first, and the next attempt knows more."""
    commit = proposal.commit
    before = None if commit is None else Version(commit.version - 1)
    try:
        table = await learn_commits(env, proposal.requirements.table_id, up_to=before)
    except NoSuchTable:
        return await env.database.ratify(proposal)  # which says why
    if not table.puts_if_absent or table.name != proposal.name or before not in (None, table.latest):
        return await env.database.ratify(proposal)
    try:
        if commit is None:
            return await _append(env, table, proposal)
        if await env.delta_logs.find_published(table.location, commit.version) is not None:
            return await _meet(env, table, proposal, commit)
        return await _put(env, table, proposal, commit)
    except InvalidRequest as error:
        return Rejected(error)
    except PublishingBlocked as blocked:
        return Rejected(InvalidRequest(f"{table.name} takes no commits until this is mended: {blocked}"))


async def _append(env: Environment, table: Table, proposal: Proposal) -> Decision:
    """A commit that left its version open gets the next one, again and again until it is the first to have it."""
    append, version = proposal.append, Version(table.latest + 1)
    if append is None:
        return await env.database.ratify(proposal)
    happened = await env.database.read(lambda uow: _happened(uow, table.id, append.txn_id))
    if happened is not None:
        return Replay(table, happened)
    if await env.delta_logs.find_published(table.location, version) is not None:
        return _blocked(env, table, version)
    match assigned(table, proposal, append, now=env.clock()):
        case Proposal(commit=Commit() as commit) as placed:
            return await _put(env, table, placed, commit)
        case Proposal() as same:
            return await env.database.ratify(same)
        case refused:
            return refused


def _happened(uow: UnitOfWork, id: TableId, txn_id: str) -> Commit | None:
    version = uow.tables.opened([(id, txn_id)]).get((id, txn_id))
    return None if version is None else uow.tables.ratified([(id, version)]).get((id, version))


async def _put(env: Environment, table: Table, proposal: Proposal, commit: Commit) -> Decision:
    proposal = await looked_at(env, proposal, table)
    decision = _decide(env, table, proposal)
    if not isinstance(decision, ToPut) or proposal.seen is None:
        return decision
    content = proposal.seen.written
    await publish_ratified(env, table)
    reached("put.decided")
    try:
        if not await env.delta_logs.put_if_absent(table.location, commit.version, content):
            return decision
    except Unavailable as error:
        return Rejected(error)  # nothing has happened, now or before
    return await _record(env, table, proposal, commit.version, content)


async def _meet(env: Environment, table: Table, proposal: Proposal, commit: Commit) -> Decision:
    """The log has the version already: it is the proposed one, somebody else's, or nobody's."""
    await publish_ratified(env, table)
    content = await _ours(env, table, proposal, commit)
    if content is not None:
        return await _record(env, table, proposal, commit.version, content)
    learned = await learn_commits(env, table.id)
    if learned.latest >= commit.version or learned.name != table.name:
        return await env.database.ratify(proposal)
    return _blocked(env, table, commit.version)


def _blocked(env: Environment, table: Table, version: Version) -> Decision:
    """A file that is known not to be sound has the version; else it was put a moment ago, and is learned next.

    No 409: who gets one proposes a higher version, and there is none to propose.
    """
    reason = env.refused.reason(table.id, version)
    return ToPut(table) if reason is None else Rejected(InvalidRequest(reason))


async def _ours(env: Environment, table: Table, proposal: Proposal, commit: Commit) -> bytes | None:
    """The content, if the file in the log is the proposed one, and the request says what the file says: then it is
    recorded as who proposes it has it. Else it is learned as it is.
    """
    proposal = await looked_at(env, proposal, table)
    if proposal.seen is None or not isinstance(_decide(env, table, replace(proposal, put=True)), Ratified):
        return None
    content = proposal.seen.written
    return content if await env.delta_logs.is_put(table.location, commit.version, content) else None


def _decide(env: Environment, table: Table, proposal: Proposal) -> Decision:
    # What waits is published before the commit is put: there is always room.
    limits = Limits(unpublished_max=len(table.unpublished) + 1)
    before = replace(table, published=table.latest, unpublished=()) if proposal.put else table
    return decide(require_delta(before), proposal, ratified=None, limits=limits, now=env.clock())


async def _record(env: Environment, table: Table, proposal: Proposal, version: Version, content: bytes) -> Outcome:
    """Success, whatever has become of the table since it was decided: the file stands."""
    actions, digest = tuple(map(_in_log, proposal.actions)), sha256(content).digest()
    put = replace(proposal, put=True, actions=actions, content_sha256=digest, seen=None, refusal=None)
    for _ in range(RECORDING_ATTEMPTS_MAX):
        try:
            decision = await env.database.ratify(put)
        except TooManyRequests:
            await asyncio.sleep(RECORDING_PAUSE_SECONDS)
            continue
        if isinstance(decision, Ratified | Replay):
            reached("put.recorded")
            return decision
        if not isinstance(decision, Rejected) or not isinstance(decision.error, NoSuchTable):
            of = about(table=str(table.name), version=version, principal=proposal.principal)
            log.error("a commit that is in the log could not be recorded: %r", decision, extra=of)
            break
        try:
            now = await env.database.read(lambda uow: uow.tables.get_by_id(table.id))
        except NoSuchTable:
            break  # dropped; if it is restored, the commit is learned then
        put = replace(put, name=now.name)
    raise _unknown(f"What is in the log of {table.name} as version {version} could not be recorded.")


def _in_log(action: Action) -> Action:
    """The content of a commit that is in the log is not kept beside it."""
    return replace(action, commit=replace(action.commit, inline=False)) if isinstance(action, AddCommit) else action


def _unknown(why: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"{why} The commit may have happened. Send it again unchanged.")
