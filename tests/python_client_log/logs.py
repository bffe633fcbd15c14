"""Tables made by hand: a folder with a log, written file by file, and the storage that reads it."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.client.log import names
from tidegate.client.log.segment import Ratified, RatifiedCommit
from tidegate.client.log.snapshot import Snapshot, snapshot_of

Actions = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Entry:
    name: str
    size: int
    modified_ms: int


@dataclass
class LocalFiles:
    """Files of this machine; it notes what is asked of it."""

    reads: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)

    def read(self, path: str) -> bytes | None:
        self.reads.append(path.rpartition("/")[2])
        try:
            return _local(path).read_bytes()
        except FileNotFoundError:
            return None

    def entries(self, folder: str, *, after: str = "") -> list[Entry]:
        self.lists.append(after)
        place = _local(folder)
        files = [file for file in os.scandir(place) if file.is_file()] if place.is_dir() else []
        found = [Entry(f.name, f.stat().st_size, f.stat().st_mtime_ns // 1_000_000) for f in files]
        return [entry for entry in found if entry.name > after]


def _local(path: str) -> Path:
    assert path.startswith("file:///"), path
    return Path(path.removeprefix("file://"))


def fields(*columns: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in columns]


ID_ONLY = fields(("id", "long"))


def protocol(*features: str, reader: int = 3) -> dict[str, Any]:
    told: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": 7}
    return {
        "protocol": told | ({"readerFeatures": list(features), "writerFeatures": list(features)} if features else {})
    }


def metadata(columns: list[dict[str, Any]] | None = None, *, partitions: Sequence[str] = (), **properties: str) -> Any:
    schema = json.dumps({"type": "struct", "fields": ID_ONLY if columns is None else columns})
    configuration = {"delta.enableInCommitTimestamps": "true"}
    configuration |= {"delta." + name.replace("__", "."): value for name, value in properties.items()}
    told = {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    return {"metaData": {**told, "partitionColumns": list(partitions), "configuration": configuration}}


def add(path: str, **others: Any) -> dict[str, Any]:
    told = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    return {"add": told | others}


def remove(path: str, **others: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True} | others}


def info(timestamp: int) -> dict[str, Any]:
    return {"commitInfo": {"inCommitTimestamp": timestamp, "operation": "WRITE", "engineInfo": {"any": ["thing"]}}}


def lines(actions: Actions) -> bytes:
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


FIRST = (protocol("catalogManaged", "deletionVectors", "columnMapping", "v2Checkpoint"), metadata())
CHECKPOINT_FIRST = ({"checkpointMetadata": {"version": 0, "tags": {}}},)


@dataclass
class Table:
    """Version v is committed at 1000 + 10 v unless said otherwise."""

    folder: Path
    files: LocalFiles = field(default_factory=LocalFiles)
    ratified: list[RatifiedCommit] = field(default_factory=list)
    latest: int = -1

    def __post_init__(self) -> None:
        (self.log / names.STAGED).mkdir(parents=True)
        (self.log / names.SIDECARS).mkdir()

    @property
    def log(self) -> Path:
        return self.folder / names.LOG

    @property
    def location(self) -> str:
        return f"file://{self.folder}"

    def publish(self, *actions: dict[str, Any], version: int | None = None, timestamp: int | None = None) -> None:
        """A published commit; the next version, if none is named, and then it is ratified."""
        number = self._next() if version is None else version
        moment = 1000 + 10 * number if timestamp is None else timestamp
        (self.log / names.commit_name(number)).write_bytes(lines([info(moment), *actions]))

    def stage(self, *actions: dict[str, Any], version: int | None = None) -> RatifiedCommit:
        """A ratified commit that is not published; the next version, if none is named."""
        number = self._next() if version is None else version
        content = lines([info(1000 + 10 * number), *actions])
        name = f"{number:020}.{uuid.uuid4()}.json"
        (self.log / names.STAGED / name).write_bytes(content)
        commit = RatifiedCommit(number, name, len(content), 1000 + 10 * number)
        self.ratified.append(commit)
        return commit

    def fill(self, upto: int) -> None:
        """Published versions 0 to `upto`; each adds a file named after it."""
        self.publish(*FIRST, add("f0"))
        for version in range(1, upto + 1):
            self.publish(add(f"f{version}"))

    def compact(self, start: int, end: int, *actions: dict[str, Any]) -> None:
        (self.log / names.compaction_name(start, end)).write_bytes(lines(actions))

    def hint(self, version: int, **others: Any) -> None:
        (self.log / names.LAST_CHECKPOINT).write_text(json.dumps({"version": version, "size": 1, **others}))

    def checkpoint(self, version: int, actions: Actions, name: str | None = None) -> str:
        name = name or names.checkpoint_name(version)
        write_checkpoint(self.log / name, actions)
        return name

    def sidecar(self, *actions: dict[str, Any]) -> dict[str, Any]:
        """A sidecar file, and the action that tells of it."""
        path = self.log / names.SIDECARS / f"{uuid.uuid4()}.parquet"
        write_checkpoint(path, actions)
        told = {"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 1, "tags": {}}
        return {"sidecar": told}

    def forget(self, *versions: int) -> None:
        """Metadata cleanup: these published commits are deleted."""
        for version in versions:
            (self.log / names.commit_name(version)).unlink()

    def word(self, latest: int | None = None) -> Ratified:
        return Ratified(self.latest if latest is None else latest, self.location, self.ratified[::-1])

    def snapshot(self, version: int | None = None, **others: Any) -> Snapshot:
        return snapshot_of(self.word(), self.files, version=version, **others)

    def paths(self, version: int | None = None) -> set[str]:
        return {file.path for file in self.snapshot(version).files}

    def _next(self) -> int:
        self.latest += 1
        return self.latest


_MAP = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
CHECKPOINT_SCHEMA = pa.schema(
    {
        "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
        "add": pa.struct(
            [
                ("path", pa.string()),
                ("partitionValues", _MAP),
                ("size", pa.int64()),
                ("modificationTime", pa.int64()),
                ("dataChange", pa.bool_()),
                ("tags", _MAP),
                ("deletionVector", _VECTOR),
                ("baseRowId", pa.int64()),
                ("stats", pa.string()),
            ]
        ),
        "remove": pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("configuration", _MAP),
                ("createdTime", pa.int64()),
            ]
        ),
        "protocol": pa.struct(
            [
                ("minReaderVersion", pa.int32()),
                ("minWriterVersion", pa.int32()),
                ("readerFeatures", pa.list_(pa.string())),
                ("writerFeatures", pa.list_(pa.string())),
            ]
        ),
        "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        "sidecar": pa.struct(
            [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _MAP)]
        ),
        "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _MAP)]),
    }
)


def write_checkpoint(path: Path, actions: Actions) -> None:
    """The actions as Parquet, a row each; in JSON where the name says so."""
    if path.suffix == ".json":
        path.write_bytes(lines(actions))
        return
    pq.write_table(pa.Table.from_pylist([dict(action) for action in actions], CHECKPOINT_SCHEMA), path)
