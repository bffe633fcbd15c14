"""Commits that were made for a snapshot, and go ahead past those of others as long as nothing is in the way.

made for version 7, proposed as 8     409: the catalog tells of 8 and 9
    8 and 9 are read                  in the way: ConcurrentChange tells what, and nothing was changed
proposed as 10, with row ids of 10    200

What the refusal tells, and the log, are enough as a rule. The catalog is asked for the contents of inline commits,
which it keeps itself until they are in the log.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import msgspec

from tidegate.client.commits import commit
from tidegate.client.conversations import Conversation, do
from tidegate.client.errors import CommitConflict, ConcurrentChange, InvalidCommit, RequirementConflict
from tidegate.client.files import Files
from tidegate.client.kept_commits import Kept, look, look_closely, ratified_commits
from tidegate.client.known_tables import KnownTable, TableHandle, known_after_conflict
from tidegate.client.log.actions import parse_actions
from tidegate.client.log.folder import FileGone, LogFolder
from tidegate.client.log.names import commit_name
from tidegate.client.log.segment import Ratified, RatifiedCommit
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.logical_conflicts import Transaction, find_conflict, transaction_of
from tidegate.client.outcomes import CommitResponse
from tidegate.client.proposals import Action
from tidegate.client.reads import Reads, understood
from tidegate.client.rebasing import Ground, after, ground_of, rebased
from tidegate.client.winners import Winner, winner_of
from tidegate.client.wire import Commit, Conflict

ATTEMPTS_MAX = 100
"""How often a commit is proposed, each time at another version."""
PAUSE_SECONDS = 0.005
PAUSE_SECONDS_MAX = 0.2


def commit_after(
    table: TableHandle, files: Files, snapshot: Snapshot, actions: Iterable[Action], reads: Reads
) -> Conversation[CommitResponse]:
    given = list(actions)
    read = yield from do(partial(understood, reads, snapshot, files))
    ours = transaction_of(table.name, snapshot, given, read)
    return (yield from committed(table, files, ours, ground_of(snapshot)))


def committed(table: TableHandle, files: Files, ours: Transaction, ground: Ground) -> Conversation[CommitResponse]:
    """`ground`: that of the snapshot, or a later one that is known to change nothing."""
    known = table.known or (yield from look_closely(table))
    if known.location != ours.snapshot.location:
        raise InvalidCommit(f"The snapshot is of another table than {table.name}. Take one of this table.")
    if known.latest > ground.version:
        ground = yield from checked(table, files, ours, ground, latest=known.latest, commits=known.unpublished)
    before = None if ours.metadata is None else cast("Action", msgspec.to_builtins(ours.snapshot.metadata))
    attempt = 0
    while True:
        attempt += 1
        known, actions = table.known, rebased(ours.actions, made_for=ours.snapshot, ground=ground)
        try:
            return (yield from commit(table, files, ground.version + 1, actions, metadata_before=before))
        except CommitConflict as lost:
            if attempt == ATTEMPTS_MAX or lost.latest <= ground.version:
                raise
            ground = yield from _ground_after(lost, table, files, ours, ground, known)
        yield from pause(attempt)


def checked(
    table: TableHandle, files: Files, ours: Transaction, ground: Ground, *, latest: int, commits: Sequence[Commit]
) -> Conversation[Ground]:
    """The ground at version `latest` or a later one, if no commit up to it is in the way. `commits`: those that are
    not published, as far as somebody was told.
    """
    if not any(one.inline for one in commits):
        try:
            return (yield from do(partial(_checked, ours, ground, files, latest, commits)))
        except _NotThere:
            pass  # Not all was told, or it is old.
    return (yield from checked_as_kept(table.name, (yield from look(table)), files, ours, ground))


def checked_as_kept(name: str, kept: Kept, files: Files, ours: Transaction, ground: Ground) -> Conversation[Ground]:
    """The ground at the latest version, if no commit up to it is in the way."""
    known = kept.known(name)
    if known.location != ours.snapshot.location:
        raise RequirementConflict(f"{name} is another table since a moment ago. Take a snapshot of this one.")
    try:
        return (yield from do(partial(_checked, ours, ground, files, known.latest, kept.commits)))
    except _NotThere as gone:
        what = "is no longer in the log to be looked at"
        raise ConcurrentChange(name, version=gone.version, what=what) from None


def pause(attempt: int) -> Conversation[None]:
    """At random, so that those who lost together do not come back together."""
    seconds = random.uniform(0, min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * attempt))  # noqa: S311
    yield from do(partial(time.sleep, seconds))


class _NotThere(Exception):
    """A commit that nobody can read."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


def _ground_after(
    lost: CommitConflict, table: TableHandle, files: Files, ours: Transaction, ground: Ground, known: KnownTable | None
) -> Conversation[Ground]:
    """What the next attempt builds on, if nothing is in its way. `known`: what was, before the attempt."""
    if lost.append_stands and ours.only_adds:
        return replace(ground, version=lost.latest, timestamp=lost.commits[-1].timestamp if lost.commits else None)
    moved = yield from checked(table, files, ours, ground, latest=lost.latest, commits=lost.commits)
    same = (moved.metadata, moved.protocol) == (ground.metadata, ground.protocol)
    if table.known is None and same:
        # The commits have told what the refusal left open.
        table.known = known_after_conflict(known, Conflict(lost.latest, list(lost.commits), append_stands=True))
    return moved


def _checked(ours: Transaction, ground: Ground, files: Files, latest: int, commits: Sequence[Commit]) -> Ground:
    """The ground at the latest version, with every commit up to it looked at; `commits` are not published."""
    log = LogFolder(Ratified(latest, ours.snapshot.location), files)
    kept = {one.version: one for one in ratified_commits(commits)}
    for version in range(ground.version + 1, latest + 1):
        winner = _winner(log, version, kept.get(version))
        conflict = find_conflict(ours, ground, winner)
        if conflict is not None:
            raise conflict
        ground = after(ground, winner)
    return ground


def _winner(log: LogFolder, version: int, kept: RatifiedCommit | None) -> Winner:
    name = commit_name(version)
    try:
        content = log.read(name) if kept is None else log.content(kept)
    except FileGone:
        raise _NotThere(version) from None
    return winner_of(version, parse_actions(content, name))
