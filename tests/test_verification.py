"""`tidegate verify`: a log that is as it was ratified is proved so; else the first version that differs is named."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from tests.conftest import DATABASES
from tests.lake import Lake, LakeTable, error_of
from tests.servers import ServerProcess
from tests.test_inline_commits import Inline, add
from tests.test_log_cleaning import DAY_MS, LONG_AGO_DAYS, commit_at, now_ms, wait_for_the_next_round, write
from tests.test_ownership import Plain, adopted, allow
from tidegate.cli.main import app
from tidegate.domain.chain import FileDigest, chain_of, first_link
from tidegate.domain.commits import Commit
from tidegate.domain.names import TableId, Version
from tidegate.domain.publishing import AlarmReason
from tidegate.domain.put_if_absent import COMMITS_PROPERTY, PUT_IF_ABSENT
from tidegate.storage.publication import publish

TIDEGATE = "/api/tidegate/v1"


@pytest.fixture(scope="module", params=DATABASES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Of its own: the rows of its tables are tampered with. It cleans logs, and publishes nothing."""
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    settings = {"log_cleaning_seconds": "1", "publishing": "off"}
    process = ServerProcess(tmp_path_factory.mktemp("home"), database, settings).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])


@contextmanager
def database_of(server: ServerProcess) -> Iterator[sa.Connection]:
    url = server.database or f"sqlite:///{server.home}/catalog.db"
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    """Versions 0 to 4, published; 5 is not."""
    table = lake.new_table(unique)
    for version in range(1, 6):
        assert table.commit(version).status_code == 200
        if version < 5:
            table.publish(version)
    assert table.report(4).status_code == 200
    return table


def verify(table: LakeTable, **query: int) -> dict[str, Any]:
    response = table.lake.http.get(f"{TIDEGATE}/tables/main.default.{table.name}/verify", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def published(table: LakeTable, version: int) -> Path:
    return table.log / f"{version:020}.json"


def same(found: dict[str, Any]) -> int:
    return found["same_since_ratified"] + found["same_since_published"]


def first_difference(table: LakeTable) -> tuple[int, str] | None:
    difference = verify(table)["difference"]
    return None if difference is None else (difference["version"], difference["kind"])


def test_a_log_that_is_as_it_was_ratified_is_proved_so(table: LakeTable) -> None:
    found = verify(table)
    assert found["difference"] is None
    assert same(found) == 5, found
    assert found["unpublished"] == 1
    assert found["unchained"] == found["same_size"] == found["cleaned"] == 0
    assert (found["first_version"], found["last_version"], found["next_after"]) == (0, 5, None)
    assert len(found["chain"]) == 64


def test_a_long_log_is_verified_in_pages_that_add_up(table: LakeTable) -> None:
    pages, after = list[dict[str, Any]](), dict[str, int]()
    while not pages or after:
        pages.append(verify(table, max_results=2, **after))
        after = {} if pages[-1]["next_after"] is None else {"after": pages[-1]["next_after"]}
    assert [(page["first_version"], page["last_version"]) for page in pages] == [(0, 1), (2, 3), (4, 5)]
    assert sum(map(same, pages)) == 5
    published(table, 3).write_text("else\n")
    assert verify(table, max_results=2)["difference"] is None
    page = verify(table, after=1, max_results=2)
    assert (page["difference"]["version"], page["next_after"]) == (3, None)


# What is done to the log, and what must be said of it


def change_one_byte(table: LakeTable) -> None:
    content = bytearray(published(table, 2).read_bytes())
    content[-3] ^= 1
    published(table, 2).write_bytes(content)


def change_version_0(table: LakeTable) -> None:
    published(table, 0).write_bytes(published(table, 0).read_bytes() + b"\n")


def swap_two_files(table: LakeTable) -> None:
    two, three = published(table, 2).read_bytes(), published(table, 3).read_bytes()
    published(table, 2).write_bytes(three)
    published(table, 3).write_bytes(two)


def delete_a_file(table: LakeTable) -> None:
    published(table, 3).unlink()


def delete_the_beginning(table: LakeTable) -> None:
    """As a cleanup would, but for the checkpoint, and long before its time."""
    published(table, 0).unlink()
    published(table, 1).unlink()


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (change_one_byte, (2, "other_bytes")),
        (change_version_0, (0, "other_bytes")),
        (swap_two_files, (2, "other_bytes")),
        (delete_a_file, (3, "file_missing")),
        (delete_the_beginning, (0, "file_missing")),
    ],
)
def test_the_first_version_of_a_changed_log_is_named(
    table: LakeTable, damage: Callable[[LakeTable], None], expected: tuple[int, str]
) -> None:
    assert first_difference(table) is None
    damage(table)
    assert first_difference(table) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE commits SET principal = 'mallory' WHERE table_id = :id AND version = 2", (2, "row_changed")),
        ("UPDATE commits SET content_sha256 = '00' WHERE table_id = :id AND version = 3", (3, "row_changed")),
        ("UPDATE commits SET ratified_at = 1 WHERE table_id = :id AND version = 5", (5, "row_changed")),
        ("UPDATE commits SET chain = NULL WHERE table_id = :id AND version >= 3", (3, "row_changed")),
        ("DELETE FROM commits WHERE table_id = :id AND version = 2", (2, "row_missing")),
        ("DELETE FROM commits WHERE table_id = :id AND version = 5", (5, "row_missing")),
        ("DELETE FROM chain_starts WHERE table_id = :id", (1, "row_changed")),
    ],
)
def test_a_row_that_was_tampered_with_is_named(
    server: ServerProcess, table: LakeTable, statement: str, expected: tuple[int, str]
) -> None:
    with database_of(server) as database:
        database.execute(sa.text(statement), {"id": table.id})
    assert first_difference(table) == expected


