"""The logs of tables, read from the object store that their location names.

<location>/_delta_log/00000000000000000007.json                       published
<location>/_delta_log/_staged_commits/00000000000000000008.<uuid>.json  staged
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from obstore.exceptions import BaseError
from obstore.store import LocalStore

from tidegate.domain.commits import Commit, published_name
from tidegate.domain.errors import InvalidRequest, Unavailable
from tidegate.domain.names import Version
from tidegate.domain.publishing import PublishedFile

_LOG = "_delta_log"
_PIECE_BYTES = 4 * 1024 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObjectStoreDeltaLogs:
    """Reads a file of at most `bytes_max`: what is larger is refused, not held in memory."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max

    async def read_published(self, location: str, version: Version) -> bytes | None:
        return await self._read(location, f"{_LOG}/{published_name(version)}")

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

    async def is_published(self, location: str, commit: Commit) -> bool:
        store = _open(location)
        if store is None:
            return False
        published = f"{_LOG}/{published_name(commit.version)}"
        staged = f"{_LOG}/_staged_commits/{commit.file_name}"
        try:
            sizes = [(await store.head_async(path))["size"] for path in (published, staged)]
            return sizes == [commit.file_size] * 2 and await _same(store, published, staged, size=commit.file_size)
        except FileNotFoundError:
            return False
        except (BaseError, OSError) as error:
            raise _unreadable(location, published, error) from error

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


async def _same(store: LocalStore, one: str, other: str, *, size: int) -> bool:
    """Compared piece by piece: a commit may be larger than what one wants to hold in memory."""
    for start in range(0, size, _PIECE_BYTES):
        length = min(_PIECE_BYTES, size - start)
        pieces = [bytes(await store.get_range_async(path, start=start, length=length)) for path in (one, other)]
        if pieces[0] != pieces[1]:
            return False
    return True


def _unreadable(location: str, path: str, error: Exception) -> Unavailable:
    return Unavailable(f"{location}/{path} cannot be read ({type(error).__name__}). Check the store.")


def _open(location: str) -> LocalStore | None:
    """The store below a location; None where there is nothing yet."""
    if not location.startswith("file://"):
        raise InvalidRequest(f"{location} is on a store that this server cannot read. Only file:// is supported.")
    folder = Path(location.removeprefix("file://"))
    return LocalStore(folder) if folder.is_dir() else None
