"""Rows into a table: append, and overwrite.

1. read the latest snapshot, and refuse what this client could not do right; an append after another one needs none, as
   long as nobody is known to have changed the table's metadata
2. write the data files                     on disk before anybody hears of them
3. commit them, past the commits of others, by the rules of `logical_conflicts`: an append has read nothing, an
   overwrite the whole table

ratified                  the rows are part of the table
refused, or given up      the data files are removed
outcome unknown           the data files stay: they may be part of the table
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from tidegate.client.commits import CommitResponse
from tidegate.client.conversations import Conversation, do
from tidegate.client.errors import MetadataChanged, OutcomeUnknown, ProtocolChanged, TidegateError
from tidegate.client.files import Files
from tidegate.client.known_tables import TableHandle
from tidegate.client.log.actions import Add
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.logical_conflicts import Transaction, transaction_of
from tidegate.client.reads import ReadSet
from tidegate.client.rebasing import ground_of
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
    latest: int
    """A version, the snapshot's or a later one, up to which the table is known to be the same."""
    is_remembered: bool
    """The snapshot is that of an earlier write."""


def append(table: TableHandle, files: Files, rows: Any) -> Conversation[CommitResponse]:
    return _write(table, files, rows, overwrites=False)


def overwrite(table: TableHandle, files: Files, rows: Any) -> Conversation[CommitResponse]:
    return _write(table, files, rows, overwrites=True)


def _write(table: TableHandle, files: Files, rows: Any, *, overwrites: bool) -> Conversation[CommitResponse]:
    from tidegate.client.data.parquet_files import layout_of, remove_files, write_rows  # Needs pyarrow.

    remembered = None if overwrites else _remembered(table)
    if remembered is None:
        snapshot = yield from latest_snapshot(table, files)
        latest = snapshot.version
    else:
        snapshot, latest = remembered
    check_writable(snapshot, removes=overwrites)
    layout = layout_of(snapshot)
    written = yield from do(partial(_call, lambda: write_rows(rows, layout, files)))
    write = _Write(
        snapshot=snapshot,
        layout=layout,
        files=written,
        overwrites=overwrites,
        latest=latest,
        is_remembered=remembered is not None,
    )
    try:
        response = yield from _committed(table, files, write)
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
    if known is None or written is None or known.location != written.location:
        return None
    changed = known.metadata.last_commit_version > written.version
    return None if changed or tracks_rows(written.protocol, written.properties) else (written, known.latest)


def _call(call: Callable[[], list[WrittenFile]]) -> list[WrittenFile]:
    """A StopIteration from foreign code, thrown into a conversation, would look like its end."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the rows stopped in the middle") from error


def _committed(table: TableHandle, files: Files, write: _Write) -> Conversation[CommitResponse]:
    from tidegate.client.data.parquet_files import layout_of

    ground = replace(ground_of(write.snapshot), version=write.latest)
    try:
        return (yield from committed(table, files, _transaction(table.name, write), ground))
    except (MetadataChanged, ProtocolChanged):
        if not write.is_remembered:
            raise
        now = yield from latest_snapshot(table, files)
        check_writable(now, removes=False)
        if layout_of(now) != write.layout:
            raise
        # The change is older than this append, which only did not know of it; and its files are right.
        again = _transaction(table.name, replace(write, snapshot=now))
        return (yield from committed(table, files, again, ground_of(now)))


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
    tracked = tracks_rows(write.snapshot.protocol, write.snapshot.properties)
    return {
        "operation": "WRITE",
        "operationParameters": {"mode": mode, "partitionBy": json.dumps(write.snapshot.partition_columns)},
        "operationMetrics": {name: str(count) for name, count in metrics.items()},
        # No row was copied, so none has lost its id.
        **({"tags": {"delta.rowTracking.preserved": "true"}} if tracked else {}),
    }
