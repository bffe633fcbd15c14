"""What a table is at a version, and its rows: from the catalog's word and the table's files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate.client.conversations import Conversation, do
from tidegate.client.files import Files
from tidegate.client.kept_commits import look
from tidegate.client.known_tables import KnownTable, TableHandle
from tidegate.client.log.snapshot import Snapshot, snapshot_of

if TYPE_CHECKING:
    from tidegate.client.data.scan import Scan


def snapshot(
    table: TableHandle, files: Files, *, version: int | None, timestamp: datetime | int | None
) -> Conversation[Snapshot]:
    ratified = (yield from look(table)).ratified
    return (yield from do(lambda: snapshot_of(ratified, files, version=version, timestamp=timestamp)))


def latest_snapshot(table: TableHandle, files: Files) -> Conversation[tuple[Snapshot, KnownTable]]:
    """For a write, with what the catalog said of the same state. Refuses an external table, whose commits nobody
    ratifies.
    """
    kept = yield from look(table)
    known = kept.known(table.name)
    return (yield from do(lambda: snapshot_of(kept.ratified, files))), known


def scan(
    table: TableHandle,
    files: Files,
    columns: Sequence[str] | None,
    filter: Iterable[Sequence[Any]] | Any,
    *,
    version: int | None,
    timestamp: datetime | int | None,
) -> Conversation[Scan]:
    from tidegate.client.data.scan import scan as scanned  # Needs pyarrow, which the rest of the client does without.

    found = yield from snapshot(table, files, version=version, timestamp=timestamp)
    return scanned(found, files, columns, filter)
