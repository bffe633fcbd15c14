"""Commits: write, propose, recover, publish; and the ratified commits that are not published yet.

1. publish what is known to be unpublished      put-if-absent, the ratified bytes, in order
2. small commits go inline, see inline.py; for others
   write the staged file                        on disk before anybody hears of it
3. propose it, with what it changes of the metadata and with how far the log is published
4. no answer, or "outcome unknown": send the same again. The catalog knows a commit by its file's name, so the
   second time is either a success that changes nothing, or the first.

200                      the version is ratified
409                      another commit has it: the staged file goes, CommitConflict tells what was ratified since
4xx                      refused: the staged file goes, if surely nobody heard of it
still nothing            CommitOutcomeUnknown: the staged file stays, `resend` goes on
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from tidegate.client.address import table_path
from tidegate.client.conversations import Answer, Conversation, decoded, do, exchange
from tidegate.client.errors import (
    CommitOutcomeUnknown,
    InvalidCommit,
    InvalidRequest,
    NotATidegate,
    OutcomeUnknown,
    StorageFailure,
    Unreachable,
)
from tidegate.client.files import Files, published_path, staged_path
from tidegate.client.inline import propose_inline
from tidegate.client.kept_commits import look, look_closely
from tidegate.client.known_tables import KnownTable, TableHandle, external, known_table
from tidegate.client.metadata_updates import metadata_updates
from tidegate.client.outcomes import CommitResponse, Verdict, conflict, lost, verdict
from tidegate.client.proposals import Action, Draft, InlineProposal, Proposal, Written, draft, staged_name, written
from tidegate.client.publishing import publish, publish_known
from tidegate.client.refusals import refusal
from tidegate.client.tables import refresh
from tidegate.client.wire import Commit, LoadedTable

LOOKED_BACK_MAX = 100
"""Versions that are looked at for the metaData before a commit that changes it."""


@dataclass(frozen=True, slots=True)
class RatifiedCommits:
    """`commits`: those in the range asked for that are not published, oldest first, without a gap, inline ones with
    their content; the ones before them are in the log. `latest`: the table's latest version, whatever was asked for.
    """

    commits: Sequence[Commit]
    latest: int


def commit(
    table: TableHandle,
    files: Files,
    version: int,
    actions: Iterable[Action],
    *,
    metadata_before: Action | None,
) -> Conversation[CommitResponse]:
    if type(version) is not int or version < 1:
        raise InvalidCommit(f"A commit's version is 1 or higher, not {version!r}. Version 0 is made with the table.")
    drafted = draft(actions)
    known = table.known
    if known is None or known.latest != version - 1:
        known = yield from look_closely(table)
    if known.latest != version - 1:
        # Never proposed: so a request that is under way when a later one is refused cannot win after that.
        raise conflict(table.name, version, known)
    ready = yield from do(partial(_written, files, known, drafted))
    if not table.inline.allow(ready.content, ready.txn_id):
        name = staged_name(version)
        return (yield from _commit_staged(table, files, known, drafted, ready, name, metadata_before))
    proposal = InlineProposal(
        table=table.name,
        table_id=known.id,
        version=version,
        metadata_version=None,
        txn_id=ready.txn_id,
        content=ready.content,
        changes_metadata=drafted.changes_metadata,
    )
    response = yield from propose_inline(table, files, proposal)
    if response is not None:
        return response
    # By this name it is the same commit, should the server have taken it after all.
    name = staged_name(version, ready.txn_id)
    return (yield from _commit_staged(table, files, known, drafted, ready, name, metadata_before))


def _commit_staged(
    table: TableHandle,
    files: Files,
    known: KnownTable,
    drafted: Draft,
    ready: Written,
    name: str,
    metadata_before: Action | None,
) -> Conversation[CommitResponse]:
    version, before = known.latest + 1, metadata_before
    if drafted.metadata is not None and before is None:
        if any(one.inline for one in known.unpublished):
            known = yield from refresh(table)  # Puts all commits into files.
            if known.latest != version - 1:
                raise conflict(table.name, version, known)
        before = yield from do(partial(_metadata_before, files, known))
    updates = metadata_updates(drafted, before=before)
    published = yield from publish_known(files, known)
    proposal = yield from do(partial(_stage, files, table.name, name, ready, updates, known))
    return (yield from _propose(table, files, proposal, published))


def resend(table: TableHandle, files: Files, unknown: CommitOutcomeUnknown) -> Conversation[CommitResponse]:
    proposal = unknown.proposal
    if isinstance(proposal, Proposal):
        return (yield from _propose(table, files, proposal, None, doubtful=True))
    response = yield from propose_inline(table, files, proposal, doubtful=True)
    if response is None:
        raise CommitOutcomeUnknown(proposal, "the server takes no commit of this size with its content any more")
    return response


def get_ratified_commits(table: TableHandle, start: int | None, end: int | None) -> Conversation[RatifiedCommits]:
    for bound in (start, end):
        if bound is not None and (type(bound) is not int or bound < 0):
            raise InvalidRequest(f"Versions are counted from 0, and {bound!r} is none. Ask for a range of versions.")
    kept = yield from look(table)
    if kept.latest is None:
        raise external(table.name)
    first, last = (0 if start is None else start), (kept.latest if end is None else end)
    return RatifiedCommits([one for one in kept.commits if first <= one.version <= last], kept.latest)


def publish_all(table: TableHandle, files: Files) -> Conversation[int]:
    """Publishes every ratified commit that can be, and reports it. The version up to which the log is published."""
    known = yield from refresh(table)
    published = yield from do(partial(publish, files, known.location, known.unpublished))
    if published is not None:
        answer = yield from _update(table.name, known.id, [_report(published)])
        if answer.status != 200:
            raise refusal(answer.status, answer.body, url=answer.url)
        table.known = known = known_table(table.name, decoded(answer, LoadedTable))
    return known.unpublished[0].version - 1 if known.unpublished else known.latest


def _written(files: Files, known: KnownTable, drafted: Draft) -> Written:
    previous = known.latest_timestamp
    if previous is None:
        previous = _timestamp_of(files, known.location, known.latest)
    return written(drafted, previous=previous, now=time.time_ns() // 1_000_000)


def _stage(
    files: Files, table: str, name: str, ready: Written, updates: Sequence[dict[str, Any]], known: KnownTable
) -> Proposal:
    files.write_new(staged_path(known.location, name), ready.content)
    return Proposal(
        table=table,
        table_id=known.id,
        location=known.location,
        version=known.latest + 1,
        timestamp=ready.timestamp,
        txn_id=ready.txn_id,
        file_name=name,
        file_size=len(ready.content),
        modified_at=time.time_ns() // 1_000_000,
        updates=updates,
    )


def _propose(
    table: TableHandle, files: Files, proposal: Proposal, published: int | None, *, doubtful: bool = False
) -> Conversation[CommitResponse]:
    """`doubtful`: it was proposed before, and nobody knows what came of it."""
    updates = [proposal.add_commit(), *proposal.updates, *([] if published is None else [_report(published)])]
    try:
        answer = yield from _update(table.name, proposal.table_id, updates)
    except (OutcomeUnknown, Unreachable) as no_answer:
        table.known = None
        if doubtful or isinstance(no_answer, OutcomeUnknown):
            raise CommitOutcomeUnknown(proposal, no_answer.why) from None
        yield from do(partial(_discard, files, proposal))
        raise
    doubtful = doubtful or answer.doubtful
    match verdict(answer, doubtful=doubtful):
        case Verdict.RATIFIED:
            table.known = _known_after(table.name, answer, proposal)
            return _response(proposal, published)
        case Verdict.LOST:
            yield from do(partial(_discard, files, proposal))
            raise (yield from lost(table, proposal.version, answer))
        case Verdict.REFUSED:
            if not doubtful:
                yield from do(partial(_discard, files, proposal))
            refused = refusal(answer.status, answer.body, url=answer.url)
            refused.doubtful = doubtful
            raise refused
        case Verdict.UNKNOWN:
            raise CommitOutcomeUnknown(proposal, str(refusal(answer.status, answer.body, url=answer.url)))


def _discard(files: Files, proposal: Proposal) -> None:
    """Only what surely is not ratified, and never will be. What cannot be removed goes with the server's cleaning."""
    with contextlib.suppress(StorageFailure):
        files.remove(staged_path(proposal.location, proposal.file_name))


