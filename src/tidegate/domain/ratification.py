"""The decision: does this commit happen?

    latest is 4; writers A and B both propose 5.
    decide(table, A)   -> Ratified: latest is 5 now
    decide(table', B)  -> Conflict(5): B rebases and proposes 6
    A lost the answer and sends 5 again, same file -> Replay: nothing changes, A gets its success

Pure: the caller holds the table's row locked, gives the state, and writes what comes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias, cast

from tidegate.domain.admission import check_admission, must_look
from tidegate.domain.audit import Origin
from tidegate.domain.chain import chain_of
from tidegate.domain.commit_contents import CommitContent
from tidegate.domain.commit_policies import check_policies
from tidegate.domain.commits import Commit, is_learned
from tidegate.domain.constraints import check_kept
from tidegate.domain.errors import (
    BacklogFull,
    CommitNotAllowed,
    CommitVersionConflict,
    CommitVersionGap,
    InvalidRequest,
    NoSuchTable,
    PermissionDenied,
    RequirementConflict,
    TidegateError,
    Unavailable,
)
from tidegate.domain.frozen import frozen
from tidegate.domain.inline_commits import WHAT
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.open_appends import OpenAppend, assign, check_append, known_mark
from tidegate.domain.publishing import check_report, published_after
from tidegate.domain.requirements import Requirements, check_etag
from tidegate.domain.row_ids import RowMark, tracks_rows
from tidegate.domain.tables import Table, TableMetadata, TableType, check_metadata, contract_of
from tidegate.domain.uniform import check_uniform
from tidegate.domain.updates import (
    Action,
    AddCommit,
    ReportPublished,
    SetSnapshotVersion,
    apply_metadata,
    find,
    is_metadata_change,
)


@frozen
class Proposal:
    """One update request: shape already checked, its publication report already verified."""

    name: TableName
    principal: str
    requirements: Requirements
    actions: tuple[Action, ...]
    proposed_at: int
    """When it reached the server."""
    verified: Version | None = None
    """How far the reported publication was verified; None when nothing was reported."""
    put: bool = False
    """Its file stands in the log already, on a table where that is the commit: what is left is to record it."""
    content: bytes | None = None
    """That of an inline commit."""
    content_sha256: bytes | None = None
    """Of the commit's bytes as the catalog read them; None where nobody looked."""
    seen: CommitContent | None = None
    """What the commit says; None where nobody looked."""
    refusal: InvalidRequest | None = None
    """What is wrong with the commit, whatever its table is. A version that is taken is still a conflict or a replay."""
    row_mark: RowMark | None = None
    """What the content says of row ids."""
    append: OpenAppend | None = None
    """A commit that gets its version when it is decided on."""
    changes_metadata: bool = True
    """Whether its principal may change metadata of a guarded table."""
    txn_id: str | None = None
    """Of a commit that was learned from the log: it may have left its version open, and be sent again."""
    origin: Origin | None = None
    """The request that it came with; None for what the catalog does by itself."""
    said_txn_id: str | None = None
    """What the content calls the transaction, if somebody has read it; for the audit log."""
    digests: Mapping[Version, str] = field(default_factory=dict[Version, str])
    """SHA-256 of published files as they were verified, of commits whose content nobody had read before."""
    addition: AddCommit | None = field(init=False)
    report: ReportPublished | None = field(init=False)

    def __post_init__(self) -> None:
        # Found once: every step of the decision asks for them.
        addition = find(self.actions, AddCommit)
        if addition is not None and self.content_sha256 is not None:
            digest = self.content_sha256.hex()
            if addition.commit.content_sha256 != digest:
                addition = AddCommit(replace(addition.commit, content_sha256=digest), addition.uniform)
        object.__setattr__(self, "addition", addition)
        object.__setattr__(self, "report", find(self.actions, ReportPublished))

    @property
    def transaction(self) -> str | None:
        """What the commit calls itself, where that is known."""
        return self.said_txn_id or (self.txn_id if self.append is None else self.append.txn_id)

    @property
    def commit(self) -> Commit | None:
        return None if self.addition is None else self.addition.commit


@frozen
class Limits:
    unpublished_max: int


@frozen
class Ratified:
    """The update happened; with `commit`, that version is now the table's latest."""

    table: Table
    commit: Commit | None


@frozen
class Replay:
    """It had happened before, as `commit`. Nothing changes."""

    table: Table
    commit: Commit


@frozen
class Conflict:
    """Another commit has this version, or the one before it does not exist yet."""

    latest: Version
    error: CommitVersionConflict
    learned: Commit | None = None
    """The other commit, if the catalog knows it from the log alone: its writer may be who proposes it now."""


@frozen
class ToPut:
    """No rule is against it, and nothing has happened: the table's commits are put into the log."""

    table: Table
    """As it would be."""


@frozen
class ToRead:
    """No rule is against it so far, and nothing has happened: somebody has to look at the commit first."""

    table: Table


