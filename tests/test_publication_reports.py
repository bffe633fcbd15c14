"""Publication reports: a writer's claim counts as far as the published files were seen to hold the ratified bytes.

What could not be verified stays listed, so that no reader loses a commit to a false report; the answer is a success
all the same. And the backlogs that reports work off: both are bounded, and say so with a 429.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, Lake, LakeTable, add_commit, error_of, report
from tests.servers import ServerProcess

INVALID = (400, "InvalidParameterValueException")
EXHAUSTED = (429, "ResourceExhaustedException")


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    return lake.new_table(unique)


@contextmanager
def server_with(tmp_path: Path, **settings: int) -> Iterator[Lake]:
    server = ServerProcess(tmp_path / "home", settings={name: str(value) for name, value in settings.items()}).start()
    try:
        with server.lake() as lake:
            yield lake
    finally:
        assert server.stop() == 0


def commit_up_to(table: LakeTable, version: int) -> None:
    for each in range(1, version + 1):
        response = table.commit(each)
        assert response.status_code == 200, response.text


def listed(response: httpx.Response) -> list[int]:
    assert response.status_code == 200, response.text
    return [commit["version"] for commit in response.json()["commits"]]


def published_file(table: LakeTable, version: int) -> Path:
    return table.log / f"{version:020}.json"


def staged_file(table: LakeTable, version: int) -> Path:
    return table.log / "_staged_commits" / table.staged[version]


# True reports


def test_what_is_truly_published_is_no_longer_listed(table: LakeTable) -> None:
    commit_up_to(table, 4)
    assert table.versions() == [4, 3, 2, 1]
    for version in (1, 2, 3):
        table.publish(version)
    assert listed(table.report(2)) == [4, 3]
    assert listed(table.report(3)) == [4]
    table.publish(4)
    assert listed(table.report(4)) == []
    assert table.load()["latest-table-version"] == 4
    assert listed(table.commit(5)) == [5]


def test_a_report_that_is_old_or_repeated_changes_nothing(table: LakeTable) -> None:
    commit_up_to(table, 3)
    for version in (1, 2):
        table.publish(version)
    assert listed(table.report(2)) == [3]
    before = table.load()
    for old in (2, 1, 0):
        assert table.report(old).json() == before
    assert table.load() == before


def test_a_report_of_version_0_is_true_from_the_start(table: LakeTable) -> None:
    assert listed(table.report(0)) == []
    commit = table.stage_commit(1)
    assert listed(table.update(add_commit(commit), report(0))) == [1]


# False reports


def test_a_false_report_is_answered_and_forgets_nothing(table: LakeTable) -> None:
    commit_up_to(table, 3)
    before = table.load()
    for version in (1, 2, 3):
        assert table.report(version).json() == before
    assert table.load() == before


def test_a_report_counts_up_to_the_first_gap(table: LakeTable) -> None:
    commit_up_to(table, 5)
    for version in (1, 2, 4, 5):
        table.publish(version)
    assert listed(table.report(5)) == [5, 4, 3]
    table.publish(3)
    assert listed(table.report(4)) == [5]


OTHER_BYTES: dict[str, Callable[[bytes], bytes]] = {
    "one bit": lambda content: content[:-2] + bytes([content[-2] ^ 1]) + content[-1:],
    "same size": lambda content: b"x" * len(content),
    "shorter": lambda content: content[:-1],
    "longer": lambda content: content + b"\n",
    "empty": lambda content: b"",
    "other line ends": lambda content: content.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("change", OTHER_BYTES.values(), ids=OTHER_BYTES.keys())
def test_a_published_file_with_other_bytes_does_not_count(table: LakeTable, change: Callable[[bytes], bytes]) -> None:
    commit_up_to(table, 2)
    table.publish(1)
    table.publish(2)
    content = published_file(table, 2).read_bytes()
    published_file(table, 2).write_bytes(change(content))
    assert listed(table.report(2)) == [2]
    published_file(table, 2).write_bytes(content)
    assert listed(table.report(2)) == []


def test_files_that_shrank_after_the_commit_do_not_count(table: LakeTable) -> None:
    """Staged and published agree, but not with the size that was ratified: this is not what was agreed on."""
    commit_up_to(table, 1)
    content = staged_file(table, 1).read_bytes()
    staged_file(table, 1).write_bytes(content[:10])
    table.publish(1)
    assert listed(table.report(1)) == [1]
    for file in (staged_file(table, 1), published_file(table, 1)):
        file.write_bytes(content)
    assert listed(table.report(1)) == []


def test_without_the_staged_file_a_commit_that_nobody_has_read_cannot_be_verified(table: LakeTable) -> None:
    commit_up_to(table.trusted(), 1)
    table.publish(1)
    staged_file(table, 1).unlink()
    assert listed(table.report(1)) == [1]


@pytest.mark.parametrize("happened", ["gone", "changed"])
def test_a_published_file_is_held_against_what_was_ratified_whatever_has_become_of_the_staged_one(
    table: LakeTable, happened: str
) -> None:
    commit_up_to(table, 2)
    for version in (1, 2):
        table.publish(version)
    if happened == "gone":
        staged_file(table, 1).unlink()
    else:
        staged_file(table, 1).write_bytes(staged_file(table, 1).read_bytes().replace(b"WRITE", b"WRITF"))
    assert listed(table.report(1)) == [2]
    content = published_file(table, 2).read_bytes().replace(b"WRITE", b"WRITF")
    for file in (published_file(table, 2), staged_file(table, 2)):
        file.write_bytes(content)
    assert listed(table.report(2)) == [2], "both were changed in the same way"


def test_the_published_file_of_a_lost_race_does_not_count(table: LakeTable) -> None:
    """Another writer's staged file, published under the version that it lost."""
    commit_up_to(table, 1)
    lost = table.stage_commit(1)
    assert error_of(table.update(add_commit(lost))) == (409, "CommitVersionConflictException")
    published_file(table, 1).write_bytes((table.log / "_staged_commits" / lost["file-name"]).read_bytes())
    assert listed(table.report(1)) == [1]


