"""Commits: stage, propose, recover, publish; and the ratified commits that are not published yet.

1. publish what is known to be unpublished      put-if-absent, the ratified bytes, in order
2. write the staged file                        on disk before anybody hears of it
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
from enum import Enum, auto
from functools import partial
from typing import Any, cast

from tidegate.client.address import table_path
from tidegate.client.conversations import Answer, Conversation, decoded, do, exchange
from tidegate.client.errors import (
    CommitConflict,
    CommitOutcomeUnknown,
    InvalidCommit,
    NotATidegate,
    OutcomeUnknown,
    StorageFailure,
    Unreachable,
)
from tidegate.client.files import Files, published_path, staged_path
from tidegate.client.known_tables import KnownTable, TableHandle, known_after_conflict, known_table
from tidegate.client.metadata_updates import metadata_updates
from tidegate.client.proposals import Action, Draft, Proposal, draft, encoded, staged_name, stamped
from tidegate.client.refusals import refusal, says_version_taken, told_conflict
from tidegate.client.tables import refresh
from tidegate.client.wire import Commit, LoadedTable

PUBLISHED_AT_ONCE_MAX = 100
"""What one commit publishes of what others left behind: the next one, or the server, goes on."""
LOOKED_BACK_MAX = 100
"""Versions that are looked at for the metaData before a commit that changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResponse:
    """A ratified commit, and how far this client has seen the log published."""

    version: int
    timestamp: int
    txn_id: str
    path: str
    """Of its staged file."""
    size: int
    published: int | None


@dataclass(frozen=True, slots=True)
class RatifiedCommits:
    """`commits`: those in the range asked for that are not published, oldest first, without a gap; the ones before
    them are in the log. `latest`: the table's latest version, whatever was asked for.
    """

    commits: Sequence[Commit]
    latest: int


class Verdict(Enum):
    """What an answer says of a commit."""

    RATIFIED = auto()
    LOST = auto()
    REFUSED = auto()
    UNKNOWN = auto()


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
        known = yield from refresh(table)
    if known.latest != version - 1:
        # Never proposed: so a request that is under way when a later one is refused cannot win after that.
        raise _conflict(table.name, version, known)
    before = metadata_before
    if drafted.metadata is not None and before is None:
        before = yield from do(partial(_metadata_before, files, known))
    updates = metadata_updates(drafted, before=before)
    published = yield from do(partial(publish, files, known.location, known.unpublished[:PUBLISHED_AT_ONCE_MAX]))
    stage = partial(_stage, files, table.name, version, drafted, updates, known)
    proposal = yield from do(stage)
    return (yield from _propose(table, files, proposal, published))


def resend(table: TableHandle, files: Files, unknown: CommitOutcomeUnknown) -> Conversation[CommitResponse]:
    return _propose(table, files, unknown.proposal, None, doubtful=True)


def get_ratified_commits(table: TableHandle, start: int | None, end: int | None) -> Conversation[RatifiedCommits]:
    known = yield from refresh(table)
    first, last = (0 if start is None else start), (known.latest if end is None else end)
    return RatifiedCommits([one for one in known.unpublished if first <= one.version <= last], known.latest)


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


def publish(files: Files, location: str, commits: Sequence[Commit]) -> int | None:
    """Puts the ratified bytes into the log, in order. The last version that is there with these bytes.

    Stops at whatever is in the way: the catalog publishes too, and raises an alarm where it cannot.
    """
    last = None
    with contextlib.suppress(StorageFailure):
        for one in commits:
            content = files.read(staged_path(location, one.file_name))
            if content is None or len(content) != one.file_size:
                break
            target = published_path(location, one.version)
            if not files.write_new(target, content) and files.read(target) != content:
                break
            last = one.version
    return last


def _stage(
    files: Files,
    table: str,
    version: int,
    drafted: Draft,
    updates: Sequence[dict[str, Any]],
    known: KnownTable,
) -> Proposal:
    previous = known.latest_timestamp
    if previous is None:
        previous = _timestamp_of(files, known.location, known.latest)
    info = stamped(drafted, previous=previous, now=time.time_ns() // 1_000_000)
    content = encoded(info, drafted.others)
    name = staged_name(version)
    files.write_new(staged_path(known.location, name), content)
    return Proposal(
        table=table,
        table_id=known.id,
        location=known.location,
        version=version,
        timestamp=info["inCommitTimestamp"],
        txn_id=info["txnId"],
        file_name=name,
        file_size=len(content),
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
    match _verdict(answer, doubtful=doubtful):
        case Verdict.RATIFIED:
            table.known = _known_after(table.name, answer, proposal)
            return _response(proposal, published)
        case Verdict.LOST:
            yield from do(partial(_discard, files, proposal))
            raise (yield from _lost(table, proposal, answer))
        case Verdict.REFUSED:
            if not doubtful:
                yield from do(partial(_discard, files, proposal))
            refused = refusal(answer.status, answer.body, url=answer.url)
            refused.doubtful = doubtful
            raise refused
        case Verdict.UNKNOWN:
            raise CommitOutcomeUnknown(proposal, str(refusal(answer.status, answer.body, url=answer.url)))


def _lost(table: TableHandle, proposal: Proposal, answer: Answer) -> Conversation[CommitConflict]:
    """What was ratified since is told with the refusal; by a server that does not tell, it is asked for."""
    told = told_conflict(answer.body)
    if told is None:
        return _conflict(table.name, proposal.version, (yield from refresh(table)))
    table.known = known_after_conflict(table.known, told)
    return CommitConflict(
        table.name,
        version=proposal.version,
        latest=told.latest_table_version,
        commits=told.commits,
        append_stands=told.append_stands,
    )


def _verdict(answer: Answer, *, doubtful: bool) -> Verdict:
    """A refusal that does not look at the commit itself, such as of the token, says nothing of an earlier attempt."""
    if answer.status == 200:
        return Verdict.RATIFIED
    if says_version_taken(answer.status, answer.body):
        return Verdict.LOST
    strange = isinstance(refusal(answer.status, answer.body, url=answer.url), NotATidegate)
    if strange or answer.status >= 500 or (doubtful and answer.status != 400):
        return Verdict.UNKNOWN
    return Verdict.REFUSED


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


def _conflict(table: str, version: int, known: KnownTable) -> CommitConflict:
    since = [one for one in known.unpublished if one.version >= version]
    return CommitConflict(table, version=version, latest=known.latest, commits=since)


def _timestamp_of(files: Files, location: str, version: int) -> int | None:
    content = files.read(published_path(location, version))
    info = None if content is None else _find(content, "commitInfo")
    timestamp = None if info is None else info.get("inCommitTimestamp")
    return timestamp if type(timestamp) is int else None


def _metadata_before(files: Files, known: KnownTable) -> Action | None:
    """The newest metaData: at the last version that changed metadata, or before it, if that changed something else."""
    staged = {one.version: one.file_name for one in known.unpublished}
    newest = known.metadata.last_commit_version
    for version in range(newest, max(newest - LOOKED_BACK_MAX, -1), -1):
        name = staged.get(version)
        path = published_path(known.location, version) if name is None else staged_path(known.location, name)
        content = files.read(path)
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