@frozen
class Rejected:
    error: TidegateError


Outcome: TypeAlias = Ratified | Replay | Conflict | Rejected
Decision: TypeAlias = Outcome | ToPut | ToRead


def decide(table: Table, proposal: Proposal, *, ratified: Commit | None, limits: Limits, now: int) -> Decision:
    """`ratified` is the commit that already holds the proposed version, if there is one."""
    commit = proposal.commit
    if commit is not None and ratified is not None and (ratified.file_name == commit.file_name or proposal.put):
        return Replay(table, ratified)
    try:
        if not proposal.put:
            check_etag(proposal.requirements, table)
        _check_kind(table, proposal)
        if commit is not None and commit.version != table.latest + 1:
            learned = ratified if ratified is not None and is_learned(ratified) else None
            return Conflict(table.latest, conflict_of(table, commit.version), learned)
        if proposal.refusal is not None:
            return Rejected(proposal.refusal)
        if commit is not None and proposal.seen is None and not proposal.put and must_look(table):
            return ToRead(table)
        after = _apply(table, proposal, limits=limits, now=now)
        if commit is not None:
            _admit(table, after, proposal)
        if commit is not None and not proposal.put and table.puts_if_absent:
            return ToPut(after)
        return Ratified(after, commit)
    except TidegateError as error:
        return Rejected(error)


def assigned(table: Table, proposal: Proposal, append: OpenAppend, *, now: int) -> Proposal | Conflict | Rejected:
    """The proposal with the version that is free. A conflict: nobody knows the ids of the table's rows right now."""
    try:
        check_etag(proposal.requirements, table)
        _check_kind(table, proposal)
        check_append(table, append)
        if tracks_rows(table.metadata.protocol, table.metadata.properties) and known_mark(table, append) is None:
            return Conflict(table.latest, conflict_of(table, table.latest))
        made = assign(table, append, now=now)
    except TidegateError as error:
        return Rejected(error)
    actions = (*proposal.actions, AddCommit(made.commit, None))
    seen = CommitContent(what=WHAT, written=made.content, sha256=made.sha256, files=append.files)
    return replace(
        proposal, actions=actions, content=made.content, content_sha256=made.sha256, seen=seen, row_mark=made.row_mark
    )


def conflict_of(table: Table, proposed: Version) -> CommitVersionConflict:
    """What the loser of a version has to know in order to go on without asking again."""
    if proposed > table.latest:
        return CommitVersionGap(table=table.name, proposed=proposed, latest=table.latest)
    # An append to a table with row tracking gives its rows ids, which depend on what was appended before.
    return CommitVersionConflict(
        table=table.name,
        proposed=proposed,
        latest=table.latest,
        winners=table.unpublished[max(0, proposed - table.published - 1) :],
        append_stands=table.metadata_version < proposed
        and not tracks_rows(table.metadata.protocol, table.metadata.properties),
    )


def table_moved(proposal: Proposal, *, now_named: TableName | None) -> TidegateError:
    """The name leads to another table, or to none, while the asserted one was dropped or renamed.

    With a commit this is no 409: the stock client takes every 409 for a lost race and would retry for ever at
    higher versions of a table that is not its own.
    """
    asserted = proposal.requirements.table_id
    if now_named is not None:
        return moved_away(proposal.name, asserted, now_named)
    if proposal.commit is not None:
        return NoSuchTable(
            proposal.name, hint=f"Another table has taken this name; the one with id {asserted} was dropped."
        )
    return RequirementConflict(
        f"{proposal.name} is not the table with id {asserted}. Reload the table and decide again."
    )


def moved_away(name: TableName, asserted: TableId, now_named: TableName) -> NoSuchTable:
    return NoSuchTable(name, hint=f"The table with id {asserted} is called {now_named} now.")


def _check_kind(table: Table, proposal: Proposal) -> None:
    managed = table.type is TableType.MANAGED
    here = table.decided_here
    adds = proposal.addition is not None or proposal.append is not None
    # A commit that is in the log has happened before the table was given back.
    if table.releasing is not None and adds and not proposal.put:
        raise InvalidRequest(
            f"{table.name} is being given back to its file system and takes no commits through the catalog. "
            "Write to it by its path once that is done."
        )
    if (proposal.append is not None or proposal.content is not None) and not managed:
        raise InvalidRequest(f"Commits with their content are for managed tables; {table.name} is external.")
    for action in proposal.actions:
        if isinstance(action, AddCommit | ReportPublished) and not here:
            raise InvalidRequest(f"{action.action} is for managed tables; {table.name} is external.")
        if isinstance(action, SetSnapshotVersion) and here:
            raise InvalidRequest(f"{action.action} is for external tables; the catalog decides on {table.name}.")


def _admit(table: Table, after: Table, proposal: Proposal) -> None:
    """That the commit says what the request says, and that the table takes such commits."""
    if proposal.seen is not None:
        check_admission(proposal.seen, proposal.actions, before=table.metadata, after=after.metadata)
    # A commit that is in the log has happened.
    if not proposal.put:
        check_policies(table, after.metadata, proposal.seen, principal=proposal.principal)


