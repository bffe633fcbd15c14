"""Rows -> Parquet files in a table's folder, and what the log is told of each.

Rows are gathered by partition into row groups, row groups into files, all in memory up to a bound; a file that is full
is written in one piece and is on disk when that returns. Names are random, so that writers never meet.
"""

from __future__ import annotations

import contextlib
import io
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from tidegate.client.data.arrow import pa, pq
from tidegate.client.data.fitting import fitted
from tidegate.client.data.partitioning import Key, by_partition, partition_folder
from tidegate.client.data.rows import arrow_tables
from tidegate.client.data.schema import physical_schema
from tidegate.client.data.statistics import Leaf, Path, Statistics, indexed_leaves
from tidegate.client.errors import StorageFailure
from tidegate.client.files import Files
from tidegate.client.log.errors import UnsupportedTable
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.log.storage import join
from tidegate.client.log.types import Field, StructType

FILE_BYTES_MAX = 128 * 1024 * 1024
ROW_GROUP_BYTES = 32 * 1024 * 1024
"""Of Arrow's memory, before encoding and compression."""
OPEN_BYTES_MAX = 512 * 1024 * 1024
"""What all files that are being gathered may have in memory; then the largest is written as it is."""
CODEC = "delta.parquet.compression.codec"
CLUSTERING = "delta.clustering"
_CODECS = {
    "uncompressed": "none",
    "none": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "zstd": "zstd",
}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that is on disk, and is part of no version yet. `path` is that of the log, percent-encoded."""

    path: str
    place: str
    """Where it lies, for whoever has to remove it."""
    partition_values: Mapping[str, str | None]
    size: int
    modified_ms: int
    records: int
    stats: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a table wants its data files."""

    location: str
    schema: StructType
    mode: str
    partition_fields: tuple[Field, ...]
    file_schema: Any
    leaves: Sequence[Leaf]
    codec: str
    randomized: bool

    def log_name(self, field: Field) -> str:
        return field.name if self.mode == "none" else field.physical_name


def layout_of(snapshot: Snapshot) -> Layout:
    mode, partitions = snapshot.column_mapping, set(snapshot.partition_columns)
    # Spark cannot read a column of nothing but nulls; readers make one up for a file that does not have it.
    data = StructType(tuple(one for one in snapshot.schema.fields if one.name not in partitions and one.type != "void"))
    if not data.fields:
        told = "The table has no columns for its data files: add one that it is not partitioned by."
        raise UnsupportedTable(["no data columns"], told)
    fields = {one.name: one for one in snapshot.schema.fields}
    return Layout(
        location=snapshot.location,
        schema=snapshot.schema,
        mode=mode,
        partition_fields=tuple(fields[name] for name in snapshot.partition_columns),
        file_schema=physical_schema(data, mode),
        leaves=indexed_leaves(data, snapshot.properties, mapped=mode != "none", always=_clustered_by(snapshot)),
        codec=_codec(snapshot.properties),
        randomized=mode != "none" or snapshot.properties.get("delta.randomizeFilePrefixes") == "true",
    )


def write_rows(rows: Any, layout: Layout, files: Files) -> list[WrittenFile]:
    """All or nothing: what was written is removed when a later row does not fit."""
    written: list[WrittenFile] = []
    try:
        _write(rows, layout, files, written)
    except BaseException:
        remove_files(written, files)
        raise
    return written


def remove_files(written: Sequence[WrittenFile], files: Files) -> None:
    """What cannot be removed is part of no version, and goes with the next VACUUM."""
    for one in written:
        with contextlib.suppress(StorageFailure):
            files.remove(one.place)


