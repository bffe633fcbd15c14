"""Files on this machine, compared where they lie, on the calling thread: its caller bounds how long that may take."""

from __future__ import annotations

import errno
import os
import stat
from hashlib import sha256

from tidegate.domain.chain import FileDigest
from tidegate.domain.errors import InvalidRequest

_PIECE_BYTES = 4 * 1024 * 1024


def open_file(path: str) -> int:
    """For reading. Never waits, whatever lies there: a pipe without a writer would be waited for for ever."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def open_own_file(path: str) -> int:
    """As `open_file`, but what a link leads to is not opened: it may be something that only the server can read."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)


def check_own_folders(log: str) -> None:
    """That the log, and the folder of staged files in it, are the table's own: else the server would read and write for
    who owns this table in the place of another. Raises OSError.
    """
    for folder in (log, f"{log}/_staged_commits"):
        if os.path.islink(folder):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)


def read_file(path: str, *, bytes_max: int) -> bytes | None:
    """The content of a plain file, None if there is none. A link is not followed: it may lead out of the table."""
    try:
        opened = open_own_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _no_file(path) from error
        raise
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise _no_file(path)
        if found.st_size > bytes_max:
            raise InvalidRequest(
                f"{os.path.basename(path)} has {found.st_size} bytes; this server reads at most {bytes_max} of a "
                "commit (the setting commit_bytes_max)."
            )
        return _read_whole(opened, found.st_size)
    finally:
        os.close(opened)


def _read_whole(opened: int, size: int) -> bytes:
    content = os.read(opened, size + 1)
    while len(content) < size and (piece := os.read(opened, size + 1 - len(content))):
        content += piece
    return content


def _no_file(path: str) -> InvalidRequest:
    return InvalidRequest(f"{os.path.basename(path)} is no plain file. Write the commit itself there.")


def sync_folder(folder: str) -> None:
    """So that the names in it stay when the power goes."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def common_sha256(one: str, other: str, *, size: int) -> str | None:
    """Of what both files hold, if both are there, have this size, and hold the same bytes. Raises OSError."""
    try:
        left = open_file(one)
    except FileNotFoundError:
        return None
    try:
        right = open_file(other)
    except FileNotFoundError:
        return None
    else:
        try:
            return _read_alike(left, right, size)
        finally:
            os.close(right)
    finally:
        os.close(left)


def sha256_of(path: str, *, size: int) -> str | None:
    """Of what the file holds, if it is there and has this size: no more of it is read. Raises OSError."""
    try:
        opened = open_file(path)
    except FileNotFoundError:
        return None
    wanted, digest = size, sha256()
    try:
        # One byte more than there should be: whatever is too long shows without another look.
        while piece := os.read(opened, min(wanted + 1, _PIECE_BYTES)):
            if len(piece) > wanted:
                return None
            digest.update(piece)
            wanted -= len(piece)
    finally:
        os.close(opened)
    return None if wanted else digest.hexdigest()


def same_as(path: str, content: bytes) -> bool:
    """Whether the file is there and holds these bytes."""
    try:
        opened = open_file(path)
    except FileNotFoundError:
        return False
    try:
        # One byte more than there should be: whatever is too long shows without another look.
        with os.fdopen(os.dup(opened), "rb") as file:
            return file.read(len(content) + 1) == content
    finally:
        os.close(opened)


def file_digest(path: str) -> FileDigest | None:
    """None if the file is not there. Raises OSError."""
    try:
        opened = open_file(path)
    except FileNotFoundError:
        return None
    size, digest = 0, sha256()
    try:
        while piece := os.read(opened, _PIECE_BYTES):
            size += len(piece)
            digest.update(piece)
    finally:
        os.close(opened)
    return FileDigest(size, digest.hexdigest())


def _read_alike(left: int, right: int, size: int) -> str | None:
    """Piece by piece: a commit may be larger than what one wants to hold in memory."""
    wanted, digest = size, sha256()
    while True:
        # One byte more than there should be: whatever is too long or too short shows without another look.
        limit = min(wanted + 1, _PIECE_BYTES)
        piece = os.read(left, limit)
        if piece != os.read(right, limit) or len(piece) > wanted:
            return None
        digest.update(piece)
        wanted -= len(piece)
        if len(piece) < limit:
            return digest.hexdigest() if wanted == 0 else None
