"""Files that are written and synced side by side: all of them, or all before the first that failed."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS
from tidegate.storage.synced_files import SIDE_BY_SIDE_MAX, NewFile, Write, write_synced


def holding(*pieces: bytes) -> Callable[[Write], None]:
    def give(write: Write) -> None:
        for piece in pieces:
            write(piece)

    return give


def no_room(write: Write) -> None:
    write(b"half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("count", [0, 1, 2, SIDE_BY_SIDE_MAX, 100])
def test_every_file_is_whole(tmp_path: Path, count: int) -> None:
    files = [NewFile(f"{tmp_path}/{n}", holding(b"%d" % n, b"", b"x" * n)) for n in range(count)]
    written = write_synced(files)
    assert (written.failure, written.paths) == (None, {file.path for file in files})
    for n, file in enumerate(files):
        assert Path(file.path).read_bytes() == b"%d" % n + b"x" * n


def test_as_many_as_allowed_are_written_at_a_time_and_no_more(tmp_path: Path) -> None:
    """They wait for each other: with one fewer at a time, they would wait in vain."""
    meeting = threading.Barrier(SIDE_BY_SIDE_MAX)
    lock, under_way, most = threading.Lock(), 0, 0

    def meet(write: Write) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        meeting.wait(timeout=PATIENCE_SECONDS)
        write(b"met")
        with lock:
            under_way -= 1

    written = write_synced([NewFile(f"{tmp_path}/{n}", meet) for n in range(3 * SIDE_BY_SIDE_MAX)])
    assert written.failure is None
    assert len(written.paths) == 3 * SIDE_BY_SIDE_MAX
    assert most == SIDE_BY_SIDE_MAX


def test_other_threads_do_not_keep_the_process_alive(tmp_path: Path) -> None:
    seen: list[tuple[bool, bool]] = []

    def look(write: Write) -> None:
        seen.append((threading.current_thread() is threading.main_thread(), threading.current_thread().daemon))

    write_synced([NewFile(f"{tmp_path}/{n}", look) for n in range(50)])
    assert len(seen) == 50
    assert {daemon for mine, daemon in seen if not mine} <= {True}
    seen.clear()
    write_synced([NewFile(f"{tmp_path}/alone", look)])
    assert seen == [(True, threading.main_thread().daemon)]


@pytest.mark.parametrize("bad", [0, 3, 40])
def test_what_comes_before_a_failure_is_whole(tmp_path: Path, bad: int) -> None:
    files = [NewFile(f"{tmp_path}/{n:03}", no_room if n == bad else holding(b"whole")) for n in range(1000)]
    written = write_synced(files)
    assert isinstance(written.failure, OSError) and written.failure.errno == errno.ENOSPC
    assert {file.path for file in files[:bad]} <= written.paths
    assert files[bad].path not in written.paths
    assert all(Path(path).read_bytes() == b"whole" for path in written.paths)


def test_the_first_of_several_failures_is_told(tmp_path: Path) -> None:
    meeting = threading.Barrier(2)

    def fail_together(number: int) -> Callable[[Write], None]:
        def fail(_: Write) -> None:
            meeting.wait(timeout=PATIENCE_SECONDS)
            raise OSError(errno.EIO, f"number {number}")

        return fail

    written = write_synced([NewFile(f"{tmp_path}/{n}", fail_together(n)) for n in range(2)])
    assert "number 0" in str(written.failure)
    assert written.paths == set()


def test_a_file_that_is_there_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"before")
    written = write_synced([NewFile(f"{tmp_path}/{n}", holding(b"new")) for n in range(2)])
    assert isinstance(written.failure, FileExistsError)
    assert written.paths == {f"{tmp_path}/0"}
    assert (tmp_path / "1").read_bytes() == b"before"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No further thread can be had."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)


@pytest.mark.usefixtures("alone")
def test_where_no_further_thread_can_be_had_the_caller_writes_all(tmp_path: Path) -> None:
    files = [NewFile(f"{tmp_path}/{n}", holding(b"whole")) for n in range(20)]
    assert write_synced(files).paths == {file.path for file in files}


@pytest.mark.usefixtures("alone")
def test_after_a_failure_no_file_is_begun(tmp_path: Path) -> None:
    written = write_synced([NewFile(f"{tmp_path}/{n}", no_room if n == 3 else holding(b"whole")) for n in range(20)])
    assert written.paths == {f"{tmp_path}/{n}" for n in range(3)}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "1", "2", "3"]
