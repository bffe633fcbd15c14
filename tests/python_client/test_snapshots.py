"""Snapshots and scans of a table through its catalog."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.python_client.conftest import log_of
from tidegate.client import TidegateError
from tidegate.client.log.errors import VersionNotFound


def add_rows(table: Any, version: int, rows: list[dict[str, Any]]) -> None:
    path = log_of(table).parent / f"part-{version}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, pa.schema({"id": pa.int64(), "name": pa.string()})), path)
    added = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size, "modificationTime": 0}
    table.commit(version, [{"add": {**added, "dataChange": True}}])


def test_what_was_committed_is_read(table: Any) -> None:
    for version in (1, 2):
        add_rows(table, version, [{"id": version, "name": "n"}])
    snapshot = table.snapshot()
    assert (snapshot.version, len(snapshot.files), snapshot.schema.names) == (2, 2, ["id", "name"])
    assert [file.path for file in table.snapshot(version=1).files] == ["part-1.parquet"]
    assert table.snapshot(timestamp=snapshot.timestamp).version == 2
    assert table.scan(["id"], [("id", ">", 1)]).to_arrow().to_pylist() == [{"id": 2}]
    assert table.scan(version=1).to_arrow().to_pylist() == [{"id": 1, "name": "n"}]


def test_errors_of_reading_are_errors_of_the_client(table: Any) -> None:
    with pytest.raises(VersionNotFound, match="the latest version is 0") as raised:
        table.snapshot(version=7)
    assert isinstance(raised.value, TidegateError)
