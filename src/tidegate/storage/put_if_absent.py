"""Putting a commit into the log on this machine's file systems: whole, or not at all, and only where nothing is.

    1. write it beside the log          under a name that nobody reads, and sync it
    2. give it its name in the log      a hard link, which fails if the name is taken: this is the commit
    3. sync the folder                  so that the name stays when the power goes

Killed before the second step nothing has happened but a leftover, which is removed with others; killed after it the
commit has happened, and whoever looks at the log learns of it.
"""

from __future__ import annotations

import contextlib
import os
import uuid

from tidegate.domain.commits import published_name
from tidegate.domain.errors import OutcomeUnknown
from tidegate.domain.log_files import COPY_SUFFIX
from tidegate.domain.names import Version
from tidegate.steps import reached
from tidegate.storage.local_files import check_own_folders, open_file, sync_folder


def put_if_absent(log: str, version: Version, content: bytes) -> bool:
    """Whether the file of this version in the folder `log` holds this content. Raises OSError if nothing was put, and
    OutcomeUnknown if the file may not outlive a crash of the machine.
    """
    check_own_folders(log)
    published = f"{log}/{published_name(version)}"
    put = not os.path.lexists(published) and _put(log, published, content)
    try:
        if not put:
            return is_put(log, version, content)
        reached("put.linked")
        sync_folder(log)
        reached("put.synced")
        return True
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutcomeUnknown(
            f"{published} is there, but it is not certain that it stays ({reason}). Send the commit again unchanged."
        ) from error


def is_put(log: str, version: Version, content: bytes) -> bool:
    """Whether the file of this version holds this content. Then it is synced: whoever put it there may have died before
    that. Raises OSError.
    """
    try:
        reading = open_file(f"{log}/{published_name(version)}")
    except FileNotFoundError:
        return False
    try:
        if not _holds(reading, content):
            return False
        os.fsync(reading)
    finally:
        os.close(reading)
    sync_folder(log)
    return True


def _put(log: str, published: str, content: bytes) -> bool:
    """False: somebody else was first."""
    # Begins with a dot: no reader takes it for part of the log.
    copy = f"{log}/.{os.path.basename(published)}.{uuid.uuid4().hex}{COPY_SUFFIX}"
    try:
        _write(copy, content)
        reached("put.written")
        try:
            os.link(copy, published)
        except FileExistsError:
            return False
        return True
    finally:
        with contextlib.suppress(OSError):
            os.unlink(copy)


def _write(path: str, content: bytes) -> None:
    writing = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(writing, rest) :]
        os.fsync(writing)
    finally:
        os.close(writing)


def _holds(reading: int, content: bytes) -> bool:
    if os.fstat(reading).st_size != len(content):
        return False
    rest = memoryview(content)
    while rest and (piece := os.read(reading, len(rest))):
        if memoryview(piece) != rest[: len(piece)]:
            return False
        rest = rest[len(piece) :]
    return not rest
