"""A table goes from kind to kind in any order: the file system's, its commit owner's, the catalog's, and back.

The model is a list of what was committed, and who decides. Clients register and die, lose their version, send commits
again or too late; servers die between any two steps. Whatever happened: the log has no gap, it and the catalog agree on
who decides, every commit that succeeded is in the table once and no other one is, and who reads files sees a beginning.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.lake import UNITY, Lake, LakeTable
from tests.owned import FEATURE, OWNER, PROTOCOL, WRITER_FEATURES, Owned
from tests.servers import ServerProcess
from tests.test_ownership import TIDEGATE, Plain, adopt, allow, is_ours, promises, release, started
from tests.test_ownership_interleavings import added
from tests.waiting import wait_until

PLAIN, OWNED, MANAGED = "the file system", "its commit owner", "the catalog"
CRASHES = {
    "register": ["own.promised", "own.found", "own.registered"],
    "give back": ["own.returning", "put.linked", "release.put", "release.forgotten"],
    "adopt": ["adopt.promised", "own.planned", "put.linked", "adopt.put", "adopt.registered"],
}
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


def decided_by(who: str) -> Any:
    return precondition(lambda machine: is_up(machine) and machine.who == who)


def machine(server: ServerProcess, lake: Path) -> type[RuleBasedStateMachine]:
    class Kinds(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.name = f"t{next(_numbers)}"
            self.plain = Plain(lake / self.name).create()
            self.who, self.down = PLAIN, False
            self.expected = ["1.parquet"]
            self.http = server.http()
            self.owned = Owned(self.http, self.plain)
            self.promised: int | None = None
            """The version that a client has said it would put."""
            self.awaited: int | None = None
            """The one that the catalog waits for; the client may have died before it heard of that."""

        def teardown(self) -> None:
            if self.down:
                self.start_again()
            self.http.close()

        def reach(self) -> None:
            """The server has another port after each start."""
            self.http.close()
            self.http = self.owned.http = server.http()

        @precondition(lambda self: cast("Kinds", self).who == PLAIN)
        @rule()
        def commit_by_the_file_system(self) -> None:
            if self.log_names_owner():
                return  # its last commit is promised, and not put yet
            path = f"{uuid.uuid4()}.parquet"
            assert self.plain.put(self.next_version(), self.owned.info(), added(path))
            self.expected.append(path)

        @decided_by(PLAIN)
        @rule()
        def register(self) -> None:
            self.registered()

        @decided_by(PLAIN)
        @rule()
        def take_over(self) -> None:
            self.registered()
            self.put()

        @precondition(lambda self: cast("Kinds", self).who == PLAIN and cast("Kinds", self).promised is not None)
        @rule()
        def put_what_was_promised(self) -> None:
            """By the client that has registered; another writer may have been first."""
            self.put()

        @decided_by(OWNED)
        @rule(again=st.booleans())
        def commit_through_the_owner(self, again: bool) -> None:
            path = f"{uuid.uuid4()}.parquet"
            body = self.owned.stage(self.owned.latest() + 1, added(path))
            for _ in range(2 if again else 1):
                sent = self.owned.send(body)
                assert sent.status_code == 200, sent.text
            self.expected.append(path)

        @precondition(lambda self: is_up(self) and bool(cast("Kinds", self).owned.id))
        @rule()
        def commit_too_late(self) -> None:
            """Of a version that somebody else has by now; or to a table that was the owner's once."""
            refused = self.owned.commit(self.plain.versions()[-1], added(f"{uuid.uuid4()}.parquet"))
            assert refused.status_code in (400, 404, 409), refused.text

        @decided_by(OWNED)
        @rule()
        def publish(self) -> None:
            assert self.owned.publish(self.owned.latest()).status_code == 200

        @decided_by(OWNED)
        @rule()
        def give_back(self) -> None:
            done = self.owned.send(self.last())
            assert done.status_code == 200, done.text
            self.who = PLAIN

        @precondition(is_up)
        @rule()
        def adopt(self) -> None:
            waits = self.who == PLAIN and self.awaited == self.next_version()
            if self.who == PLAIN and not waits:
                self.forget()
            done = adopt(self.http, self.plain, self.name)
            assert done.status_code == (400 if waits else 200), done.text
            if not waits:
                self.who, self.awaited = MANAGED, None

        @decided_by(MANAGED)
        @rule()
        def commit_through_the_catalog(self) -> None:
            path = f"{uuid.uuid4()}.parquet"
            lake = Lake(self.http)
            told = lake.load(self.name).json()
            timestamps = [told["metadata"]["last-commit-timestamp-ms"], *(one["timestamp"] for one in told["commits"])]
            timestamp = max(timestamps) + 1
            table = LakeTable(lake, self.name, told["metadata"]["table-uuid"], self.plain.location)
            info = {"commitInfo": {"inCommitTimestamp": timestamp, "txnId": str(uuid.uuid4())}}
            content = "".join(json.dumps(action) + "\n" for action in (info, added(path))).encode()
            commit = table.stage_commit(told["latest-table-version"] + 1, timestamp=timestamp, content=content)
            done = table.update({"action": "add-commit", "commit": commit})
            assert done.status_code == 200, done.text
            self.expected.append(path)

        @decided_by(MANAGED)
        @rule(keep=st.sampled_from(["external", "nothing"]))
        def release(self, keep: str) -> None:
            done = release(self.http, self.name, keep=keep)
            assert done.status_code == 200, done.text
            self.who = PLAIN
            self.owned.timestamp = self.plain.latest()["commitInfo"]["inCommitTimestamp"]

        @decided_by(PLAIN)
        @rule(step=st.sampled_from(CRASHES["register"]))
        def crash_while_it_is_registered(self, step: str) -> None:
            if step == "own.promised":
                self.crash(step, lambda owned: owned.register(self.plain.versions()[-1]))
                self.awaited = self.next_version()
            else:
                self.registered()
                if self.put():
                    self.crash(step, lambda owned: owned.latest())

        @decided_by(OWNED)
        @rule(step=st.sampled_from(CRASHES["give back"]))
        def crash_while_it_is_given_back(self, step: str) -> None:
            last = self.last()
            self.crash(step, lambda owned: owned.send(last))
            self.who = PLAIN

        @decided_by(OWNED)
        @rule(step=st.sampled_from(CRASHES["adopt"]))
        def crash_while_it_is_adopted(self, step: str) -> None:
            self.crash(step, lambda owned: adopt(owned.http, self.plain, self.name))
            self.who = MANAGED

        @precondition(lambda self: not is_up(self))
        @rule()
        def start_again(self) -> None:
            self.down = False
            started(server)
            self.reach()
            wait_until(lambda: promises(self.http) == [], "the promises are kept")

        def registered(self) -> None:
            agreed = self.owned.register(self.plain.versions()[-1])
            assert agreed.status_code == 200, agreed.text
            self.owned.id = agreed.json()["table_id"]
            self.promised = self.awaited = agreed.json()["owned_from"]

        def put(self) -> bool:
            assert self.promised is not None
            free = self.promised == self.next_version()
            assert self.owned.put(self.promised) == free
            self.promised = None
            if free:
                self.who, self.awaited = OWNED, None
            return free

        def last(self) -> dict[str, Any]:
            protocol = {**PROTOCOL, "writerFeatures": [one for one in WRITER_FEATURES if one != FEATURE]}
            metadata = {"metaData": self.owned.metadata({})}
            return self.owned.stage(self.owned.latest() + 1, {"protocol": protocol}, metadata)

        def forget(self) -> None:
            """What the catalog knows as an external table is adopted when that entry is dropped."""
            if self.awaited is not None and self.listed():
                # That its version is somebody else's is noticed in a while, or now.
                assert self.http.post(f"{TIDEGATE}/doctor/storage").status_code == 200
            for name in self.listed():
                assert self.http.delete(f"{UNITY}/tables/{name}").status_code == 200

        def crash(self, step: str, work: Any) -> None:
            started(server, fault=step)
            with server.http() as http, pytest.raises(httpx.TransportError):
                work(Owned(http, self.plain, self.owned.id, timestamp=self.owned.timestamp))
            assert server.process is not None
            server.process.wait(30)
            self.down = True

        def log_names_owner(self) -> bool:
            said = [self.plain.actions(version) for version in self.plain.versions()]
            return OWNER in [one["metaData"] for one in said if "metaData" in one][-1]["configuration"]

        def next_version(self) -> int:
            return self.plain.versions()[-1] + 1

        def listed(self) -> list[str]:
            asked = {"catalog_name": "main", "schema_name": "default", "max_results": 1000}
            found = self.http.get(f"{UNITY}/tables", params=asked).json()["tables"]
            here = [one for one in found if one["storage_location"] == self.plain.location]
            return [f"main.default.{one['name']}" for one in here]

        def waiting(self) -> list[str]:
            """The staged files of what is ratified and not published."""
            if self.who == OWNED:
                told = self.owned.commits().json()
                names = [(one["version"], one["file_name"]) for one in told["commits"]]
            elif self.who == MANAGED:
                told = Lake(self.http).load(self.name).json()
                names = [(one["version"], one["file-name"]) for one in told["commits"]]
            else:
                return []
            return [name for version, name in sorted(names) if version not in self.plain.versions()]

        @precondition(is_up)
        @invariant()
        def who_decides_is_one_and_nothing_is_lost_or_doubled(self) -> None:
            assert is_ours(self.plain) == (self.who == MANAGED)
            assert (self.owned.id != "" and self.owned.commits().status_code == 200) or self.who != OWNED
            assert len(self.listed()) <= 1
            waiting = self.waiting()
            versions = self.plain.versions()
            assert versions == list(range(len(versions)))
            logs = [self.plain.log / f"{version:020}.json" for version in versions]
            published = self.paths(logs)
            assert published == self.expected[: len(published)], "who reads the files sees a beginning"
            staged = [self.plain.log / "_staged_commits" / name for name in waiting]
            assert published + self.paths(staged) == self.expected

        def paths(self, files: list[Path]) -> list[str]:
            lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
            return [line["add"]["path"] for line in lines if "add" in line]

    return Kinds


def test_a_table_goes_from_kind_to_kind_in_any_order(own_server: ServerProcess, tmp_path: Path) -> None:
    run_state_machine_as_test(
        machine(own_server, tmp_path / "lake"), settings=settings(max_examples=4, stateful_step_count=12)
    )
