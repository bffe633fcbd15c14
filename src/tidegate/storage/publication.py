"""Publishing on this machine's file systems: a copy that appears in the log whole, or not at all.

    1. look at the staged files          their sizes are those that were ratified; an inline commit brings its bytes
    2. write copies beside the log       under names that nobody reads, and sync them, several side by side
    3. give them their names in the log  by version; a hard link, which fails if the name is taken: put-if-absent
    4. compare, sync the folder          what is in the log is what was ratified, and stays when the power goes

Killed between any two steps, the next attempt begins anew and finds what is there: the copies' own names are left
behind, and are removed with other leftovers.
"""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from tidegate.domain.commits import Commit, published_name
from tidegate.domain.frozen import frozen
from tidegate.domain.log_files import COPY_SUFFIX
from tidegate.domain.names import Version
from tidegate.domain.publishing import AlarmReason, Obstacle, Publication
from tidegate.steps import reached
from tidegate.storage.local_files import (
    check_own_folders,
    common_sha256,
    open_file,
    open_own_file,
    same_as,
    sha256_of,
    sync_folder,
)
from tidegate.storage.synced_files import NewFile, Write, Written, write_synced

_PIECE_BYTES = 4 * 1024 * 1024


class _Ratified(NamedTuple):
    """A commit, where it is published, and its bytes: in the staged file, or given."""

    commit: Commit
    staged: str
    published: str
    given: bytes | None
    seen: list[str]
    """The SHA-256 of the bytes that were last found sound or copied."""

    @staticmethod
    def of(log: str, commit: Commit, contents: Mapping[Version, bytes]) -> _Ratified:
        staged, published = f"{log}/_staged_commits/{commit.file_name}", f"{log}/{published_name(commit.version)}"
        return _Ratified(commit, staged, published, contents.get(commit.version), [])

    def published_sha256(self) -> str | None:
        """If the published file holds what was ratified; where nobody knows what that was, what is staged."""
        if self.given is not None:
            digest = sha256(self.given).hexdigest() if same_as(self.published, self.given) else None
        else:
            digest = verified_sha256(self.published, self.staged, self.commit)
        if digest is None:
            return None
        self.seen.append(digest)
        return digest

    def copied_as_ratified(self) -> bool:
        return self.given is not None or self._was_ratified(self.seen[-1])

    def content(self, write: Write) -> None:
        """Piece by piece."""
        if self.given is not None:
            write(self.given)
            return
        digest = sha256()
        reading = open_own_file(self.staged)
        try:
            while piece := os.read(reading, _PIECE_BYTES):
                digest.update(piece)
                write(piece)
        finally:
            os.close(reading)
        self.seen.append(digest.hexdigest())

    def _was_ratified(self, digest: str) -> bool:
        return self.commit.content_sha256 in (None, digest)


@frozen
class _Plan:
    """Commits, each with the copy to be made of it, None if it is published already; and what comes after the last."""

    steps: list[tuple[_Ratified, NewFile | None]]
    obstacle: Obstacle | None = None
    failure: OSError | None = None


def verified_sha256(published: str, staged: str, commit: Commit) -> str | None:
    """Of a published file that holds what was ratified. What the catalog has read when it ratified the commit needs no
    staged file to be compared with: that may be gone, or be the one that was changed. Raises OSError.
    """
    if commit.content_sha256 is None:
        return common_sha256(published, staged, size=commit.file_size)
    digest = sha256_of(published, size=commit.file_size)
    return digest if digest == commit.content_sha256 else None


def find_obstacle(
    log: str, commit: Commit, contents: Mapping[Version, bytes], *, ahead: bool = False
) -> Obstacle | None:
    """Why the published file does not count; if there is none, with `ahead`, why there can be none. Raises OSError."""
    ratified = _Ratified.of(log, commit, contents)
    if os.path.lexists(ratified.published):
        return _published_obstacle(ratified)
    return _staged_obstacle(ratified, whole=True) if ahead else None


def publish(log: str, commits: Sequence[Commit], contents: Mapping[Version, bytes]) -> Publication:
    """Publishes into the folder `log`, in order, and stops at the first obstacle. Raises OSError."""
    check_own_folders(log)
    plan = _plan(log, commits, contents)
    copies = [copy for _, copy in plan.steps if copy is not None]
    try:
        return _link_all(log, plan, write_synced(copies))
    finally:
        for copy in copies:
            _remove(copy.path)


def stage(log: str, commits: Sequence[Commit], contents: Mapping[Version, bytes]) -> None:
    """Writes the files that these commits would have, had they been staged: whole and synced. Raises OSError."""
    check_own_folders(log)
    folder = f"{log}/_staged_commits"
    os.makedirs(folder, exist_ok=True)
    all_of_them = [_Ratified.of(log, commit, contents) for commit in commits]
    missing = [one for one in all_of_them if one.given is not None and not same_as(one.staged, one.given)]
    copies = [NewFile(_copy_name(log, one.staged), one.content) for one in missing]
    try:
        written = write_synced(copies)
        if written.failure is not None:
            raise written.failure
        for one, copy in zip(missing, copies, strict=True):
            # What else has this name was never ratified under it.
            os.replace(copy.path, one.staged)
    finally:
        for copy in copies:
            _remove(copy.path)
    if missing:
        sync_folder(folder)
        sync_folder(log)


