"""Proposals that are decided in one group: each as if those before it had been alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import ServerProcess
from tidegate.compose import build_server
from tidegate.db.database import SqlDatabase
from tidegate.domain.commits import Commit
from tidegate.domain.names import TableName, Version
from tidegate.domain.ratification import Conflict, Decision, Proposal, Ratified, Replay
from tidegate.domain.requirements import Requirements
from tidegate.domain.updates import Action, AddCommit, ReportPublished
from tidegate.settings import Settings

NAME = TableName("main", "default", "t")


class Group:
    """Decides proposals together, on a table with versions 1 and 2 that are not published."""

    def __init__(self, database: SqlDatabase, id: str, commits: dict[int, Commit], timestamp: int) -> None:
        self._database = database
        self._id = id
        self.commits = commits
        self._timestamp = timestamp

    def proposal(self, *actions: Action, verified: int | None = None) -> Proposal:
        version = None if verified is None else Version(verified)
        return Proposal(NAME, "admin", Requirements(self._id, None), actions, proposed_at=1, verified=version)

    def new(self, version: int, writer: str) -> AddCommit:
        name = f"{version:020}.00000000-0000-4000-8000-{writer * 12}.json"
        return AddCommit(Commit(Version(version), self._timestamp + version, name, 100, self._timestamp), None)

    def decide(self, *proposals: Proposal) -> list[Decision]:
        async def together() -> list[Decision]:
            return await asyncio.gather(*(self._database.ratify(proposal) for proposal in proposals))

        return asyncio.run(together())


@pytest.fixture
def group(database_url: str, tmp_path: Path) -> Iterator[Group]:
    server = ServerProcess(tmp_path / "home", database_url).start()
    with server.lake() as lake:
        table = lake.new_table("t")
        for version in (1, 2):
            assert table.commit(version).status_code == 200
        loaded = lake.load("t").json()
    assert server.stop() == 0
    commits = {
        sent["version"]: Commit(
            sent["version"],
            sent["timestamp"],
            sent["file-name"],
            sent["file-size"],
            sent["file-modification-timestamp"],
        )
        for sent in loaded["commits"]
    }
    database = build_server(Settings(home=tmp_path / "home", database=database_url)).env.database
    assert isinstance(database, SqlDatabase)
    database.start()
    yield Group(database, table.id, commits, table.timestamp)
    database.stop()


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
