"""Which files make up a version."""

from __future__ import annotations

import pytest

from tests.python_client_log.logs import FIRST, Entry, Table, add
from tidegate.client.log import names
from tidegate.client.log.errors import VersionMissing
from tidegate.client.log.segment import (
    Checkpoint,
    Ratified,
    RatifiedCommit,
    Segment,
    complete_checkpoints,
    segment_of_listing,
    sort_listing,
)

SEVENTH = RatifiedCommit(7, "00000000000000000007.016ae953-37a9-438e-8683-9a9a4a79a395.json", 9, 70)
EIGHTH = RatifiedCommit(8, "00000000000000000008.7d17ac10-5cc3-401b-bd1a-9c82dd2ea032.json", 9, 80)
NINTH = RatifiedCommit(9, "inline", 2, 90, content=b"{}")
OF_THE_RFC = [
    *(names.commit_name(version) for version in range(8)),
    names.checkpoint_name(2),
    names.compaction_name(3, 5),
]


def segment(version: int, files: list[str], *commits: RatifiedCommit) -> Segment:
    listing = sort_listing(Entry(name, 1, 0) for name in files)
    return segment_of_listing(version, listing, Ratified(9, "file:///t", commits))


def told(segment: Segment) -> list[str]:
    checkpoint = list(segment.checkpoint.names) if segment.checkpoint else []
    return checkpoint + [change.name for change in segment.changes]


def test_example_of_the_protocol() -> None:
    assert told(segment(9, OF_THE_RFC, SEVENTH, EIGHTH, NINTH)) == [
        names.checkpoint_name(2),
        names.compaction_name(3, 5),
        names.commit_name(6),
        f"_staged_commits/{SEVENTH.file_name}",
        f"_staged_commits/{EIGHTH.file_name}",
        "_staged_commits/inline",
    ]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, [names.commit_name(0)]),
        (1, [names.commit_name(0), names.commit_name(1)]),
        (2, [names.checkpoint_name(2)]),
        (4, [names.checkpoint_name(2), names.commit_name(3), names.commit_name(4)]),
        (5, [names.checkpoint_name(2), names.compaction_name(3, 5)]),
    ],
)
def test_earlier_version_takes_nothing_from_later_ones(version: int, expected: list[str]) -> None:
    assert told(segment(version, OF_THE_RFC, SEVENTH)) == expected


def test_longest_compaction_is_taken() -> None:
    files = [names.commit_name(0), *(names.compaction_name(1, end) for end in (3, 6, 4, 8)), names.commit_name(7)]
    assert told(segment(7, files)) == [names.commit_name(0), names.compaction_name(1, 6), names.commit_name(7)]


def test_compaction_that_spans_a_commit_of_the_catalog_is_left_alone() -> None:
    files = [*(names.commit_name(version) for version in range(9)), names.compaction_name(5, 8)]
    assert names.compaction_name(5, 8) not in told(segment(8, files, SEVENTH, EIGHTH))
    assert names.compaction_name(5, 8) in told(segment(8, files))


def test_compaction_stands_for_commits_that_were_deleted() -> None:
    assert told(segment(5, [names.commit_name(0), names.compaction_name(1, 5)]))[1:] == [names.compaction_name(1, 5)]


@pytest.mark.parametrize("missing", [0, 3, 6, 8])
def test_gap_names_the_version(missing: int) -> None:
    files = [names.commit_name(version) for version in range(8) if version != missing]
    commits = [commit for commit in (SEVENTH, EIGHTH, NINTH) if commit.version != missing]
    with pytest.raises(VersionMissing, match=f"version {missing} is missing") as raised:
        segment(9, files, *commits)
    assert raised.value.version == missing


def parts(version: int, count: int, *there: int) -> list[str]:
    return [names.checkpoint_part_name(version, part, count) for part in there]


V2 = f"{10:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (parts(10, 3, 1, 2, 3), Checkpoint(10, tuple(parts(10, 3, 1, 2, 3)))),
        (parts(10, 3, 3, 1), None),
        (parts(10, 3, 1, 2) + parts(10, 2, 1), None),
        (parts(10, 3, 1, 2) + parts(9, 2, 2, 1), Checkpoint(9, tuple(parts(9, 2, 1, 2)))),
        ([*parts(10, 2, 1, 2), names.checkpoint_name(10)], Checkpoint(10, (names.checkpoint_name(10),))),
        ([V2], Checkpoint(10, (V2,))),
        ([V2, names.checkpoint_name(12)], Checkpoint(12, (names.checkpoint_name(12),))),
    ],
)
def test_newest_complete_checkpoint_is_the_best(files: list[str], expected: Checkpoint | None) -> None:
    found = [names.parse_name(name) for name in files]
    complete = complete_checkpoints(part for part in found if isinstance(part, names.CheckpointPart))
    assert (complete[-1] if complete else None) == expected


def test_without_a_hint_few_commits_are_read_without_listing(table: Table) -> None:
    table.fill(3)
    table.stage(add("f4"))
    assert table.paths() == {"f0", "f1", "f2", "f3", "f4"}
    assert table.files.lists == []


def test_many_commits_are_listed_once(table: Table) -> None:
    table.fill(25)
    assert len(table.paths()) == 26
    assert table.files.lists == [""]


def test_from_the_hint_on_nothing_is_listed_when_the_catalog_tells_the_rest(table: Table) -> None:
    table.fill(19)
    table.checkpoint(19, [*FIRST, add("all")])
    table.hint(19)
    for version in range(20, 40):
        table.stage(add(f"f{version}"))
    assert table.paths() == {"all", *(f"f{version}" for version in range(20, 40))}
    assert table.files.lists == []


def test_listing_begins_at_the_hint(table: Table) -> None:
    table.fill(40)
    table.checkpoint(5, [*FIRST, add("five")])
    table.hint(5)
    table.checkpoint(30, [*FIRST, add("thirty")])
    assert table.paths() == {"thirty", *(f"f{version}" for version in range(31, 41))}
    assert table.files.lists == [names.first_name(5)]
