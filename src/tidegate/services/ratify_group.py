"""Ratification: the proposals of a group, decided one after the other, written and synced together.

latest is 4; the group is A with 5, B with 5, C with an append that leaves its version open
A is ratified as 5, B is told that 5 is taken, C becomes 6
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from tidegate.domain.audit import AuditRecord, Origin
from tidegate.domain.commits import Commit, RatifiedCommit
from tidegate.domain.errors import InternalFailure, NoSuchTable, TidegateError
from tidegate.domain.events import Event, update_events
from tidegate.domain.names import TableId, Version
from tidegate.domain.ports import Clock, UnitOfWork, Won
from tidegate.domain.ratification import (
    Decision,
    Limits,
    Proposal,
    Ratified,
    Rejected,
    Replay,
    assigned,
    decide,
    table_moved,
)
from tidegate.domain.tables import Table, require_delta
from tidegate.telemetry.logs import about

LEARNING = Origin("learnCommit", "", None)
"""What somebody has put into the log of a table, and the catalog has found there."""
Appends = dict[tuple[TableId, str], Commit]
"""Commits that had left their version open, by their transactions' ids."""

log = logging.getLogger(__name__)


def ratify_group(uow: UnitOfWork, proposals: Sequence[Proposal], *, limits: Limits, clock: Clock) -> list[Decision]:
    """Decides the proposals one after the other against the locked rows of their tables, and writes the outcome."""
    locked = uow.tables.lock([proposal.requirements.table_id for proposal in proposals])
    # Read with the rows locked: who waited for another server's group is decided on after that group.
    now = clock()
    published = uow.tables.ratified(_published_versions(proposals, locked))
    appended = _appended(uow, proposals)
    current, won, happened = dict(locked), list[Won](), list[Event]()
    verified: list[tuple[TableId, Version, str]] = []
    audited: list[AuditRecord] = []
    decisions: list[Decision] = []
    for asked in proposals:
        table = current.get(asked.requirements.table_id)
        if table is None or table.name != asked.name:
            decisions.append(_lost(uow, asked, table))
            continue
        proposal = _placed(table, asked, appended, now=now)
        if not isinstance(proposal, Proposal):
            decisions.append(proposal)
            continue
        holder = _holder(proposal, table, locked[table.id], published)
        decision = _decide_one(table, proposal, holder, limits=limits, now=now)
        if isinstance(decision, Ratified):
            current[table.id] = decision.table
            happened += update_events(table, decision.table, at=now, by=proposal.principal)
            if decision.commit is not None or proposal.origin is not None:
                audited.append(_audited(decision, proposal, now=now))
            if proposal.digests:
                verified += _verified(table, decision.table, proposal.digests)
            if decision.commit is not None:
                txn_id = _transaction(proposal)
                if txn_id is not None and appended.setdefault((table.id, txn_id), decision.commit) != decision.commit:
                    txn_id = None  # the log has it twice; the first one is who it is
                won.append(_won(decision.table, decision.commit, proposal, txn_id, now=now))
        decisions.append(decision)
    uow.tables.save(locked, current, won=won, happened=happened, verified=verified, audited=audited)
    return decisions


def _won(table: Table, commit: Commit, proposal: Proposal, txn_id: str | None, *, now: int) -> Won:
    content = None if proposal.put else proposal.content
    ratified = RatifiedCommit(commit, proposal.proposed_at, now)
    return Won(table.id, ratified, content, txn_id, proposal.principal, table.chain)


def _audited(decision: Ratified, proposal: Proposal, *, now: int) -> AuditRecord:
    origin = proposal.origin or LEARNING
    return AuditRecord(
        at=now,
        principal=proposal.principal,
        operation=origin.operation,
        subject=str(decision.table.name),
        allowed=True,
        request_id=origin.request_id or None,
        address=origin.address,
        version=None if decision.commit is None else decision.commit.version,
        txn_id=proposal.transaction,
    )


def _verified(before: Table, after: Table, digests: Mapping[Version, str]) -> list[tuple[TableId, Version, str]]:
    """Of the commits that this update has moved to the published ones."""
    return [
        (after.id, version, digest)
        for version, digest in digests.items()
        if before.published < version <= after.published
    ]


def _transaction(proposal: Proposal) -> str | None:
    return proposal.txn_id if proposal.append is None else proposal.append.txn_id


def _placed(table: Table, proposal: Proposal, appended: Appends, *, now: int) -> Proposal | Decision:
    """The proposal with its version, which the catalog assigns to an append that left it open."""
    append = proposal.append
    if append is None or proposal.put:
        return proposal
    happened = appended.get((table.id, append.txn_id))
    return Replay(table, happened) if happened is not None else assigned(table, proposal, append, now=now)


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


def _appended(uow: UnitOfWork, proposals: Sequence[Proposal]) -> Appends:
    """Those of the appends that have happened before: they were sent again."""
    asked = [(one.requirements.table_id, txn_id) for one in proposals if (txn_id := _transaction(one)) is not None]
    versions = uow.tables.opened(asked)
    commits = uow.tables.ratified([(id, version) for (id, _), version in versions.items()])
    return {(id, txn_id): commits[id, version] for (id, txn_id), version in versions.items()}


def _lost(uow: UnitOfWork, proposal: Proposal, table: Table | None) -> Rejected:
    if table is not None:
        return Rejected(table_moved(proposal, now_named=table.name))
    if uow.tables.exists(proposal.name):
        return Rejected(table_moved(proposal, now_named=None))
    return Rejected(NoSuchTable(proposal.name))
