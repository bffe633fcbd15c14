"""The state of a table at one version, by the rules for readers of catalog-managed tables.

    ratified = Ratified(latest_version=9, location="file:///lake/t", commits=[...])     # the catalog's word
    snapshot = snapshot_of(ratified, files)                                             # or version=7, or timestamp=...
    snapshot.files, snapshot.schema, snapshot.properties

The catalog's commits win over published ones, nothing beyond the latest ratified version is seen, and the log is listed
only when its hint and the catalog do not tell enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tidegate.client.errors import InvalidRequest
from tidegate.client.log.actions import Add, Metadata, Protocol, Transaction, parse_actions
from tidegate.client.log.checkpoints import checkpoint_actions
from tidegate.client.log.errors import LogDamaged, VersionMissing, VersionNotFound
from tidegate.client.log.features import COLUMN_MAPPING_MODE, check_readable, maps_columns
from tidegate.client.log.folder import FileGone, LogFolder
from tidegate.client.log.replay import State
from tidegate.client.log.segment import Hint, Ratified, Segment, segment_of_listing, segment_without_listing
from tidegate.client.log.storage import Files
from tidegate.client.log.time_travel import in_commit_timestamps_since, version_at
from tidegate.client.log.types import StructType
from tidegate.client.log.widening import check_type_changes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a table is at a version. `timestamp` (ms since 1970) is None when the log no longer tells it."""

    location: str
    version: int
    timestamp: int | None
    protocol: Protocol
    metadata: Metadata
    schema: StructType
    files: tuple[Add, ...]
    domains: Mapping[str, str]
    """By metadata domain its configuration."""
    transactions: Mapping[str, Transaction]
    """By application how far it has come."""

    @property
    def partition_columns(self) -> list[str]:
        return self.metadata.partition_columns

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.configuration

    @property
    def column_mapping(self) -> str:
        """`none`, `name` or `id`: by what data files know the columns."""
        if not maps_columns(self.protocol):
            return "none"
        return self.properties.get(COLUMN_MAPPING_MODE, "none")


@dataclass(frozen=True, slots=True)
class TableState:
    """What the newest version says of a table as a whole, whether or not this client could read its rows."""

    version: int
    timestamp: int | None
    protocol: Protocol
    metadata: Metadata
    domains: Mapping[str, str]


def state_of(ratified: Ratified, files: Files) -> TableState:
    """Without the table's files, of which there may be very many."""
    log = LogFolder(ratified, files)
    version = _latest(log)
    segment, state = _read(log, version, with_files=False)
    protocol, metadata = _said(log, version, state)
    timestamp = _timestamp(log, segment, state, metadata)
    return TableState(version, timestamp, protocol, metadata, state.domains)


def snapshot_of(
    ratified: Ratified, files: Files, *, version: int | None = None, timestamp: datetime | int | None = None
) -> Snapshot:
    """The latest ratified version, or an earlier one by its number or by a time (a number is ms since 1970)."""
    if version is not None and timestamp is not None:
        raise InvalidRequest("Ask for a version or for a timestamp, not for both.")
    if version is not None and type(version) is not int:
        raise InvalidRequest(f"A version is a whole number, not {version!r}.")
    time_ms = None if timestamp is None else _milliseconds(timestamp)
    log = LogFolder(ratified, files)
    latest = _latest(log)
    if time_ms is not None:
        return _at_time(time_ms, log, latest)
    if version is not None and not 0 <= version <= latest:
        raise VersionNotFound(version, latest=latest)
    return _at_version(log, latest if version is None else version)


def _latest(log: LogFolder) -> int:
    if log.ratified.latest_version is not None:
        return log.ratified.latest_version
    latest = log.listing().latest
    if latest is None:
        raise LogDamaged(log.ratified.location, "no Delta table is there")
    return latest


def _milliseconds(timestamp: datetime | int) -> int:
    if type(timestamp) is int:
        return timestamp
    if not isinstance(timestamp, datetime):
        raise InvalidRequest(f"A time is a datetime with a time zone, or milliseconds since 1970, not {timestamp!r}.")
    if timestamp.tzinfo is None:
        raise InvalidRequest("A time without a time zone can mean several: say datetime(..., tzinfo=UTC) or the like.")
    since = timestamp - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _at_time(time_ms: int, log: LogFolder, latest: int) -> Snapshot:
    newest = _at_version(log, latest)
    if newest.timestamp == time_ms:
        return newest
    version = version_at(time_ms, log, latest=latest, configuration=newest.properties)
    return newest if version == latest else _at_version(log, version)


def _at_version(log: LogFolder, version: int) -> Snapshot:
    segment, state = _read(log, version)
    protocol, metadata = _said(log, version, state)
    check_readable(protocol)
    schema = metadata.schema
    check_type_changes(schema)
    return Snapshot(
        location=log.ratified.location,
        version=version,
        timestamp=_timestamp(log, segment, state, metadata),
        protocol=protocol,
        metadata=metadata,
        schema=schema,
        files=tuple(state.files),
        domains=state.domains,
        transactions=state.transactions,
    )


def _said(log: LogFolder, version: int, state: State) -> tuple[Protocol, Metadata]:
    if state.protocol is None or state.metadata is None:
        what = "protocol" if state.protocol is None else "metadata"
        raise LogDamaged(log.ratified.location, f"up to version {version} its log has no {what}")
    return state.protocol, state.metadata


def _read(log: LogFolder, version: int, *, with_files: bool = True) -> tuple[Segment, State]:
    """The first way that works. A file may be gone because a name was a guess, or because the log is being cleaned."""
    gone = None
    for segment in _segments(log, version):
        try:
            return segment, _replay(log, segment, with_files=with_files)
        except FileGone as error:
            gone = error
    raise LogDamaged(str(gone), "it went away while the table was read: ask again")


def _segments(log: LogFolder, version: int) -> Iterator[Segment]:
    """The ways to make a version, the cheapest first: by names alone, by the end of the log, by all of it."""
    hint = log.hint()
    guess = segment_without_listing(version, hint, log.ratified.commits)
    if guess is not None:
        yield guess
    if hint is not None and hint.checkpoint.version <= version:
        yield from _by_end_of_log(log, version, hint)
    yield segment_of_listing(version, log.listing(), log.ratified)


def _by_end_of_log(log: LogFolder, version: int, hint: Hint) -> Iterator[Segment]:
    try:
        yield segment_of_listing(version, log.listing(hint.checkpoint.version), log.ratified)
    except (VersionMissing, VersionNotFound):
        return  # The hint's checkpoint is gone. The whole log tells whether anything is missing.


def _replay(log: LogFolder, segment: Segment, *, with_files: bool) -> State:
    state = State(with_files=with_files)
    if segment.checkpoint is not None:
        state.apply(checkpoint_actions(segment.checkpoint, log.read, with_files=with_files))
    for change in segment.changes:
        state.apply(parse_actions(log.content(change), change.name))
    return state


def _timestamp(log: LogFolder, segment: Segment, state: State, metadata: Metadata) -> int | None:
    since = in_commit_timestamps_since(metadata.configuration)
    if since is None or segment.version < since:
        return log.listing(segment.version).modified_ms.get(segment.version)
    if state.in_commit_timestamp is not None:
        return state.in_commit_timestamp
    return log.in_commit_timestamp(segment.version)
