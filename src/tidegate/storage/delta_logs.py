"""The logs of tables, read from the object store that their location names.

<location>/_delta_log/00000000000000000007.json                       published
<location>/_delta_log/_staged_commits/00000000000000000008.<uuid>.json  staged
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from obstore.exceptions import BaseError
from obstore.store import LocalStore

from tidegate.domain.commits import Commit, published_name
from tidegate.domain.errors import InvalidRequest, OutcomeUnknown, Unavailable
from tidegate.domain.names import Version
from tidegate.domain.publishing import Obstacle, Publication, PublishedFile
from tidegate.storage.local_files import same_bytes
from tidegate.storage.patience import Patience
from tidegate.storage.publication import find_obstacle, publish, stage
from tidegate.storage.put_if_absent import is_put, put_if_absent

T = TypeVar("T")

PUBLISH_SECONDS_MAX = 30.0
PUBLISH_CALLS_MAX = 64
PUT_SECONDS_MAX = 30.0
PUT_CALLS_MAX = 64
_LOG = "_delta_log"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObjectStoreDeltaLogs:
    """Reads a file of at most `bytes_max`: what is larger is refused, not held in memory."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._patience = Patience(seconds_max=PUBLISH_SECONDS_MAX, calls_max=PUBLISH_CALLS_MAX)
        # Of its own: who waits for a commit does not wait for those who publish.
        self._put_patience = Patience(seconds_max=PUT_SECONDS_MAX, calls_max=PUT_CALLS_MAX)

    async def read_published(self, location: str, version: Version) -> bytes | None:
        return await self._read(location, f"{_LOG}/{published_name(version)}")

    async def read_staged(self, location: str, commit: Commit) -> bytes | None:
        return await self._read(location, f"{_LOG}/_staged_commits/{commit.file_name}")

    async def find_published(self, location: str, version: Version) -> PublishedFile | None:
        store = _open(location)
        if store is None:
            return None
        path = f"{_LOG}/{published_name(version)}"
        try:
            found = await store.head_async(path)
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise _unreadable(location, path, error) from error
        return PublishedFile(found["size"], (found["last_modified"] - _EPOCH) // timedelta(milliseconds=1))

    async def read_head(self, location: str, commit: Commit, *, bytes_max: int) -> bytes | None:
        store = _open(location)
        if store is None:
            return None
        for path in (f"{_LOG}/_staged_commits/{commit.file_name}", f"{_LOG}/{published_name(commit.version)}"):
            try:
                return bytes(await store.get_range_async(path, start=0, length=min(bytes_max, commit.file_size)))
            except FileNotFoundError:
                continue
            except (BaseError, OSError) as error:
                raise _unreadable(location, path, error) from error
        return None

    async def is_published(self, location: str, commit: Commit) -> bool:
        log = f"{_path(location)}/{_LOG}"
        published = f"{log}/{published_name(commit.version)}"
        try:
            return await same_bytes(published, f"{log}/_staged_commits/{commit.file_name}", size=commit.file_size)
        except OSError as error:
            raise _unreadable(location, published, error) from error

    async def find_obstacle(self, location: str, commit: Commit, contents: Mapping[Version, bytes]) -> Obstacle | None:
        log = f"{_path(location)}/{_LOG}"
        return await self._call(f"{location} (a look)", lambda: find_obstacle(log, commit, contents))

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

    async def _call(self, what: str, work: Callable[[], T], *, in_turn: bool = False) -> T:
        try:
            return await self._patience.call(what, work, in_turn=in_turn)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise Unavailable(f"The log of {what} cannot be used ({reason}). Check the store.") from error

    async def _read(self, location: str, path: str) -> bytes | None:
        store = _open(location)
        if store is None:
            return None
        try:
            found = await store.get_async(path)
            if found.meta["size"] > self._bytes_max:
                raise InvalidRequest(
                    f"{path} has {found.meta['size']} bytes; this server reads at most {self._bytes_max} of a commit."
                )
            return bytes(await found.bytes_async())
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise _unreadable(location, path, error) from error


def _unreadable(location: str, path: str, error: Exception) -> Unavailable:
    return Unavailable(f"{location}/{path} cannot be read ({type(error).__name__}). Check the store.")


def _path(location: str) -> str:
    if not location.startswith("file://"):
        raise InvalidRequest(f"{location} is on a store that this server cannot read. Only file:// is supported.")
    return location.removeprefix("file://")


def _open(location: str) -> LocalStore | None:
    """The store below a location; None where there is nothing yet."""
    folder = Path(_path(location))
    return LocalStore(folder) if folder.is_dir() else None
