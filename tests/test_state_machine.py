"""Ratification and publishing against a simple model: any order of requests leaves the catalog where the model is.

Hypothesis makes up the order. After every step each table is loaded and compared with its model: latest version,
commits (newest first, complete and contiguous), properties, columns, comment, the last version that changed metadata,
and an etag that changes exactly when metadata does and never comes back.

The servers keep at most BACKLOG_MAX unpublished commits of a table, so that the bound is met often.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.lake import COLUMNS, UNITY, Lake, LakeTable, add_commit, error_of, report
from tests.servers import ServerProcess

BACKLOG_MAX = 6
NAMES = ("ebb", "flow", "slack")
LIVE_MAX = 2
WIDER: dict[str, Any] = {
    "type": "struct",
    "fields": [*COLUMNS["fields"], {"name": "depth", "type": "double", "nullable": True, "metadata": {}}],
}

VERSION_CONFLICT = (409, "CommitVersionConflictException")
REQUIREMENT_CONFLICT = (409, "UpdateRequirementConflictException")
ALREADY_EXISTS = (409, "AlreadyExistsException")
NO_SUCH_TABLE = (404, "NoSuchTableException")
BACKLOG_FULL = (429, "ResourceExhaustedException")
INVALID = (400, "InvalidParameterValueException")

Action = dict[str, Any]


def set_keys(updates: Mapping[str, str]) -> Action:
    return {"action": "set-properties", "updates": dict(updates)}


def remove_keys(removals: Sequence[str]) -> Action:
    return {"action": "remove-properties", "removals": list(removals)}


def set_columns(columns: dict[str, Any]) -> Action:
    return {"action": "set-columns", "columns": columns}


def set_comment(comment: str) -> Action:
    return {"action": "set-table-comment", "comment": comment}


# Few keys and values, so that they meet: the same value set twice, a catalog's key that moves into the log.
keys = st.sampled_from(["tide", "moon", "delta.appendOnly"])
values = st.sampled_from(["true", "false"])
property_changes = st.one_of(
    st.dictionaries(keys, values, min_size=1).map(set_keys), st.lists(keys, min_size=1, unique=True).map(remove_keys)
)
comments = st.sampled_from(["", "low", "high"]).map(set_comment)
changes_with_a_commit = st.one_of(property_changes, comments, st.sampled_from([COLUMNS, WIDER]).map(set_columns))
changes_of_the_log = st.sampled_from(
    [set_columns(WIDER), set_keys({"delta.appendOnly": "true"}), remove_keys(["delta.enableDeletionVectors"])]
)
breaches_of_contract = st.sampled_from(
    [
        remove_keys(["delta.enableDeletionVectors"]),
        remove_keys(["io.unitycatalog.tableId"]),
        set_keys({"delta.checkpointPolicy": "classic"}),
        set_keys({"delta.lastUpdateVersion": "7"}),
        {"action": "set-partition-columns", "partition-columns": ["no such column"]},
    ]
)
picks = st.integers(0, LIVE_MAX - 1)
names = st.sampled_from(NAMES)


@dataclass(frozen=True)
class Metadata:
    in_log: Mapping[str, str]
    in_catalog: Mapping[str, str]
    columns: Mapping[str, Any]
    comment: str | None = None

    def with_commit(self, action: Action) -> Metadata:
        match action["action"]:
            case "set-properties":
                gone, added = action["updates"], action["updates"]
            case "remove-properties":
                gone, added = action["removals"], {}
            case "set-columns":
                return replace(self, columns=action["columns"])
            case _:
                return replace(self, comment=action["comment"])
        return replace(
            self,
            in_log={**{k: v for k, v in self.in_log.items() if k not in gone}, **added},
            in_catalog={k: v for k, v in self.in_catalog.items() if k not in gone},
        )

    def without_commit(self, action: Action) -> Metadata | None:
        """None where the log would have to say so first."""
        if action["action"] == "set-table-comment":
            return replace(self, comment=action["comment"])
        named = action.get("updates") or action.get("removals") or ()
        if action["action"] == "set-columns" or any(k.startswith("delta.") or k in self.in_log for k in named):
            return None
        kept = {k: v for k, v in self.in_catalog.items() if k not in named}
        return replace(self, in_catalog={**kept, **action.get("updates", {})})


@dataclass
class Model:
    """One table as the catalog must know it."""

    table: LakeTable
    features: Mapping[str, str]
    metadata: Metadata
    metadata_timestamp: int
    metadata_version: int = 0
    latest: int = 0
    published: int = 0
    commits: dict[int, dict[str, Any]] = field(default_factory=dict)
    requests: dict[int, dict[str, Any]] = field(default_factory=dict)
    files: set[int] = field(default_factory=set)
    """Versions whose published file is in the log with the ratified bytes."""
    etag: str | None = None
    """None: not seen yet, so the next one must be new."""
    past_etags: list[str] = field(default_factory=list)

    @property
    def backlog(self) -> int:
        return self.latest - self.published

    def verified(self, reported: int) -> int:
        verified = self.published
        while verified < reported and verified + 1 in self.files:
            verified += 1
        return verified

    def change(self, after: Metadata, *, by: dict[str, Any] | None = None) -> None:
        if after == self.metadata:
            return
        self.metadata = after
        assert self.etag is not None
        self.past_etags.append(self.etag)
        self.etag = None
        if by is not None:
            self.metadata_version, self.metadata_timestamp = by["version"], by["timestamp"]

    def ratify(self, commit: dict[str, Any], request: dict[str, Any]) -> None:
        self.latest = version = commit["version"]
        self.commits[version], self.requests[version] = commit, request
        self.table.staged[version] = commit["file-name"]

    def served(self) -> dict[str, Any]:
        """What load must say, but for the etag and the two times of the catalog's own clock."""
        derived = {
            "delta.lastUpdateVersion": str(self.metadata_version),
            "delta.lastCommitTimestamp": str(self.metadata_timestamp),
        }
        return {
            "metadata": {
                "table-type": "MANAGED",
                "table-uuid": self.table.id,
                "location": self.table.location,
                "columns": self.metadata.columns,
                "partition-columns": [],
                "properties": {**self.metadata.in_catalog, **self.metadata.in_log, **self.features, **derived},
                "last-commit-version": self.metadata_version,
                "last-commit-timestamp-ms": self.metadata_timestamp,
            },
            "commits": [self.commits[version] for version in range(self.latest, self.published, -1)],
            "latest-table-version": self.latest,
        }


