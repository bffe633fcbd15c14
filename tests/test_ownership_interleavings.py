"""Adoptions, releases, commits of the file system and of the catalog, and crashes, in any order.

The model is a list of what was committed and who owns the table. Whatever happened: the log has no gap, the catalog and
the log agree on the owner, and every commit that succeeded is in the table once. A server that died in the middle stays
down for a while, in which the file system may go on: what was promised is finished after whatever came in between.
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.lake import Lake, LakeTable
from tests.servers import ServerProcess
from tests.test_ownership import CRASHES, ID, RELEASE_CRASHES, Plain, adopt, allow, is_ours, promises, release, started
from tests.waiting import wait_until

_numbers = itertools.count()


@pytest.fixture
def own_server(database_url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    server = started(ServerProcess(tmp_path / "home", database_url))
    with server.http() as http:
        allow(http, tmp_path / "lake")
    yield server
    server.stop()


def is_up(machine: Any) -> bool:
    return not machine.down


def machine(server: ServerProcess, lake: Path) -> type[RuleBasedStateMachine]:
    class Ownership(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.name = f"t{next(_numbers)}"
            self.plain = Plain(lake / self.name).create()
            self.ours = False
            self.down = False
            self.expected = ["1.parquet"]

        def teardown(self) -> None:
            if self.down:
                self.start_again()

        @rule()
        def commit_by_the_file_system(self) -> None:
            """As an engine does it: a table that is a catalog's is not written to by path."""
            if is_ours(self.plain):
                return
            path = f"{uuid.uuid4()}.parquet"
            assert self.plain.put(self.plain.versions()[-1] + 1, {"commitInfo": {}}, added(path))
            self.expected.append(path)

        @precondition(is_up)
        @rule()
        def commit_through_the_catalog(self) -> None:
            with server.http() as http:
                path = f"{uuid.uuid4()}.parquet"
                answer = self.committed(http, path)
                assert (answer.status_code == 200) == self.ours, answer.text
            if self.ours:
                self.expected.append(path)

        @precondition(is_up)
        @rule()
        def adopt(self) -> None:
            with server.http() as http:
                done = adopt(http, self.plain, self.name)
                assert done.status_code == 200, done.text
            self.ours = True

        @precondition(is_up)
        @rule()
        def release(self) -> None:
            with server.http() as http:
                done = release(http, self.name, keep="nothing")
                assert done.status_code == (200 if self.ours else 404), done.text
            self.ours = False

        @precondition(lambda self: is_up(self) and not cast("Ownership", self).ours)
        @rule(step=st.sampled_from(CRASHES))
        def crash_while_it_is_adopted(self, step: str) -> None:
            self.crash(step, lambda http: adopt(http, self.plain, self.name))
            self.ours = True

        @precondition(lambda self: is_up(self) and cast("Ownership", self).ours)
        @rule(step=st.sampled_from([step for step in RELEASE_CRASHES if not step.startswith("publish.")]))
        def crash_while_it_is_released(self, step: str) -> None:
            self.crash(step, lambda http: release(http, self.name, keep="nothing"))
            self.ours = False

        def crash(self, step: str, work: Any) -> None:
            with started(server, fault=step).http() as http, pytest.raises(httpx.TransportError):
                work(http)
            assert server.process is not None
            server.process.wait(30)
            self.down = True

        @precondition(lambda self: not is_up(self))
        @rule()
        def start_again(self) -> None:
            self.down = False
            with started(server).http() as http:
                wait_until(lambda: promises(http) == [], "the promise is kept")

        def committed(self, http: httpx.Client, path: str) -> httpx.Response:
            lake = Lake(http)
            loaded = lake.load(self.name)
            if loaded.status_code != 200:
                return loaded
            told = loaded.json()
            table = LakeTable(lake, self.name, told["metadata"]["table-uuid"], self.plain.location)
            timestamp = max([int(time.time() * 1000) + 60_000, *(one["timestamp"] + 1 for one in told["commits"])])
            info = {"commitInfo": {"inCommitTimestamp": timestamp, "txnId": str(uuid.uuid4())}}
            content = "".join(json.dumps(action) + "\n" for action in (info, added(path)))
            commit = table.stage_commit(told["latest-table-version"] + 1, timestamp=timestamp, content=content.encode())
            return table.update({"action": "add-commit", "commit": commit})

        @precondition(is_up)
        @invariant()
        def the_owner_is_one_and_nothing_is_lost_or_doubled(self) -> None:
            versions = self.plain.versions()
            assert versions == list(range(len(versions)))
            assert is_ours(self.plain) == self.ours
            with server.http() as http:
                loaded = Lake(http).load(self.name)
            assert (loaded.status_code == 200) == self.ours
            contents = [(self.plain.log / f"{version:020}.json").read_text() for version in versions]
            if self.ours:
                told = loaded.json()
                newest = max(version for version in versions if "protocol" in self.plain.actions(version))
                assert self.plain.actions(newest)["metaData"]["configuration"][ID] == told["metadata"]["table-uuid"]
                waiting = sorted(told["commits"], key=lambda one: one["version"])
                staged = self.plain.log / "_staged_commits"
                contents += [(staged / one["file-name"]).read_text() for one in waiting]
            lines = [json.loads(line) for content in contents for line in content.splitlines()]
            assert [line["add"]["path"] for line in lines if "add" in line] == self.expected

    return Ownership


def added(path: str) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}


def test_a_table_is_at_every_moment_fully_ours_or_fully_not(own_server: ServerProcess, tmp_path: Path) -> None:
    run_state_machine_as_test(
        machine(own_server, tmp_path / "lake"), settings=settings(max_examples=5, stateful_step_count=10)
    )