def _apply(table: Table, proposal: Proposal, *, limits: Limits, now: int) -> Table:
    """The table after all of the proposal's actions, made in one step: a commit is what happens all day."""
    published = _published(table, proposal)
    metadata = _metadata(table, proposal)
    changed = is_metadata_change(table.metadata, metadata)
    if changed:
        _check_guard(table, proposal)
        if table.constraints and not proposal.put:
            check_kept(table.name, table.constraints, before=table.metadata.columns, after=metadata.columns)
    changes: dict[str, Any] = {}
    if published != table.published:
        changes["published"] = published
    if proposal.addition is not None or published != table.published:
        changes["unpublished"] = table.unpublished_after(published)
    if metadata is not table.metadata:
        changes["metadata"] = metadata
    if proposal.addition is not None:
        _check_addition(table, proposal, metadata, unpublished=changes["unpublished"], limits=limits)
        changes |= _addition(proposal.addition, unpublished=changes["unpublished"], changed=changed)
        commit, by = proposal.addition.commit, proposal.principal
        changes["chain"] = chain_of(table.id, table.chain, commit, principal=by, ratified_at=now)
        if proposal.put:
            changes |= {"published": proposal.addition.commit.version, "unpublished": ()}
        if proposal.row_mark is not None:
            changes["row_mark"] = proposal.row_mark
    moved = _snapshot_version(table, proposal)
    changes |= moved
    if changed or moved:
        changes |= {"revision": table.revision + 1, "updated_at": now, "updated_by": proposal.principal}
    if not changes:
        return table
    after = replace(table, **changes)
    if metadata is not table.metadata:
        check_metadata(after, contract_of(table))
    return after


def _check_guard(table: Table, proposal: Proposal) -> None:
    # What stands in the log has happened, whoever did it.
    if table.guarded and not proposal.changes_metadata and not proposal.put:
        refused = PermissionDenied if proposal.addition is None and proposal.append is None else CommitNotAllowed
        raise refused(
            f"{proposal.principal} may not change the schema, properties, protocol, partitioning or domains of "
            f"{table.name}: the table is guarded, and that takes MODIFY METADATA on it, or on what it is in."
        )


def _published(table: Table, proposal: Proposal) -> Version:
    if proposal.report is None:
        return table.published
    check_report(table, proposal.report.version)
    return table.published if proposal.verified is None else published_after(table, proposal.verified)


def _metadata(table: Table, proposal: Proposal) -> TableMetadata:
    # The log of an external table is written elsewhere: there its writers' word is all there is.
    in_log = proposal.addition is not None or table.type is TableType.EXTERNAL
    return apply_metadata(table.metadata, proposal.actions, in_log=in_log)


def _check_addition(
    table: Table, proposal: Proposal, metadata: TableMetadata, *, unpublished: Sequence[Commit], limits: Limits
) -> None:
    action = cast("AddCommit", proposal.addition)
    commit = action.commit
    if commit.timestamp <= table.latest_timestamp:
        raise InvalidRequest(
            f"The timestamp of version {commit.version} is {commit.timestamp}, but version {table.latest} has "
            f"{table.latest_timestamp}. In-commit timestamps must rise: use a later one."
        )
    if proposal.put:
        if unpublished:
            # Who puts a version has published those before it; so nobody should ever see this.
            raise Unavailable(f"{table.name} has versions before {commit.version} that are not published. Try again.")
        return
    if len(unpublished) >= limits.unpublished_max:
        raise BacklogFull(
            f"{table.name} has {len(unpublished)} ratified commits that are not published yet; "
            f"{limits.unpublished_max} is the limit. Publish them to _delta_log and report it."
        )
    check_uniform(
        action.uniform,
        properties=metadata.properties,
        location=table.location,
        version=commit.version,
        stored=table.uniform,
    )


def _addition(action: AddCommit, *, unpublished: tuple[Commit, ...], changed: bool) -> dict[str, Any]:
    commit = action.commit
    changes: dict[str, Any] = {
        "latest": commit.version,
        "latest_timestamp": commit.timestamp,
        # There may be thousands: copied once, where unpacking would copy them twice.
        "unpublished": unpublished + (commit,),  # noqa: RUF005
        "uniform": action.uniform,
    }
    if changed:
        changes |= {"metadata_version": commit.version, "metadata_timestamp": commit.timestamp}
    return changes


def _snapshot_version(table: Table, proposal: Proposal) -> dict[str, Any]:
    """What a writer of an external table tells about how far its log got; nothing if that is known already."""
    action = find(proposal.actions, SetSnapshotVersion)
    if action is None or (action.version, action.timestamp) == (table.metadata_version, table.metadata_timestamp):
        return {}
    return {"metadata_version": action.version, "metadata_timestamp": action.timestamp}
