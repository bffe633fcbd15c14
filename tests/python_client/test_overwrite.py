"""Overwriting: all rows of the version that was read are replaced, or nothing is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.python_client.conftest import COLUMNS, QUICK
from tests.python_client.faces import close_face, open_face
from tests.python_client.proxy import Fault, proxy_to
from tests.python_client.test_append import GIVEN, TRACKED, Meanwhile, data_files, last_commit, metadata_of, read
from tests.python_client.written import EVERYTHING, ROWS
from tests.servers import ServerProcess
from tidegate import client

AFTER = GIVEN.select(["id", "name"]).to_pylist()


@pytest.fixture
def other(server: ServerProcess, table: Any) -> Iterator[client.Table]:
    """The same table, for what happens inside of a call of the first client."""
    with client.connect(server.url, token=server.token) as lake:
        yield lake.table(table.name)


def test_rows_of_all_types_replace_one_another(catalog: Any, unique: str) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    table = catalog.create_table(f"main.default.{unique}", EVERYTHING, properties=properties)
    table.append([ROWS[1]])
    assert table.overwrite(ROWS).version == 2
    assert read(table) == ROWS
    assert read_at(table, 1) == [ROWS[1]]


def read_at(table: Any, version: int) -> list[dict[str, Any]]:
    return table.scan(version=version).to_arrow().to_pylist()


def test_the_log_is_told_what_goes_and_what_comes(catalog: Any, unique: str) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, partition_by=["name"], properties=TRACKED)
    table.append([{"id": 1, "name": "a b"}, {"id": 2, "name": "flood"}])
    before = {file.path: file for file in table.snapshot().files}
    table.overwrite([{"id": 3, "name": "slack"}])
    told = last_commit(table)
    info = told["commitInfo"][0]
    assert (info["operationParameters"]["mode"], info["isBlindAppend"], info["readVersion"]) == ("Overwrite", False, 1)
    for remove in told["remove"]:
        file = before.pop(remove["path"])
        assert (remove["dataChange"], remove["extendedFileMetadata"], remove["size"]) == (True, True, file.size)
        assert remove["partitionValues"] == file.partition_values
        assert (remove["baseRowId"], remove["defaultRowCommitVersion"]) == (file.base_row_id, 1)
    assert before == {}
    assert (told["add"][0]["baseRowId"], told["add"][0]["defaultRowCommitVersion"]) == (2, 2)
    assert json.loads(told["domainMetadata"][0]["configuration"]) == {"rowIdHighWaterMark": 2}


def test_a_file_with_deleted_rows_goes_with_its_deletion_vector(table: Any) -> None:
    table.append([{"id": 1}])
    file = table.snapshot().files[0]
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    marked = {"path": file.path, "partitionValues": {}, "size": file.size, "modificationTime": 0, "dataChange": True}
    gone = {"path": file.path, "deletionTimestamp": 1, "dataChange": True}
    changed = {**marked, "deletionVector": {**vector, "cardinality": 1}, "stats": file.stats}
    table.commit(2, [{"remove": gone}, {"add": changed}])
    table.overwrite([{"id": 2}])
    assert last_commit(table)["remove"][0]["deletionVector"] == {**vector, "cardinality": 1}
    assert read(table) == [{"id": 2, "name": None}]


@pytest.mark.parametrize("rows", [[], GIVEN.slice(0, 0)], ids=["list", "table"])
def test_a_table_is_emptied_by_no_rows(table: Any, rows: Any) -> None:
    table.append(GIVEN)
    table.overwrite(rows)
    assert read(table) == []


def changed_metadata(table: Any) -> dict[str, Any]:
    metadata = metadata_of(table)
    return {"metaData": {**metadata, "configuration": {**metadata["configuration"], "color": "blue"}}}


OTHERS = {
    "added files": lambda other, changed: other.append(pa.table({"id": [9]})),
    "removed files": lambda other, changed: other.overwrite([]),
    "changed the table's metadata": lambda other, changed: other.commit(2, [changed]),
}


@pytest.mark.parametrize("what", OTHERS)
def test_an_overwrite_does_not_stand_beside_what_it_has_not_seen(table: Any, other: client.Table, what: str) -> None:
    table.append([{"id": 1}])
    changed, before = changed_metadata(table), {file.path for file in table.snapshot().files}
    with pytest.raises(client.ConcurrentChange, match=what) as refused:
        table.overwrite(Meanwhile(lambda: OTHERS[what](other, changed)))
    assert refused.value.version == table.load().latest_table_version == 2
    kept = {file.path for file in table.snapshot().files}
    assert {path.name for path in data_files(table)} == before | kept


def test_an_overwrite_stands_beside_commits_that_touch_nothing(table: Any, other: client.Table) -> None:
    table.append([{"id": 1}])

    def meanwhile() -> None:
        other.commit(2, [])
        other.commit(3, [{"txn": {"appId": "gauge", "version": 1}}])
        other.publish()

    assert table.overwrite(Meanwhile(meanwhile)).version == 4
    assert read(table) == AFTER
    assert table.snapshot().transactions["gauge"].version == 1


def test_an_append_only_table_is_not_overwritten(catalog: Any, unique: str) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, properties={"delta.appendOnly": "true"})
    table.append([{"id": 1}])
    with pytest.raises(client.UnsupportedTable, match=r"delta\.appendOnly"):
        table.overwrite([{"id": 2}])
    assert read(table) == [{"id": 1, "name": None}]
    assert len(data_files(table)) == 1


def test_an_overwrite_whose_answer_is_lost_happens_once(
    server: ServerProcess, catalog: Any, face: str, unique: str
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    table.append([{"id": 1}])
    turn = iter([Fault.DROP_ANSWER, Fault.UNKNOWN, Fault.CUT_ANSWER])
    with proxy_to(server.url, lambda line: next(turn, Fault.PASS) if "POST" in line else Fault.PASS) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=QUICK)
        assert writer.table(table.name).overwrite(GIVEN).version == 2
        close_face(writer)
    assert next(turn, None) is None, "all faults were met"
    assert (table.load().latest_table_version, read(table)) == (2, AFTER)