def _plan(log: str, commits: Sequence[Commit], contents: Mapping[Version, bytes]) -> _Plan:
    steps: list[tuple[_Ratified, NewFile | None]] = []
    for commit in commits:
        ratified = _Ratified.of(log, commit, contents)
        is_there = os.path.lexists(ratified.published)
        try:
            obstacle = _published_obstacle(ratified) if is_there else _staged_obstacle(ratified)
        except OSError as failure:
            return _Plan(steps, failure=failure)
        if obstacle is not None:
            return _Plan(steps, obstacle)
        copy = None if is_there else NewFile(_copy_name(log, ratified.published), ratified.content)
        steps.append((ratified, copy))
    return _Plan(steps)


def _link_all(log: str, plan: _Plan, written: Written) -> Publication:
    """What can be linked is, also when something that comes after it has failed: that is raised then."""
    verified, digests = None, dict[Version, str]()
    try:
        for ratified, copy in plan.steps:
            if copy is None:
                # Somebody else's, who may not have waited until it is on disk.
                _sync_file(ratified.published)
            else:
                if copy.path not in written.paths and written.failure is not None:
                    raise written.failure
                if not ratified.copied_as_ratified():
                    return Publication(verified, _changed(ratified.commit), digests)
                _link(copy.path, ratified.published)
                obstacle = _published_obstacle(ratified)
                if obstacle is not None:
                    return Publication(verified, obstacle, digests)
            verified = ratified.commit.version
            if ratified.commit.content_sha256 is None:
                digests[verified] = ratified.seen[-1]
    finally:
        if plan.steps:
            sync_folder(log)
    if plan.failure is not None:
        raise plan.failure
    return Publication(verified, plan.obstacle, digests)


def _staged_obstacle(ratified: _Ratified, *, whole: bool = False) -> Obstacle | None:
    """By its size alone, unless the whole of it is to be read: who copies it reads it anyway."""
    commit = ratified.commit
    if ratified.given is not None:
        return None
    try:
        found = os.lstat(ratified.staged)
    except FileNotFoundError:
        return Obstacle(
            commit.version,
            AlarmReason.STAGED_FILE_GONE,
            f"Version {commit.version} is ratified, but neither published nor is its staged file {commit.file_name} "
            "there. Restore that file from a backup of the store.",
        )
    if not stat.S_ISREG(found.st_mode):
        return Obstacle(
            commit.version,
            AlarmReason.STAGED_FILE_CHANGED,
            f"The staged file {commit.file_name} is no plain file, and nobody knows what it would lead to. Write the "
            "commit itself there.",
        )
    if found.st_size != commit.file_size:
        return Obstacle(
            commit.version,
            AlarmReason.STAGED_FILE_CHANGED,
            f"The staged file {commit.file_name} has {found.st_size} bytes; {commit.file_size} were ratified. "
            "Restore that file from a backup of the store.",
        )
    if not whole or commit.content_sha256 is None:
        return None
    is_whole = sha256_of(ratified.staged, size=commit.file_size) == commit.content_sha256
    return None if is_whole else _changed(commit)


def _published_obstacle(ratified: _Ratified) -> Obstacle | None:
    if ratified.published_sha256() is not None:
        return None
    commit = ratified.commit
    staged_gone = ratified.given is None and not os.path.exists(ratified.staged)
    if staged_gone and commit.content_sha256 is None:
        return Obstacle(
            commit.version,
            AlarmReason.STAGED_FILE_GONE,
            f"Version {commit.version} is published, but its staged file {commit.file_name} is not there, so nobody "
            "can tell whether the published file holds what was ratified. Restore the staged file from a backup.",
        )
    return Obstacle(
        commit.version,
        AlarmReason.OTHER_BYTES,
        f"{published_name(commit.version)} in the log does not hold what was ratified as version {commit.version}: "
        f"that is {commit.file_name}. Somebody wrote to the log without the catalog. "
        + ("Restore the staged file from a backup" if staged_gone else "Compare the two")
        + ", and move the published file away.",
    )


def _changed(commit: Commit) -> Obstacle:
    return Obstacle(
        commit.version,
        AlarmReason.STAGED_FILE_CHANGED,
        f"The staged file {commit.file_name} does not hold the bytes that were ratified. "
        "Restore that file from a backup of the store.",
    )


def _link(copy: str, published: str) -> None:
    """Somebody else may be first: what is there then is looked at."""
    reached("publish.copied")
    with contextlib.suppress(FileExistsError):
        os.link(copy, published)
        reached("publish.linked")


def _copy_name(log: str, target: str) -> str:
    """Begins with a dot: no reader takes it for part of the log."""
    return f"{log}/.{os.path.basename(target)}.{uuid.uuid4().hex}{COPY_SUFFIX}"


def _remove(copy: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(copy)


def _sync_file(path: str) -> None:
    opened = open_file(path)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
