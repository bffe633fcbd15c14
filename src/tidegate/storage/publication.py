"""Publishing on this machine's file systems: a copy that appears in the log whole, or not at all.

    1. read the staged file              its size is the one that was ratified; an inline commit brings its bytes
    2. write a copy beside the log       under a name that nobody reads, and sync it
    3. give it its name in the log       a hard link, which fails if the name is taken: put-if-absent
    4. sync the folder, compare          what is in the log is what was ratified, and stays when the power goes

Killed between any two steps, the next attempt begins anew and finds what is there: the copy's own name is left behind,
and is removed with other leftovers.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidegate.domain.commits import Commit, published_name
from tidegate.domain.log_files import COPY_SUFFIX
from tidegate.domain.names import Version
from tidegate.domain.publishing import AlarmReason, Obstacle, Publication
from tidegate.steps import reached
from tidegate.storage.local_files import open_file, same_as, same_content, sync_folder

_PIECE_BYTES = 4 * 1024 * 1024


def find_obstacle(log: str, commit: Commit, contents: Mapping[Version, bytes]) -> Obstacle | None:
    """Why the published file, if there is one, does not count. Raises OSError."""
    ratified = _Ratified.of(log, commit, contents)
    return _published_obstacle(ratified) if os.path.lexists(ratified.published) else None


def publish(log: str, commits: Sequence[Commit], contents: Mapping[Version, bytes]) -> Publication:
    """Publishes into the folder `log`, in order, and stops at the first obstacle. Raises OSError."""
    verified, written, obstacle = None, False, None
    for commit in commits:
        ratified = _Ratified.of(log, commit, contents)
        if not os.path.lexists(ratified.published):
            obstacle = _staged_obstacle(ratified)
            if obstacle is not None:
                break
            written = _put_if_absent(log, ratified) or written
        obstacle = _published_obstacle(ratified)
        if obstacle is not None:
            break
        verified = commit.version
    if written:
        sync_folder(log)
    return Publication(verified, obstacle)


def stage(log: str, commits: Sequence[Commit], contents: Mapping[Version, bytes]) -> None:
    """Writes the files that these commits would have, had they been staged: whole and synced. Raises OSError."""
    folder, written = f"{log}/_staged_commits", False
    os.makedirs(folder, exist_ok=True)
    for commit in commits:
        staged, content = f"{folder}/{commit.file_name}", contents[commit.version]
        if not same_as(staged, content):
            copy = _copy_name(log, staged)
            try:
                _write(content, copy)
                # What else has this name was never ratified under it.
                os.replace(copy, staged)
            except BaseException:
                _remove(copy)
                raise
            written = True
    if written:
        sync_folder(folder)
        sync_folder(log)


class _Ratified(NamedTuple):
    """A commit, where it is published, and its bytes: in the staged file, or given."""

    commit: Commit
    staged: str
    published: str
    content: bytes | None

    @staticmethod
    def of(log: str, commit: Commit, contents: Mapping[Version, bytes]) -> _Ratified:
        staged, published = f"{log}/_staged_commits/{commit.file_name}", f"{log}/{published_name(commit.version)}"
        return _Ratified(commit, staged, published, contents.get(commit.version))

    def is_published(self) -> bool:
        if self.content is not None:
            return same_as(self.published, self.content)
        return same_content(self.published, self.staged, size=self.commit.file_size)

    def copy_to(self, target: str) -> None:
        if self.content is not None:
            _write(self.content, target)
        else:
            _copy(self.staged, target)


def _staged_obstacle(ratified: _Ratified) -> Obstacle | None:
    commit = ratified.commit
    if ratified.content is not None:
        return None
    try:
        size = os.stat(ratified.staged).st_size
    except FileNotFoundError:
        return Obstacle(
            commit.version,
            AlarmReason.STAGED_FILE_GONE,
            f"Version {commit.version} is ratified, but neither published nor is its staged file {commit.file_name} "
            "there. Restore that file from a backup of the store.",
        )
    if size != commit.file_size:
        return Obstacle(
            commit.version,
            AlarmReason.STAGED_FILE_CHANGED,
            f"The staged file {commit.file_name} has {size} bytes; {commit.file_size} were ratified. "
            "Restore that file from a backup of the store.",
        )
    return None


def _published_obstacle(ratified: _Ratified) -> Obstacle | None:
    if ratified.is_published():
        return None
    commit = ratified.commit
    if ratified.content is None and not os.path.exists(ratified.staged):
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
        f"that is {commit.file_name}. Somebody wrote to the log without the catalog. Compare the two, and move the "
        "published file away.",
    )


def _put_if_absent(log: str, ratified: _Ratified) -> bool:
    """Whether the file in the log is ours; else somebody else was first."""
    copy = _copy_name(log, ratified.published)
    try:
        ratified.copy_to(copy)
        reached("publish.copied")
        try:
            os.link(copy, ratified.published)
        except FileExistsError:
            return False
        reached("publish.linked")
        return True
    finally:
        _remove(copy)


def _copy_name(log: str, target: str) -> str:
    """Begins with a dot: no reader takes it for part of the log."""
    return f"{log}/.{os.path.basename(target)}.{uuid.uuid4().hex}{COPY_SUFFIX}"


def _remove(copy: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(copy)


def _copy(source: str, target: str) -> None:
    reading = open_file(source)
    try:
        _write_pieces(iter(lambda: os.read(reading, _PIECE_BYTES), b""), target)
    finally:
        os.close(reading)


def _write(content: bytes, target: str) -> None:
    _write_pieces([content], target)


def _write_pieces(pieces: Iterable[bytes], target: str) -> None:
    writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(writing, rest) :]
        os.fsync(writing)
    finally:
        os.close(writing)
