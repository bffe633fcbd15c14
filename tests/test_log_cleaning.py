"""Cleaning of logs: what nobody needs goes, what somebody needs stays, also while writers go on."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import DATABASES
from tests.lake import LakeTable, add_commit, file_name
from tests.owned import Owned
from tests.servers import ServerProcess
from tests.test_ownership import Plain, allow
from tests.waiting import wait_until

DAY_MS = 86_400_000
LONG_AGO_DAYS = 100


@pytest.fixture(scope="module", params=DATABASES)
def cleaner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    settings = {"log_cleaning_seconds": "1", "publishing": "off"}
    process = ServerProcess(tmp_path_factory.mktemp("home"), database, settings).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])


def now_ms() -> int:
    return int(time.time() * 1000)


def age(file: Path, days: float) -> None:
    moment = time.time() - days * 86_400
    os.utime(file, (moment, moment), follow_symlinks=False)


def commit_at(table: LakeTable, version: int, timestamp: int) -> None:
    """A commit that is published and verified, with the in-commit timestamp given; its staged file is young."""
    sent = table.stage_commit(version, timestamp=timestamp)
    assert table.update(add_commit(sent)).status_code == 200
    table.timestamp = max(table.timestamp, timestamp)  # what is committed next is later
    table.staged[version] = sent["file-name"]
    table.publish(version)
    assert table.report(version).status_code == 200


def write(table: LakeTable, name: str, content: str = "x") -> Path:
    file = table.log / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


def wait_for_the_next_round(table: LakeTable) -> None:
    """A leftover that must go says that the table was visited after everything that was written before it."""
    leftover = write(table, f".{1:020}.json.{uuid.uuid4().hex}.tidegate-copy")
    age(leftover, 3)
    wait_until(lambda: not leftover.exists(), "the log is cleaned")


@pytest.fixture
def table(cleaner: ServerProcess, unique: str, request: pytest.FixtureRequest) -> Iterator[LakeTable]:
    """Versions 0 to 9; 0 to 6 happened long ago, the others today. Checkpoints at 2, 4 and 8."""
    long_ago = now_ms() - LONG_AGO_DAYS * DAY_MS
    properties = getattr(request, "param", {})
    with cleaner.lake() as lake:
        table = lake.new_table(unique, last_commit_timestamp_ms=long_ago, properties=properties)
        for version in range(1, 10):
            commit_at(table, version, long_ago + version if version <= 6 else now_ms() + version)
        yield table


def write_checkpoints(table: LakeTable) -> None:
    for version in (2, 4, 8):
        write(table, f"{version:020}.checkpoint.parquet")
    write(table, f"{3:020}.crc")
    write(table, f"{2:020}.{4:020}.compacted.json")
    write(table, f"{5:020}.{6:020}.compacted.json")


def listed(table: LakeTable) -> set[str]:
    return {file.name for file in table.log.iterdir() if file.is_file()}


KEPT = {
    *(f"{version:020}.json" for version in range(4, 10)),
    *(f"{version:020}.checkpoint.parquet" for version in (4, 8)),
    f"{5:020}.{6:020}.compacted.json",
}


def test_history_before_the_cut_off_checkpoint_goes_and_the_rest_can_be_read(table: LakeTable) -> None:
    write_checkpoints(table)
    write(table, "_last_checkpoint", json.dumps({"version": 8, "size": 1}))
    write(table, "notes.txt")
    wait_for_the_next_round(table)
    assert listed(table) == KEPT | {"_last_checkpoint", "notes.txt"}
    assert table.commit(10).status_code == 200
    assert table.versions() == [10]


def test_without_a_checkpoint_nothing_goes(table: LakeTable) -> None:
    before = listed(table)
    wait_for_the_next_round(table)
    assert listed(table) == before


@pytest.mark.parametrize(
    "table",
    [
        {"delta.enableExpiredLogCleanup": "false"},
        {"delta.logRetentionDuration": "interval 1000 days"},
        {"delta.logRetentionDuration": "interval 3 months"},
    ],
    ids=["off", "long", "not understood"],
    indirect=True,
)
def test_a_table_that_wants_its_history_keeps_it(table: LakeTable) -> None:
    write_checkpoints(table)
    before = listed(table)
    wait_for_the_next_round(table)
    assert listed(table) == before


def test_of_a_table_with_a_commit_owner_only_the_published_part_is_cleaned(
    cleaner: ServerProcess, tmp_path: Path
) -> None:
    with cleaner.http() as http:
        allow(http, tmp_path)
        owned = Owned(http, Plain(tmp_path / "t").create()).taken_over()
        loser = owned.stage(4)
        for version in (3, 4, 5):
            assert owned.commit(version).status_code == 200
        assert owned.publish(3).status_code == 200
        staged = owned.plain.log / "_staged_commits"
        waiting = {owned.staged[version]["file_name"] for version in (4, 5)} | {owned.stage(6)["file_name"]}
        write_checkpoint = owned.plain.log / f"{4:020}.checkpoint.parquet"
        write_checkpoint.write_text("of a version that no reader of files has seen")
        for file in [*staged.iterdir(), *owned.plain.log.glob("*.json"), write_checkpoint]:
            age(file, LONG_AGO_DAYS)
        wait_until(lambda: not (staged / loser["file_name"]).exists(), "the log is cleaned")
        wait_until(
            lambda: {file.name for file in staged.iterdir()} == waiting, "what is published needs no staged file"
        )
        assert owned.plain.versions() == [0, 1, 2, 3], "it is no checkpoint to clean by"
        assert owned.publish(5).status_code == 200
        assert [owned.published(version) == owned.content(version) for version in (4, 5)] == [True, True]


def test_sidecars_stay_as_long_as_a_checkpoint_refers_to_them(table: LakeTable) -> None:
    for version, sidecar in ((2, "old"), (4, "kept")):
        line = json.dumps({"sidecar": {"path": f"{sidecar}.parquet", "sizeInBytes": 1, "modificationTime": 1}})
        write(table, f"{version:020}.checkpoint.{uuid.uuid4()}.json", line + "\n")
        age(write(table, f"_sidecars/{sidecar}.parquet"), 50)
    write(table, "_sidecars/being-written.parquet")
    old = table.log / "_sidecars" / "old.parquet"
    wait_until(lambda: not old.exists(), "the sidecar of a checkpoint that is gone goes")
    assert {file.name for file in old.parent.iterdir()} == {"kept.parquet", "being-written.parquet"}


def test_staged_files_go_when_they_have_done_their_work(cleaner: ServerProcess, unique: str) -> None:
    with cleaner.lake() as lake:
        table = lake.new_table(unique)
        folder = table.log / "_staged_commits"
        for version in (1, 2):
            commit_at(table, version, now_ms() + version)
        for version in (3, 4):
            assert table.commit(version).status_code == 200
        lost = [write(table, f"_staged_commits/{file_name(version)}") for version in (2, 4)]
        future = write(table, f"_staged_commits/{file_name(5)}")
        stranger = write(table, "_staged_commits/notes.txt")
        for file in folder.iterdir():
            age(file, 3)
        young = write(table, f"_staged_commits/{file_name(1)}")
        wait_for_the_next_round(table)
        unpublished = {folder / table.staged[version] for version in (3, 4)}
        assert set(folder.iterdir()) == {*unpublished, future, stranger, young}
        assert not any(file.exists() for file in lost)
        # What was published and cleaned is still recognised when it is sent again.
        again = {"version": 2, "timestamp": now_ms(), "file-size": 1, "file-modification-timestamp": 1}
        assert table.update(add_commit({**again, "file-name": table.staged[2]})).status_code == 200


def test_a_log_behind_a_link_is_left_alone(cleaner: ServerProcess, unique: str, tmp_path: Path) -> None:
    with cleaner.lake() as lake:
        table, other = lake.new_table(unique), lake.new_table(f"{unique}_other")
        outside = tmp_path / "staged"
        outside.mkdir()
        (outside / file_name(0)).write_text("not the table's")
        age(outside / next(outside.iterdir()).name, 3)
        (table.log / "_staged_commits").symlink_to(outside)
        wait_for_the_next_round(table)
        wait_for_the_next_round(other)
        assert len(list(outside.iterdir())) == 1
