"""Dropped tables: the name is free at once, the rest can come back, until it is purged and nothing else is touched."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import DATABASES
from tests.lake import COLUMNS, UNITY, Lake, LakeTable, error_of
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tests.waiting import wait_until

DROPPED = "/api/tidegate/v1/dropped-tables"


@pytest.fixture(scope="module", params=DATABASES)
def keeper(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Looks after its tables every second, and publishes nothing."""
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    settings = {"housekeeping_seconds": "1", "publishing": "off"}
    process = ServerProcess(tmp_path_factory.mktemp("home"), database, settings).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])


@pytest.fixture
def lake(keeper: ServerProcess) -> Iterator[Lake]:
    with keeper.lake() as lake:
        yield lake


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    """At version 3, of which 1 is published."""
    table = lake.new_table(unique)
    for version in (1, 2, 3):
        assert table.commit(version).status_code == 200
    table.publish(1)
    assert table.report(1).status_code == 200
    return table


def drop(table: LakeTable) -> None:
    assert table.lake.http.delete(f"{table.lake.tables_url()}/{table.name}").status_code == 204


def dropped(http: httpx.Client, id: str) -> dict[str, Any] | None:
    """The entry of this table in the listing of all dropped ones, all pages of it."""
    token: str | None = ""
    while token is not None:
        page = http.get(DROPPED, params={"max_results": 2, "page_token": token}).json()
        for entry in page["tables"]:
            if entry["table_id"] == id:
                return entry
        token = page["next_page_token"]
    return None


def restore(table: LakeTable, new_full_name: str | None = None) -> httpx.Response:
    body = {} if new_full_name is None else {"new_full_name": new_full_name}
    return table.lake.http.post(f"{DROPPED}/{table.id}/restore", json=body)


def purge(table: LakeTable) -> None:
    answer = table.lake.http.delete(f"{DROPPED}/{table.id}")
    assert (answer.status_code, answer.json()["state"]) == (200, "PURGING")


def folder_of(table: LakeTable) -> Path:
    return table.log.parent


def wait_until_purged(table: LakeTable) -> None:
    wait_until(lambda: dropped(table.lake.http, table.id) is None, f"{table.name} is purged")


# There and back


def test_a_dropped_table_is_listed_until_it_is_restored_and_goes_on_where_it_was(table: LakeTable) -> None:
    before = table.load()
    drop(table)
    entry = dropped(table.lake.http, table.id)
    assert entry is not None
    assert entry["full_name"] == f"main.default.{table.name}"
    assert entry["state"] == "DROPPED"
    assert entry["storage_location"] == table.location
    assert entry["purge_at"] - entry["dropped_at"] == 168 * 3_600_000
    assert table.commit(4).status_code == 404
    answer = restore(table)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"table_id": table.id, "full_name": entry["full_name"], "latest_version": 3}
    assert dropped(table.lake.http, table.id) is None
    after = table.load()
    assert after["commits"] == before["commits"]
    assert after["metadata"]["location"] == before["metadata"]["location"]
    assert table.commit(4).status_code == 200
    assert table.versions() == [4, 3, 2]


def test_a_restored_table_keeps_its_grants_and_its_metrics_of_old(table: LakeTable) -> None:
    permissions = f"{UNITY}/permissions/table/main.default.{table.name}"
    granted = {"changes": [{"principal": "ann", "add": ["SELECT"]}]}
    assert table.lake.http.patch(permissions, json=granted).status_code == 200
    before = table.lake.http.get(permissions).json()
    drop(table)
    assert restore(table).status_code == 200
    assert table.lake.http.get(permissions).json() == before


def test_a_writer_of_the_other_face_goes_on_by_id_after_a_restore_under_another_name(table: LakeTable) -> None:
    drop(table)
    assert restore(table, f"main.default.{table.name}_back").status_code == 200
    sent = table.stage_commit(4)
    body = {
        "table_id": table.id,
        "table_uri": table.location,
        "commit_info": {key.replace("-", "_"): value for key, value in sent.items()},
    }
    body["commit_info"]["file_modification_timestamp"] = sent["file-modification-timestamp"]
    answer = table.lake.http.post(f"{UNITY}/delta/preview/commits", json=body)
    assert answer.status_code == 200, answer.text
    assert LakeTable(table.lake, f"{table.name}_back", table.id, table.location).versions() == [4, 3, 2]


def test_the_name_is_free_at_once_and_a_restore_does_not_take_it_back(table: LakeTable) -> None:
    drop(table)
    second = table.lake.new_table(table.name)
    assert error_of(restore(table)) == (409, "TABLE_ALREADY_EXISTS")
    assert restore(table, f"main.default.{table.name}_old").json()["full_name"] == f"main.default.{table.name}_old"
    assert second.load()["metadata"]["table-uuid"] == second.id


