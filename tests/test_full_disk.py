"""Disks that are full. The operating system lets a server's files grow only so far: a write that goes further is torn
there, as on a disk without room, and the next one fails. Given room again, everything finishes.

- a published file is whole or not there, and other tables are published meanwhile;
- a commit that the database has no room for is not ratified, and can be sent again.
"""

from __future__ import annotations

import contextlib
import json
import resource
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.lake import LakeTable, add_commit, error_of
from tests.servers import ServerProcess
from tests.waiting import wait_until
from tidegate.domain.log_files import COPY_SUFFIX

ROOM_BYTES = 8 * 1024 * 1024
"""More than the embedded database needs."""


@contextlib.contextmanager
def room(server: ServerProcess, bytes_max: int) -> Iterator[None]:
    """No file of this server grows beyond that."""
    assert server.process is not None
    unlimited = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (bytes_max, unlimited[1]))
    try:
        yield
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)


def large_commit(bytes_min: int, *, timestamp: int) -> bytes:
    info = {
        "inCommitTimestamp": timestamp,
        "txnId": str(uuid.uuid4()),
        "operation": "WRITE",
        "userMetadata": "x" * bytes_min,
    }
    return json.dumps({"commitInfo": info}).encode() + b"\n"


def test_a_disk_that_fills_up_leaves_no_torn_file_in_the_log_and_holds_up_no_other_table(
    tmp_path: Path, database_url: str
) -> None:
    server = ServerProcess(tmp_path / "home", database_url, {"publish_after_ms": "50"}).start()
    with server.lake() as lake:
        table, other = lake.new_table("t"), lake.new_table("other")
        timestamp = table.timestamp + 1
        content = large_commit(2 * ROOM_BYTES, timestamp=timestamp)
        with room(server, ROOM_BYTES):
            commit = table.stage_commit(1, timestamp=timestamp, content=content)
            assert table.update(add_commit(commit)).status_code == 200
            wait_until(lambda: any("File too large" in line for line in server.log), "the log says what is wrong")
            assert other.commit(1).status_code == 200
            wait_until(lambda: other.versions() == [], "the other table is published")
            assert table.versions() == [1]
            assert not (table.log / f"{1:020}.json").exists()
        wait_until(lambda: table.versions() == [], "published once there is room")
    assert (table.log / f"{1:020}.json").read_bytes() == content
    assert not [file for file in table.log.iterdir() if file.name.endswith(COPY_SUFFIX)]
    assert server.stop() == 0


def test_what_comes_before_a_commit_without_room_is_published_and_what_comes_after_it_is_not(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={"publish_after_ms": "1000"}).start()
    with server.lake() as lake:
        table, contents = lake.new_table("t"), dict[int, bytes]()
        with room(server, ROOM_BYTES):
            for version in range(1, 13):
                timestamp = table.timestamp + version
                contents[version] = large_commit(2 * ROOM_BYTES if version == 3 else 10, timestamp=timestamp)
                commit = table.stage_commit(version, timestamp=timestamp, content=contents[version])
                assert table.update(add_commit(commit)).status_code == 200
            wait_until(lambda: any("File too large" in line for line in server.log), "the log says what is wrong")
            wait_until(lambda: len(list(table.log.glob("[0-9]*.json"))) == 3, "two are published next to version 0")
            assert sorted(int(file.stem) for file in table.log.glob("[0-9]*.json")) == [0, 1, 2]
        wait_until(lambda: table.versions() == [], "published once there is room")
    for version, content in contents.items():
        assert (table.log / f"{version:020}.json").read_bytes() == content
    assert not [file for file in table.log.iterdir() if file.name.endswith(COPY_SUFFIX)]
    assert server.stop() == 0


def test_a_commit_that_the_database_has_no_room_for_is_not_ratified_and_can_be_sent_again(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home").start()
    with server.lake() as lake:
        table = lake.new_table("t")
        request = table.request(add_commit(table.stage_commit(1)))
        with room(server, 0):
            for _ in range(3):
                assert error_of(lake.update("t", request)) == (500, "CommitStateUnknownException")
                assert table.versions() == []
                assert lake.stage("u").status_code == 503
        assert lake.update("t", request).status_code == 200
        assert table.versions() == [1]
    server.kill()
    server.start()
    with server.lake() as lake:
        assert LakeTable(lake, "t", table.id, table.location).versions() == [1]
    assert server.stop() == 0
