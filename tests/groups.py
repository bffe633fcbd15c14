"""Proposals handed to a database of this process, so that it is known which of them wait together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import ServerProcess
from tidegate.compose import build_server
from tidegate.db.database import SqlDatabase
from tidegate.domain.commit_contents import CommitContent
from tidegate.domain.commits import Commit
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.ratification import Decision, Proposal
from tidegate.domain.requirements import Requirements
from tidegate.domain.updates import Action, AddCommit
from tidegate.settings import Settings

NAME = TableName("main", "default", "t")


class Group:
    """Decides proposals together, on a table with versions 1 and 2 that are not published."""

    def __init__(self, database: SqlDatabase, id: str, commits: dict[int, Commit], timestamp: int) -> None:
        self.database = database
        self._id = TableId(id)
        self.commits = commits
        self._timestamp = timestamp

    def proposal(self, *actions: Action, verified: int | None = None) -> Proposal:
        version = None if verified is None else Version(verified)
        asked = Requirements(self._id, None)
        # What the files say is not what these tests are about: nothing.
        return Proposal(NAME, "admin", asked, actions, proposed_at=1, verified=version, seen=CommitContent())

    def new(self, version: int, writer: str) -> AddCommit:
        name = f"{version:020}.00000000-0000-4000-8000-{writer * 12}.json"
        return AddCommit(Commit(Version(version), self._timestamp + version, name, 100, self._timestamp), None)

    def decide(self, *proposals: Proposal) -> list[Decision]:
        async def together() -> list[Decision]:
            return await asyncio.gather(*(self.database.ratify(proposal) for proposal in proposals))

        return asyncio.run(together())


@contextmanager
def group_on(database_url: str, home: Path) -> Iterator[Group]:
    server = ServerProcess(home, database_url).start()
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
    database = build_server(Settings(home=home, database=database_url)).env.database
    assert isinstance(database, SqlDatabase)
    database.start()
    yield Group(database, table.id, commits, table.timestamp)
    database.stop()