_machines = itertools.count(1)


class Catalog(RuleBasedStateMachine):
    """`visited` and `etags` outlive a run: what all runs met, and every etag that was ever seen."""

    def __init__(self, http: httpx.Client, visited: set[str], etags: set[str]) -> None:
        super().__init__()
        self.lake = Lake(http)
        self.visited, self.etags = visited, etags
        self.number = next(_machines)
        self.live: dict[str, Model] = {}
        self.dropped: list[Model] = []

    # ---- creation ----

    @initialize()
    def begin_with_one_table(self) -> None:
        self.create(NAMES[0])

    @precondition(lambda self: len(self.live) < LIVE_MAX)
    @rule(name=names)
    def create(self, name: str) -> None:
        if name in self.live:
            assert error_of(self.lake.stage(self.full(name))) == ALREADY_EXISTS
            return
        draft = self.lake.draft(self.full(name), comment="new")
        draft.write_version_0()
        timestamp = draft.request["last-commit-timestamp-ms"]
        model = Model(
            LakeTable(self.lake, self.full(name), draft.id, draft.location, timestamp=timestamp),
            features_of(draft.request["protocol"]),
            Metadata(draft.request["properties"], {}, draft.request["columns"], comment="new"),
            metadata_timestamp=timestamp,
        )
        self.live[name] = model
        self.accepted(model, self.lake.create(draft.request))

    # ---- commits ----

    @precondition(lambda self: self.live)
    @rule(pick=picks, count=st.integers(1, BACKLOG_MAX + 1))
    def commit_data(self, pick: int, count: int) -> None:
        model = self.pick(pick)
        for _ in range(count):
            self.propose_next(model)

    @precondition(lambda self: self.live)
    @rule(pick=picks, change=changes_with_a_commit, assert_etag=st.booleans(), reported=st.booleans())
    def commit_metadata(self, pick: int, change: Action, assert_etag: bool, reported: bool) -> None:
        model = self.pick(pick)
        self.propose_next(model, change, etag=model.etag if assert_etag else None, reported=reported)

    def propose_next(self, model: Model, *changes: Action, etag: str | None = None, reported: bool = False) -> None:
        """latest + 1: ratified, unless the backlog is full even after the report that comes with it."""
        commit = model.table.stage_commit(model.latest + 1, *changes)
        actions = [add_commit(commit), *changes, *([report(model.latest)] if reported else [])]
        request = model.table.request(*actions, etag=etag)
        published = model.verified(model.latest) if reported else model.published
        if model.latest - published >= BACKLOG_MAX:
            self.refused(model, request, BACKLOG_FULL)
            return
        model.ratify(commit, request)
        model.published = published
        for change in changes:
            model.change(model.metadata.with_commit(change), by=commit)
        self.accepted(model, self.lake.update(model.table.name, request))

    @precondition(lambda self: any(model.latest for model in self.live.values()))
    @rule(pick=picks, back=st.one_of(st.just(0), st.integers(0, 20)))
    def replay(self, pick: int, back: int) -> None:
        """Whatever the request asserted or changed then: it has happened, and nothing happens again."""
        model = self.pick(pick, [model for model in self.live.values() if model.latest])
        request = model.requests[max(1, model.latest - back)]
        self.accepted(model, self.lake.update(model.table.name, request))
        self.visited.add("replay of the newest" if back == 0 else "replay of an old one")

    @precondition(lambda self: self.live)
    @rule(pick=picks, distance=st.integers(-5, 5), change=st.none() | changes_with_a_commit)
    def propose_a_version_that_is_not_next(self, pick: int, distance: int, change: Action | None) -> None:
        model = self.pick(pick)
        version = max(1, model.latest + 1 + distance)
        if version == model.latest + 1:
            version += 1
        changes = [change] if change else []
        commit = add_commit(model.table.stage_commit(version, *changes))
        request = model.table.request(commit, *changes)
        answer = self.refused(model, request, VERSION_CONFLICT)
        assert f"version is {model.latest}." in answer.json()["error"]["message"]
        self.visited.add("conflict below" if version <= model.latest else "conflict above")

    @precondition(lambda self: self.live)
    @rule(pick=picks, breach=breaches_of_contract)
    def commit_a_breach_of_contract(self, pick: int, breach: Action) -> None:
        model = self.pick(pick)
        commit = add_commit(model.table.stage_commit(model.latest + 1, breach))
        # A full backlog may be noticed first; either way nothing is stored.
        expected = (INVALID, BACKLOG_FULL) if model.backlog >= BACKLOG_MAX else (INVALID,)
        self.refused(model, model.table.request(commit, breach), *expected)

    @precondition(lambda self: self.live)
    @rule(pick=picks)
    def commit_with_a_timestamp_that_does_not_rise(self, pick: int) -> None:
        model = self.pick(pick)
        newest = model.commits[model.latest]["timestamp"] if model.latest else model.metadata_timestamp
        commit = add_commit(model.table.stage_commit(model.latest + 1, timestamp=newest))
        expected = (INVALID, BACKLOG_FULL) if model.backlog >= BACKLOG_MAX else (INVALID,)
        self.refused(model, model.table.request(commit), *expected)

    @precondition(lambda self: self.live)
    @rule(pick=picks, with_commit=st.booleans())
    def assert_a_stale_etag(self, pick: int, with_commit: bool) -> None:
        model = self.pick(pick)
        actions = [set_comment("never")]
        if with_commit:
            actions.append(add_commit(model.table.stage_commit(model.latest + 1)))
        stale = model.past_etags[-1] if model.past_etags else "never-was"
        self.refused(model, model.table.request(*actions, etag=stale), REQUIREMENT_CONFLICT)

    # ---- publishing ----

    @precondition(lambda self: any(model.backlog for model in self.live.values()))
    @rule(pick=picks, ahead=st.integers(1, BACKLOG_MAX))
    def publish_files(self, pick: int, ahead: int) -> None:
        """In order; the catalog is not told."""
        model = self.pick(pick, [model for model in self.live.values() if model.backlog])
        for version in range(model.published + 1, min(model.published + ahead, model.latest) + 1):
            self.put_file(model, version)

    @precondition(lambda self: any(model.backlog for model in self.live.values()))
    @rule(pick=picks, ahead=st.integers(2, BACKLOG_MAX))
    def publish_a_file_behind_a_gap(self, pick: int, ahead: int) -> None:
        model = self.pick(pick, [model for model in self.live.values() if model.backlog])
        self.put_file(model, min(model.published + ahead, model.latest))

    @precondition(lambda self: self.live)
    @rule(pick=picks, back=st.integers(0, BACKLOG_MAX + 1), change=st.none() | comments)
    def report_publication(self, pick: int, back: int, change: Action | None) -> None:
        """True or false: it counts as far as the files are there, without a gap, and never backwards."""
        model = self.pick(pick)
        reported = max(0, model.latest - back)
        published = model.verified(reported)
        self.visited.add("true report" if published >= reported else "false report")
        model.published = published
        if change:
            model.change(replace(model.metadata, comment=change["comment"]))
        self.accepted(model, model.table.update(report(reported), *([change] if change else [])))

    @precondition(lambda self: any(model.backlog for model in self.live.values()))
    @rule(pick=picks, kind=st.sampled_from(["same size", "longer", "empty"]))
    def report_a_file_with_other_bytes(self, pick: int, kind: str) -> None:
        model = self.pick(pick, [model for model in self.live.values() if model.backlog])
        missing = [v for v in range(model.published + 1, model.latest + 1) if v not in model.files]
        if not missing:
            return
        staged = staged_bytes(model, missing[0])
        other = {"same size": staged.swapcase(), "longer": staged + b"\n", "empty": b""}[kind]
        file = model.table.log / f"{missing[0]:020}.json"
        file.write_bytes(other)
        model.published = model.verified(model.latest)
        assert model.published < missing[0]
        self.accepted(model, model.table.report(model.latest))
        file.unlink()
        self.visited.add("report of other bytes")

    @precondition(lambda self: self.live)
    @rule(pick=picks, ahead=st.integers(1, 3))
    def report_what_was_never_ratified(self, pick: int, ahead: int) -> None:
        model = self.pick(pick)
        self.refused(model, model.table.request(report(model.latest + ahead)), INVALID)

    # ---- metadata without a commit ----

    @precondition(lambda self: self.live)
    @rule(pick=picks, change=st.one_of(comments, property_changes, changes_of_the_log), assert_etag=st.booleans())
    def change_metadata_without_a_commit(self, pick: int, change: Action, assert_etag: bool) -> None:
        model = self.pick(pick)
        request = model.table.request(change, etag=model.etag if assert_etag else None)
        after = model.metadata.without_commit(change)
        if after is None:
            self.refused(model, request, INVALID)
            return
        model.change(after)
        self.visited.add("metadata changed" if model.etag is None else "metadata set to what it was")
        self.accepted(model, self.lake.update(model.table.name, request))

    # ---- names ----

    @precondition(lambda self: self.live)
    @rule(pick=picks, to=names)
    def rename(self, pick: int, to: str) -> None:
        old = list(self.live)[pick % len(self.live)]
        answer = self.lake.http.post(
            f"{self.lake.tables_url()}/{self.full(old)}/rename", json={"new-name": self.full(to)}
        )
        if to in self.live and to != old:
            assert error_of(answer) == ALREADY_EXISTS
            self.visited.add("rename to a taken name")
            return
        assert answer.status_code == 204, answer.text
        model = self.live.pop(old)
        model.table.name = self.full(to)
        self.live[to] = model

    @precondition(lambda self: self.live)
    @rule(pick=picks)
    def drop(self, pick: int) -> None:
        name = list(self.live)[pick % len(self.live)]
        answer = self.lake.http.delete(f"{self.lake.tables_url()}/{self.full(name)}")
        assert answer.status_code == 204, answer.text
        self.dropped.append(self.live.pop(name))

    @precondition(lambda self: self.dropped)
    @rule(with_commit=st.booleans())
    def write_to_a_dropped_table(self, with_commit: bool) -> None:
        """Its name may lead to a new table by now, which must not take what was meant for the old one."""
        model = self.dropped[-1]
        action = set_comment("never")
        if with_commit:
            action = add_commit(model.table.stage_commit(model.latest + 1))
        taken = any(other.table.name == model.table.name for other in self.live.values())
        expected = REQUIREMENT_CONFLICT if taken and not with_commit else NO_SUCH_TABLE
        assert error_of(model.table.update(action)) == expected
        self.visited.add("write to a table whose name was taken over" if taken else "write to a dropped table")

    # ---- what must hold after every step ----

    @invariant()
    def every_table_loads_as_its_model_says(self) -> None:
        for name in NAMES:
            if name in self.live:
                self.check(self.live[name], self.live[name].table.load())
                self.check_comment(self.live[name])
            else:
                assert error_of(self.lake.load(self.full(name))) == NO_SUCH_TABLE

    def check(self, model: Model, loaded: dict[str, Any]) -> None:
        metadata = dict(loaded["metadata"])
        etag = metadata.pop("etag")
        assert metadata.pop("created-time") <= metadata.pop("updated-time")
        assert {**loaded, "metadata": metadata} == model.served()
        if model.etag is None:
            assert etag not in self.etags, "an etag came back"
            model.etag = etag
            self.etags.add(etag)
        assert etag == model.etag

    def check_comment(self, model: Model) -> None:
        """Load has no place for it; the table's own page has."""
        answer = self.lake.http.get(f"{UNITY}/tables/main.default.{model.table.name}")
        assert answer.status_code == 200, answer.text
        assert answer.json()["comment"] == model.metadata.comment
        assert answer.json()["properties"] == model.served()["metadata"]["properties"]

    # ---- the machine's own ----

    def accepted(self, model: Model, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        self.check(model, answer.json())

    def refused(self, model: Model, request: dict[str, Any], *expected: tuple[int, str]) -> httpx.Response:
        answer = self.lake.update(model.table.name, request)
        assert error_of(answer) in expected, answer.text
        self.visited.add(error_of(answer)[1])
        return answer

    def put_file(self, model: Model, version: int) -> None:
        if version not in model.files:
            model.table.publish(version)
            model.files.add(version)

    def full(self, name: str) -> str:
        return f"{name}_{self.number}"

    def pick(self, pick: int, among: list[Model] | None = None) -> Model:
        candidates = list(self.live.values()) if among is None else among
        return candidates[pick % len(candidates)]


def features_of(protocol: dict[str, Any]) -> dict[str, str]:
    """The derived properties that say which protocol a table has."""
    features = {*protocol["reader-features"], *protocol["writer-features"]}
    return {
        "delta.minReaderVersion": str(protocol["min-reader-version"]),
        "delta.minWriterVersion": str(protocol["min-writer-version"]),
        **{f"delta.feature.{feature}": "supported" for feature in features},
    }


def staged_bytes(model: Model, version: int) -> bytes:
    return (model.table.log / "_staged_commits" / model.commits[version]["file-name"]).read_bytes()


EVERY_OUTCOME = {
    VERSION_CONFLICT[1],
    REQUIREMENT_CONFLICT[1],
    BACKLOG_FULL[1],
    INVALID[1],
    "conflict above",
    "conflict below",
    "false report",
    "metadata changed",
    "metadata set to what it was",
    "rename to a taken name",
    "replay of an old one",
    "replay of the newest",
    "report of other bytes",
    "true report",
    "write to a dropped table",
    "write to a table whose name was taken over",
}


@pytest.fixture
def small_server(database_url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of its own, because its backlog is small."""
    settings = {"unpublished_commits_max": str(BACKLOG_MAX)}
    process = ServerProcess(tmp_path / "home", database_url, settings).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])


def test_any_order_of_requests_leaves_the_catalog_where_the_model_is(small_server: ServerProcess) -> None:
    visited: set[str] = set()
    etags: set[str] = set()
    with small_server.http() as http:
        run_state_machine_as_test(
            lambda: Catalog(http, visited, etags),
            settings=settings(
                max_examples=20,
                stateful_step_count=40,
                deadline=None,
                report_multiple_bugs=False,
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
    assert len(visited) > len(EVERY_OUTCOME) // 2, "the search is too shallow"
    assert visited <= EVERY_OUTCOME


def test_one_walk_through_every_kind_of_step_meets_every_outcome(small_server: ServerProcess) -> None:
    """What the search may miss in a short run is met here once, in a fixed order."""
    visited: set[str] = set()
    with small_server.http() as http:
        machine = Catalog(http, visited, set())
        for step in walk(machine):
            step()
            machine.every_table_loads_as_its_model_says()
    assert visited == EVERY_OUTCOME


def walk(machine: Catalog) -> list[Callable[[], None]]:
    """The first table stays number 0, the second is number 1, until one of them is dropped."""
    appending = set_keys({"delta.appendOnly": "true"})
    return [
        machine.begin_with_one_table,
        lambda: machine.create("flow"),
        lambda: machine.commit_data(0, BACKLOG_MAX + 1),
        lambda: machine.replay(0, 0),
        lambda: machine.replay(0, 3),
        lambda: machine.propose_a_version_that_is_not_next(0, -2, appending),
        lambda: machine.propose_a_version_that_is_not_next(0, 2, None),
        lambda: machine.report_a_file_with_other_bytes(0, "same size"),
        lambda: machine.publish_a_file_behind_a_gap(0, 3),
        lambda: machine.report_publication(0, 0, None),
        lambda: machine.publish_files(0, 3),
        lambda: machine.report_publication(0, BACKLOG_MAX - 2, set_comment("high")),
        lambda: machine.report_what_was_never_ratified(0, 1),
        lambda: machine.commit_metadata(0, appending, assert_etag=True, reported=True),
        lambda: machine.commit_metadata(0, set_columns(WIDER), assert_etag=False, reported=False),
        lambda: machine.replay(0, 1),
        lambda: machine.assert_a_stale_etag(0, with_commit=True),
        lambda: machine.assert_a_stale_etag(0, with_commit=False),
        lambda: machine.change_metadata_without_a_commit(1, set_keys({"tide": "true"}), assert_etag=True),
        lambda: machine.change_metadata_without_a_commit(1, set_keys({"tide": "true"}), assert_etag=True),
        lambda: machine.change_metadata_without_a_commit(1, appending, assert_etag=False),
        lambda: machine.commit_metadata(1, set_keys({"tide": "true"}), assert_etag=True, reported=False),
        lambda: machine.commit_a_breach_of_contract(1, remove_keys(["io.unitycatalog.tableId"])),
        lambda: machine.commit_with_a_timestamp_that_does_not_rise(1),
        lambda: machine.rename(0, "flow"),
        lambda: machine.rename(1, "slack"),
        lambda: machine.drop(0),
        lambda: machine.write_to_a_dropped_table(with_commit=True),
        lambda: machine.create("ebb"),
        lambda: machine.write_to_a_dropped_table(with_commit=True),
        lambda: machine.write_to_a_dropped_table(with_commit=False),
    ]