def test_a_folder_in_the_place_of_the_published_file_does_not_count(table: LakeTable) -> None:
    commit_up_to(table, 1)
    published_file(table, 1).mkdir()
    assert listed(table.report(1)) == [1]
    published_file(table, 1).rmdir()
    table.publish(1)
    assert listed(table.report(1)) == []


def test_a_commit_larger_than_what_the_server_reads_at_once_is_verified_all_the_same(
    tmp_path: Path, unique: str
) -> None:
    """The limit is on what the server holds in memory; writers must still be able to commit and to report."""
    limit = 16 * 1024
    with server_with(tmp_path, commit_bytes_max=limit) as lake:
        table = lake.new_table(unique).trusted()
        large = table.stage_commit(1, content=b'{"commitInfo":{}}\n' + b" " * limit)
        assert table.update(add_commit(large)).status_code == 200
        table.staged[1] = large["file-name"]
        table.publish(1)
        assert listed(table.report(1)) == []
        assert listed(table.update(add_commit(table.stage_commit(2)), report(1))) == [2]


@pytest.mark.parametrize("damage", [Path.mkdir, lambda path: path.symlink_to(path)], ids=["a folder", "a loop"])
def test_a_published_file_that_cannot_be_read_stays_listed_and_stops_nobody(
    table: LakeTable, damage: Callable[[Path], None]
) -> None:
    commit_up_to(table, 1)
    damage(published_file(table, 1))
    assert listed(table.report(1)) == [1]
    assert listed(table.update(add_commit(table.stage_commit(2)), report(1))) == [2, 1]


# Reports that cannot be


@pytest.mark.parametrize("version", [2, 3, 2**63 - 1, -1, -(2**63)])
def test_a_report_of_a_version_that_was_never_ratified_is_refused(table: LakeTable, version: int) -> None:
    commit_up_to(table, 1)
    table.publish(1)
    published_file(table, 2).write_bytes(published_file(table, 1).read_bytes())
    before = table.load()
    assert error_of(table.report(version)) == INVALID
    assert table.load() == before


def test_a_commit_that_reports_itself_as_published_does_not_happen(table: LakeTable) -> None:
    commit_up_to(table, 1)
    before = table.load()
    assert error_of(table.update(add_commit(table.stage_commit(2)), report(2))) == INVALID
    assert table.load() == before
    assert table.commit(2).status_code == 200


# Reports that ride along with a commit


def test_a_report_rides_along_with_every_commit_as_the_stock_client_does_it(table: LakeTable) -> None:
    for version in range(1, 6):
        if version > 1:
            table.publish(version - 1)
        assert listed(table.commit(version, report(version - 1))) == [version]
    assert table.load()["latest-table-version"] == 5


def test_a_false_report_does_not_stop_the_commit_it_rides_with(table: LakeTable) -> None:
    commit_up_to(table, 1)
    assert listed(table.commit(2, report(1))) == [2, 1]


def test_the_report_of_a_commit_that_lost_its_race_does_not_count(table: LakeTable) -> None:
    """All or none: a request that fails changes nothing, even where its report was true."""
    commit_up_to(table, 2)
    table.publish(1)
    assert error_of(table.commit(2, report(1))) == (409, "CommitVersionConflictException")
    assert table.versions() == [2, 1]
    assert listed(table.report(1)) == [2]


