"""The stock client with Tidegate as the commit owner of tables on the file system."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from tests.servers import ServerProcess
from tests.spark.conftest import Sql
from tests.spark.test_ownership import adopt, as_a_new_session, http, numbers
from tests.spark.wire import Wire
from tests.spark.writers import StatementRefused, WriterProcess
from tests.waiting import wait_until
from tidegate.client.files import LocalFiles
from tidegate.client.log.segment import Ratified
from tidegate.client.log.snapshot import snapshot_of, state_of
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


def log_of(folder: Path, version: int) -> list[dict[str, Any]]:
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
    telling = owner.properties.replace('"}', '", "token": "hidden"}')
    with pytest.raises(Exception, match="holds token"):
        sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({telling})")
    assert seen_on_the_file_system(folder) == 1, "nothing has changed"
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


def test_a_new_table_has_its_owner_from_the_beginning_and_goes_on_as_a_managed_one(
    spark: SparkSession, sql: Sql, http: httpx.Client, owner: CommitOwner, tmp_path: Path, table: str
) -> None:
    managed = table
    table = f"delta.`{tmp_path / 'new'}`"
    sql(f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ({owner.properties})")
    sql(f"INSERT INTO {table} VALUES (1), (2)")
    sql(f"UPDATE {table} SET id = 3 WHERE id = 2")
    assert numbers(sql, table) == [1, 3]
    assert seen_on_the_file_system(tmp_path / "new") == 0
    version = adopt(http, tmp_path / "new", managed)
    with pytest.raises(Exception, match=r"managed by the catalog|PATH_BASED_ACCESS"):
        sql(f"INSERT INTO {table} VALUES (-1)")
    as_a_new_session(spark)
    assert numbers(sql, managed) == [1, 3]
    sql(f"INSERT INTO {managed} VALUES (4)")
    assert numbers(sql, managed) == [1, 3, 4]
    assert numbers(sql, f"{managed} VERSION AS OF {version - 2}") == [1, 2]
    sql(f"DROP TABLE {managed}")


@pytest.fixture
def another(catalog_server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> WriterProcess:
    """A Spark of its own that has not heard of the owner; its Delta can be loaded, with the jars for that."""
    jars = ",".join(map(str, owner_jars()))
    process = WriterProcess(catalog_server, tmp_path_factory.mktemp("another"), **{"spark.jars": jars})
    process.wait_until_ready()
    return process


def test_two_processes_write_and_one_is_killed_while_it_commits(
    spark: SparkSession,
    sql: Sql,
    http: httpx.Client,
    catalog_server: ServerProcess,
    another: WriterProcess,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    table = f"delta.`{folder}`"
    with Wire(catalog_server) as wire:
        owner = commit_owner(spark, wire.url, catalog_server.token)
        sql(f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '4')")
        sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({owner.properties})")
        sql(f"INSERT INTO {table} VALUES (0)")
        with pytest.raises(StatementRefused, match="DELTA_UNSUPPORTED_WRITES_WITHOUT_COORDINATOR"):
            another.sql(f"INSERT INTO {table} VALUES (-1)")
        assert another.sql(f"SELECT * FROM {table}") == [], "it may read, and sees what is published"
        another.know_owner(wire.url)
        with FileSystemReader(folder) as reader:
            for number in range(1000, 1006):
                another.begin(f"INSERT INTO {table} VALUES ({number})")
            for number in range(1, 6):
                sql(f"INSERT INTO {table} VALUES ({number})")
            another.finish(6)
            commits = f"{TIDEGATE}/owned-tables/{id_of(folder)}/commits"
            before = latest_version(http, folder)
            with wire.holding("POST", commits) as held:
                another.begin(f"INSERT INTO {table} VALUES (1006)")
                held.wait_for()
                another.kill()
            # Its commit arrives when it is dead: it happens, once, and nobody waits for it.
            wait_until(lambda: latest_version(http, folder) > before, "the server has the commit of the dead")
            sql(f"INSERT INTO {table} VALUES (6)")
        as_a_new_session(spark)
        assert numbers(sql, table) == [*range(7), *range(1000, 1007)], "nothing is lost or doubled"
        latest = sql(f"DESCRIBE HISTORY {table}")[0].version
        url = f"{TIDEGATE}/owned-tables/{id_of(folder)}/publish"
        http.post(url, json={"location": f"file://{folder}", "version": latest}).raise_for_status()
        assert seen_on_the_file_system(folder) == latest
        assert len(reader.seen) > 1, "it has read while they wrote"
        for version, files in reader.seen.items():
            assert files == files_at(folder, version), "what it saw is what was committed, however late it was"
        assert len({json.dumps(log_of(folder, version)) for version in range(latest + 1)}) == latest + 1


class FileSystemReader:
    """Reads a table again and again, and asks nobody: by version the files that it saw."""

    def __init__(self, folder: Path) -> None:
        self.seen: dict[int, set[str]] = {}
        self._folder = folder
        self._done = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> FileSystemReader:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._done.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        if raised[0] is None and self._failed is not None:
            raise self._failed

    def _read(self) -> None:
        try:
            last = 0
            while not self._done.wait(0.05):
                published = in_log(self._folder)
                found = snapshot_of(Ratified(None, f"file://{self._folder}"), LocalFiles())
                assert max(last, published) <= found.version <= in_log(self._folder), "as fresh as what is published"
                files = {file.path for file in found.files}
                assert self.seen.setdefault(found.version, files) == files
                last = found.version
        except BaseException as failed:
            self._failed = failed


def latest_version(http: httpx.Client, folder: Path) -> int:
    found = http.get(f"{TIDEGATE}/owned-tables/{id_of(folder)}/commits", params={"location": f"file://{folder}"})
    return found.json()["latest_version"]


def in_log(folder: Path) -> int:
    """The newest published version."""
    return max(int(file.stem) for file in (folder / "_delta_log").glob("*.json") if file.stem.isdigit())


def files_at(folder: Path, version: int) -> set[str]:
    """Of a table that is only appended to."""
    lines = [line for one in range(version + 1) for line in log_of(folder, one)]
    return {line["add"]["path"] for line in lines if "add" in line}


def id_of(folder: Path) -> str:
    metadata = next(one["metaData"] for one in log_of(folder, 1) if "metaData" in one)
    return json.loads(metadata["configuration"]["delta.coordinatedCommits.tableConf-preview"])["tableId"]
