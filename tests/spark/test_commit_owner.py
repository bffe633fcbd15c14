"""The stock client with Tidegate as the commit owner of tables on the file system."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.test_ownership import as_a_new_session, http, numbers
from tests.spark.writers import StatementRefused, WriterProcess
from tests.waiting import wait_until
from tidegate.client.files import LocalFiles
from tidegate.client.log.segment import Ratified
from tidegate.client.log.snapshot import state_of
from tidegate.spark import commit_owner
from tidegate.spark.commit_owner import CommitOwner
from tidegate.spark.jars import owner_jars

__all__ = ["http"]
TIDEGATE = "/api/tidegate/v1"


@pytest.fixture
def owner(spark: SparkSession, catalog_server: ServerProcess) -> CommitOwner:
    return commit_owner(spark, catalog_server.url, catalog_server.token)


def seen_on_the_file_system(folder: Path) -> int:
    """The version that a reader sees who asks nobody."""
    return state_of(Ratified(None, f"file://{folder}"), LocalFiles()).version


def log_of(folder: Path, version: int) -> list[dict[str, object]]:
    lines = (folder / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def listed(http: httpx.Client, folder: Path) -> list[str]:
    """The names of tables at this place, which the catalog shows as external ones."""
    asked = {"catalog_name": "main", "schema_name": "default", "max_results": 1000}
    found = http.get("/api/2.1/unity-catalog/tables", params=asked).json()["tables"]
    return [f"{one['table_type']} {one['name']}" for one in found if one["storage_location"] == f"file://{folder}"]


def test_a_table_is_taken_over_written_through_its_owner_and_given_back(
    spark: SparkSession, sql: Sql, http: httpx.Client, owner: CommitOwner, tmp_path: Path, unique: str
) -> None:
    folder = tmp_path / f"lake_{unique}"
    table = f"delta.`{folder}`"
    sql(f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '5')")
    sql(f"INSERT INTO {table} VALUES (1)")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({owner.properties})")
    assert "token" not in (folder / "_delta_log" / f"{2:020}.json").read_text()
    sql(f"INSERT INTO {table} VALUES (2)")
    assert listed(http, folder) == [f"EXTERNAL lake_{unique}"]
    assert seen_on_the_file_system(folder) == 2, "a reader that asks nobody sees what is published"
    assert numbers(sql, table) == [1, 2], "one that asks the owner sees all"
    sql(f"INSERT INTO {table} VALUES (3)")
    sql(f"INSERT INTO {table} VALUES (4)")
    wait_until(lambda: [*folder.glob("_delta_log/*.checkpoint*")] != [], "a checkpoint of version 5 is written")
    assert seen_on_the_file_system(folder) == 5, "and what it is of was published before"
    sql(f"DELETE FROM {table} WHERE id = 3")
    sql(f"ALTER TABLE {table} ADD COLUMN day STRING")
    as_a_new_session(spark)
    assert numbers(sql, table) == [1, 2, 4]
    sql(f"ALTER TABLE {table} DROP FEATURE '{owner.feature}'")
    as_a_new_session(spark)
    sql(f"INSERT INTO {table} VALUES (5, 'a')")
    assert numbers(sql, table) == [1, 2, 4, 5]
    assert seen_on_the_file_system(folder) == sql(f"DESCRIBE HISTORY {table}")[0].version
    assert not [one for one in log_of(folder, 8) if owner.feature in json.dumps(one.get("metaData", ""))]


def test_a_new_table_has_its_owner_from_the_beginning(
    sql: Sql, http: httpx.Client, owner: CommitOwner, tmp_path: Path
) -> None:
    table = f"delta.`{tmp_path / 'new'}`"
    sql(f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ({owner.properties})")
    sql(f"INSERT INTO {table} VALUES (1), (2)")
    sql(f"UPDATE {table} SET id = 3 WHERE id = 2")
    assert numbers(sql, table) == [1, 3]
    assert seen_on_the_file_system(tmp_path / "new") == 0


@pytest.fixture
def another(catalog_server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> WriterProcess:
    """A Spark of its own that has not heard of the owner; its Delta can be loaded, with the jars for that."""
    jars = ",".join(map(str, owner_jars()))
    process = WriterProcess(catalog_server, tmp_path_factory.mktemp("another"), **{"spark.jars": jars})
    process.wait_until_ready()
    return process


def test_two_processes_write_and_one_is_killed_while_it_commits(
    spark: SparkSession, sql: Sql, http: httpx.Client, owner: CommitOwner, another: WriterProcess, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    table, staged = f"delta.`{folder}`", folder / "_delta_log" / "_staged_commits"
    sql(f"CREATE TABLE {table} (id BIGINT) USING delta")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({owner.properties})")
    sql(f"INSERT INTO {table} VALUES (0)")
    with pytest.raises(StatementRefused, match="DELTA_UNSUPPORTED_WRITES_WITHOUT_COORDINATOR"):
        another.sql(f"INSERT INTO {table} VALUES (-1)")
    assert another.sql(f"SELECT * FROM {table}") == [], "it may read, and sees what is published"
    another.know_owner(owner.endpoint)
    another.sql(f"INSERT INTO {table} VALUES (1000)")
    seen: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.wait(0.05):
            seen.append(seen_on_the_file_system(folder))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for number in range(1001, 1020):
        another.begin(f"INSERT INTO {table} VALUES ({number})")
    before = len([*staged.iterdir()])
    for number in range(1, 4):
        sql(f"INSERT INTO {table} VALUES ({number})")
    wait_until(lambda: len([*staged.iterdir()]) > before + 3, "the other one has staged a commit")
    another.kill()
    sql(f"INSERT INTO {table} VALUES (4)")
    done.set()
    reader.join(30)
    as_a_new_session(spark)
    rows = numbers(sql, table)
    assert [one for one in rows if one < 1000] == [0, 1, 2, 3, 4], "nothing of who lives is lost or doubled"
    theirs = [one for one in rows if one >= 1000]
    assert theirs == [*range(1000, 1000 + len(theirs))], "nor of who died: the last one is there, or it is not"
    assert seen == sorted(seen), "a reader of the file system never goes back"
    latest = sql(f"DESCRIBE HISTORY {table}")[0].version
    http.post(
        f"{TIDEGATE}/owned-tables/{id_of(folder)}/publish", json={"location": f"file://{folder}", "version": latest}
    ).raise_for_status()
    assert seen_on_the_file_system(folder) == latest
    assert len({json.dumps(log_of(folder, version)) for version in range(latest + 1)}) == latest + 1


def id_of(folder: Path) -> str:
    metadata = next(one["metaData"] for one in log_of(folder, 1) if "metaData" in one)
    assert isinstance(metadata, dict)
    return json.loads(metadata["configuration"]["delta.coordinatedCommits.tableConf-preview"])["tableId"]
