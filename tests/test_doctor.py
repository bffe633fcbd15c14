"""The doctor: each kind of damage is found and explained, what is safe is mended, and everything else is left alone."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.lake import UNITY, Lake, LakeTable, error_of
from tests.python_client_log.logs import write_checkpoint
from tests.servers import ServerProcess
from tests.test_ownership import Plain, adopt
from tidegate.cli.main import app

EXTENSIONS = "/api/tidegate/v1"


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    table = lake.new_table(unique)
    for version in range(1, 5):
        assert table.commit(version).status_code == 200
        table.publish(version)
    assert table.report(4).status_code == 200
    return table


def full_name(table: LakeTable) -> str:
    return f"main.default.{table.name}"


def look(table: LakeTable, *, mend: bool = False) -> list[dict[str, Any]]:
    path = f"{EXTENSIONS}/doctor/tables/{full_name(table)}"
    response = table.lake.http.post(path) if mend else table.lake.http.get(path)
    assert response.status_code == 200, response.text
    return response.json()["findings"]


def published(table: LakeTable, version: int) -> Path:
    return table.log / f"{version:020}.json"


def staged(table: LakeTable, version: int) -> Path:
    return table.log / "_staged_commits" / table.staged[version]


def files(table: LakeTable) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(table.log.rglob("*")) if path.is_file()}


# Kinds of damage: what is done to the table, and what the doctor must call it


def leave_a_tail(table: LakeTable) -> None:
    assert table.commit(5).status_code == 200


def lose_a_published_file(table: LakeTable) -> None:
    published(table, 3).unlink()


def lose_a_race_long_ago(table: LakeTable) -> None:
    lost = table.stage_commit(3)
    os.utime(table.log / "_staged_commits" / lost["file-name"], (1, 1))


def lose_it_and_its_staged_file(table: LakeTable) -> None:
    published(table, 3).unlink()
    staged(table, 3).unlink()


def lose_it_and_change_its_staged_file(table: LakeTable) -> None:
    published(table, 3).unlink()
    staged(table, 3).write_bytes(staged(table, 3).read_bytes().replace(b"WRITE", b"WRITF", 1))


def write_other_bytes(table: LakeTable) -> None:
    assert table.commit(5).status_code == 200
    published(table, 5).write_text("something else\n")


def write_other_bytes_and_lose_what_was_ratified(table: LakeTable) -> None:
    write_other_bytes(table)
    staged(table, 5).unlink()


def change_a_byte_of_what_is_published(table: LakeTable) -> None:
    staged(table, 2).unlink()
    content = published(table, 2).read_bytes()
    published(table, 2).write_bytes(content.replace(b"commitInfo", b"commitinfo", 1))


def add_to_what_is_published_when_its_staged_file_is_gone(table: LakeTable) -> None:
    staged(table, 2).unlink()
    with published(table, 2).open("ab") as file:
        file.write(b"{}\n")


def lose_what_was_ratified(table: LakeTable) -> None:
    assert table.commit(5).status_code == 200
    staged(table, 5).unlink()


def change_a_byte_of_what_was_ratified(table: LakeTable) -> None:
    assert table.commit(5).status_code == 200
    staged(table, 5).write_bytes(staged(table, 5).read_bytes().replace(b"WRITE", b"WRITF", 1))


def write_a_version_that_was_never_ratified(table: LakeTable) -> None:
    published(table, 5).write_text('{"commitInfo":{}}\n')


def change_the_metadata_in_the_log(table: LakeTable) -> None:
    first = published(table, 0)
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"]["color"] = "red"
    first.write_text("\n".join(json.dumps(action) for action in actions) + "\n")


def tear_the_log(table: LakeTable) -> None:
    published(table, 0).write_text('{"metaData":{"id"\n')


def lose_the_folder(table: LakeTable) -> None:
    folder = table.log.parent
    folder.rename(folder.with_name(f"{folder.name}-moved"))


MENDED = [
    (leave_a_tail, "unpublished_tail"),
    (lose_a_published_file, "published_file_missing"),
    (lose_a_race_long_ago, "staged_leftovers"),
]
EXPLAINED = [
    (lose_it_and_its_staged_file, "published_file_missing", "backup"),
    (lose_it_and_change_its_staged_file, "published_file_missing", "backup"),
    (write_other_bytes, "published_file_with_other_bytes", "Compare the two, and move the published file away"),
    (write_other_bytes_and_lose_what_was_ratified, "published_file_with_other_bytes", "Restore the staged file"),
    (lose_what_was_ratified, "staged_file_gone_or_changed", "from a backup"),
    (change_a_byte_of_what_was_ratified, "staged_file_gone_or_changed", "does not hold the bytes that were ratified"),
    (write_a_version_that_was_never_ratified, "published_file_never_ratified", "move it away"),
    (change_the_metadata_in_the_log, "metadata_differs_from_log", "the property color"),
    (change_a_byte_of_what_is_published, "published_file_with_other_bytes", "2.json in the log"),
    (add_to_what_is_published_when_its_staged_file_is_gone, "published_file_with_other_bytes", "2.json in the log"),
    (tear_the_log, "log_unreadable", "version 0"),
    (lose_the_folder, "table_folder_vanished", "restore it from a backup"),
]


def test_nothing_is_wrong_with_a_healthy_table_and_looking_changes_nothing(table: LakeTable) -> None:
    before = files(table)
    assert look(table) == []
    assert look(table, mend=True) == []
    assert files(table) == before


@pytest.mark.parametrize(("damage", "problem"), MENDED)
def test_what_only_completes_what_was_ratified_is_mended(
    table: LakeTable, damage: Callable[[LakeTable], None], problem: str
) -> None:
    damage(table)
    before = files(table)
    (found,) = look(table)
    assert (found["problem"], found["subject"], found["fixable"]) == (problem, full_name(table), True)
    assert files(table) == before, "looking changes nothing"
    assert look(table, mend=True) == [found]
    assert look(table) == []
    for version in table.staged:
        assert published(table, version).read_bytes() == staged(table, version).read_bytes()


@pytest.mark.parametrize(("damage", "problem", "said"), EXPLAINED)
def test_what_only_a_person_can_mend_is_explained_and_left_alone(
    table: LakeTable, damage: Callable[[LakeTable], None], problem: str, said: str
) -> None:
    damage(table)
    before = files(table)
    (found,) = look(table)
    assert (found["problem"], found["fixable"]) == (problem, False)
    assert said in found["message"]
    assert look(table, mend=True) == [found]
    assert look(table) == [found]
    assert files(table) == before


def test_what_comes_before_a_commit_that_cannot_be_published_is(table: LakeTable) -> None:
    for version in (5, 6, 7):
        assert table.commit(version).status_code == 200
    staged(table, 6).unlink()
    found = look(table, mend=True)
    assert [(one["problem"], one["fixable"]) for one in found] == [
        ("staged_file_gone_or_changed", False),
        ("unpublished_tail", True),
    ]
    assert "version 5 is ratified" in found[1]["message"]
    assert look(table) == found[:1]
    assert published(table, 5).exists() and not published(table, 6).exists()


def test_a_commit_that_came_with_its_content_is_restored_from_the_file_that_others_were_shown(table: LakeTable) -> None:
    info = {"inCommitTimestamp": table.stage_commit(5)["timestamp"], "txnId": str(uuid.uuid4()), "operation": "WRITE"}
    body = {"table_id": table.id, "content": json.dumps({"commitInfo": info}) + "\n", "version": 5}
    sent = table.lake.http.post(f"{EXTENSIONS}/tables/{full_name(table)}/commits", json=body)
    assert sent.status_code == 200, sent.text
    assert table.versions() == [5], "whoever loads the table finds a staged file"
    assert [one["problem"] for one in look(table, mend=True)] == ["unpublished_tail"]
    content = published(table, 5).read_bytes()
    published(table, 5).unlink()
    (found,) = look(table, mend=True)
    assert (found["problem"], found["fixable"]) == ("published_file_missing", True)
    assert look(table) == []
    assert published(table, 5).read_bytes() == content


def clean_up(table: LakeTable, **configuration: str) -> Path:
    """As an engine does it: a checkpoint of version 3, and nothing that is older. Returns the checkpoint."""
    first = [json.loads(line) for line in published(table, 0).read_text().splitlines()]
    told = [action for action in first if action.keys() & {"protocol", "metaData", "domainMetadata"}]
    next(action for action in told if "metaData" in action)["metaData"]["configuration"] |= configuration
    checkpoint = table.log / f"{3:020}.checkpoint.parquet"
    write_checkpoint(checkpoint, told)
    for version in (0, 1, 2):
        published(table, version).unlink()
    return checkpoint


def test_a_log_whose_old_versions_were_cleaned_up_is_healthy(table: LakeTable) -> None:
    clean_up(table)
    assert look(table) == []
    leave_a_tail(table)
    assert [found["problem"] for found in look(table)] == ["unpublished_tail"]
    published(table, 4).unlink()
    assert [found["problem"] for found in look(table)] == ["published_file_missing", "unpublished_tail"]


def test_what_only_a_checkpoint_says_is_compared_too(table: LakeTable) -> None:
    checkpoint = clean_up(table, color="red")
    assert table.commit(5).status_code == 200
    (found, _) = look(table)
    assert found["problem"] == "metadata_differs_from_log"
    assert "the property color at version 5" in found["message"]
    checkpoint.write_bytes(b"torn")
    (found, _) = look(table)
    assert (found["problem"], found["fixable"]) == ("log_unreadable", False)
    assert checkpoint.name in found["message"]


def test_folders_that_no_table_has_are_found_and_only_empty_ones_are_removed(server: ServerProcess, lake: Lake) -> None:
    draft = lake.draft("never_finished")
    draft.write_version_0()
    root = server.home / "tables"
    (root / "empty" / "below").mkdir(parents=True)
    (root / "full").mkdir()
    (root / "full" / "data.parquet").write_bytes(b"somebody's")
    try:
        assert draft.location not in {one["subject"] for one in storage(lake)}
        assert ours(storage(lake)) == {"empty": True, "full": False}
        assert ours(storage(lake, mend=True)) == {"empty": True, "full": False}
        assert ours(storage(lake)) == {"full": False}
        assert not (root / "empty").exists()
        assert (root / "full" / "data.parquet").read_bytes() == b"somebody's"
    finally:
        (root / "full" / "data.parquet").unlink()
        (root / "full").rmdir()


def test_the_folder_of_a_dropped_table_is_no_orphan_whatever_it_is_called(
    server: ServerProcess, lake: Lake, unique: str
) -> None:
    """An adopted one keeps its folder, which is not called by its id: to remove it would lose what can be restored."""
    root = server.home / "tables" / f"adopted_{unique}"
    plain = Plain(root / "below").create()
    try:
        done = adopt(lake.http, plain, unique)
        assert done.status_code == 200, done.text
        assert lake.http.delete(f"{lake.tables_url()}/{unique}").status_code == 204
        assert root.name not in {one["subject"].rpartition("/")[2] for one in storage(lake)}
        restored = lake.http.post(f"{EXTENSIONS}/dropped-tables/{done.json()['table_id']}/restore", json={})
        assert restored.status_code == 200, restored.text
    finally:
        lake.http.delete(f"{lake.tables_url()}/{unique}")
        shutil.rmtree(root)


def test_staging_tables_that_have_expired_are_found_and_removed(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={"housekeeping_seconds": "3600"}).start()
    with server.lake() as lake:
        draft = lake.draft("never_finished")
        draft.write_version_0()
        assert storage(lake) == []
        with contextlib.closing(sqlite3.connect(server.home / "catalog.db")) as database, database:
            database.execute("UPDATE staging_tables SET created_at = 1")
        (found,) = storage(lake)
        assert (found["problem"], found["fixable"]) == ("expired_staging_tables", True)
        assert storage(lake, mend=True) == [found]
        assert storage(lake) == []
        assert lake.create(draft.request).status_code == 404
    assert server.stop() == 0


def ours(found: list[dict[str, Any]]) -> dict[str, bool]:
    """Of the folders that this test made, whether they can go. Other tests leave folders of their own."""
    folders = {one["subject"].rpartition("/")[2]: one["fixable"] for one in found}
    return {name: fixable for name, fixable in folders.items() if name in {"empty", "full"}}


def storage(lake: Lake, *, mend: bool = False) -> list[dict[str, Any]]:
    response = lake.http.request("POST" if mend else "GET", f"{EXTENSIONS}/doctor/storage")
    assert response.status_code == 200, response.text
    return response.json()["findings"]


def test_a_table_that_is_not_there_is_said_so(lake: Lake) -> None:
    response = lake.http.get(f"{EXTENSIONS}/doctor/tables/main.default.nobody")
    assert error_of(response)[0] == 404


# The command


def run(server: ServerProcess, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["doctor", *arguments, "--uri", server.url, "--token", server.token])


def test_the_command_explains_mends_and_says_by_its_exit_code_whether_something_is_left(
    server: ServerProcess, table: LakeTable
) -> None:
    name = full_name(table)
    healthy = run(server, name)
    assert (healthy.exit_code, "nothing is wrong" in healthy.output) == (0, True)
    leave_a_tail(table)
    ill = run(server, name)
    assert ill.exit_code == 1
    assert "can be fixed" in ill.output and "--fix" in ill.output and "version 5" in ill.output
    mended = run(server, name, "--fix")
    assert (mended.exit_code, "mended" in mended.output) == (0, True)
    assert run(server, name).exit_code == 0


def test_the_command_looks_at_all_tables(server: ServerProcess, table: LakeTable) -> None:
    write_a_version_that_was_never_ratified(table)
    every = run(server, "--json")
    assert every.exit_code == 1
    found = json.loads(every.stdout)
    assert [one["problem"] for one in found[full_name(table)]] == ["published_file_never_ratified"]
    assert len(found) > 1


def test_the_command_refuses_a_table_that_is_not_there_in_one_line(server: ServerProcess) -> None:
    refused = run(server, "main.default.nobody")
    assert refused.exit_code == 2
    assert "main.default.nobody" in refused.output


def test_what_could_not_be_mended_is_not_called_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_FAULT", "publish.copied:fail")
    server = ServerProcess(tmp_path / "home").start()
    try:
        with server.lake() as lake:
            table = lake.new_table("t")
            assert table.commit(1).status_code == 200
            left = run(server, "--fix")
            assert left.exit_code == 1, left.output
            assert "mended:" not in left.output
            assert "No space left" in left.output
    finally:
        assert server.stop() == 0


def test_a_table_that_cannot_be_looked_at_keeps_no_other_from_being_looked_at(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home").start()
    try:
        with server.lake() as lake:
            broken, ill = lake.new_table("a"), lake.new_table("b")
            assert broken.commit(1).status_code == 200
            broken.log.rename(broken.log.with_name("moved"))
            broken.log.write_text("a file where the log was")
            assert ill.commit(1).status_code == 200
            found = json.loads(run(server, "--json").stdout)
        assert [(one["problem"], one["fixable"]) for one in found["main.default.a"]] == [("not_looked_at", False)]
        assert "cannot be" in found["main.default.a"][0]["message"]
        assert [one["problem"] for one in found["main.default.b"]] == ["unpublished_tail"]
    finally:
        assert server.stop() == 0


def test_who_maintains_some_tables_has_those_looked_at(server: ServerProcess, table: LakeTable, unique: str) -> None:
    http = table.lake.http
    who, other = f"{unique}_ada", table.lake.new_table(f"{unique}_other")
    assert http.post(f"{EXTENSIONS}/identities", json={"name": who}).status_code == 200
    token = http.post(f"{EXTENSIONS}/tokens", json={"principal": who}).json()["token"]
    wanted = {
        "catalog/main": ["USE CATALOG"],
        "schema/main.default": ["USE SCHEMA"],
        f"table/{full_name(table)}": ["MAINTAIN"],
        f"table/{full_name(other)}": ["SELECT"],
    }
    for on, privileges in wanted.items():
        changes = [{"principal": who, "add": privileges, "remove": []}]
        assert http.patch(f"{UNITY}/permissions/{on}", json={"changes": changes}).status_code == 200
    leave_a_tail(table)
    ended = CliRunner().invoke(app, ["doctor", "--uri", server.url, "--token", token])
    assert ended.exit_code == 1, ended.output
    assert f"{full_name(table)}: version 5" in " ".join(ended.output.split())
    assert "1 table looked at, 1 with findings" in ended.output
    assert "1 table and the storage were left out" in " ".join(ended.output.split())
