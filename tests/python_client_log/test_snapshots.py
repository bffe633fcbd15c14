"""Snapshots of tables that the catalog manages: its word wins, and damage is told by name."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.python_client_log.logs import FIRST, Table, add, lines, metadata, protocol, remove
from tidegate.client.errors import InvalidRequest
from tidegate.client.log import names
from tidegate.client.log.errors import LogDamaged, UnsupportedTable, VersionMissing, VersionNotFound
from tidegate.client.log.segment import Ratified, RatifiedCommit
from tidegate.client.log.snapshot import snapshot_of


def test_ratified_commits_are_read_before_they_are_published(table: Table) -> None:
    table.fill(1)
    table.stage(add("f2"), remove("f0"))
    table.stage(add("f3"))
    assert table.paths() == {"f1", "f2", "f3"}
    assert table.paths(2) == {"f1", "f2"}
    assert table.snapshot().timestamp == 1030


def test_commit_of_the_catalog_wins_over_a_published_one(table: Table) -> None:
    table.fill(1)
    table.stage(add("ratified"))
    table.publish(add("forged"), version=2)
    table.files.reads.clear()
    assert table.paths() == {"f0", "f1", "ratified"}
    assert names.commit_name(2) not in table.files.reads


@pytest.mark.parametrize("many", [False, True], ids=["by name", "by listing"])
def test_nothing_beyond_the_latest_ratified_version_is_seen(table: Table, many: bool) -> None:
    table.fill(15 if many else 1)
    expected = table.paths()
    table.publish(remove("f0"), version=table.latest + 1)
    (table.log / names.STAGED / f"{table.latest + 1:020}.00000000-0000-0000-0000-000000000000.json").write_text("torn")
    assert table.paths() == expected
    with pytest.raises(VersionNotFound, match=f"the latest version is {table.latest}"):
        table.snapshot(table.latest + 1)


def test_inline_commit_is_read_from_the_catalogs_word(table: Table) -> None:
    table.fill(1)
    content = lines([add("inline")])
    commit = RatifiedCommit(2, f"{2:020}.inline.json", len(content), 1020, content=content)
    snapshot = snapshot_of(Ratified(2, table.location, [commit]), table.files)
    assert {file.path for file in snapshot.files} == {"f0", "f1", "inline"}
    assert snapshot.timestamp == 1020


def test_staged_file_that_was_published_and_cleaned_meanwhile_is_read_where_it_is_published(table: Table) -> None:
    table.fill(1)
    commit = table.stage(add("f2"))
    staged = table.log / names.STAGED / commit.file_name
    staged.rename(table.log / names.commit_name(2))
    assert table.paths() == {"f0", "f1", "f2"}


def test_staged_file_of_another_size_than_ratified_is_not_read(table: Table) -> None:
    table.fill(1)
    commit = table.stage(add("f2"))
    (table.log / names.STAGED / commit.file_name).write_bytes(b"{}\n")
    with pytest.raises(LogDamaged, match=f"3 bytes, and the catalog ratified {commit.size}"):
        table.snapshot()
    assert table.paths(1) == {"f0", "f1"}


@pytest.mark.parametrize("upto", [4, 30])
@pytest.mark.parametrize("missing", [0, 2])
def test_gap_is_told_by_its_version(table: Table, upto: int, missing: int) -> None:
    table.fill(upto)
    table.forget(missing)
    with pytest.raises(VersionMissing, match=f"version {missing} is missing") as raised:
        table.snapshot()
    assert raised.value.version == missing


def test_torn_commit_is_told_by_its_name_and_line(table: Table) -> None:
    table.fill(2)
    path = table.log / names.commit_name(2)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(LogDamaged, match=f"{names.commit_name(2)} cannot be used: line 2 is no action"):
        table.snapshot()


def test_compaction_file_is_read_in_place_of_commits(table: Table) -> None:
    table.fill(15)
    table.compact(1, 14, *(add(f"f{version}") for version in range(1, 14)), remove("f14"), remove("f0"))
    table.forget(*range(1, 14))
    assert table.paths() == {f"f{version}" for version in (*range(1, 14), 15)}
    assert table.snapshot(14).timestamp == 1140


def test_compaction_carries_what_is_no_file(table: Table) -> None:
    table.fill(15)
    domain = {"domainMetadata": {"domain": "d", "configuration": "new", "removed": False}}
    table.compact(1, 12, metadata(note="new"), {"txn": {"appId": "a", "version": 3}}, domain)
    snapshot = table.snapshot()
    assert snapshot.properties["delta.note"] == "new"
    assert (snapshot.domains, snapshot.transactions["a"].version) == ({"d": "new"}, 3)


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        (protocol("catalogManaged", "variantType", "teleportation"), "needs teleportation, variantType, which"),
        (protocol(reader=4), "reader version 4"),
    ],
)
def test_unknown_reader_feature_is_refused_by_name(table: Table, needs: dict[str, Any], told: str) -> None:
    table.publish(needs, metadata())
    with pytest.raises(UnsupportedTable, match=told):
        table.snapshot()


@pytest.mark.parametrize(
    ("needs", "mode"),
    [
        (protocol("columnMapping"), "name"),
        (protocol(reader=2), "name"),
        (protocol("deletionVectors"), "none"),
        (protocol(reader=1), "none"),
    ],
)
def test_column_mapping_counts_where_the_protocol_has_it(table: Table, needs: dict[str, Any], mode: str) -> None:
    table.publish(needs, metadata(columnMapping__mode="name"))
    assert table.snapshot().column_mapping == mode


@pytest.mark.parametrize("missing", [0, 1])
def test_log_without_protocol_or_metadata_is_damaged(table: Table, missing: int) -> None:
    table.publish(FIRST[1 - missing])
    with pytest.raises(LogDamaged, match=f"no {('protocol', 'metadata')[missing]}"):
        table.snapshot()


@pytest.mark.parametrize("schema", ["", "7", '"long"', "{}", '{"type":"struct"}', '{"type":"set","fields":[]}'])
def test_schema_that_is_none_is_damaged(table: Table, schema: str) -> None:
    broken = metadata()
    broken["metaData"]["schemaString"] = schema
    table.publish(FIRST[0], broken)
    with pytest.raises(LogDamaged, match="schemaString"):
        table.snapshot()


def test_external_table_is_what_its_files_say(table: Table) -> None:
    table.fill(2)
    word = dataclasses.replace(table.word(), latest_version=None)
    assert snapshot_of(word, table.files).version == 2
    with pytest.raises(LogDamaged, match="no Delta table is there"):
        snapshot_of(Ratified(None, table.location + "/nowhere"), table.files)


def test_times(table: Table) -> None:
    """The last version that is not after the time; outside of what there is, an error that tells what there is."""
    table.fill(30)
    table.stage(add("f31"))
    table.stage(add("f32"))
    for moment, version in ((1000, 0), (1009, 0), (1010, 1), (1155, 15), (1300, 30), (1311, 31), (1320, 32)):
        assert table.snapshot(timestamp=moment).version == version
        assert table.snapshot(timestamp=datetime.fromtimestamp(moment / 1000, UTC)).version == version
    with pytest.raises(Exception, match="earliest version that can be read, 0, was committed at 1000 ms"):
        table.snapshot(timestamp=999)
    with pytest.raises(Exception, match="latest version, 32, was committed at 1320 ms"):
        table.snapshot(timestamp=1321)


def test_times_after_cleanup_begin_at_the_checkpoint(table: Table) -> None:
    table.fill(20)
    table.checkpoint(8, [*FIRST, add("eight")])
    table.forget(*range(8))
    assert table.snapshot(timestamp=1085).version == 8
    with pytest.raises(Exception, match="earliest version that can be read, 8, was committed at 1080 ms"):
        table.snapshot(timestamp=1079)


def test_times_from_before_in_commit_timestamps_are_those_of_files(table: Table) -> None:
    since = {"inCommitTimestampEnablementVersion": "3", "inCommitTimestampEnablementTimestamp": "9000"}
    table.publish(FIRST[0], metadata(**since))
    for version in range(1, 3):
        table.publish(add(f"f{version}"))
    for version, modified in enumerate((5000, 5000, 4000)):  # Times of files do not always rise.
        os.utime(table.log / names.commit_name(version), ns=(0, modified * 1_000_000))
    table.publish(add("f3"), timestamp=9000)
    table.publish(add("f4"), timestamp=9010)
    found = {time: table.snapshot(timestamp=time).version for time in (5000, 5001, 5002, 8999, 9000, 9009, 9010)}
    assert found == {5000: 0, 5001: 1, 5002: 2, 8999: 2, 9000: 3, 9009: 3, 9010: 4}
    assert table.snapshot(1).timestamp == 5000
    with pytest.raises(Exception, match="earliest version that can be read, 0"):
        table.snapshot(timestamp=4999)


def test_table_without_in_commit_timestamps_goes_by_its_files(table: Table) -> None:
    table.publish(FIRST[0], metadata(enableInCommitTimestamps="false"))
    table.publish(add("f1"))
    for version, modified in enumerate((5000, 6000)):
        os.utime(table.log / names.commit_name(version), ns=(0, modified * 1_000_000))
    assert [table.snapshot(timestamp=time).version for time in (5000, 5999, 6000)] == [0, 0, 1]
    assert table.snapshot().timestamp == 6000
    with pytest.raises(Exception, match="latest version, 1, was committed at 6000 ms"):
        table.snapshot(timestamp=6001)


def test_what_is_asked_is_checked(table: Table) -> None:
    table.fill(1)
    with pytest.raises(InvalidRequest, match="not for both"):
        table.snapshot(1, timestamp=5)
    for strange in ("1", 1.0, True):
        with pytest.raises(InvalidRequest, match="whole number"):
            table.snapshot(strange)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="milliseconds since 1970"):
            table.snapshot(timestamp=strange)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="time zone"):
        table.snapshot(timestamp=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(VersionNotFound, match="counted from 0"):
        table.snapshot(-1)


def test_nothing_imports_pyarrow_before_it_is_needed() -> None:
    program = "import sys, tidegate.client.log.snapshot; print([name for name in sys.modules if 'pyarrow' in name])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
