"""One table through both faces: made by one, used through the other, written by both at the same time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from tests.lake import COLUMNS, UNITY, Lake, LakeTable, add_commit, error_of, set_properties
from tests.old_lake import OldLake, OldTable, metadata_action
from tests.servers import ServerProcess
from tidegate.auth.tokens import ADMIN
from tidegate.compose import build_server
from tidegate.domain.commits import Commit
from tidegate.domain.errors import NoSuchTable
from tidegate.domain.names import Version
from tidegate.domain.ratification import Decision, Proposal
from tidegate.services.environment import Environment
from tidegate.services.tables import rename_table
from tidegate.services.write_commit import CommitRequest, write_commit
from tidegate.settings import Settings

ATTEMPTS_MAX = 2000


@pytest.fixture
def old(http: httpx.Client) -> OldLake:
    return OldLake(http)


def through_the_old_face(table: LakeTable) -> OldTable:
    lake = OldLake(table.lake.http, table.lake.catalog, table.lake.schema)
    return lake.table(table.name, table.id, table.location, timestamp=table.timestamp)


@pytest.fixture(params=["made by the new face", "made by the old face"])
def both(request: pytest.FixtureRequest, lake: Lake, old: OldLake, unique: str) -> tuple[LakeTable, OldTable]:
    """A table and its two sides, which share the log."""
    if "new" in request.param:
        made = lake.new_table(unique)
        return made, through_the_old_face(made)
    table = old.new_table(unique)
    return table.files, table


def test_both_faces_show_the_same_table(both: tuple[LakeTable, OldTable]) -> None:
    new, old = both
    loaded, shown = new.load(), old.get()
    metadata = loaded["metadata"]
    assert (metadata["table-uuid"], metadata["location"]) == (shown["table_id"], shown["storage_location"])
    assert metadata["properties"] == shown["properties"]
    assert metadata["columns"]["fields"] == [json.loads(column["type_json"]) for column in shown["columns"]]
    assert loaded["latest-table-version"] == old.versions()[1] == 0


def test_what_one_writer_commits_the_other_builds_on(both: tuple[LakeTable, OldTable]) -> None:
    new, old = both
    assert new.commit(1).status_code == 200
    assert old.versions() == ([1], 1)
    assert old.commit(2).status_code == 200
    assert new.versions() == [2, 1]
    assert error_of(new.commit(2)) == (409, "CommitVersionConflictException")
    assert error_of(old.commit(2)) == (409, "ALREADY_EXISTS")
    new.staged |= old.files.staged
    for version in (1, 2):
        new.publish(version)
    assert old.report(1).status_code == 200
    assert new.versions() == [2]
    assert new.report(2).status_code == 200
    assert old.versions() == ([], 2)


def test_a_commit_may_be_sent_again_through_the_other_face(both: tuple[LakeTable, OldTable]) -> None:
    new, old = both
    commit = new.stage_commit(1)
    info = {key.replace("-", "_"): value for key, value in commit.items()}
    assert new.update(add_commit(commit)).status_code == 200
    assert old.write(commit_info=info).status_code == 200
    info = old.stage_commit(2)
    assert old.write(commit_info=info).status_code == 200
    commit = {key.replace("_", "-"): value for key, value in info.items()}
    assert new.update(add_commit(commit)).status_code == 200
    assert old.versions() == ([1, 2], 2)


def test_metadata_that_one_face_changes_is_what_the_other_shows(both: tuple[LakeTable, OldTable]) -> None:
    new, old = both
    fields = [*COLUMNS["fields"], {"name": "height", "type": "double", "nullable": True, "metadata": {}}]
    change = {"action": "set-columns", "columns": {"type": "struct", "fields": fields}}
    assert new.commit(1, change, set_properties(team="sea")).status_code == 200
    shown = old.get()
    assert [json.loads(column["type_json"]) for column in shown["columns"]] == fields
    assert (shown["properties"]["team"], shown["properties"]["delta.lastUpdateVersion"]) == ("sea", "1")
    etag = new.load()["metadata"]["etag"]
    config = {key: value for key, value in shown["properties"].items() if not _is_derived(key)}
    action = {"metaData": metadata_action(COLUMNS["fields"], {**config, "team": "land"}, description="back")}
    assert old.commit(2, action).status_code == 200
    metadata = new.load()["metadata"]
    assert metadata["columns"]["fields"] == COLUMNS["fields"]
    assert (metadata["properties"]["team"], metadata["last-commit-version"]) == ("land", 2)
    assert metadata["etag"] != etag
    stale = new.commit(3, etag=etag)
    assert error_of(stale) == (409, "UpdateRequirementConflictException")


def _is_derived(key: str) -> bool:
    named = {"delta.minReaderVersion", "delta.minWriterVersion", "delta.lastUpdateVersion", "delta.lastCommitTimestamp"}
    return key in named or key.startswith("delta.feature.")


def test_a_table_that_one_face_drops_is_gone_for_the_other(both: tuple[LakeTable, OldTable]) -> None:
    new, old = both
    assert new.lake.http.delete(f"{new.lake.tables_url()}/{new.name}").status_code == 204
    assert error_of(old.commit(1)) == (404, "TABLE_DOES_NOT_EXIST")
    assert error_of(new.lake.http.get(f"{UNITY}/tables/main.default.{new.name}")) == (404, "TABLE_DOES_NOT_EXIST")


# Two writers at once


@dataclass(frozen=True)
class Outcome:
    """What a writer was told: the file that holds each version it has won."""

    won: dict[int, str]
    lost: int


Write = Callable[[ServerProcess, LakeTable, str, int], Outcome]


def write_through_the_new_face(server: ServerProcess, table: LakeTable, me: str, rounds: int) -> Outcome:
    """Counts its commits in a property of its own."""
    won: dict[int, str] = {}
    with server.http() as http:
        mine = LakeTable(Lake(http), table.name, table.id, table.location)
        for attempt in range(ATTEMPTS_MAX):
            if len(won) == rounds:
                return Outcome(won, lost=attempt - rounds)
            version = mine.load()["latest-table-version"] + 1
            count = set_properties(**{me: str(len(won) + 1)})
            commit = mine.stage_commit(version, count)
            answer = mine.update(add_commit(commit), count)
            if answer.status_code == 200:
                won[version] = commit["file-name"]
            else:
                assert _is_lost(answer), answer.text
    raise AssertionError(f"{me} won {len(won)} of {rounds} in {ATTEMPTS_MAX} attempts")


def write_through_the_old_face(server: ServerProcess, table: LakeTable, me: str, rounds: int) -> Outcome:
    """The same, by a desired final state: what it read, and its own count in it."""
    won: dict[int, str] = {}
    with server.http() as http:
        mine = OldLake(http).table(table.name, table.id, table.location)
        for attempt in range(ATTEMPTS_MAX):
            if len(won) == rounds:
                return Outcome(won, lost=attempt - rounds)
            version = mine.versions()[1] + 1
            # Read after the version: if it is of a later one, this version is taken and the commit is lost.
            shown = mine.get()["properties"]
            count = {me: str(len(won) + 1)}
            info = mine.stage_commit(version, *mine.files.said(set_properties(**count)))
            answer = mine.write(commit_info=info, metadata={"properties": {**shown, **count}})
            if answer.status_code == 200:
                won[version] = info["file_name"]
            else:
                assert _is_lost(answer), answer.text
    raise AssertionError(f"{me} won {len(won)} of {rounds} in {ATTEMPTS_MAX} attempts")


def _is_lost(answer: httpx.Response) -> bool:
    """Somebody else has the version, or had a later clock: both are what a race looks like."""
    return answer.status_code == 409 or "In-commit timestamps must rise" in answer.text


@pytest.mark.parametrize("rounds", [25])
@pytest.mark.parametrize("maker", ["new", "old"])
def test_writers_on_both_faces_lose_and_double_nothing(
    server: ServerProcess, lake: Lake, old: OldLake, unique: str, maker: str, rounds: int
) -> None:
    table = lake.new_table(unique) if maker == "new" else old.new_table(unique).files
    writers: dict[str, Write] = {
        "new1": write_through_the_new_face,
        "old1": write_through_the_old_face,
        "new2": write_through_the_new_face,
        "old2": write_through_the_old_face,
    }
    with ThreadPoolExecutor(len(writers)) as pool:
        running = {me: pool.submit(write, server, table, me, rounds) for me, write in writers.items()}
        outcomes = {me: done.result(timeout=120) for me, done in running.items()}
    held: dict[int, str] = {}
    for outcome in outcomes.values():
        assert not held.keys() & outcome.won.keys(), "a version was given to two writers"
        held |= outcome.won
    total = rounds * len(writers)
    assert sorted(held) == list(range(1, total + 1))
    loaded: dict[str, Any] = table.load()
    assert {commit["version"]: commit["file-name"] for commit in loaded["commits"]} == held
    assert loaded["latest-table-version"] == total
    # No writer's count was overwritten by what another had read before it.
    assert {me: loaded["metadata"]["properties"][me] for me in writers} == dict.fromkeys(writers, str(rounds))


# A commit goes to an id, the update to a name


class Renaming:
    """A database in which somebody renames the table whenever a commit is about to be written."""

    def __init__(self, env: Environment, table: LakeTable, *, times: int) -> None:
        self._env, self._table, self._times = env, table, times
        self.read = env.database.read
        self.table = env.database.table
        self.known_table = env.database.known_table

    async def ratify(self, proposal: Proposal) -> Decision:
        if self._times > 0:
            self._times -= 1
            new_name = f"{self._table.name}_{self._times}"
            await rename_table(self._env, ADMIN, proposal.name, new_name=new_name)
        return await self._env.database.ratify(proposal)


@pytest.mark.parametrize(("times", "accepted"), [(1, True), (2, True), (3, False)])
def test_a_commit_follows_a_table_that_is_renamed_meanwhile(
    server: ServerProcess, old: OldLake, unique: str, times: int, accepted: bool
) -> None:
    table = old.new_table(unique)
    info = table.stage_commit(1)
    settings = Settings(home=server.home, database=server.database or f"sqlite:///{server.home}/catalog.db")
    commit = Commit(
        version=Version(1),
        timestamp=info["timestamp"],
        file_name=info["file_name"],
        file_size=info["file_size"],
        file_modified_at=info["file_modification_timestamp"],
    )
    request = CommitRequest(table.files.id, table.files.location, commit, None, None, None)

    async def write() -> None:
        other = build_server(settings)
        other.env.database.start()  # type: ignore[attr-defined]
        try:
            renaming = Renaming(other.env, table.files, times=times)
            await write_commit(replace(other.env, database=renaming), ADMIN, request)  # type: ignore[arg-type]
        finally:
            other.env.database.stop()  # type: ignore[attr-defined]

    if accepted:
        asyncio.run(write())
    else:
        with pytest.raises(NoSuchTable, match="is called"):
            asyncio.run(write())
    assert table.versions() == (([1], 1) if accepted else ([], 0))
