"""Conflicts that help: the loser of a version learns what it lost to, and whether an append can go ahead as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.lake import Lake, LakeTable, error_of, set_properties
from tests.servers import ServerProcess

LOST = (409, "CommitVersionConflictException")


def plain_table(lake: Lake, name: str) -> LakeTable:
    """One without row tracking, whose appends depend on nothing."""
    draft = lake.draft(name)
    features: list[str] = draft.request["protocol"]["writer-features"]
    features.remove("rowTracking")
    draft.write_version_0()
    response = lake.create(draft.request)
    assert response.status_code == 200, response.text
    return LakeTable(lake, name, draft.id, draft.location, timestamp=draft.request["last-commit-timestamp-ms"])


def conflict(table: LakeTable, version: int) -> dict[str, Any]:
    """What is told to who proposes this version, which is taken."""
    refused = table.commit(version)
    assert error_of(refused) == LOST
    return refused.json()["conflict"]


def told(found: dict[str, Any]) -> list[tuple[int, str]]:
    return [(commit["version"], commit["file-name"]) for commit in found["commits"]]


def test_the_loser_learns_what_it_lost_to(lake: Lake, unique: str) -> None:
    table = plain_table(lake, unique)
    for version in (1, 2, 3):
        assert table.commit(version).status_code == 200
    listed = {commit["version"]: commit for commit in table.load()["commits"]}
    found = conflict(table, 2)
    assert found["latest-table-version"] == 3
    assert found["commits"] == [listed[2], listed[3]]
    assert found["append-stands"] is True
    assert table.commit(4).status_code == 200


def test_what_is_published_is_left_to_the_log(lake: Lake, unique: str) -> None:
    table = plain_table(lake, unique)
    for version in (1, 2, 3):
        assert table.commit(version).status_code == 200
    table.publish(1)
    table.publish(2)
    assert table.report(2).status_code == 200
    assert told(conflict(table, 1)) == told(conflict(table, 3)) == [(3, table.staged[3])]
    assert conflict(table, 1)["latest-table-version"] == 3


def test_an_append_stands_until_somebody_changes_metadata(lake: Lake, unique: str) -> None:
    table = plain_table(lake, unique)
    assert table.commit(1).status_code == 200
    assert conflict(table, 1)["append-stands"] is True
    assert table.commit(2, set_properties(note="changed")).status_code == 200
    assert table.commit(3).status_code == 200
    assert [conflict(table, version)["append-stands"] for version in (1, 2, 3)] == [False, False, True]


def test_an_append_that_gives_rows_their_ids_does_not_stand(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    assert table.commit(1).status_code == 200
    assert conflict(table, 1)["append-stands"] is False


def test_a_gap_is_no_lost_race_and_tells_only_the_latest_version(lake: Lake, unique: str) -> None:
    table = plain_table(lake, unique)
    assert table.commit(1).status_code == 200
    assert conflict(table, 5) == {"latest-table-version": 1, "commits": [], "append-stands": False}


def test_writers_that_go_by_what_they_are_told_need_no_load(server: ServerProcess, lake: Lake, unique: str) -> None:
    """Eight writers, ten appends each, and nobody ever asks how the table stands."""
    shared = plain_table(lake, unique)

    def append(_: int) -> list[int]:
        won: list[int] = []
        with server.lake() as own:
            table, version = LakeTable(own, unique, shared.id, shared.location), 1
            while len(won) < 10:
                answer = table.commit(version)
                if answer.status_code == 200:
                    won.append(version)
                    version += 1
                else:
                    assert error_of(answer) == LOST
                    found = answer.json()["conflict"]
                    assert found["append-stands"] is True
                    version = found["latest-table-version"] + 1
                    table.timestamp = max(table.timestamp, found["commits"][-1]["timestamp"])
        return won

    with ThreadPoolExecutor(8) as pool:
        won = [version for versions in pool.map(append, range(8)) for version in versions]
    assert sorted(won) == list(range(1, 81))


def test_errors_that_are_no_lost_race_say_nothing_of_it(lake: Lake, unique: str) -> None:
    table = plain_table(lake, unique)
    refused = table.commit(1, etag="another")
    assert refused.status_code == 409
    assert refused.json().keys() == {"error"}