def _known_after(name: str, answer: Answer, proposal: Proposal) -> KnownTable:
    try:
        known = known_table(name, decoded(answer, LoadedTable))
    except NotATidegate as stranger:
        raise CommitOutcomeUnknown(proposal, stranger.why) from None
    if known.latest_timestamp is None and known.latest == proposal.version:
        return replace(known, latest_timestamp=proposal.timestamp)
    return known


def _response(proposal: Proposal, published: int | None) -> CommitResponse:
    return CommitResponse(
        version=proposal.version,
        timestamp=proposal.timestamp,
        txn_id=proposal.txn_id,
        path=staged_path(proposal.location, proposal.file_name),
        size=proposal.file_size,
        published=published,
    )


def _update(table: str, table_id: str, updates: Sequence[Any]) -> Conversation[Answer]:
    body = {"requirements": [{"type": "assert-table-uuid", "uuid": table_id}], "updates": updates}
    return exchange("POST", table_path(table), body=body, repeatable=True)


def _report(published: int) -> dict[str, Any]:
    return {"action": "set-latest-backfilled-version", "latest-published-version": published}


def _timestamp_of(files: Files, location: str, version: int) -> int | None:
    content = files.read(published_path(location, version))
    info = None if content is None else _find(content, "commitInfo")
    timestamp = None if info is None else info.get("inCommitTimestamp")
    return timestamp if type(timestamp) is int else None


def _metadata_before(files: Files, known: KnownTable) -> Action | None:
    """The newest metaData: at the last version that changed metadata, or before it, if that changed something else."""
    staged = {one.version: one.file_name for one in known.unpublished}
    newest = known.metadata_version
    for version in range(newest, max(newest - LOOKED_BACK_MAX, -1), -1):
        name = staged.get(version)
        content = None if name is None else files.read(staged_path(known.location, name))
        if content is None:
            content = files.read(published_path(known.location, version))
        found = None if content is None else _find(content, "metaData")
        if content is None or found is not None:
            return found
    return None


def _find(content: bytes, action: str) -> Action | None:
    marker = f'"{action}"'.encode()
    for line in content.split(b"\n"):
        if marker in line:
            with contextlib.suppress(ValueError, AttributeError):
                found = json.loads(line).get(action)
                if isinstance(found, dict):
                    return cast("Action", found)
    return None
