"""All files of a table, whatever they are: found and removed, and nothing beyond the table's location is touched.

On this machine's file systems links are not followed: a link that leads out of the table is a file like any other,
which is removed itself and not what it leads to.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

from tidegate.domain.errors import InvalidRequest, Unavailable
from tidegate.domain.files import FoundFile
from tidegate.steps import reached
from tidegate.storage.folders import clear, open_folder
from tidegate.storage.patience import Patience

T = TypeVar("T")

CALL_SECONDS_MAX = 60.0
CALLS_MAX = 16


class LocalTableFiles:
    def __init__(self) -> None:
        self._patience = Patience(seconds_max=CALL_SECONDS_MAX, calls_max=CALLS_MAX)

    async def find(self, location: str, *, below: str = "", deep: bool, limit: int) -> Sequence[FoundFile]:
        root, folder = _root(location), _inside(below) if below else ()
        return await self._call(location, lambda: _first(_files(root, folder, deep=deep), limit))

    async def read(self, location: str, path: str, *, bytes_max: int) -> bytes | None:
        root, parts = _root(location), _inside(path)
        return await self._call(location, lambda: _read(root, parts, bytes_max))

    async def remove(self, location: str, paths: Sequence[str]) -> None:
        root, checked = _root(location), [_inside(path) for path in paths]
        await self._call(location, lambda: _late(_remove(root, checked)))

    async def clear(self, location: str, *, limit: int) -> int:
        root = _root(location)
        return await self._call(location, lambda: _late(clear(root, limit=limit)))

    async def remove_empty_folders(self, location: str) -> None:
        root = _root(location)
        await self._call(location, lambda: _remove_folders(root))

    async def exists(self, location: str) -> bool:
        root = _root(location)
        return await self._call(location, lambda: os.path.lexists(root))

    async def folders(self, location: str) -> Sequence[str]:
        root = _root(location)
        return await self._call(location, lambda: _folders(root))

    async def _call(self, location: str, work: Callable[[], T]) -> T:
        try:
            return await self._patience.call(location, work, in_turn=True)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise Unavailable(f"The store of {location} fails ({reason}). Check it.") from error


def _late(removed: T) -> T:
    reached("store.removed")
    return removed


def _root(location: str) -> str:
    if not location.startswith("file://"):
        raise InvalidRequest(f"{location} is on a store that this server cannot reach. Only file:// is supported.")
    return location.removeprefix("file://").rstrip("/")


def _inside(path: str) -> tuple[str, ...]:
    """The parts of a path that cannot lead out of the folder that it is appended to."""
    parts = PurePosixPath(path)
    if not path or parts.is_absolute() or ".." in parts.parts:
        raise InvalidRequest(f"{path!r} is not a path inside a table.")
    return parts.parts


def _files(root: str, below: tuple[str, ...], *, deep: bool) -> Generator[FoundFile]:
    waiting = [below]
    while waiting:
        parts = waiting.pop()
        with open_folder(root, parts) as folder:
            if folder is None:
                continue
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if deep:
                            waiting.append((*parts, entry.name))
                        continue
                    with contextlib.suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        path = "/".join((*parts, entry.name))
                        yield FoundFile(path, found.st_size, found.st_mtime_ns // 1_000_000)


def _first(files: Generator[FoundFile], limit: int) -> list[FoundFile]:
    with contextlib.closing(files):
        return list(itertools.islice(files, limit))


def _read(root: str, parts: tuple[str, ...], bytes_max: int) -> bytes | None:
    """None also for what is larger than `bytes_max`, and for what is no plain file."""
    with open_folder(root, parts[:-1]) as folder:
        if folder is None:
            return None
        try:
            opened = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except FileNotFoundError:
            return None
        with open(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                return None
            content = file.read(bytes_max + 1)
    return content if len(content) <= bytes_max else None


def _remove(root: str, paths: Sequence[tuple[str, ...]]) -> None:
    by_folder: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for *folder, name in paths:
        by_folder[tuple(folder)].append(name)
    for parts, names in by_folder.items():
        with open_folder(root, parts) as folder:
            if folder is None:
                continue
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)


def _folders(folder: str) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def _remove_folders(root: str) -> None:
    if os.path.islink(root):
        return
    for folder, _, _ in os.walk(root, topdown=False, followlinks=False):
        with contextlib.suppress(OSError):  # not empty: somebody has put something there
            os.rmdir(folder)
