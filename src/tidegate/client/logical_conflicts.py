"""Whether a commit still stands beside one that another writer got ratified meanwhile: Delta's rules. Pure.

    find_conflict(ours, ground, winner)     what is in the way, None if nothing is

                          in the way is
protocol                  two that state it; features that go, or that this client does not know
metadata                  two that state it; any change but those in `allowed_changes`
metadata domains          one that both write, or that was read; row tracking's is counted anew instead
applications              one whose progress both record, or that was read
files that came           to what was read; by isolation:
                            Serializable        all of them
                            WriteSerializable   not those of blind appends, unless this commit states metadata
                            SnapshotIsolation   none: for commits that change no data
files that went           if they were read, or if both remove them; by path, so a new deletion vector counts

A table's isolation is its `delta.isolationLevel`, and Serializable where that says nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from tidegate.client.allowed_changes import refused_changes
from tidegate.client.errors import (
    ConcurrentAppend,
    ConcurrentChange,
    ConcurrentDeleteDelete,
    ConcurrentDeleteRead,
    ConcurrentTransaction,
    DomainMetadataChanged,
    InvalidCommit,
    MetadataChanged,
    ProtocolChanged,
)
from tidegate.client.log import actions as log
from tidegate.client.log.features import READER_VERSION_MAX
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.log.types import PHYSICAL_NAME
from tidegate.client.proposals import ROW_TRACKING_DOMAIN, Action, draft
from tidegate.client.reads import ReadSet
from tidegate.client.rebasing import Ground
from tidegate.client.winners import BACKFILLS, Winner
from tidegate.client.writable import HONOURED, IF_USED, WRITER_VERSION_MAX, features_of

ISOLATION_LEVEL = "delta.isolationLevel"
_FILE_ACTIONS = frozenset({"add", "remove", "cdc"})
_DATA_OPERATIONS = ("WRITE", "STREAMING UPDATE", "DELETE", "TRUNCATE", "CONVERT", "MERGE", "UPDATE", "RESTORE", "CLONE")


class Isolation(Enum):
    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A commit that was made for a snapshot."""

    table: str
    snapshot: Snapshot
    actions: Sequence[Action]
    """As given, the commitInfo first."""
    read: ReadSet
    removed: frozenset[str]
    metadata: log.Metadata | None
    protocol: log.Protocol | None
    app_ids: frozenset[str]
    domains: frozenset[str]
    is_blind_append: bool
    only_adds: bool
    """Nothing but files of a blind append: who else appends or removes is of no concern."""
    isolation: Isolation


def transaction_of(table: str, snapshot: Snapshot, actions: Iterable[Action], read: ReadSet) -> Transaction:
    """Refuses actions that are none."""
    given = draft(actions)
    typed = [_typed(action, number) for number, action in enumerate(given.others, start=1)]
    kinds = {kind for action in given.others for kind in action}
    operation = str(given.commit_info.get("operation", "WRITE"))
    if operation in BACKFILLS:
        raise InvalidCommit(f"{operation} restates files that others remove meanwhile. Let Spark do it.")
    blind = not read.has_files and not kinds & {"remove", "cdc"}
    metadata = next((one.meta_data for one in typed if one.meta_data is not None), None)
    isolation = _isolation(metadata or snapshot.metadata, given.others, operation)
    info = {
        **given.commit_info,
        "readVersion": snapshot.version,
        "isolationLevel": isolation.value,
        "isBlindAppend": blind,  # Others go by it.
    }
    return Transaction(
        table=table,
        snapshot=snapshot,
        actions=({"commitInfo": info}, *given.others),
        read=read,
        removed=frozenset(one.remove.path for one in typed if one.remove is not None),
        metadata=metadata,
        protocol=next((one.protocol for one in typed if one.protocol is not None), None),
        app_ids=frozenset(one.txn.app_id for one in typed if one.txn is not None),
        domains=frozenset(given.domains) - {ROW_TRACKING_DOMAIN},
        is_blind_append=blind,
        only_adds=blind and kinds <= {"add"} and not (read.app_ids or read.domains),
        isolation=isolation,
    )


def find_conflict(ours: Transaction, ground: Ground, winner: Winner) -> ConcurrentChange | None:
    """`ground` is the version before the winner's, with which nothing was in the way."""
    rules = (_protocol, _metadata, _domains, _applications, _files_that_came, _files_that_went)
    return next((found for rule in rules if (found := rule(ours, ground, winner)) is not None), None)


def _protocol(ours: Transaction, ground: Ground, winner: Winner) -> ConcurrentChange | None:
    before = features_of(ours.snapshot.protocol)
    given_up = sorted(before - features_of(ours.protocol)) if ours.protocol is not None else []
    if given_up:
        # Whether the table still does without them is for who drops them to find out, again.
        what = f"may have made use of {', '.join(given_up)}, which this commit drops"
        return ProtocolChanged(ours.table, version=winner.version, what=what, features=given_up)
    if winner.protocol is None:
        return None
    if ours.protocol is not None:
        return ProtocolChanged(
            ours.table, version=winner.version, what="changed the table's protocol, as this one does"
        )
    now = features_of(winner.protocol)
    dropped, unknown = sorted(before - now), sorted(now - before - HONOURED - IF_USED)
    if dropped:
        what = f"dropped {', '.join(dropped)} from the table's protocol"
        return ProtocolChanged(ours.table, version=winner.version, what=what, features=dropped)
    if unknown or _is_too_new(winner.protocol):
        what = f"made the table one that this client cannot write ({', '.join(unknown) or 'a newer protocol'})"
        return ProtocolChanged(ours.table, version=winner.version, what=what, features=unknown)
    return None


