"""Commit with the content in the request: no file, no other request, the same rules.

    with a version       ratified if it is the next one, as a staged commit would be; sent again, it is the same commit
    without a version    a blind append, which becomes the next version whatever others do meanwhile

What the commit changes of the table's metadata is read from its content, so that nothing else needs to be said, and
nothing else can be.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tidegate.domain.audit import said_transaction
from tidegate.domain.commits import Commit
from tidegate.domain.desired_metadata import metadata_actions
from tidegate.domain.errors import CommitVersionConflict, InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.inline_commits import InlineCommit, encode_content, parse_inline_commit
from tidegate.domain.names import TableName, Version, parse_table_id
from tidegate.domain.open_appends import OpenAppend, parse_open_append
from tidegate.domain.privileges import Principal
from tidegate.domain.ratification import Proposal, conflict_of
from tidegate.domain.requirements import AssertTableId, Requirements, collect_requirements
from tidegate.domain.row_ids import tracks_rows
from tidegate.domain.tables import Table
from tidegate.domain.updates import Action, AddCommit, ReportPublished, check_actions
from tidegate.services.audit import origin
from tidegate.services.authorized_table import is_about
from tidegate.services.environment import Environment
from tidegate.services.learn_commits import up_to_date
from tidegate.services.row_marks import find_row_mark
from tidegate.services.update_table import authorize_proposal, check_asserted, lost, propose
from tidegate.services.verify_report import verify_report

ATTEMPTS_MAX = 20
"""An append to a table that tracks rows looks up how far their ids go, and others may commit meanwhile."""


@frozen
class InlineRequest:
    table_id: str
    content: str
    version: Version | None
    """None: left open."""
    metadata_version: Version | None
    """With an open version: the last one that changed the metadata which the files were written for."""
    published: Version | None
    """The writer's report."""


@frozen
class Committed:
    table: Table
    commit: Commit


async def commit_inline(env: Environment, caller: Principal, name: TableName, request: InlineRequest) -> Committed:
    now = env.clock()
    needed = collect_requirements([AssertTableId(parse_table_id("table_id", request.table_id))])
    allowed = await authorize_proposal(env, caller, name, needed)
    content = encode_content(request.content, bytes_max=env.inline_bytes_max)
    report = None if request.published is None else ReportPublished(request.published)
    if report is not None:
        report.check()
    seen = await verify_report(env, name, needed.table_id, report)
    reported = () if report is None else (report,)
    asked = partial(
        Proposal,
        name=name,
        principal=caller.name,
        requirements=needed,
        proposed_at=now,
        verified=seen.verified,
        digests=seen.digests,
        changes_metadata=allowed.changes_metadata,
        origin=origin(),
    )
    if not is_about(allowed, needed.table_id):
        await check_asserted(env, caller, allowed, asked(actions=reported))
    if request.version is None:
        if request.metadata_version is None:
            raise InvalidRequest(
                "A commit without a version needs metadata_version: the last version that changed the metadata which "
                "its files were written for."
            )
        append = parse_open_append(content, metadata_version=request.metadata_version)
        return await _append(env, asked(actions=reported, append=append), append)
    inline = parse_inline_commit(content, version=request.version, now=now)
    actions = (AddCommit(inline.commit, None), *await _changes(env, name, needed, inline), *reported)
    check_actions(actions)
    read = inline.content
    proposal = asked(
        actions=actions,
        content=read.written,
        content_sha256=read.sha256,
        seen=read,
        row_mark=inline.row_mark,
        said_txn_id=said_transaction(read.info),
    )
    return await _propose(env, proposal)


async def _append(env: Environment, proposal: Proposal, append: OpenAppend) -> Committed:
    for attempt in range(1, ATTEMPTS_MAX + 1):
        table = env.database.known_table(proposal.requirements.table_id) or await env.database.table(proposal.name)
        if tracks_rows(table.metadata.protocol, table.metadata.properties):
            marked = replace(append, row_mark=await find_row_mark(env, table, fresh=attempt > 1))
            proposal = replace(proposal, append=marked)
        try:
            return await _propose(env, proposal)
        except CommitVersionConflict:
            if attempt == ATTEMPTS_MAX:
                raise
    raise AssertionError("unreachable")


async def _changes(env: Environment, name: TableName, needed: Requirements, inline: InlineCommit) -> list[Action]:
    """What the commit says of the table as a whole. A version that is taken changes nothing, whatever it says."""
    says = inline.content.says
    if says.metadata is None and says.protocol is None and not says.changes_domains:
        return []
    table = env.database.known_table(needed.table_id)
    if table is None or table.latest < inline.commit.version - 1:
        table = await up_to_date(env, await env.database.table(name))
    if table.latest < inline.commit.version - 1:
        # Nobody can tell what it changes of a table that is not there yet.
        raise await lost(env, name, table.id, conflict_of(table, inline.commit.version))
    return [*metadata_actions(table.metadata, None, says)] if table.latest < inline.commit.version else []


async def _propose(env: Environment, proposal: Proposal) -> Committed:
    decided = await propose(env, proposal)
    if decided.commit is None:
        raise AssertionError("a commit was proposed")
    return Committed(decided.table, decided.commit)
