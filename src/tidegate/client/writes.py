"""Rows into a table: append, and overwrite.

1. read the latest snapshot, and refuse what this client could not do right; an append after another one needs none, as
   long as nobody is known to have changed the table's metadata
2. write the data files                     on disk before anybody hears of them
3. commit them, past the commits of others, by the rules of `logical_conflicts`: an append has read nothing, an
   overwrite the whole table. An append that goes inline leaves its version open, and meets others only where they have
   changed the table's metadata

ratified                  the rows are part of the table
refused, or given up      the data files are removed
outcome unknown           the data files stay: they may be part of the table
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from tidegate.client.allowed_changes import refused_changes
from tidegate.client.conversations import Conversation, do
from tidegate.client.errors import (
    MetadataChanged,
    OutcomeUnknown,
    ProtocolChanged,
    RequirementConflict,
    TidegateError,
)
from tidegate.client.files import Files
from tidegate.client.known_tables import KnownTable, TableHandle
from tidegate.client.log.actions import Add
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.logical_conflicts import Transaction, transaction_of
from tidegate.client.open_appends import append_open
from tidegate.client.outcomes import CommitResponse
from tidegate.client.reads import ReadSet
from tidegate.client.rebasing import Ground, ground_of
from tidegate.client.snapshots import latest_snapshot
from tidegate.client.transactions import committed
from tidegate.client.writable import check_writable, tracks_rows

if TYPE_CHECKING:
    from tidegate.client.data.parquet_files import Layout, WrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """Data files on disk, and the table that they were written for."""

    snapshot: Snapshot
    layout: Layout
    files: Sequence[WrittenFile]
    overwrites: bool
    known: KnownTable
    """The catalog's word of the table: at the snapshot's version, or a later one with the same metadata."""
    is_remembered: bool
    """The snapshot is that of an earlier write."""
    txn_id: str

    @property
    def tracks_rows(self) -> bool:
        return tracks_rows(self.snapshot.protocol, self.snapshot.properties)

    @property
    def ground(self) -> Ground:
        ground = ground_of(self.snapshot)
        return replace(ground, version=max(ground.version, self.known.latest))


def append(table: TableHandle, files: Files, rows: Any) -> Conversation[CommitResponse]:
    return _write(table, files, rows, overwrites=False)


def overwrite(table: TableHandle, files: Files, rows: Any) -> Conversation[CommitResponse]:
    return _write(table, files, rows, overwrites=True)


def _write(table: TableHandle, files: Files, rows: Any, *, overwrites: bool) -> Conversation[CommitResponse]:
    from tidegate.client.data.parquet_files import layout_of, remove_files, write_rows  # Needs pyarrow.

    remembered = None if overwrites else _remembered(table)
    snapshot, known = (yield from latest_snapshot(table, files)) if remembered is None else remembered
    check_writable(snapshot, removes=overwrites)
    layout = layout_of(snapshot)
    written = yield from do(partial(_call, lambda: write_rows(rows, layout, files)))
    write = _Write(
        snapshot=snapshot,
        layout=layout,
        files=written,
        overwrites=overwrites,
        known=known,
        is_remembered=remembered is not None,
        txn_id=str(uuid.uuid4()),
    )
    try:
        return (yield from _committed(table, files, write))
    except TidegateError as error:
        table.known = table.written = None
        if not isinstance(error, OutcomeUnknown) and not error.doubtful:
            yield from do(partial(remove_files, written, files))
        raise


def _remembered(table: TableHandle) -> tuple[Snapshot, KnownTable] | None:
    """What an append can be made for without a question, and the last that is known of the table.

    Should it be old, the catalog says so when the next one is proposed.
    """
    known, written = table.known, table.written
    if known is None or written is None or known.location != written.location:
        return None
    if known.metadata_version > written.version:
        return None
    # How far the ids of rows go is not remembered, and needed if the version is not left open.
    needs_ids = table.inline.bytes_max == 0 and tracks_rows(written.protocol, written.properties)
    return None if needs_ids else (written, known)


def _call(call: Callable[[], list[WrittenFile]]) -> list[WrittenFile]:
    """A StopIteration from foreign code, thrown into a conversation, would look like its end."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the rows stopped in the middle") from error


def _committed(table: TableHandle, files: Files, write: _Write) -> Conversation[CommitResponse]:
    try:
        return (yield from _attempted(table, files, write, doubtful=False))
    except (MetadataChanged, ProtocolChanged, RequirementConflict) as changed:
        if not write.is_remembered:
            raise
        # The change may be older than this append, which only did not know of it.
        doubtful = changed.doubtful
    try:
        renewed = yield from _renewed(table, files, write)
    except TidegateError as error:
        error.doubtful = doubtful
        raise
    return (yield from _attempted(table, files, renewed, doubtful=doubtful))


def _attempted(table: TableHandle, files: Files, write: _Write, *, doubtful: bool) -> Conversation[CommitResponse]:
    response, ours = None, _transaction(table.name, write)
    if not write.overwrites:
        looks = not write.is_remembered
        opened = append_open(table, files, ours, write.ground, write.known, looks=looks, doubtful=doubtful)
        response = yield from opened
    if response is None:
        if write.is_remembered and write.tracks_rows:
            write = yield from _renewed(table, files, write)
            ours = _transaction(table.name, write)
        response = yield from committed(table, files, ours, write.ground)
    table.written = replace(write.snapshot, files=())
    return response


def _renewed(table: TableHandle, files: Files, write: _Write) -> Conversation[_Write]:
    """The append as one that was made for the table as it is now, if its files are right for that."""
    from tidegate.client.data.parquet_files import layout_of

    now, known = yield from latest_snapshot(table, files)
    check_writable(now, removes=False)
    if now.location != write.snapshot.location:
        raise RequirementConflict(f"{table.name} is another table since a moment ago. Append to it again.")
    changed = refused_changes(write.snapshot.metadata, now.metadata, now.protocol)
    if changed and layout_of(now) != write.layout:
        raise MetadataChanged(table.name, version=now.version, changed=changed)
    return replace(write, snapshot=now, known=known, is_remembered=False)


def _transaction(table: str, write: _Write) -> Transaction:
    return transaction_of(table, write.snapshot, _actions(write), ReadSet(whole_table=write.overwrites))


def _actions(write: _Write) -> list[dict[str, Any]]:
    now = time.time_ns() // 1_000_000
    removes = [{"remove": _remove(file, now)} for file in write.snapshot.files] if write.overwrites else []
    return [{"commitInfo": _commit_info(write)}, *removes, *({"add": _add(file)} for file in write.files)]


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


def _commit_info(write: _Write) -> dict[str, Any]:
    metrics = {
        "numFiles": len(write.files),
        "numOutputRows": sum(file.records for file in write.files),
        "numOutputBytes": sum(file.size for file in write.files),
    }
    mode = "Overwrite" if write.overwrites else "Append"
    return {
        "txnId": write.txn_id,
        "operation": "WRITE",
        "operationParameters": {"mode": mode, "partitionBy": json.dumps(write.snapshot.partition_columns)},
        "operationMetrics": {name: str(count) for name, count in metrics.items()},
        # No row was copied, so none has lost its id.
        **({"tags": {"delta.rowTracking.preserved": "true"}} if write.tracks_rows else {}),
    }
