from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.client.log import names
from tidegate.client.log.names import CheckpointPart, Compaction, LogName, PublishedCommit, parse_name

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("00000000000000000007.json", PublishedCommit(7, "00000000000000000007.json")),
        (names.compaction_name(3, 5), Compaction(3, 5, names.compaction_name(3, 5))),
        (names.checkpoint_name(10), CheckpointPart(10, names.checkpoint_name(10))),
        (names.checkpoint_part_name(10, 1, 3), CheckpointPart(10, names.checkpoint_part_name(10, 1, 3), 1, 3)),
        (
            f"{10:020}.checkpoint.{UUID}.json",
            CheckpointPart(10, f"{10:020}.checkpoint.{UUID}.json", is_v2=True),
        ),
    ],
)
def test_each_kind_of_file_is_known_by_its_name(name: str, parsed: LogName) -> None:
    assert parse_name(name) == parsed


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        "7.json",
        f"{7:020}.crc",
        f"{7:020}.{UUID}.json",
        f"{7:020}.json.tmp",
        f".{7:020}.json.crc",
        "٧" * 20 + ".json",
        names.compaction_name(5, 5),
        names.compaction_name(6, 5),
        names.checkpoint_part_name(10, 0, 3),
        names.checkpoint_part_name(10, 4, 3),
    ],
)
def test_all_else_is_no_part_of_the_log(name: str) -> None:
    assert parse_name(name) is None


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_names_sort_as_their_versions_do(one: int, other: int) -> None:
    assert (names.commit_name(one) < names.commit_name(other)) == (one < other)
    assert (names.first_name(one) < names.checkpoint_name(other)) == (one <= other)
