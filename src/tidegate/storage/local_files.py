"""Files on this machine, compared where they lie.

A report of publication rides along with nearly every commit, and each means two small files to look at. Fast because
the operating system is asked directly, on the event loop: for files of a few kilobytes that were written a moment ago
it answers within microseconds, and handing them to a thread, or to an object store's client, costs ten times as much.
What is larger goes to a thread.
"""

from __future__ import annotations

import asyncio
import os

AT_ONCE_BYTES_MAX = 64 * 1024
"""The largest file that is looked at on the event loop."""
_PIECE_BYTES = 4 * 1024 * 1024


async def same_bytes(one: str, other: str, *, size: int) -> bool:
    """Whether both files are there, have this size, and hold the same bytes. Raises OSError."""
    if size <= AT_ONCE_BYTES_MAX:
        return same_content(one, other, size=size)
    return await asyncio.to_thread(same_content, one, other, size=size)


def open_file(path: str) -> int:
    """For reading. Never waits, whatever lies there: a pipe without a writer would be waited for for ever."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def sync_folder(folder: str) -> None:
    """So that the names in it stay when the power goes."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def same_content(one: str, other: str, *, size: int) -> bool:
    """As `same_bytes`, on the calling thread."""
    try:
        left = open_file(one)
    except FileNotFoundError:
        return False
    try:
        right = open_file(other)
    except FileNotFoundError:
        return False
    else:
        try:
            return _read_alike(left, right, size)
        finally:
            os.close(right)
    finally:
        os.close(left)


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


def _read_alike(left: int, right: int, size: int) -> bool:
    """Piece by piece: a commit may be larger than what one wants to hold in memory."""
    wanted = size
    while True:
        # One byte more than there should be: whatever is too long or too short shows without another look.
        limit = min(wanted + 1, _PIECE_BYTES)
        piece = os.read(left, limit)
        if piece != os.read(right, limit) or len(piece) > wanted:
            return False
        wanted -= len(piece)
        if len(piece) < limit:
            return wanted == 0
