"""Looking at a proposed commit before it is decided on: read once, off the event loop, bounded in size and time.

    a commit whose version is known to be taken    ->   nobody looks: it is a conflict, or was sent again
    a staged file of some kilobytes                ->   one short look at the store, parsed where it arrives
    a large one                                    ->   parsed on a thread of its own
    one that is not there, or not sound            ->   the decision hears of it: a version that is taken comes first
    a store that hangs                             ->   Unavailable, for who waits for it alone

What was read is decided on together with the table's locked row: `domain/admission.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from tidegate.domain.admission import admit_staged, must_look, not_staged
from tidegate.domain.audit import said_transaction
from tidegate.domain.commit_contents import CommitContent
from tidegate.domain.commits import Commit
from tidegate.domain.errors import InvalidRequest, Unavailable
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.publishing import Publication, commits_to_verify
from tidegate.domain.ratification import Proposal
from tidegate.domain.tables import Table
from tidegate.domain.updates import Action, AddCommit, ReportPublished, find
from tidegate.services.environment import Environment

PARSED_AT_ONCE_BYTES_MAX = 16 * 1024
"""What takes longer to parse than to hand to a thread is handed to one."""
GLANCES_MAX = 8
"""Published files that are looked at in one turn: a turn is short."""


async def glance_at_log(
    env: Environment, name: TableName, id: TableId, actions: Sequence[Action]
) -> tuple[Publication, CommitContent] | None:
    """What most commits need of the store, in one turn instead of two: the published files that they report, which are
    as they should be, and what their staged file says.

    None where there is less to look at, or anything is not as it should be: then each is looked at by itself, and
    told of by itself.
    """
    known = env.database.known_table(id)
    report, addition = find(actions, ReportPublished), find(actions, AddCommit)
    if known is None or known.name != name or report is None or addition is None or not must_look(known):
        return None
    commit, reported = addition.commit, commits_to_verify(known, report.version)
    usual = commit.version == known.latest + 1 and 0 < len(reported) <= GLANCES_MAX and not known.puts_if_absent
    if not usual or any(one.inline for one in reported):
        return None
    try:
        look = await env.delta_logs.look(known.location, reported, commit)
        if look.staged is None:
            return None
        seen = await _admitted(look.staged, commit)
    except (InvalidRequest, Unavailable):
        return None
    digests: dict[Version, str] = {}
    for one, digest in zip(reported, look.digests, strict=True):
        if digest is None:
            return None
        if one.content_sha256 is None:
            digests[one.version] = digest
    return Publication(reported[-1].version, digests=digests), seen


async def looked_at_early(env: Environment, proposal: Proposal) -> Proposal:
    """The proposal with what its commit says, if it looks as if that will be asked for: a group need not wait then."""
    known = env.database.known_table(proposal.requirements.table_id)
    if known is None or proposal.commit is None or not must_look(known):
        return proposal
    return await looked_at(env, proposal, known) if proposal.commit.version == known.latest + 1 else proposal


async def looked_at(env: Environment, proposal: Proposal, table: Table) -> Proposal:
    """The proposal with what its commit says, or with what is wrong with it."""
    commit = proposal.commit
    if commit is None or proposal.seen is not None or proposal.refusal is not None:
        return proposal
    try:
        seen = await read_staged_commit(env, table, commit)
    except InvalidRequest as error:
        return replace(proposal, refusal=error)
    if seen is None:
        return replace(proposal, refusal=not_staged(commit))
    return replace(proposal, seen=seen, content_sha256=seen.sha256, said_txn_id=said_transaction(seen.info))


async def read_staged_commit(env: Environment, table: Table, commit: Commit) -> CommitContent | None:
    """None if it is not there. Raises InvalidRequest if it is not sound."""
    content = await env.delta_logs.read_staged(table.location, commit)
    return None if content is None else await _admitted(content, commit)


async def _admitted(content: bytes, commit: Commit) -> CommitContent:
    if len(content) <= PARSED_AT_ONCE_BYTES_MAX:
        return admit_staged(content, commit)
    return await asyncio.to_thread(admit_staged, content, commit)
