"""The logs of tables, read from the object store that their location names.

<location>/_delta_log/00000000000000000007.json                       published
<location>/_delta_log/_staged_commits/00000000000000000008.<uuid>.json  staged
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from obstore.exceptions import BaseError
from obstore.store import LocalStore

from tidegate.domain.chain import FileDigest
from tidegate.domain.commits import Commit, published_name
from tidegate.domain.errors import InvalidRequest, OutcomeUnknown, Unavailable
from tidegate.domain.names import Version
from tidegate.domain.publishing import Look, Obstacle, Publication, PublishedFile
from tidegate.steps import reached
from tidegate.storage.local_files import check_own_folders, file_digest, read_file
from tidegate.storage.patience import Patience
from tidegate.storage.publication import find_obstacle, publish, stage, verified_sha256
from tidegate.storage.put_if_absent import is_put, put_if_absent
from tidegate.storage.quick_looks import QuickLooks

T = TypeVar("T")

LOOK_SECONDS_MAX = 5.0
"""For one file that somebody waits for: a commit whose report cannot be verified goes on without it."""
LOOKS_HANGING_MAX = 64
PUBLISH_SECONDS_MAX = 30.0
PUBLISH_CALLS_MAX = 64
PUT_SECONDS_MAX = 30.0
PUT_CALLS_MAX = 64
_LOG = "_delta_log"
_STAGED = "_staged_commits"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObjectStoreDeltaLogs:
    """Reads a file of at most `bytes_max`: what is larger is refused, not held in memory."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._looks = QuickLooks(seconds_max=LOOK_SECONDS_MAX, threads_max=LOOKS_HANGING_MAX)
        self._patience = Patience(seconds_max=PUBLISH_SECONDS_MAX, calls_max=PUBLISH_CALLS_MAX)
        # Of its own: who waits for a commit does not wait for those who publish.
        self._put_patience = Patience(seconds_max=PUT_SECONDS_MAX, calls_max=PUT_CALLS_MAX)

    async def read_published(self, location: str, version: Version) -> bytes | None:
        return await self._read(location, published_name(version))

    async def read_staged(self, location: str, commit: Commit) -> bytes | None:
        log = f"{_path(location)}/{_LOG}"
        return await self._quick_look(location, lambda: self._staged(log, commit))

    async def find_published(self, location: str, version: Version) -> PublishedFile | None:
        return await self._look(location, lambda store: _find(store, published_name(version)))

    async def read_head(self, location: str, commit: Commit, *, bytes_max: int) -> bytes | None:
        size = min(bytes_max, commit.file_size)
        names = (f"{_STAGED}/{commit.file_name}", published_name(commit.version))
        return await self._look(location, lambda store: _read_head(store, names, size))

    async def verified_sha256(self, location: str, commit: Commit) -> str | None:
        log = f"{_path(location)}/{_LOG}"
        return await self._quick_look(location, lambda: _verified_sha256(log, commit))

    async def look(self, location: str, commits: Sequence[Commit], staged: Commit) -> Look:
        log = f"{_path(location)}/{_LOG}"

        def look() -> Look:
            return Look([_verified_sha256(log, commit) for commit in commits], self._staged(log, staged))

        return await self._quick_look(location, look)

    async def published_digests(self, location: str, versions: Sequence[Version]) -> Mapping[Version, FileDigest]:
        log = f"{_path(location)}/{_LOG}"

        def look() -> dict[Version, FileDigest]:
            if not os.path.isdir(log):
                raise FileNotFoundError(errno.ENOENT, "there is no such folder")
            digests = {version: file_digest(f"{log}/{published_name(version)}") for version in versions}
            return {version: digest for version, digest in digests.items() if digest is not None}

        return await self._call(f"{location} (to verify it)", look)

    async def find_obstacle(
        self, location: str, commit: Commit, contents: Mapping[Version, bytes], *, ahead: bool = False
    ) -> Obstacle | None:
        log = f"{_path(location)}/{_LOG}"
        return await self._call(f"{location} (a look)", lambda: find_obstacle(log, commit, contents, ahead=ahead))

    async def stage(self, location: str, commits: Sequence[Commit], contents: Mapping[Version, bytes]) -> None:
        log = f"{_path(location)}/{_LOG}"
        await self._call(f"{location} (inline commits)", lambda: stage(log, commits, contents), in_turn=True)

    async def publish(self, location: str, commits: Sequence[Commit], contents: Mapping[Version, bytes]) -> Publication:
        log = f"{_path(location)}/{_LOG}"
        return await self._call(location, lambda: publish(log, commits, contents))

    async def put_if_absent(self, location: str, version: Version, content: bytes) -> bool:
        log = f"{_path(location)}/{_LOG}"
        try:
            return await self._put_patience.call(location, lambda: put_if_absent(log, version, content), in_turn=True)
        except Unavailable as error:
            # A thread that hangs may still do it.
            raise OutcomeUnknown(f"{error.message} The commit may have happened. Send it again unchanged.") from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise Unavailable(
                f"Version {version} could not be put into the log of {location} ({reason}). Check the store."
            ) from error

    async def is_put(self, location: str, version: Version, content: bytes) -> bool:
        log = f"{_path(location)}/{_LOG}"
        return await self._call(f"{location} (version {version})", lambda: is_put(log, version, content))

    def _staged(self, log: str, commit: Commit) -> bytes | None:
        check_own_folders(log)
        return read_file(f"{log}/{_STAGED}/{commit.file_name}", bytes_max=self._bytes_max)

    async def _quick_look(self, location: str, look: Callable[[], T]) -> T:
        """At plain files of the log."""
        try:
            return await self._looks.call(location, look)
        except OSError as error:
            raise _unreadable(location, error) from error

    async def _call(self, what: str, work: Callable[[], T], *, in_turn: bool = False) -> T:
        try:
            return await self._patience.call(what, work, in_turn=in_turn)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise Unavailable(f"The log of {what} cannot be used ({reason}). Check the store.") from error

    async def _read(self, location: str, name: str) -> bytes | None:
        return await self._look(location, lambda store: _read(store, name, self._bytes_max))

    async def _look(self, location: str, look: Callable[[LocalStore], T]) -> T | None:
        """None where there is nothing."""
        folder = f"{_path(location)}/{_LOG}"

        def work() -> T | None:
            return look(LocalStore(folder)) if os.path.isdir(folder) else None

        try:
            return await self._looks.call(location, work)
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise _unreadable(location, error) from error


def _verified_sha256(log: str, commit: Commit) -> str | None:
    reached("report.started")
    return verified_sha256(f"{log}/{published_name(commit.version)}", f"{log}/{_STAGED}/{commit.file_name}", commit)


def _read(store: LocalStore, name: str, bytes_max: int) -> bytes:
    found = store.get(name)
    size = found.meta["size"]
    if size > bytes_max:
        raise InvalidRequest(f"{name} has {size} bytes; this server reads at most {bytes_max} of a commit.")
    return bytes(found.bytes())


def _read_head(store: LocalStore, names: Sequence[str], size: int) -> bytes | None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            return bytes(store.get_range(name, start=0, length=size))
    return None


def _find(store: LocalStore, name: str) -> PublishedFile:
    found = store.head(name)
    return PublishedFile(found["size"], (found["last_modified"] - _EPOCH) // timedelta(milliseconds=1))


def _unreadable(location: str, error: Exception) -> Unavailable:
    return Unavailable(f"The log of {location} cannot be read ({type(error).__name__}). Check the store.")


def _path(location: str) -> str:
    if not location.startswith("file://"):
        raise InvalidRequest(f"{location} is on a store that this server cannot read. Only file:// is supported.")
    return location.removeprefix("file://")
