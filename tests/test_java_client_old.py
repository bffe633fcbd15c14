"""The client of specification v0.1.0 that comes with Delta 4.4.0, against our server: what Spark speaks when told to.

`java/OldClient.java` calls the stock `UCTokenBasedRestClient`; nothing of its requests or answers is made by us.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyspark
import pytest

from tests.old_lake import FIELDS, OldDraft, OldLake, OldTable, field, metadata_action
from tests.servers import ServerProcess
from tidegate.spark.jars import delta_jars
from tidegate.spark.java import find_java

SOURCE = Path(__file__).parent / "java" / "OldClient.java"


@dataclass(frozen=True)
class JavaClient:
    process: subprocess.Popen[str]

    def call(self, call: str, **parts: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"call": call, **parts}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def commits(self, table: OldTable, **asked: int) -> tuple[list[str], int]:
        """Names of the files, and the latest version."""
        answer = self.call("commits", id=table.files.id, location=table.files.location, **asked)
        assert "failed" not in answer, answer
        return [Path(file).name for file in answer["files"]], answer["latest"]

    def commit(self, table: OldTable, **parts: Any) -> dict[str, Any]:
        return self.call("commit", id=table.files.id, location=table.files.location, **parts)


@pytest.fixture(scope="module")
def java(server: ServerProcess) -> Iterator[JavaClient]:
    path = [*map(str, delta_jars()), f"{Path(pyspark.__file__).parent}/jars/*"]
    command = [str(find_java()), "-cp", ":".join(path), str(SOURCE), server.url, server.token]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    yield JavaClient(process)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=60) == 0


@pytest.fixture
def old(http: httpx.Client) -> OldLake:
    return OldLake(http)


def create(java: JavaClient, draft: OldDraft) -> dict[str, Any]:
    request = draft.request
    return java.call(
        "create",
        name=request["name"],
        location=draft.location,
        columns=request["columns"],
        properties=request["properties"],
        timestamp=draft.timestamp,
    )


@pytest.fixture
def table(java: JavaClient, old: OldLake, unique: str) -> OldTable:
    draft = old.draft(unique)
    draft.write_version_0()
    assert create(java, draft) == {}
    return old.table(unique, draft.id, draft.location, timestamp=draft.timestamp)


def test_the_client_finds_the_metastore(java: JavaClient) -> None:
    assert len(java.call("metastore")["metastore"]) == 36


def test_the_client_creates_a_table_and_reads_why_it_cannot(java: JavaClient, table: OldTable) -> None:
    assert [column["type_name"] for column in table.get()["columns"]] == ["LONG", "STRING", "DATE"]
    draft = table.lake.draft(f"{table.files.name}_2")
    assert "Write version 0 before you create the table" in create(java, draft)["failed"]


def test_the_client_commits_gets_commits_and_reports(java: JavaClient, table: OldTable) -> None:
    assert java.commits(table) == ([], 0)
    first, second = table.stage_commit(1), table.stage_commit(2)
    assert java.commit(table, info=first, published=0) == {}
    assert java.commit(table, info=first, published=0) == {}, "sent again after a lost answer"
    assert java.commit(table, info=second) == {}
    assert java.commits(table) == ([first["file_name"], second["file_name"]], 2)
    assert java.commits(table, start=2) == ([second["file_name"]], 2)
    assert java.commits(table, start=0, end=1) == ([first["file_name"]], 2)
    table.files.staged[1] = first["file_name"]
    table.files.publish(1)
    assert java.commit(table, published=1) == {}
    assert java.commits(table) == ([second["file_name"]], 2)


def test_the_client_takes_a_lost_race_for_one_and_nothing_else(java: JavaClient, table: OldTable) -> None:
    assert java.commit(table, info=table.stage_commit(1)) == {}
    lost = java.commit(table, info=table.stage_commit(1))
    assert (lost["conflict"], lost["retryable"]) == (True, True)
    gap = java.commit(table, info=table.stage_commit(9))
    assert (gap["conflict"], gap["retryable"]) == (False, False)
    assert "propose version 2" in gap["failed"]
    missing = java.call("commits", id="00000000-0000-0000-0000-000000000000", location="file:///nowhere")
    assert missing["kind"] == "InvalidTargetTableException"


def test_the_client_changes_metadata_and_the_schema_comes_from_the_staged_file(
    java: JavaClient, table: OldTable
) -> None:
    config = {"delta.enableInCommitTimestamps": "true", "io.unitycatalog.tableId": table.files.id, "team": "sea"}
    action = {"metaData": metadata_action([*FIELDS, field("height", "long")], config, description="wider")}
    metadata = {"description": "wider", "configuration": config}
    assert java.commit(table, info=table.stage_commit(1, action), metadata=metadata) == {}
    shown = table.get()
    assert [column["name"] for column in shown["columns"]] == ["id", "name", "day", "height"]
    assert (shown["comment"], shown["properties"]["team"]) == ("wider", "sea")