# Replays of what is published


def test_a_commit_that_is_published_can_still_be_sent_again(table: LakeTable) -> None:
    first = add_commit(table.stage_commit(1))
    assert table.update(first).status_code == 200
    table.staged[1] = first["commit"]["file-name"]
    table.publish(1)
    assert listed(table.report(1)) == []
    before = table.load()
    for request in ((first,), (first, report(0)), (first, {"action": "set-table-comment", "comment": "late"})):
        response = table.update(*request)
        assert response.status_code == 200, response.text
        assert response.json() == table.load() == before
    assert error_of(table.commit(1)) == (409, "CommitVersionConflictException")
    assert listed(table.commit(2)) == [2]
    response = table.update(first)
    assert listed(response) == [2]


# The backlog of unpublished commits


def test_the_backlog_of_unpublished_commits_is_bounded_and_counted_after_the_requests_own_report(
    tmp_path: Path, unique: str
) -> None:
    with server_with(tmp_path, unpublished_commits_max=3) as lake:
        table = lake.new_table(unique)
        commit_up_to(table, 3)
        before = table.load()
        for refused in (table.commit(4), table.commit(4, report(0)), table.commit(4, report(1))):
            assert error_of(refused) == EXHAUSTED
            assert "3" in refused.json()["error"]["message"]
        assert table.load() == before
        table.publish(1)
        assert listed(table.commit(4, report(1))) == [4, 3, 2]
        assert error_of(table.commit(5)) == EXHAUSTED


def test_a_full_backlog_stops_new_commits_only(tmp_path: Path, unique: str) -> None:
    with server_with(tmp_path, unpublished_commits_max=2) as lake:
        table, other = lake.new_table(unique), lake.new_table(f"{unique}_other")
        assert table.commit(1).status_code == 200
        last = add_commit(table.stage_commit(2))
        assert table.update(last).status_code == 200
        assert error_of(table.commit(3)) == EXHAUSTED
        assert error_of(table.commit(2)) == (409, "CommitVersionConflictException")
        assert listed(table.update(last)) == [2, 1]
        assert table.update({"action": "set-table-comment", "comment": "still possible"}).status_code == 200
        assert other.commit(1).status_code == 200
        table.publish(1)
        assert listed(table.report(1)) == [2]
        assert table.commit(3).status_code == 200


# The backlog of staging tables


def test_the_backlog_of_staging_tables_is_bounded_and_finishing_works_it_off(tmp_path: Path, unique: str) -> None:
    with server_with(tmp_path, staging_tables_max=2) as lake:
        drafts = [lake.draft(f"{unique}_{number}") for number in range(2)]
        refused = lake.stage(f"{unique}_2")
        assert error_of(refused) == EXHAUSTED
        assert "2" in refused.json()["error"]["message"]
        drafts[0].write_version_0()
        assert lake.create(drafts[0].request).status_code == 200
        draft = lake.draft(f"{unique}_2")
        assert error_of(lake.stage(f"{unique}_3")) == EXHAUSTED
        for finished in (drafts[1], draft):
            finished.write_version_0()
            assert lake.create(finished.request).status_code == 200


def test_staging_tables_of_a_deleted_schema_do_not_fill_the_backlog_for_ever(tmp_path: Path, unique: str) -> None:
    """Nobody can finish them any more, so they must not keep others from staging."""
    with server_with(tmp_path, staging_tables_max=2) as lake:
        body: dict[str, Any] = {"name": unique, "catalog_name": "main"}
        assert lake.http.post(f"{UNITY}/schemas", json=body).status_code == 200
        doomed = Lake(lake.http, schema=unique)
        for number in range(2):
            doomed.draft(f"{unique}_{number}")
        assert error_of(lake.stage(unique)) == EXHAUSTED
        assert lake.http.delete(f"{UNITY}/schemas/main.{unique}?force=true").status_code == 200
        response = lake.stage(unique)
        assert response.status_code == 200, response.text


def test_a_report_under_the_name_of_another_table_looks_at_nobodys_files(lake: Lake, unique: str) -> None:
    named, meant = lake.new_table(unique), lake.new_table(f"{unique}_other")
    commit_up_to(meant, 1)
    published_file(meant, 1).write_text("something else\n")
    assert lake.update(named.name, meant.request(report(1))).status_code >= 400
    events = lake.http.get("/api/tidegate/v1/events", params={"table": f"main.default.{meant.name}"}).json()["events"]
    assert [event["kind"] for event in events] == ["table.created", "table.committed"]
