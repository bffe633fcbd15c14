"""Files of this machine: put-if-absent, whole or not at all, and errors that name the file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidegate.client import LocalFiles, StorageFailure

FILES = LocalFiles()


def test_a_file_is_written_once_by_whoever_comes_first(tmp_path: Path) -> None:
    path = f"file://{tmp_path}/deep/er/file.json"
    contents = [f"writer {number}".encode() * 1000 for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        written = list(threads.map(lambda content: FILES.write_new(path, content), contents))
    assert written.count(True) == 1
    assert FILES.read(path) == contents[written.index(True)]
    assert [entry.name for entry in FILES.entries(f"file://{tmp_path}/deep/er")] == ["file.json"]


def test_what_follows_the_scheme_is_taken_as_it_is(tmp_path: Path) -> None:
    FILES.write_new(f"file://{tmp_path}/a%20b c", b"1")
    assert (tmp_path / "a%20b c").read_bytes() == b"1"


def test_files_are_listed_in_order_and_from_a_name_on(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        FILES.write_new(f"file://{tmp_path}/{name}", b"12")
    (tmp_path / "folder").mkdir()
    assert [entry.name for entry in FILES.entries(f"file://{tmp_path}")] == ["a", "b", "c"]
    (last,) = FILES.entries(f"file://{tmp_path}", after="b")
    assert (last.name, last.size) == ("c", 2)
    assert last.modified_ms == (tmp_path / "c").stat().st_mtime_ns // 1_000_000


def test_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    nothing = f"file://{tmp_path}/nothing"
    assert (FILES.read(nothing), FILES.size(nothing), list(FILES.entries(nothing))) == (None, None, [])
    FILES.remove(nothing)


def test_a_file_that_goes_is_gone(tmp_path: Path) -> None:
    path = f"file://{tmp_path}/a"
    FILES.write_new(path, b"123")
    assert FILES.size(path) == 3
    FILES.remove(path)
    assert FILES.read(path) is None


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailure, match="file/below could not be written"):
        FILES.write_new(f"file://{tmp_path}/file/below", b"")
    with pytest.raises(StorageFailure, match="could not be read"):
        FILES.read(f"file://{tmp_path}")


@pytest.mark.parametrize("path", ["s3://bucket/table/x.json", "/plain/path", "file:relative"])
def test_other_places_are_not_for_this_client(path: str) -> None:
    with pytest.raises(StorageFailure, match="file:///"):
        FILES.read(path)