def _write(rows: Any, layout: Layout, files: Files, written: list[WrittenFile]) -> None:
    names = [layout.log_name(one) for one in layout.partition_fields]
    gathered: dict[Key, _Gathered] = {}
    for table in arrow_tables(rows, layout.schema):
        for part in _slices(table):
            for key, data in by_partition(fitted(part, layout.schema, layout.mode), layout.partition_fields, names):
                if not data.num_rows:
                    continue
                one = gathered.setdefault(key, _Gathered(layout))
                one.add(data.select(layout.file_schema.names))
                if one.file_bytes >= FILE_BYTES_MAX:
                    written.append(_put(gathered.pop(key), dict(zip(names, key, strict=True)), layout, files))
            while sum(one.bytes for one in gathered.values()) > OPEN_BYTES_MAX:
                key = max(gathered, key=lambda key: gathered[key].bytes)
                written.append(_put(gathered.pop(key), dict(zip(names, key, strict=True)), layout, files))
    for key, one in gathered.items():
        written.append(_put(one, dict(zip(names, key, strict=True)), layout, files))


def _slices(table: Any) -> Iterator[Any]:
    """Pieces of the size of a row group."""
    if not table.num_rows:
        return iter([table])  # Whether its columns fit is worth knowing all the same.
    rows = max(1, table.num_rows * ROW_GROUP_BYTES // max(table.nbytes, 1))
    return (table.slice(start, rows) for start in range(0, table.num_rows, rows))


@dataclass(slots=True)
class _Gathered:
    """The rows of one file that is not written yet."""

    layout: Layout
    pending: list[Any] = field(default_factory=list[Any])
    pending_bytes: int = 0
    sink: io.BytesIO = field(default_factory=io.BytesIO)
    statistics: Statistics = field(init=False)
    writer: Any = field(init=False)

    def __post_init__(self) -> None:
        self.statistics = Statistics(self.layout.leaves)
        # Times are microseconds, whatever pyarrow's default is; Arrow's own schema is of no use to other readers.
        self.writer = pq.ParquetWriter(
            self.sink, self.layout.file_schema, compression=self.layout.codec, version="2.6", store_schema=False
        )

    @property
    def file_bytes(self) -> int:
        return self.sink.tell()

    @property
    def bytes(self) -> int:
        return self.file_bytes + self.pending_bytes

    def add(self, data: Any) -> None:
        self.pending.append(data)
        self.pending_bytes += data.nbytes
        if self.pending_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def content(self) -> bytes:
        self._flush()
        self.writer.close()
        return self.sink.getvalue()

    def _flush(self) -> None:
        if not self.pending:
            return
        table = pa.concat_tables(self.pending)
        self.statistics.add(table)
        self.writer.write_table(table)
        self.pending, self.pending_bytes = [], 0


def _put(gathered: _Gathered, values: Mapping[str, str | None], layout: Layout, files: Files) -> WrittenFile:
    content = gathered.content()
    extension = "" if layout.codec == "none" else f".{layout.codec}"
    folder = partition_folder(values, randomized=layout.randomized)
    path = f"{folder}part-00000-{uuid.uuid4()}-c000{extension}.parquet"
    place = join(layout.location, path)
    files.write_new(place, content)
    return WrittenFile(
        path=quote(path, safe="/="),
        place=place,
        partition_values=values,
        size=len(content),
        modified_ms=time.time_ns() // 1_000_000,
        records=gathered.statistics.records,
        stats=gathered.statistics.to_json(),
    )


def _codec(properties: Mapping[str, str]) -> str:
    told = properties.get(CODEC, "zstd").lower()
    if told not in _CODECS:
        raise UnsupportedTable([CODEC], f"The table's {CODEC} is {told!r}, which this client cannot write: use Spark.")
    return _CODECS[told]


def _clustered_by(snapshot: Snapshot) -> list[Path]:
    """Columns without whose statistics clustering would be of no use: the protocol demands them."""
    try:
        told: Any = json.loads(snapshot.domains.get(CLUSTERING, "{}"))
        return [tuple(path) for path in cast("list[list[str]]", told.get("clusteringColumns", []))]
    except (ValueError, TypeError, AttributeError):
        return []
