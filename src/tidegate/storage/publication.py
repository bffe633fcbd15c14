"""Publishing on this machine's file systems: a copy that appears in the log whole, or not at all.

    1. read the staged file              its size is the one that was ratified
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
from collections.abc import Sequence

from tidegate.domain.commits import Commit, published_name
from tidegate.domain.log_files import COPY_SUFFIX
from tidegate.domain.publishing import AlarmReason, Obstacle, Publication
from tidegate.steps import reached
from tidegate.storage.local_files import open_file, same_content, sync_folder

_PIECE_BYTES = 4 * 1024 * 1024


def find_obstacle(log: str, commit: Commit) -> Obstacle | None:
    """Why the published file, if there is one, does not count. Raises OSError."""
    staged, published = _paths(log, commit)
    return _published_obstacle(staged, published, commit) if os.path.lexists(published) else None


def publish(log: str, commits: Sequence[Commit]) -> Publication:
    """Publishes into the folder `log`, in order, and stops at the first obstacle. Raises OSError."""
    verified, written, obstacle = None, False, None
    for commit in commits:
        staged, published = _paths(log, commit)
        if not os.path.lexists(published):
            obstacle = _staged_obstacle(staged, commit)
            if obstacle is not None:
                break
            written = _put_if_absent(log, staged, published) or written
        obstacle = _published_obstacle(staged, published, commit)
        if obstacle is not None:
            break
        verified = commit.version
    if written:
        sync_folder(log)
    return Publication(verified, obstacle)


def _paths(log: str, commit: Commit) -> tuple[str, str]:
    return f"{log}/_staged_commits/{commit.file_name}", f"{log}/{published_name(commit.version)}"


def _staged_obstacle(staged: str, commit: Commit) -> Obstacle | None:
    try:
        size = os.stat(staged).st_size
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


def _published_obstacle(staged: str, published: str, commit: Commit) -> Obstacle | None:
    if same_content(published, staged, size=commit.file_size):
        return None
    if not os.path.exists(staged):
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


def _put_if_absent(log: str, staged: str, published: str) -> bool:
    """Whether the file in the log is ours; else somebody else was first."""
    # Begins with a dot: no reader takes it for part of the log.
    copy = f"{log}/.{os.path.basename(published)}.{uuid.uuid4().hex}{COPY_SUFFIX}"
    try:
        _copy(staged, copy)
        reached("publish.copied")
        try:
            os.link(copy, published)
        except FileExistsError:
            return False
        reached("publish.linked")
        return True
    finally:
        with contextlib.suppress(OSError):
            os.unlink(copy)


def _copy(source: str, target: str) -> None:
    reading = open_file(source)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            while piece := os.read(reading, _PIECE_BYTES):
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(writing, rest) :]
            os.fsync(writing)
        finally:
            os.close(writing)
    finally:
        os.close(reading)
