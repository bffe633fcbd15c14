"""The files of tables, as the client reads and writes them: one port, and this machine's disks behind it.

A path is a whole URL, such as `file:///data/t/_delta_log/00000000000000000007.json`; what follows `file://` is taken
as it is, as the server takes it. A file that was written is on disk when the call returns, whole, or is not there.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate.client.errors import StorageFailure

_SCHEME = "file://"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a folder, and when it was last changed, in milliseconds since the epoch."""

    name: str
    size: int
    modified_ms: int


class Files(Protocol):
    def read(self, path: str) -> bytes | None:
        """None if there is no such file."""
        ...

    def write_new(self, path: str, content: bytes) -> bool:
        """Put-if-absent. False: the name is taken, and nothing was changed."""
        ...

    def entries(self, folder: str, *, after: str = "") -> Sequence[Entry]:
        """The files right in a folder whose names follow this one, in the order of their names; of no folder, none."""
        ...

    def size(self, path: str) -> int | None:
        """None if there is no such file."""
        ...

    def remove(self, path: str) -> None:
        """What is not there is removed already."""
        ...

    def make_folder(self, folder: str) -> None:
        """Where folders are things of their own; in an object store there is nothing to do."""
        ...


class LocalFiles:
    """Files of this machine. Every OSError is a StorageFailure that names the file."""

    def read(self, path: str) -> bytes | None:
        with _told("read", path):
            try:
                with open(_local(path), "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def write_new(self, path: str, content: bytes) -> bool:
        target = _local(path)
        folder = os.path.dirname(target)
        # Begins with a dot: no reader takes it for a part of the table. The server removes what a crash leaves of it.
        draft = f"{folder}/.{os.path.basename(target)}.{uuid.uuid4().hex}.tidegate-copy"
        with _told("written", path):
            _make_folder(folder)
            try:
                _write_synced(draft, content)
                os.link(draft, target)
            except FileExistsError:
                return False
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(draft)
            _sync_folder(folder)
        return True

    def entries(self, folder: str, *, after: str = "") -> Sequence[Entry]:
        with _told("listed", folder):
            try:
                with os.scandir(_local(folder)) as found:
                    entries = [_entry(one) for one in found if one.name > after]
            except FileNotFoundError:
                return []
        return sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.name)

    def size(self, path: str) -> int | None:
        with _told("read", path):
            try:
                return os.stat(_local(path)).st_size
            except FileNotFoundError:
                return None

    def remove(self, path: str) -> None:
        with _told("removed", path), contextlib.suppress(FileNotFoundError):
            os.unlink(_local(path))

    def make_folder(self, folder: str) -> None:
        with _told("made", folder):
            _make_folder(_local(folder))


def staged_folder(location: str) -> str:
    return f"{location}/_delta_log/_staged_commits"


def staged_path(location: str, file_name: str) -> str:
    return f"{staged_folder(location)}/{file_name}"


def published_path(location: str, version: int) -> str:
    return f"{location}/_delta_log/{version:020}.json"


def _entry(found: os.DirEntry[str]) -> Entry | None:
    """None for what is not a file, or is gone by now."""
    try:
        if not found.is_file():
            return None
        told = found.stat()
    except FileNotFoundError:
        return None
    return Entry(found.name, told.st_size, told.st_mtime_ns // 1_000_000)


def _local(path: str) -> str:
    if not path.startswith(_SCHEME + "/"):
        raise StorageFailure(
            f"{path} is not on a disk of this machine. This client reads and writes file:/// locations only; "
            "use Spark for tables on an object store."
        )
    return path.removeprefix(_SCHEME)


def _write_synced(path: str, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _make_folder(folder: str) -> None:
    if not os.path.isdir(folder):
        os.makedirs(folder, exist_ok=True)
        _sync_folder(os.path.dirname(folder))


def _sync_folder(folder: str) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def _told(done: str, path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailure(f"{path} could not be {done}: {error.strerror or error}. Check the disk.") from error
