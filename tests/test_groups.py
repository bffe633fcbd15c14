"""Proposals that are decided in one group: each as if those before it had been alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.groups import Group, group_on
from tidegate.domain.names import Version
from tidegate.domain.ratification import Conflict, Ratified, Replay
from tidegate.domain.updates import AddCommit, ReportPublished


@pytest.fixture
def group(database_url: str, tmp_path: Path) -> Iterator[Group]:
    with group_on(database_url, tmp_path / "home") as group:
        yield group


def test_of_those_who_propose_one_version_the_first_wins(group: Group) -> None:
    first, second, third = group.decide(*(group.proposal(group.new(3, writer)) for writer in "abc"))
    assert isinstance(first, Ratified)
    assert [type(second), type(third)] == [Conflict, Conflict]


def test_a_commit_is_recognised_when_it_comes_again_in_the_group_that_ratified_it(group: Group) -> None:
    addition = group.new(3, "a")
    first, again, next_ = group.decide(
        group.proposal(addition), group.proposal(addition), group.proposal(group.new(4, "b"))
    )
    assert [type(first), type(again), type(next_)] == [Ratified, Replay, Ratified]


def test_a_commit_is_recognised_when_it_comes_again_in_the_group_that_saw_it_published(group: Group) -> None:
    reported, again, other = group.decide(
        group.proposal(ReportPublished(Version(2)), verified=2),
        group.proposal(AddCommit(group.commits[1], None)),
        group.proposal(group.new(2, "b")),
    )
    assert [type(reported), type(again), type(other)] == [Ratified, Replay, Conflict]


def test_a_commit_is_recognised_when_it_comes_again_after_it_was_published(group: Group) -> None:
    group.decide(group.proposal(ReportPublished(Version(2)), verified=2))
    again, other = group.decide(group.proposal(AddCommit(group.commits[2], None)), group.proposal(group.new(1, "b")))
    assert [type(again), type(other)] == [Replay, Conflict]
