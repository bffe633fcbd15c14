"""Tables that lie in the object store and belong to nobody here: read from their logs, as any reader of Delta does.

The rules for readers are the client's; checkpoints are read by pyarrow. The client is loaded when the first table is
read: a server that adopts none starts without it.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tidegate.domain.errors import InvalidRequest, Unavailable
from tidegate.domain.log_files import COPY_SUFFIX
from tidegate.domain.names import Version
from tidegate.domain.ownership import FoundTable
from tidegate.storage.patience import Patience

if TYPE_CHECKING:
    from tidegate.client.log.snapshot import TableState

READ_SECONDS_MAX = 60.0
READS_MAX = 8
LOOKS_MAX = 2
"""A file may go away while a log is read that is being cleaned."""


class LocalFoundTables:
    def __init__(self) -> None:
        self._patience = Patience(seconds_max=READ_SECONDS_MAX, calls_max=READS_MAX)

    async def find(self, location: str) -> FoundTable:
        return await self._patience.call(location, lambda: _find(location), in_turn=True)

    async def look(self, location: str) -> FoundTable | str | None:
        try:
            return await self._patience.call(location, lambda: _look(location), in_turn=True)
        except Unavailable:
            return None

    async def check_writable(self, location: str) -> None:
        await self._patience.call(location, lambda: _check_writable(_log(location)), in_turn=True)

    async def lies_within(self, location: str, roots: Sequence[str]) -> bool:
        return await self._patience.call(location, lambda: _lies_within(location, roots), in_turn=True)


def _lies_within(location: str, roots: Sequence[str]) -> bool:
    real = os.path.realpath(_log(location))
    return any(real.startswith(os.path.realpath(root.removeprefix("file://")) + "/") for root in roots)


def _find(location: str) -> FoundTable:
    if not _is_folder(_log(location)):
        raise InvalidRequest(f"There is no Delta table at {location}: it has no _delta_log. Check the location.")
    from tidegate.client.errors import StorageFailure
    from tidegate.client.files import LocalFiles
    from tidegate.client.log.errors import LogError
    from tidegate.client.log.segment import Ratified
    from tidegate.client.log.snapshot import state_of

    try:
        state = state_of(Ratified(None, location), LocalFiles())
    except LogError as error:
        raise InvalidRequest(f"The log of {location} cannot be read: {error.message}") from error
    except StorageFailure as error:
        if isinstance(error.__cause__, PermissionError):
            raise _no_right("read", _log(location), error.__cause__) from error
        raise Unavailable(error.message) from error
    return FoundTable(
        location=location,
        version=Version(state.version),
        timestamp=state.timestamp or 0,
        protocol=_action(state.protocol),
        metadata=_metadata(state),
        domains=state.domains,
    )


def _look(location: str) -> FoundTable | str | None:
    from tidegate.client.log.errors import LogDamaged, VersionMissing

    damage = None
    for _ in range(LOOKS_MAX):
        try:
            return _find(location)
        except InvalidRequest as error:
            # Else it is not the log: pyarrow is not there, or the server may not read.
            damage = error.__cause__ if isinstance(error.__cause__, LogDamaged | VersionMissing) else None
    return None if damage is None else damage.message


def _metadata(state: TableState) -> dict[str, Any]:
    told = _action(state.metadata)
    return {"format": {"provider": "parquet", "options": {}}, **told}


def _action(value: object) -> dict[str, Any]:
    """As the log spells it; what is not there is left out."""
    return {key: inner for key, inner in msgspec.to_builtins(value).items() if inner is not None}


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except PermissionError as error:
        raise _no_right("read", path, error) from None
    except OSError:
        return False


def _check_writable(log: str) -> None:
    """A commit gets its name by a hard link, so that is tried too."""
    probe = f"{log}/.{uuid.uuid4().hex}{COPY_SUFFIX}"
    linked = f"{log}/.{uuid.uuid4().hex}{COPY_SUFFIX}"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        try:
            os.link(probe, linked)
            os.unlink(linked)
        finally:
            os.unlink(probe)
    except OSError as error:
        raise _no_right("write to", log, error) from None


def _no_right(to_do: str, path: str, error: OSError) -> InvalidRequest:
    return InvalidRequest(
        f"The server cannot {to_do} {path} ({error.strerror}). Give its user the right to read and write the whole "
        "folder of the table."
    )


def _log(location: str) -> str:
    if not location.startswith("file://"):
        raise InvalidRequest(f"{location} is on a store that this server cannot read. Only file:// is supported.")
    return f"{location.removeprefix('file://')}/_delta_log"
