"""Catalog-managed tables made by hand, with rows in them: Parquet files, and commits that say so.

    table = make(lake, "stations", {"id": "long", "name": "string"})
    append(table, {"id": [1], "name": ["Husum"]})                     version 1, ratified and published
    append(table, {"id": [2], "name": ["Cuxhaven"]}, publish=False)   version 2, ratified only

The protocol is the least that the catalog asks for; what Spark puts into a table is tested with Spark.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from deltalake import DeltaTable, write_deltalake

from tests.lake import Lake, LakeTable, add_commit

Rows = dict[str, list[Any]]
STATIONS: dict[str, Any] = {"id": "long", "name": "string"}
HUSUM: Rows = {"id": [1, 2], "name": ["Husum", "Büsum"]}
CUXHAVEN: Rows = {"id": [3], "name": ["Cuxhaven"]}


def make(lake: Lake, name: str, columns: dict[str, Any]) -> LakeTable:
    """An empty table; types are spelled as in Delta REST v1.0."""
    draft = lake.draft(name, columns=_struct(columns))
    for features in ("reader-features", "writer-features"):
        kept = set(draft.request["protocol"][features]) - {"clustering", "domainMetadata", "rowTracking"}
        draft.request["protocol"][features] = sorted(kept)
    draft.write_version_0()
    response = lake.create(draft.request)
    assert response.status_code == 200, response.text
    return LakeTable(lake, name, draft.id, draft.location, timestamp=draft.request["last-commit-timestamp-ms"])


def append(table: LakeTable, rows: Rows, *, publish: bool = True) -> int:
    """Commits the rows as the next version, which it returns."""
    version = table.load()["latest-table-version"] + 1
    table.timestamp = max(table.timestamp + 1, int(time.time() * 1000))
    info = {"inCommitTimestamp": table.timestamp, "txnId": str(uuid.uuid4()), "operation": "WRITE"}
    actions = [{"commitInfo": info}, {"add": _write_file(folder(table), rows)}]
    content = "".join(json.dumps(action) + "\n" for action in actions).encode()
    commit = table.stage_commit(version, timestamp=table.timestamp, content=content)
    response = table.update(add_commit(commit))
    assert response.status_code == 200, response.text
    table.staged[version] = commit["file-name"]
    if publish:
        table.publish(version)
        assert table.report(version).status_code == 200
    return version


@dataclass(frozen=True)
class External:
    """A table that the catalog knows by name only. deltalake made it, and whoever likes writes to it."""

    name: str
    path: Path

    @staticmethod
    def make(lake: Lake, name: str, path: Path) -> External:
        write_deltalake(path, pl.DataFrame(HUSUM))
        request = {
            "name": name,
            "location": f"file://{path}",
            "table-type": "EXTERNAL",
            "columns": _struct(STATIONS),
            "partition-columns": [],
            "protocol": {"min-reader-version": 1, "min-writer-version": 2},
            "properties": {},
            "last-commit-timestamp-ms": int(time.time() * 1000),
        }
        response = lake.create(request)
        assert response.status_code == 200, response.text
        return External(name, path)

    def ids(self) -> list[int]:
        """As deltalake reads them."""
        return sorted(pl.read_delta(str(self.path))["id"])

    def version(self) -> int:
        return DeltaTable(self.path).version()


def folder(table: LakeTable) -> Path:
    return table.log.parent


def files(place: Path) -> dict[str, bytes]:
    """Every file below a folder, with its bytes."""
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def _struct(columns: dict[str, Any]) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return {"type": "struct", "fields": fields}


def _write_file(place: Path, rows: Rows) -> dict[str, Any]:
    frame = pl.DataFrame(rows)
    path = place / f"part-{uuid.uuid4()}.parquet"
    frame.write_parquet(path)
    comparable = [name for name, kind in frame.schema.items() if kind in (pl.Int64, pl.Float64, pl.String)]
    stats = {
        "numRecords": frame.height,
        "minValues": {column: frame[column].min() for column in comparable},
        "maxValues": {column: frame[column].max() for column in comparable},
        "nullCount": {column: frame[column].null_count() for column in frame.columns},
    }
    return {
        "path": path.name,
        "partitionValues": {},
        "size": path.stat().st_size,
        "modificationTime": int(time.time() * 1000),
        "dataChange": True,
        "stats": json.dumps(stats),
    }
