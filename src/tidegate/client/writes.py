"""Rows into a table: append, and overwrite.

1. read the latest snapshot, and refuse what this client could not do right; an append after another one needs none, as
   long as nobody is known to have changed the table's metadata
2. write the data files                     on disk before anybody hears of them
3. commit them as the next version
4. the version is taken: an append goes ahead at the next one with the same files, whatever others added or removed,
   as long as the table is still what the files were written for. An overwrite goes ahead only if nobody touched files
   or metadata: it would remove what it has not seen, or keep what it should have removed.

ratified                  the rows are part of the table
refused, or given up      the data files are removed
outcome unknown           the data files stay: they may be part of the table
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from tidegate.client.commits import CommitResponse, commit
from tidegate.client.conversations import Conversation, do
from tidegate.client.errors import CommitConflict, ConcurrentChange, OutcomeUnknown, TidegateError
from tidegate.client.files import Files
from tidegate.client.known_tables import TableHandle, known_table
from tidegate.client.log.actions import Action, Add, Protocol, parse_actions
from tidegate.client.log.folder import FileGone, LogFolder
from tidegate.client.log.names import commit_name
from tidegate.client.log.segment import Ratified
from tidegate.client.log.snapshot import Snapshot, snapshot_of
from tidegate.client.row_ids import high_water_mark, numbered
from tidegate.client.snapshots import ratified_of
from tidegate.client.tables import load
from tidegate.client.writable import check_writable, tracks_rows

if TYPE_CHECKING:
    from tidegate.client.data.parquet_files import WrittenFile

ATTEMPTS_MAX = 100
"""How often a write is committed, each time at another version."""
PAUSE_SECONDS = 0.005
PAUSE_SECONDS_MAX = 0.2


@dataclass(frozen=True, slots=True)
class _Write:
    """Data files on disk, and the table that they were written for."""

    snapshot: Snapshot
    files: Sequence[WrittenFile]
    overwrites: bool
    version: int
    """At which it is committed first."""


def append(table: TableHandle, files: Files, rows: Any) -> Conversation[CommitResponse]:
    return _write(table, files, rows, overwrites=False)


def overwrite(table: TableHandle, files: Files, rows: Any) -> Conversation[CommitResponse]:
    return _write(table, files, rows, overwrites=True)


def _write(table: TableHandle, files: Files, rows: Any, *, overwrites: bool) -> Conversation[CommitResponse]:
    from tidegate.client.data.parquet_files import layout_of, remove_files, write_rows  # Needs pyarrow.

    remembered = None if overwrites else _remembered(table)
    if remembered is None:
        snapshot, _ = yield from _latest(table, files)
        latest = snapshot.version
    else:
        snapshot, latest = remembered
    check_writable(snapshot, removes=overwrites)
    written = yield from do(partial(_call, lambda: write_rows(rows, layout_of(snapshot), files)))
    try:
        response = yield from _committed(table, files, _Write(snapshot, written, overwrites, latest + 1))
        table.written = replace(snapshot, files=())
        return response
    except TidegateError as error:
        table.known = table.written = None
        if not isinstance(error, OutcomeUnknown) and not error.doubtful:
            yield from do(partial(remove_files, written, files))
        raise


def _remembered(table: TableHandle) -> tuple[Snapshot, int] | None:
    """What an append can be made for without a question, and the latest version for which that is known to be right.

    Should it be old, the catalog says so when the next one is proposed.
    """
    known, written = table.known, table.written
    if known is None or written is None or tracks_rows(written) or known.location != written.location:
        return None
    changed = known.metadata.last_commit_version > written.version
    return None if changed else (written, known.latest)


def _call(call: Callable[[], list[WrittenFile]]) -> list[WrittenFile]:
    """A StopIteration from foreign code, thrown into a conversation, would look like its end."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the rows stopped in the middle") from error


def _committed(table: TableHandle, files: Files, write: _Write) -> Conversation[CommitResponse]:
    version, highest = write.version, _highest(write.snapshot)
    attempt = 0
    while True:
        attempt += 1
        actions = _actions(write, version=version, highest=highest)
        try:
            return (yield from commit(table, files, version, actions, metadata_before=None))
        except CommitConflict as lost:
            if attempt == ATTEMPTS_MAX:
                raise
            if lost.append_stands and not write.overwrites and highest is None:
                version = lost.latest + 1
            else:
                snapshot = yield from _rebased(table, files, write, since=version)
                version, highest = snapshot.version + 1, _highest(snapshot)
        yield from do(partial(time.sleep, _pause(attempt)))


def _rebased(table: TableHandle, files: Files, write: _Write, *, since: int) -> Conversation[Snapshot]:
    """The table as it is now, if the write still stands in it."""
    snapshot, ratified = yield from _latest(table, files)
    if write.overwrites:
        versions = range(since, snapshot.version + 1)
        yield from do(partial(_check_untouched, table.name, ratified, files, versions))
    _check_same(table.name, write.snapshot, snapshot)
    return snapshot


