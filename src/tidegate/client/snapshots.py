"""What a table is at a version, and its rows: from the catalog's word and the table's files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate.client.conversations import Conversation, do
from tidegate.client.files import Files
from tidegate.client.known_tables import TableHandle, known_table
from tidegate.client.log.segment import Ratified, RatifiedCommit
from tidegate.client.log.snapshot import Snapshot, snapshot_of
from tidegate.client.tables import load
from tidegate.client.wire import Commit, LoadedTable

if TYPE_CHECKING:
    from tidegate.client.data.scan import Scan


def snapshot(
    table: TableHandle, files: Files, *, version: int | None, timestamp: datetime | int | None
) -> Conversation[Snapshot]:
    ratified = ratified_of((yield from load(table)))
    return (yield from do(lambda: snapshot_of(ratified, files, version=version, timestamp=timestamp)))


def latest_snapshot(table: TableHandle, files: Files) -> Conversation[Snapshot]:
    """For a write: refuses an external table, whose commits nobody ratifies."""
    loaded = yield from load(table)
    known_table(table.name, loaded)
    return (yield from do(lambda: snapshot_of(ratified_of(loaded), files)))


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


def ratified_of(loaded: LoadedTable) -> Ratified:
    return Ratified(loaded.latest_table_version, loaded.metadata.location, ratified_commits(loaded.commits))


def ratified_commits(commits: Iterable[Commit]) -> list[RatifiedCommit]:
    return [RatifiedCommit(one.version, one.file_name, one.file_size, one.timestamp) for one in commits]