def test_what_a_cleanup_has_removed_is_told_from_what_is_missing(lake: Lake, unique: str) -> None:
    long_ago = now_ms() - LONG_AGO_DAYS * DAY_MS
    table = lake.new_table(unique, last_commit_timestamp_ms=long_ago)
    for version in range(1, 8):
        commit_at(table, version, long_ago + version if version <= 5 else now_ms() + version)
    write(table, f"{4:020}.checkpoint.parquet")
    wait_for_the_next_round(table)
    assert not published(table, 3).exists()
    found = verify(table)
    assert found["difference"] is None
    assert (found["cleaned"], same(found)) == (4, 4)
    published(table, 4).unlink()
    assert first_difference(table) == (4, "file_missing")


def test_commits_that_are_put_into_the_log_are_verified(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique, properties={COMMITS_PROPERTY: PUT_IF_ABSENT})
    assert table.commit(1).status_code == 200
    table.stage_commit(2)  # for its timestamp
    info = {"inCommitTimestamp": table.timestamp, "txnId": str(uuid.uuid4()), "operation": "WRITE"}
    published(table, 2).write_text(json.dumps({"commitInfo": info}) + "\n")
    assert table.load()["latest-table-version"] == 2, "what another writer has put is learned"
    found = verify(table)
    assert (found["difference"], found["same_since_ratified"], found["last_version"]) == (None, 3, 2)
    published(table, 2).write_text(published(table, 2).read_text().replace("WRITE", "write"))
    assert first_difference(table) == (2, "other_bytes")


