"""Staged files: which of them have done their work."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from tests.domain.builders import commit, managed_table
from tests.lake import file_name
from tidegate.domain.files import FoundFile
from tidegate.domain.log_files import COPY_SUFFIX
from tidegate.domain.staged_files import staged_files_to_remove

OLD, BEFORE, YOUNG = 10, 100, 100
RATIFIED = {version: file_name(version, str(uuid.UUID(int=1))) for version in range(1, 10)}
LOST = {version: file_name(version, str(uuid.UUID(int=2))) for version in (0, 7, 8, 9, 10, 10**15)}


def staged(name: str, modified_at: int = OLD) -> FoundFile:
    return FoundFile(f"_delta_log/_staged_commits/{name}", 10, modified_at)


def going(*files: FoundFile) -> list[FoundFile]:
    """Of a table that is published up to 7 and has 8 and 9 unpublished."""
    unpublished = tuple(replace(commit(version), file_name=RATIFIED[version]) for version in (8, 9))
    known = replace(managed_table(latest=9, published=7), unpublished=unpublished)
    paths = staged_files_to_remove(known, files, before=BEFORE)
    return [file for file in files if file.path in paths]


@pytest.mark.parametrize(
    ("name", "goes"),
    [
        (RATIFIED[7], True),
        (LOST[7], True),
        (LOST[0], True),
        (RATIFIED[8], False),
        (RATIFIED[9], False),
        (LOST[8], True),
        (LOST[9], True),
        (LOST[10], False),
        (LOST[10**15], False),
        (f"{7:020}.json", False),
        (f"{7:020}.{uuid.UUID(int=1)}.json.tmp", False),
        (f"{7}.{uuid.UUID(int=1)}.json", False),
        ("notes.txt", False),
    ],
)
def test_a_staged_file_goes_when_it_lost_or_its_version_is_published(name: str, goes: bool) -> None:
    assert bool(going(staged(name))) == goes
    assert going(staged(name, YOUNG)) == [], "it may be in use"


@pytest.mark.parametrize("name", [f".{12:020}.json", f"_staged_commits/.{file_name(12, str(uuid.UUID(int=1)))}"])
def test_copies_that_somebody_left_behind_go(name: str) -> None:
    copy = FoundFile(f"_delta_log/{name}.{uuid.uuid4().hex}{COPY_SUFFIX}", 10, OLD)
    assert going(copy) == [copy]
    assert going(replace(copy, modified_at=YOUNG)) == []


def test_published_files_are_not_staged_ones() -> None:
    assert going(FoundFile(f"_delta_log/{3:020}.json", 10, OLD)) == []
