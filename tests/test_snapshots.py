"""One snapshot: whatever happens meanwhile, a load answers one state of the table."""

from __future__ import annotations

import threading
from typing import Any

from tests.lake import Lake, LakeTable, add_commit, report, set_properties
from tests.servers import ServerProcess

VERSIONS = 60
READERS = 4


def write(table: LakeTable) -> None:
    """Every version stamps the metadata with its own number, and reports the one before it as published."""
    for version in range(1, VERSIONS + 1):
        stamp = set_properties(stamp=str(version))
        commit = table.stage_commit(version, stamp)
        table.staged[version] = commit["file-name"]
        updates = [add_commit(commit), stamp]
        if version % 3 == 0:
            for published in range(version - 3, version):
                if published > 0:
                    table.publish(published)
            updates.append(report(version - 1))
        answer = table.update(*updates)
        assert answer.status_code == 200, answer.text


def check_is_one_state(loaded: dict[str, Any]) -> int:
    latest, metadata = loaded["latest-table-version"], loaded["metadata"]
    versions = [commit["version"] for commit in loaded["commits"]]
    assert versions == list(range(latest, latest - len(versions), -1))
    assert metadata["last-commit-version"] == latest
    assert metadata["properties"].get("stamp", "0") == str(latest)
    assert metadata["properties"]["delta.lastUpdateVersion"] == str(latest)
    assert metadata["etag"].endswith(f".{latest + 1}")
    if latest and versions:
        assert loaded["commits"][0]["timestamp"] == metadata["last-commit-timestamp-ms"]
    # Published are the versions up to the last report, which came with a multiple of three.
    assert len(versions) == (latest if latest < 3 else latest % 3 + 1)
    return latest


def test_readers_beside_a_writer_never_see_a_state_that_was_not(server: ServerProcess, lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    done = threading.Event()
    seen: list[list[int]] = [[] for _ in range(READERS)]
    failures: list[BaseException] = []

    def read(latest: list[int]) -> None:
        try:
            with server.lake() as mine:
                while not done.is_set():
                    latest.append(check_is_one_state(mine.load(unique).json()))
        except BaseException as failure:
            failures.append(failure)

    readers = [threading.Thread(target=read, args=(latest,)) for latest in seen]
    for reader in readers:
        reader.start()
    try:
        write(table)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not failures, failures[0]
    for latest in seen:
        assert latest == sorted(latest), "a later load answered an earlier state"
    assert check_is_one_state(table.load()) == VERSIONS