def _latest(table: TableHandle, files: Files) -> Conversation[tuple[Snapshot, Ratified]]:
    loaded = yield from load(table)
    known_table(table.name, loaded)  # Refuses an external table: nobody ratifies its commits.
    ratified = ratified_of(loaded)
    snapshot = yield from do(partial(snapshot_of, ratified, files))
    return snapshot, ratified


def _check_same(name: str, before: Snapshot, after: Snapshot) -> None:
    """Whether data files written for one are right for the other."""
    changed = [
        what
        for what, old, new in (
            ("id", before.metadata.id, after.metadata.id),
            ("columns", before.schema, after.schema),
            ("partition columns", before.partition_columns, after.partition_columns),
            ("properties", dict(before.properties), dict(after.properties)),
            ("protocol", _features(before.protocol), _features(after.protocol)),
        )
        if old != new
    ]
    if changed in ([], ["properties"]):
        # Properties decide on how files look, and on what writers must refuse; none makes these files wrong.
        check_writable(after, removes=False)
        if before.column_mapping == after.column_mapping:
            return
    raise ConcurrentChange(name, version=after.version, what=f"changed the table's {' and '.join(changed)}")


def _features(protocol: Protocol) -> tuple[Any, ...]:
    features = (frozenset(protocol.reader_features or ()), frozenset(protocol.writer_features or ()))
    return (protocol.min_reader_version, protocol.min_writer_version, *features)


def _check_untouched(name: str, ratified: Ratified, files: Files, versions: range) -> None:
    log = LogFolder(ratified, files)
    kept = {one.version: one for one in ratified.commits}
    for version in versions:
        try:
            content = log.content(kept[version]) if version in kept else log.read(commit_name(version))
        except FileGone:
            raise ConcurrentChange(name, version=version, what="is no longer in the log to be looked at") from None
        touched = next((what for action in parse_actions(content, str(version)) if (what := _touches(action))), None)
        if touched is not None:
            raise ConcurrentChange(name, version=version, what=touched)


def _touches(action: Action) -> str | None:
    """What of another's commit an overwrite cannot stand beside."""
    if action.add is not None:
        return "added files"
    if action.remove is not None:
        return "removed files"
    if action.meta_data is not None or action.protocol is not None:
        return "changed the table's metadata"
    return None


def _actions(write: _Write, *, version: int, highest: int | None) -> list[dict[str, Any]]:
    adds = [{"add": _add(file)} for file in write.files]
    if highest is not None:
        adds = numbered(adds, [file.records for file in write.files], version=version, highest=highest)
    now = time.time_ns() // 1_000_000
    removes = [{"remove": _remove(file, now)} for file in write.snapshot.files] if write.overwrites else []
    return [{"commitInfo": _commit_info(write, tracked=highest is not None)}, *removes, *adds]


def _add(file: WrittenFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "partitionValues": dict(file.partition_values),
        "size": file.size,
        "modificationTime": file.modified_ms,
        "dataChange": True,
        "stats": file.stats,
    }


def _remove(file: Add, now: int) -> dict[str, Any]:
    """With all that the add had, as the protocol asks of writers that know it."""
    told = msgspec.to_builtins(file.deletion_vector) if file.deletion_vector is not None else None
    optional = {
        "deletionVector": told and {key: value for key, value in told.items() if value is not None},
        "tags": file.tags,
        "baseRowId": file.base_row_id,
        "defaultRowCommitVersion": file.default_row_commit_version,
    }
    return {
        "path": file.path,
        "deletionTimestamp": now,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": file.partition_values,
        "size": file.size,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _commit_info(write: _Write, *, tracked: bool) -> dict[str, Any]:
    metrics = {
        "numFiles": len(write.files),
        "numOutputRows": sum(file.records for file in write.files),
        "numOutputBytes": sum(file.size for file in write.files),
    }
    mode = "Overwrite" if write.overwrites else "Append"
    return {
        "operation": "WRITE",
        "operationParameters": {"mode": mode, "partitionBy": json.dumps(write.snapshot.partition_columns)},
        "readVersion": write.snapshot.version,
        "isBlindAppend": not write.overwrites,
        "operationMetrics": {name: str(count) for name, count in metrics.items()},
        # No row was copied, so none has lost its id.
        **({"tags": {"delta.rowTracking.preserved": "true"}} if tracked else {}),
    }


def _highest(snapshot: Snapshot) -> int | None:
    """None: rows have no ids."""
    return high_water_mark(snapshot.domains) if tracks_rows(snapshot) else None


def _pause(attempt: int) -> float:
    """At random, so that those who lost together do not come back together."""
    return random.uniform(0, min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * attempt))  # noqa: S311