def test_inline_commits_are_verified(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    inline = Inline(table)
    assert inline.append(add("a.parquet")).status_code == 200
    assert verify(table)["unpublished"] == 1
    kept = inline.kept(after=0)["commits"][0]["content"]
    published(table, 1).write_text(kept)
    assert table.report(1).status_code == 200
    assert verify(table)["same_since_ratified"] == 2
    published(table, 1).write_text(kept.replace("a.parquet", "b.parquet"))
    assert first_difference(table) == (1, "other_bytes")


def test_an_adopted_table_is_verified_from_its_adoption_on(lake: Lake, unique: str, tmp_path: Path) -> None:
    allow(lake.http, tmp_path)
    table = adopted(lake, Plain(tmp_path / unique).create(), unique)
    found = verify(table)
    assert (found["difference"], found["first_version"], found["same_since_ratified"]) == (None, 2, 1)
    published(table, 1).write_text("older than the adoption\n")
    assert first_difference(table) is None
    published(table, 2).unlink()
    assert first_difference(table) == (2, "file_missing")


def test_what_was_published_stands_for_a_commit_that_nobody_had_read(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    assert table.commit(1).status_code == 200
    table.publish(1)
    assert table.report(1).status_code == 200
    assert same(verify(table)) == 2
    published(table, 1).write_bytes(b" " * published(table, 1).stat().st_size)
    assert first_difference(table) == (1, "other_bytes")


def test_a_staged_file_that_was_changed_after_it_was_ratified_is_not_published(tmp_path: Path) -> None:
    log, name = tmp_path / "_delta_log", f"{1:020}.{uuid.uuid4()}.json"
    (log / "_staged_commits").mkdir(parents=True)
    (log / "_staged_commits" / name).write_bytes(b"forged\n")
    as_ratified = Commit(Version(1), 1, name, 7, 1, content_sha256=FileDigest.of(b"honest\n").sha256)
    publication = publish(str(log), [as_ratified], {})
    assert publication.verified is None
    assert publication.obstacle is not None
    assert publication.obstacle.reason is AlarmReason.STAGED_FILE_CHANGED
    assert not (log / f"{1:020}.json").exists()
    unread = replace(as_ratified, content_sha256=None)
    assert publish(str(log), [unread], {}).digests == {1: FileDigest.of(b"forged\n").sha256}


def test_tables_that_are_older_than_the_chain_begin_it_with_their_next_commit(
    server: ServerProcess, table: LakeTable
) -> None:
    with database_of(server) as database:
        of_this = {"id": table.id}
        database.execute(sa.text("DELETE FROM chain_starts WHERE table_id = :id"), of_this)
        cleared = "chain = NULL, principal = NULL, content_sha256 = NULL, verified_sha256 = NULL"
        database.execute(sa.text(f"UPDATE commits SET {cleared} WHERE table_id = :id"), of_this)
        # As the migration leaves it; a new state, so that the server reads it anew.
        database.execute(sa.text("UPDATE tables SET chain = NULL, state = state + 1 WHERE id = :id"), of_this)
    assert table.commit(6).status_code == 200
    found = verify(table)
    assert (found["difference"], found["unchained"], found["same_size"], found["unpublished"]) == (None, 5, 4, 2)
    assert found["chain"] is not None


def test_bad_questions_are_refused(table: LakeTable) -> None:
    url = f"{TIDEGATE}/tables/main.default.{table.name}/verify"
    for query in ({"after": 17}, {"after": -1}, {"max_results": -1}, {"max_results": 100_000}):
        assert error_of(table.lake.http.get(url, params=query))[0] == 400, query


def test_the_command_tells_and_its_exit_code_says_whether_something_differs(
    server: ServerProcess, table: LakeTable
) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["verify", *arguments, "--uri", server.url, "--token", server.token])
        return result.exit_code, result.output

    name = f"main.default.{table.name}"
    code, output = run(name)
    assert code == 0, output
    assert name in output
    assert verify(table)["chain"] in output
    published(table, 2).write_text("else\n")
    code, output = run(name)
    assert code == 1
    assert "version 2" in output
    assert json.loads(run("--json", name)[1])[0]["difference"]["version"] == 2
    vanished = table.lake.new_table(f"{table.name}_vanished")
    shutil.rmtree(vanished.log)
    code, output = run()
    assert code == 1
    assert name in output
    assert f"main.default.{vanished.name}  ✗ The log of" in output, "the others are verified all the same"
    told = {one["full_name"]: one for one in json.loads(run("--json")[1])}
    assert "cannot be used" in told[f"main.default.{vanished.name}"]["not_verified"]
    assert told[name]["difference"]["version"] == 2


def test_the_chain_is_what_its_documentation_says() -> None:
    """Whoever computes it with other tools gets the same: the encoding is part of what was promised."""
    id = TableId("0b8a4a3e-9d5a-4f0e-8a55-5d0f4e6a7c11")
    start = first_link(id, Version(0), FileDigest.of(b"{}\n"), timestamp=1000, by="anna", at=2000)
    commit = Commit(Version(1), 3000, "f.json", 12, 0, content_sha256=None)
    assert start.chain == "e9773578970d89cfd0a40af3500f19a6d6dc80c73c294970e391d21988d7526b"
    assert (
        chain_of(id, start.chain, commit, principal="jürgen", ratified_at=4000)
        == "4e44b17b3f6b62ae9cccb4c43b73e050fb24a88bbf2af35aa968eaf509ea6135"
    )
