"""Files of tables on this machine: found and removed within the table's folder, and never beyond it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tidegate.domain.errors import InvalidRequest, Unavailable
from tidegate.storage.folders import DEPTH_MAX
from tidegate.storage.table_files import LocalTableFiles


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A table with files at several depths, and links that lead out of it."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "kept").write_text("kept")
    root = tmp_path / "table"
    (root / "_delta_log").mkdir(parents=True)
    (root / "part=1" / "sub").mkdir(parents=True)
    for file in ("_delta_log/0.json", "part=1/a", "part=1/sub/b", "c"):
        (root / file).write_text(file)
    (root / "to_folder").symlink_to(outside)
    (root / "part=1" / "to_file").symlink_to(outside / "deep" / "kept")
    (root / "broken").symlink_to(tmp_path / "nothing")
    return root


FILES = {"_delta_log/0.json", "part=1/a", "part=1/sub/b", "c", "to_folder", "part=1/to_file", "broken"}


def location(folder: Path) -> str:
    return f"file://{folder}"


def found(folder: Path, *, below: str = "", deep: bool = True, limit: int = 100) -> set[str]:
    files = asyncio.run(LocalTableFiles().find(location(folder), below=below, deep=deep, limit=limit))
    return {file.path for file in files}


def clear(folder: Path, limit: int = 100) -> int:
    return asyncio.run(LocalTableFiles().clear(location(folder), limit=limit))


def assert_outside_is_whole(root: Path) -> None:
    assert (root.parent / "outside" / "deep" / "kept").read_text() == "kept"


def test_all_files_are_found_and_links_are_files(root: Path) -> None:
    assert found(root) == FILES
    assert found(root, deep=False) == {"c", "to_folder", "broken"}
    assert found(root, below="part=1", deep=False) == {"part=1/a", "part=1/to_file"}
    assert len(found(root, limit=3)) == 3


@pytest.mark.parametrize("below", ["to_folder", "to_folder/deep", "nothing", "c"])
def test_nothing_is_found_behind_a_link_or_where_no_folder_is(root: Path, below: str) -> None:
    assert found(root, below=below) == set()


def test_nothing_is_removed_behind_a_link(root: Path) -> None:
    asyncio.run(LocalTableFiles().remove(location(root), ["to_folder/deep/kept", "part=1/a", "nothing/at/all"]))
    assert_outside_is_whole(root)
    assert found(root) == FILES - {"part=1/a"}


@pytest.mark.parametrize("path", ["../outside/deep/kept", "/etc/passwd", "", "a/../../b"])
def test_a_path_that_leads_out_is_refused(root: Path, path: str) -> None:
    with pytest.raises(InvalidRequest):
        asyncio.run(LocalTableFiles().remove(location(root), [path]))


def test_clearing_takes_as_many_batches_as_it_takes_and_leaves_nothing(root: Path) -> None:
    removed: list[int] = []
    while root.exists():
        removed.append(clear(root, limit=2))
    assert sum(removed) == len(FILES)
    assert max(removed) == 2
    assert clear(root) == 0
    assert_outside_is_whole(root)


def test_a_folder_that_is_a_link_loses_the_link_only(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert found(link) == set()
    assert clear(link) == 1
    assert not os.path.lexists(link)
    assert found(root) == FILES


def test_folders_nested_beyond_all_measure_are_a_failure_and_not_a_crash(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    nested = folder
    for _ in range(DEPTH_MAX + 5):
        nested = nested / "d"
    nested.mkdir(parents=True)
    with pytest.raises(Unavailable):
        clear(folder)


def test_a_file_is_read_unless_it_is_too_large_or_no_plain_file(root: Path) -> None:
    def read(path: str, bytes_max: int = 100) -> bytes | None:
        return asyncio.run(LocalTableFiles().read(location(root), path, bytes_max=bytes_max))

    os.mkfifo(root / "pipe")
    assert read("part=1/a") == b"part=1/a"
    assert read("part=1/a", bytes_max=3) is None
    assert read("pipe") is None
    assert read("nothing") is None
    assert read("to_folder/deep/kept") is None