def _metadata(ours: Transaction, ground: Ground, winner: Winner) -> ConcurrentChange | None:
    if winner.metadata is None:
        return None
    if ours.metadata is not None:
        return MetadataChanged(ours.table, version=winner.version)
    if winner.only_counts_identities:
        return None
    changed = refused_changes(ground.metadata, winner.metadata, winner.protocol or ground.protocol)
    return MetadataChanged(ours.table, version=winner.version, changed=changed) if changed else None


def _domains(ours: Transaction, ground: Ground, winner: Winner) -> ConcurrentChange | None:
    both = sorted((ours.domains | ours.read.domains) & winner.domains.keys())
    return DomainMetadataChanged(ours.table, version=winner.version, domain=both[0]) if both else None


def _applications(ours: Transaction, ground: Ground, winner: Winner) -> ConcurrentChange | None:
    concerned = ours.app_ids | ours.read.app_ids
    met = next((one for one in winner.transactions if one.app_id in concerned), None)
    if met is None:
        return None
    return ConcurrentTransaction(ours.table, version=winner.version, app_id=met.app_id, recorded=met.version)


def _files_that_came(ours: Transaction, ground: Ground, winner: Winner) -> ConcurrentChange | None:
    if winner.is_backfill or ours.isolation is Isolation.SNAPSHOT:
        return None
    if ours.isolation is Isolation.WRITE_SERIALIZABLE and ours.metadata is None and winner.is_blind_append:
        return None
    met = next((file for file in winner.adds if _should_have_read(ours, file)), None)
    if met is None:
        return None
    values = _by_columns(ours.snapshot, met.partition_values)
    return ConcurrentAppend(ours.table, version=winner.version, path=met.path, partition_values=values)


def _by_columns(snapshot: Snapshot, values: Mapping[str, str | None]) -> dict[str, str | None]:
    """The log has them by the names that columns have in data files; people know the columns by their own."""
    names = {field.metadata.get(PHYSICAL_NAME, field.name): field.name for field in snapshot.schema.fields}
    return {names.get(name, name): value for name, value in values.items()}


def _should_have_read(ours: Transaction, file: log.Add) -> bool:
    if ours.is_blind_append:
        return False
    if ours.read.whole_table or not ours.snapshot.partition_columns:
        return True  # Without partitions nothing tells what a file has to do with a commit that is not blind.
    return ours.read.reaches is not None and ours.read.reaches(file)


def _files_that_went(ours: Transaction, ground: Ground, winner: Winner) -> ConcurrentChange | None:
    gone = [file.path for file in winner.removes]
    read = next((path for path in gone if path in ours.read.paths or ours.read.whole_table), None)
    if read is not None:
        return ConcurrentDeleteRead(ours.table, version=winner.version, path=read)
    removed = next((path for path in gone if path in ours.removed), None)
    return None if removed is None else ConcurrentDeleteDelete(ours.table, version=winner.version, path=removed)


def _isolation(metadata: log.Metadata, actions: Sequence[Action], operation: str) -> Isolation:
    """A commit that rearranges files, or does nothing, could as well have come before the others."""
    told = metadata.configuration.get(ISOLATION_LEVEL, "").lower()
    writes_only = told == Isolation.WRITE_SERIALIZABLE.value.lower()
    level = Isolation.WRITE_SERIALIZABLE if writes_only else Isolation.SERIALIZABLE
    if any(_changes_more_than_files(action) or _changes_data(action) for action in actions):
        return level
    # By what a DELETE without a match was meant to do, its place among the others matters all the same.
    meant_to = writes_only and (operation in _DATA_OPERATIONS or operation.endswith(("AS SELECT", "REPLACE TABLE")))
    return level if meant_to else Isolation.SNAPSHOT


def _changes_more_than_files(action: Action) -> bool:
    ((kind, value),) = action.items()
    if kind == "domainMetadata":
        return value.get("domain") != ROW_TRACKING_DOMAIN
    return kind not in _FILE_ACTIONS


def _changes_data(action: Action) -> bool:
    ((kind, value),) = action.items()
    return kind in _FILE_ACTIONS and value.get("dataChange", kind != "cdc") is not False


def _is_too_new(protocol: log.Protocol) -> bool:
    return protocol.min_reader_version > READER_VERSION_MAX or protocol.min_writer_version > WRITER_VERSION_MAX


def _typed(action: Any, number: int) -> log.Action:
    try:
        return msgspec.convert(action, log.Action)
    except msgspec.ValidationError as error:
        raise InvalidCommit(f"Action {number} is not what the protocol has as {next(iter(action))}: {error}.") from None
