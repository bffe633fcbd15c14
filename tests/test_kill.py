"""`kill -9` of a server under load. Faults to survive, at any moment:

- while commits are decided, written, synced or answered: what was acknowledged is there, what was not is wholly there
  or wholly absent, its metadata with it, and re-sending it unchanged is a success that leaves it there once;
- while tables are created and renamed: the same, and a table never has two names or none;
- while the server starts for the first time: the next start finishes the job.

Rounds are few by default; `--kill-rounds 500` looks longer. A failing round prints the seed of its moments.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import DELTA, UNITY, Draft, Lake, LakeTable, add_commit, error_of
from tests.servers import ServerProcess

LOAD_MS = (50, 400)
START_MS = (0, 1200)
OWN_TABLES = 3
SHARING = 3
CARRY_EVERY = 3
"""Of the commits, every third carries a metadata change."""
STEPS_MAX = 100_000
"""More than any client gets done before the server is killed."""
VERSION_PROPERTY = "kill.version"


@pytest.fixture
def moments() -> random.Random:
    """When to kill. TIDEGATE_TEST_SEED repeats a run."""
    seed = int(os.environ.get("TIDEGATE_TEST_SEED") or random.SystemRandom().randrange(2**32))
    print(f"TIDEGATE_TEST_SEED={seed}")
    return random.Random(seed)


@dataclass
class Sent:
    """A commit request and what became of it; None: no answer came."""

    commit: dict[str, Any]
    request: dict[str, Any]
    status: int | None = None

    @property
    def carries(self) -> bool:
        return len(self.request["updates"]) > 1


@dataclass
class Writer:
    """Commits until the server is gone. On a table of its own it never loses; on a shared one it rebases."""

    table: LakeTable
    shared: bool
    sent: list[Sent] = field(default_factory=list)

    def run(self, http: httpx.Client) -> None:
        self.table.lake = Lake(http)
        loaded = self.table.load()
        for _ in range(STEPS_MAX):
            sent = self.prepare(loaded)
            self.sent.append(sent)
            answer = self.table.lake.update(self.table.name, sent.request)
            sent.status = answer.status_code
            if answer.status_code != 200:
                assert self.shared and error_of(answer) == (409, "CommitVersionConflictException"), answer.text
                loaded = self.table.load()
            else:
                loaded = answer.json()

    def prepare(self, loaded: dict[str, Any]) -> Sent:
        version = loaded["latest-table-version"] + 1
        newest = max([c["timestamp"] for c in loaded["commits"]], default=self.table.timestamp)
        stamp = {"action": "set-properties", "updates": {VERSION_PROPERTY: str(version)}}
        carried = [stamp] if version % CARRY_EVERY == 0 else []
        timestamp = max(newest + 1, int(time.time() * 1000))
        commit = self.table.stage_commit(version, *carried, timestamp=timestamp)
        return Sent(commit, self.table.request(add_commit(commit), *carried))


@dataclass
class Maker:
    """Creates tables and renames them until the server is gone."""

    prefix: str
    acknowledged: dict[str, str] = field(default_factory=dict)
    """Name to id."""
    creating: Draft | None = None
    renaming: tuple[str, str] | None = None

    def run(self, http: httpx.Client) -> None:
        lake = Lake(http)
        for number in range(STEPS_MAX):
            name = f"{self.prefix}_{number}"
            draft = lake.draft(name)
            draft.write_version_0()
            self.creating = draft
            answer = lake.create(draft.request)
            assert answer.status_code == 200, answer.text
            self.creating, self.acknowledged[name] = None, draft.id
            self.renaming = name, f"{name}_new"
            answer = rename(lake, *self.renaming)
            assert answer.status_code == 204, answer.text
            self.acknowledged[f"{name}_new"] = self.acknowledged.pop(name)
            self.renaming = None


def rename(lake: Lake, name: str, to: str) -> httpx.Response:
    return lake.http.post(f"{lake.tables_url()}/{name}/rename", json={"new-name": to})


@dataclass
class Round:
    writers: list[Writer]
    maker: Maker

    @staticmethod
    def prepare(lake: Lake, number: int) -> Round:
        own = [lake.new_table(f"own_{number}_{n}") for n in range(OWN_TABLES)]
        shared = lake.new_table(f"shared_{number}")
        writers = [Writer(table, shared=False) for table in own]
        for _ in range(SHARING):
            seen = LakeTable(lake, shared.name, shared.id, shared.location, timestamp=shared.timestamp)
            writers.append(Writer(seen, shared=True))
        return Round(writers, Maker(f"made_{number}"))

    def run(self, server: ServerProcess, *, kill_after_s: float) -> None:
        works = [writer.run for writer in self.writers] + [self.maker.run]
        with ThreadPoolExecutor(len(works)) as pool:
            ends = [pool.submit(until_killed, server, work) for work in works]
            time.sleep(kill_after_s)  # the load, not a wait for something
            server.kill()
            for end in ends:
                end.result(timeout=60)

    def tables(self) -> dict[str, list[Writer]]:
        grouped: dict[str, list[Writer]] = {}
        for writer in self.writers:
            grouped.setdefault(writer.table.name, []).append(writer)
        return grouped


def until_killed(server: ServerProcess, work: Callable[[httpx.Client], None]) -> None:
    with server.http(verify=False) as http:
        try:
            work(http)
        except httpx.TransportError:
            return
    raise AssertionError("the work ended before the server did")


def check_table(lake: Lake, name: str, writers: list[Writer]) -> None:
    """Every acknowledged commit, perhaps some that nobody was told of, nothing else; and metadata in step."""
    for writer in writers:
        writer.table.lake = lake
    sent = {each.commit["file-name"]: each for writer in writers for each in writer.sent}
    loaded = writers[0].table.load()
    commits = loaded["commits"]
    assert [c["version"] for c in commits] == list(range(loaded["latest-table-version"], 0, -1)), name
    there = {c["file-name"]: c for c in commits}
    for file_name, each in sent.items():
        if each.status == 200:
            assert there.get(file_name) == each.commit, f"{name}: an acknowledged commit is lost"
        if each.status == 409:
            assert file_name not in there, f"{name}: a refused commit is there"
    assert all(c == sent[file_name].commit for file_name, c in there.items())
    check_lockstep(loaded, [sent[c["file-name"]] for c in commits])


def check_lockstep(loaded: dict[str, Any], newest_first: list[Sent]) -> None:
    carried = next((each.commit for each in newest_first if each.carries), None)
    metadata = loaded["metadata"]
    if carried is None:
        assert VERSION_PROPERTY not in metadata["properties"]
        assert metadata["last-commit-version"] == 0
    else:
        assert metadata["properties"][VERSION_PROPERTY] == str(carried["version"])
        assert metadata["last-commit-version"] == carried["version"]
        assert metadata["last-commit-timestamp-ms"] == carried["timestamp"]


def send_again(lake: Lake, name: str, writers: list[Writer]) -> None:
    """Unchanged. A success, unless on a shared table another commit has its version."""
    for unanswered in [each for writer in writers for each in writer.sent if each.status is None]:
        before = {c["version"]: c["file-name"] for c in writers[0].table.load()["commits"]}
        answer = lake.update(name, unanswered.request)
        unanswered.status = answer.status_code
        version, file_name = unanswered.commit["version"], unanswered.commit["file-name"]
        if before.get(version, file_name) == file_name:
            assert answer.status_code == 200, answer.text
        else:
            assert len(writers) > 1
            assert error_of(answer) == (409, "CommitVersionConflictException"), answer.text
    check_table(lake, name, writers)


def check_made(lake: Lake, maker: Maker) -> None:
    for name, id in maker.acknowledged.items():
        if maker.renaming is None or name != maker.renaming[0]:
            assert lake.load(name).json()["metadata"]["table-uuid"] == id
    if maker.creating is not None:
        finish_creation(lake, maker, maker.creating)
        maker.creating = None
    if maker.renaming is not None:
        finish_rename(lake, maker, *maker.renaming)
        maker.renaming = None


def finish_creation(lake: Lake, maker: Maker, draft: Draft) -> None:
    """Either the table is there, or its staging table still is and the same request succeeds now."""
    name = draft.request["name"]
    staging = lake.http.get(f"{DELTA}/staging-tables/{draft.id}/credentials")
    if lake.load(name).status_code == 200:
        assert error_of(staging) == (404, "NoSuchTableException")
        # Both are true: the staging table is finished already, and the name is taken.
        assert error_of(lake.create(draft.request))[0] in (400, 409)
    else:
        assert staging.status_code == 200, staging.text
        assert lake.create(draft.request).status_code == 200
    assert lake.load(name).json()["metadata"]["table-uuid"] == draft.id
    maker.acknowledged[name] = draft.id


def finish_rename(lake: Lake, maker: Maker, old: str, new: str) -> None:
    found = [name for name in (old, new) if lake.load(name).status_code == 200]
    assert len(found) == 1, f"a table with the names {found}"
    if found == [old]:
        assert rename(lake, old, new).status_code == 204
    maker.acknowledged[new] = maker.acknowledged.pop(old)
    assert lake.load(new).json()["metadata"]["table-uuid"] == maker.acknowledged[new]


@pytest.fixture
def mortal(database_url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "home", database_url)
    yield server
    if server.process is not None and server.process.poll() is None:
        server.kill()


@pytest.mark.timeout(0)
def test_killed_under_load_nothing_acknowledged_is_lost_and_nothing_is_half_done(
    mortal: ServerProcess, moments: random.Random, request: pytest.FixtureRequest
) -> None:
    rounds: list[Round] = []
    mortal.start()
    for number in range(request.config.getoption("--kill-rounds")):
        with mortal.lake() as lake:
            rounds.append(Round.prepare(lake, number))
        kill_after_s = moments.uniform(*LOAD_MS) / 1000
        print(f"round {number}: killed after {kill_after_s:.3f} s")
        rounds[-1].run(mortal, kill_after_s=kill_after_s)
        mortal.start()
        with mortal.lake() as lake:
            check_round(lake, rounds[-1])
    with mortal.lake() as lake:
        for each in rounds:
            for name, writers in each.tables().items():
                check_table(lake, name, writers)
            check_made(lake, each.maker)
    answered = [sent.status for each in rounds for writer in each.writers for sent in writer.sent]
    assert answered.count(200) > len(rounds), "there was no load"
    assert mortal.stop() == 0


def check_round(lake: Lake, each: Round) -> None:
    for name, writers in each.tables().items():
        check_table(lake, name, writers)
        send_again(lake, name, writers)
    check_made(lake, each.maker)


def test_killed_while_it_starts_for_the_first_time_the_next_start_succeeds(
    mortal: ServerProcess, moments: random.Random, request: pytest.FixtureRequest
) -> None:
    for _ in range(max(1, request.config.getoption("--kill-rounds") // 4)):
        starting = threading.Thread(target=start_and_ignore, args=[mortal])
        mortal.process = None
        starting.start()
        while mortal.process is None:
            starting.join(0.001)
            assert starting.is_alive()
        time.sleep(moments.uniform(*START_MS) / 1000)
        mortal.kill()
        starting.join(60)
        assert not starting.is_alive()
    mortal.start()
    with mortal.lake() as lake:
        assert [c["name"] for c in lake.http.get(f"{UNITY}/catalogs").json()["catalogs"]] == ["main"]
        assert lake.new_table("first").commit(1).status_code == 200


def start_and_ignore(server: ServerProcess) -> None:
    """It may be killed before it is healthy, which is the point."""
    try:
        server.start()
    except RuntimeError:
        return


def test_an_admin_token_cut_off_by_a_crash_does_not_lock_everybody_out(mortal: ServerProcess) -> None:
    """A crash between the making of the file and the writing of the token leaves an empty file."""
    mortal.home.mkdir()
    (mortal.home / "admin.token").touch(mode=0o600)
    mortal.start()
    assert len(mortal.token) >= 32
    with mortal.http() as http:
        assert http.get(f"{UNITY}/catalogs").status_code == 200
