"""The actions of Delta's log, as far as a reader needs them.

The log is a wire that many writers write to, so actions are msgspec structs: what they declare is checked, what they do
not declare is ignored, as the protocol asks of readers.

    {"add":{"path":"part-0.parquet","partitionValues":{},"size":812,"modificationTime":0,"dataChange":true}}

is `Action(add=Add(path="part-0.parquet", ...))`; a line without any known action is an `Action` of nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast

import msgspec

from tidegate.client.log.errors import LogDamaged
from tidegate.client.log.types import StructType, parse_schema


class DeletionVector(msgspec.Struct, frozen=True, rename="camel"):
    """Where to find which rows of a data file are deleted. See `deletion_vectors`."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """Tells one deletion vector of a data file from all others of that file."""
        name = self.storage_type + self.path_or_inline_dv
        return name if self.offset is None else f"{name}@{self.offset}"


class Statistics(msgspec.Struct, frozen=True):
    """What a writer noted about the rows of a data file, columns by their physical names.

    Numbers with a fraction are decimals, so that nothing is rounded on the way.
    """

    num_records: int | None = None
    min_values: dict[str, Any] = {}
    max_values: dict[str, Any] = {}
    null_count: dict[str, Any] = {}
    tight_bounds: bool = True


class Add(msgspec.Struct, frozen=True, rename="camel"):
    """A data file that is part of the table."""

    path: str
    partition_values: dict[str, str | None]
    size: int
    modification_time: int = 0
    data_change: bool = True
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """What makes a logical file: the data file and the rows of it that are deleted."""
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None

    @property
    def statistics(self) -> Statistics | None:
        """The statistics, None when there are none to be understood: they are a help, and nothing depends on them."""
        try:
            told: object = json.loads(self.stats or "null", parse_float=Decimal)
        except ValueError:
            return None
        return _statistics(cast("dict[str, Any]", told)) if isinstance(told, dict) else None


class Remove(msgspec.Struct, frozen=True, rename="camel"):
    """A data file that is no longer part of the table."""

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    deletion_vector: DeletionVector | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What the table is: its columns, partitions and properties."""

    id: str
    schema_string: str
    partition_columns: list[str] = []
    configuration: dict[str, str] = {}
    name: str | None = None
    description: str | None = None
    created_time: int | None = None

    @property
    def schema(self) -> StructType:
        return parse_schema(self.schema_string)


class Protocol(msgspec.Struct, frozen=True, rename="camel"):
    """What a client must know to read and to write the table."""

    min_reader_version: int
    min_writer_version: int
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class Transaction(msgspec.Struct, frozen=True, rename="camel"):
    """How far an application has come with its writing."""

    app_id: str
    version: int
    last_updated: int | None = None


class DomainMetadata(msgspec.Struct, frozen=True, rename="camel"):
    domain: str
    configuration: str
    removed: bool = False


class CommitInfo(msgspec.Struct, frozen=True, rename="camel"):
    """Of what a writer tells about its commit, the part with a meaning to others.

    Only the timestamp is the protocol's; of the rest nobody says what it has to look like.
    """

    in_commit_timestamp: int | None = None
    operation: Any = None
    is_blind_append: Any = None
    tags: Any = None


class Sidecar(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a checkpoint in a file of its own."""

    path: str
    size_in_bytes: int


class CheckpointMetadata(msgspec.Struct, frozen=True, rename="camel"):
    version: int


class Action(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the log: at most one of these is there."""

    add: Add | None = None
    remove: Remove | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    txn: Transaction | None = None
    domain_metadata: DomainMetadata | None = None
    commit_info: CommitInfo | None = None
    sidecar: Sidecar | None = None
    checkpoint_metadata: CheckpointMetadata | None = None


def parse_actions(content: bytes, path: str) -> Iterator[Action]:
    """The actions of a commit, a compaction file or a checkpoint in JSON; `path` is told when a line is damaged."""
    decoder = msgspec.json.Decoder(Action)
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise LogDamaged(path, f"line {number} is no action ({error})") from None


def _statistics(told: dict[str, Any]) -> Statistics:
    records = told.get("numRecords")
    return Statistics(
        num_records=records if isinstance(records, int) else None,
        min_values=_columns(told.get("minValues")),
        max_values=_columns(told.get("maxValues")),
        null_count=_columns(told.get("nullCount")),
        tight_bounds=told.get("tightBounds") is not False,
    )


def _columns(told: object) -> dict[str, Any]:
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {}