def test_a_table_that_went_with_its_schema_is_listed_and_restored_into_another(lake: Lake, unique: str) -> None:
    assert lake.http.post(f"{UNITY}/schemas", json={"name": unique, "catalog_name": "main"}).status_code == 200
    table = Lake(lake.http, schema=unique).new_table("orders")
    assert lake.http.delete(f"{UNITY}/schemas/main.{unique}?force=true").status_code == 200
    entry = dropped(lake.http, table.id)
    assert entry is not None
    assert entry["full_name"] == f"main.{unique}.orders"
    assert error_of(restore(table)) == (404, "SCHEMA_DOES_NOT_EXIST")
    assert restore(table, f"main.default.{unique}").status_code == 200
    assert LakeTable(lake, unique, table.id, table.location).commit(1).status_code == 200


def test_a_table_comes_back_into_its_schema_whatever_that_is_called_by_now(lake: Lake, unique: str) -> None:
    assert lake.http.post(f"{UNITY}/schemas", json={"name": unique, "catalog_name": "main"}).status_code == 200
    table = Lake(lake.http, schema=unique).new_table("orders")
    drop(table)
    assert lake.http.patch(f"{UNITY}/schemas/main.{unique}", json={"new_name": f"{unique}_2"}).status_code == 200
    assert restore(table).json()["full_name"] == f"main.{unique}_2.orders"


def register(lake: Lake, name: str, location: str) -> httpx.Response:
    return lake.create(
        {
            "name": name,
            "location": location,
            "table-type": "EXTERNAL",
            "columns": COLUMNS,
            "partition-columns": [],
            "protocol": {"min-reader-version": 1, "min-writer-version": 2},
            "properties": {},
            "last-commit-timestamp-ms": 1,
        }
    )


def test_a_table_whose_place_is_taken_by_now_is_not_restored(lake: Lake, unique: str, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/shared"
    first = register(lake, unique, place).json()["metadata"]["table-uuid"]
    lake.http.delete(f"{lake.tables_url()}/{unique}")
    assert register(lake, f"{unique}_2", f"{place}/below").status_code == 200
    answer = lake.http.post(f"{DROPPED}/{first}/restore")
    assert error_of(answer) == (400, "INVALID_PARAMETER_VALUE")
    assert f"main.default.{unique}_2" in answer.json()["message"]
    assert dropped(lake.http, first) is not None


@pytest.mark.parametrize(
    ("id", "told"),
    [("nonsense", (400, "INVALID_PARAMETER_VALUE")), (str(uuid.UUID(int=7)), (404, "TABLE_DOES_NOT_EXIST"))],
)
def test_what_is_not_a_dropped_table_is_neither_restored_nor_purged(lake: Lake, id: str, told: tuple[int, str]) -> None:
    assert error_of(lake.http.post(f"{DROPPED}/{id}/restore")) == told
    assert error_of(lake.http.delete(f"{DROPPED}/{id}")) == told


def test_a_live_table_is_neither_restored_nor_purged(table: LakeTable) -> None:
    for answer in (restore(table), table.lake.http.delete(f"{DROPPED}/{table.id}")):
        assert error_of(answer) == (400, "INVALID_PARAMETER_VALUE")
        assert f"it is main.default.{table.name}" in answer.json()["message"]
    assert table.commit(4).status_code == 200


@pytest.mark.parametrize("name", ["orders", "a.b.c.d", "main.default.or ders", ""])
def test_a_table_is_not_restored_under_a_name_that_is_none(table: LakeTable, name: str) -> None:
    drop(table)
    assert restore(table, name).status_code == 400
    assert dropped(table.lake.http, table.id) is not None


@pytest.mark.parametrize("token", ["nonsense", "MTIz", "MTIzLQ"])
def test_a_page_token_that_is_none_is_refused(lake: Lake, token: str) -> None:
    assert lake.http.get(DROPPED, params={"page_token": token}).status_code == 400


def test_of_many_who_restore_and_purge_at_once_one_wins(table: LakeTable) -> None:
    drop(table)

    def restore_it(_: int) -> int:
        return restore(table).status_code

    def purge_it(_: int) -> int:
        return table.lake.http.delete(f"{DROPPED}/{table.id}").status_code

    with ThreadPoolExecutor(8) as pool:
        restored = [pool.submit(restore_it, n) for n in range(4)]
        purged = [pool.submit(purge_it, n) for n in range(4)]
    won = [done.result() for done in restored].count(200)
    assert won + any(done.result() == 200 for done in purged) == 1
    assert (table.lake.load(table.name).status_code == 200) == (won == 1)


# Gone for good


def test_a_purge_leaves_nothing_of_the_table_and_everything_else(table: LakeTable, tmp_path: Path) -> None:
    neighbour = table.lake.new_table(f"{table.name}_neighbour")
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "kept.parquet").write_text("kept")
    folder = folder_of(table)
    (folder / "part=1" / "sub").mkdir(parents=True)
    (folder / "part=1" / "sub" / "data.parquet").write_text("data")
    (folder / "link_to_folder").symlink_to(outside)
    (folder / "part=1" / "link_to_file").symlink_to(outside / "deep" / "kept.parquet")
    drop(table)
    purge(table)
    refused = restore(table)
    assert refused.status_code in {400, 404}
    wait_until_purged(table)
    assert not folder.exists()
    assert (outside / "deep" / "kept.parquet").read_text() == "kept"
    assert neighbour.commit(1).status_code == 200
    assert (neighbour.log / f"{0:020}.json").exists()
    assert restore(table).status_code == 404


def test_a_table_that_is_being_purged_cannot_be_restored_and_says_so(table: LakeTable) -> None:
    folder = folder_of(table)
    blocker = register_inside(table)
    drop(table)
    purge(table)
    wait_until(lambda: (dropped(table.lake.http, table.id) or {})["problem"] is not None, "the purge meets a neighbour")
    entry = dropped(table.lake.http, table.id)
    assert entry is not None
    assert entry["state"] == "PURGING"
    assert blocker in entry["problem"]
    assert "being purged" in restore(table).json()["message"]
    assert (folder / "_delta_log" / f"{0:020}.json").exists(), "nothing is removed where another table lies"


def register_inside(table: LakeTable) -> str:
    """A managed table whose place lies inside the folder of another: its schema was given that place."""
    schema = f"{table.name}_inside"
    body = {"name": schema, "catalog_name": "main", "storage_root": f"{table.location}/inside"}
    assert table.lake.http.post(f"{UNITY}/schemas", json=body).status_code == 200
    return Lake(table.lake.http, schema=schema).new_table("inner").id


def test_a_place_that_is_being_emptied_is_nobodys(table: LakeTable) -> None:
    register_inside(table)
    drop(table)
    purge(table)
    answer = register(table.lake, f"{table.name}_new", f"{table.location}/elsewhere")
    assert answer.status_code == 400


def test_of_an_external_table_only_the_rows_are_purged(lake: Lake, unique: str, tmp_path: Path) -> None:
    folder = tmp_path / "external"
    folder.mkdir()
    (folder / "data.parquet").write_text("data")
    id = register(lake, unique, f"file://{folder}").json()["metadata"]["table-uuid"]
    lake.http.delete(f"{lake.tables_url()}/{unique}")
    assert lake.http.delete(f"{DROPPED}/{id}").json() == {"table_id": id, "state": "GONE"}
    assert dropped(lake.http, id) is None
    assert (folder / "data.parquet").read_text() == "data"


def test_a_folder_that_is_a_link_loses_the_link_and_nothing_behind_it(table: LakeTable, tmp_path: Path) -> None:
    folder, moved = folder_of(table), tmp_path / "moved"
    folder.rename(moved)
    folder.symlink_to(moved)
    drop(table)
    purge(table)
    wait_until_purged(table)
    assert not folder.is_symlink()
    assert (moved / "_delta_log" / f"{0:020}.json").exists()


# When the time is over


@pytest.mark.parametrize("kind", DATABASES)
def test_when_the_retention_is_over_tables_are_purged_and_the_others_stay(
    request: pytest.FixtureRequest, kind: str, tmp_path: Path
) -> None:
    database = request.getfixturevalue("postgres").create_database() if kind == "postgresql" else None
    settings = {"housekeeping_seconds": "1", "dropped_retention_hours": "0", "publishing": "off"}
    server = ServerProcess(tmp_path / "home", database, settings).start()
    with server.lake() as lake:
        tables = [lake.new_table(f"t{number}") for number in range(5)]
        for table in tables[:3]:
            table.commit(1)
            drop(table)
        for table in tables[:3]:
            wait_until_purged(table)
        assert [folder_of(table).exists() for table in tables] == [False, False, False, True, True]
        assert all(table.commit(1).status_code == 200 for table in tables[3:])
    assert server.stop() == 0


def test_two_servers_on_one_database_share_the_work(postgres: PostgresServer, tmp_path: Path) -> None:
    database = postgres.create_database()
    settings = {"housekeeping_seconds": "1", "dropped_retention_hours": "0", "publishing": "off"}
    settings |= {"storage_root": f"file://{tmp_path}/tables"}
    servers = [ServerProcess(tmp_path / f"home{n}", database, settings).start() for n in (1, 2)]
    with servers[0].lake() as lake:
        tables = [lake.new_table(f"t{number}") for number in range(6)]
        for table in tables:
            drop(table)
        servers[0].kill()
    with servers[1].lake() as lake:
        for table in tables:
            wait_until(lambda: dropped(lake.http, table.id) is None, "it is purged")  # noqa: B023
            assert not folder_of(table).exists()
    assert servers[1].stop() == 0
