"""Commits that were made for a snapshot: past what others commit meanwhile, or refused with what is in the way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.python_client.conftest import COLUMNS, KINDS, QUICK, log_of
from tests.python_client.faces import close_face, open_face
from tests.python_client.proxy import Fault, Proxy, proxy_to
from tests.python_client.test_append import (
    TRACKED,
    Meanwhile,
    changed_columns,
    data_files,
    last_commit,
    metadata_of,
    read,
    with_property,
)
from tests.python_client.test_faults import IMPATIENT
from tests.servers import ServerProcess
from tidegate import client
from tidegate.client import Reads
from tidegate.client.files import LocalFiles
from tidegate.client.inline_limits import INLINE_BYTES_MAX

PROPERTIES = {**TRACKED, "delta.enableDeletionVectors": "true"}
WHOLE = Reads(whole_table=True)


@pytest.fixture
def other(server: ServerProcess) -> Iterator[client.Catalog]:
    """Somebody else."""
    with client.connect(server.url, token=server.token) as lake:
        yield lake


@pytest.fixture
def parted(catalog: Any, unique: str) -> Any:
    """Partitioned by name, with a file for each of two names."""
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, partition_by=["name"], properties=PROPERTIES)
    table.append([{"id": 1, "name": "ebb"}, {"id": 2, "name": "flood"}])
    return table


def file_of(snapshot: client.Snapshot, name: str) -> Any:
    return next(file for file in snapshot.files if file.partition_values == {"name": name})


def removed(file: Any) -> dict[str, Any]:
    return {"remove": {"path": file.path, "deletionTimestamp": 1, "dataChange": True}}


def copied(table: Any, snapshot: client.Snapshot, name: str, **others: Any) -> dict[str, Any]:
    """A data file more, with the rows of the one that there is of this name."""
    file, folder = file_of(snapshot, name), log_of(table).parent
    number = len(data_files(table))
    shutil.copy(folder / file.path, folder / f"copy-{number}.parquet")
    told = {"path": f"copy-{number}.parquet", "partitionValues": {"name": name}, "size": file.size, "stats": file.stats}
    return {"add": {**told, "modificationTime": 0, "dataChange": True, **others}}


def staged(table: Any) -> set[str]:
    folder = log_of(table) / "_staged_commits"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def domain(name: str) -> dict[str, Any]:
    return {"domainMetadata": {"domain": name, "configuration": '{"a":1}', "removed": False}}


def txn(app: str) -> dict[str, Any]:
    return {"txn": {"appId": app, "version": 5}}


def restated(table: Any, *, without: str) -> dict[str, Any]:
    lines = (log_of(table) / f"{0:020}.json").read_text().splitlines()
    protocol = next(json.loads(line)["protocol"] for line in lines if '"protocol"' in line)
    features = [one for one in protocol["writerFeatures"] if one != without]
    return {"protocol": {**protocol, "writerFeatures": features}}


Actions = Callable[[Any, client.Snapshot], list[dict[str, Any]]]
"""Of a table and the snapshot of it that was taken first."""


def ebb_more(table: Any, snapshot: client.Snapshot) -> list[dict[str, Any]]:
    return [copied(table, snapshot, "ebb")]


def ebb_gone(table: Any, snapshot: client.Snapshot) -> list[dict[str, Any]]:
    return [removed(file_of(snapshot, "ebb"))]


def flood_gone(table: Any, snapshot: client.Snapshot) -> list[dict[str, Any]]:
    return [removed(file_of(snapshot, "flood"))]


def nothing(table: Any, snapshot: client.Snapshot) -> list[dict[str, Any]]:
    return []


CONFLICTS: dict[str, tuple[Actions, Reads, Actions, type[client.ConcurrentChange]]] = {
    "protocol": (ebb_more, Reads(), lambda t, s: [restated(t, without="appendOnly")], client.ProtocolChanged),
    "properties": (ebb_more, Reads(), lambda t, s: [with_property(t, "color", "blue")], client.MetadataChanged),
    "columns": (ebb_more, Reads(), lambda t, s: [changed_columns(t)], client.MetadataChanged),
    "domain": (lambda t, s: [domain("mine")], Reads(), lambda t, s: [domain("mine")], client.DomainMetadataChanged),
    "domain read": (ebb_more, Reads(domains=["mine"]), lambda t, s: [domain("mine")], client.DomainMetadataChanged),
    "application": (lambda t, s: [txn("a")], Reads(), lambda t, s: [txn("a")], client.ConcurrentTransaction),
    "application read": (ebb_more, Reads(app_ids=["a"]), lambda t, s: [txn("a")], client.ConcurrentTransaction),
    "files came": (ebb_gone, WHOLE, ebb_more, client.ConcurrentAppend),
    "files came to the partition": (ebb_gone, Reads(where={"name": "ebb"}), ebb_more, client.ConcurrentAppend),
    "files came where a filter looks": (
        ebb_gone,
        Reads(where=[("name", "in", ["ebb", "slack"]), ("id", ">", 0)]),
        ebb_more,
        client.ConcurrentAppend,
    ),
    "files went": (ebb_more, WHOLE, flood_gone, client.ConcurrentDeleteRead),
    "files of the partition went": (ebb_more, Reads(where={"name": "ebb"}), ebb_gone, client.ConcurrentDeleteRead),
    "both remove": (ebb_gone, Reads(), ebb_gone, client.ConcurrentDeleteDelete),
}
STAND: dict[str, tuple[Actions, Reads, Actions]] = {
    "blind append, append": (ebb_more, Reads(), ebb_more),
    "blind append, removal": (ebb_more, Reads(), ebb_gone),
    "removal, append elsewhere": (flood_gone, Reads(where={"name": "flood"}), ebb_more),
    "removal, removal elsewhere": (flood_gone, Reads(where=lambda file: "flood" in file.path), ebb_gone),
    "whole table, progress of an application": (ebb_more, WHOLE, lambda t, s: [txn("a")]),
    "domain, another domain": (lambda t, s: [domain("mine")], Reads(), lambda t, s: [domain("theirs")]),
    "metadata, append": (lambda t, s: [with_property(t, "color", "blue")], Reads(), ebb_more),
    "append, a feature more": (ebb_more, Reads(), lambda t, s: [feature_more(t)]),
    "append, the same metadata": (ebb_more, Reads(), lambda t, s: [{"metaData": metadata_of(t)}]),
    "nothing, all": (nothing, WHOLE, ebb_more),
}


def feature_more(table: Any) -> dict[str, Any]:
    told = restated(table, without="")["protocol"]
    return {"protocol": {**told, "writerFeatures": sorted({*told["writerFeatures"], "changeDataFeed"})}}


@pytest.mark.parametrize("winner", ["inline", "staged", "published"])
@pytest.mark.parametrize("case", CONFLICTS)
def test_what_is_in_the_way_is_told_and_nothing_is_changed(
    server: ServerProcess, parted: Any, case: str, winner: str
) -> None:
    ours, reads, theirs, expected = CONFLICTS[case]
    if case == "protocol":
        parted.commit(2, [protocol_with(parted, "appendOnly")])
    snapshot = parted.snapshot()
    actions = ours(parted, snapshot)
    bytes_max = 0 if winner == "staged" else INLINE_BYTES_MAX
    with client.connect(server.url, token=server.token, inline_bytes_max=bytes_max) as other:
        won = other.table(parted.name).commit(snapshot.version + 1, theirs(parted, snapshot))
        assert (won.path is None) == (winner != "staged")
        if winner == "published":
            other.table(parted.name).publish()
    before = staged(parted)
    with pytest.raises(expected) as refused:
        parted.commit_after(snapshot, actions, reads=reads)
    assert type(refused.value) is expected
    assert refused.value.version == won.version == parted.get_ratified_commits().latest
    assert staged(parted) <= before


def protocol_with(table: Any, feature: str) -> dict[str, Any]:
    told = restated(table, without=feature)["protocol"]
    return {"protocol": {**told, "writerFeatures": [*told["writerFeatures"], feature]}}


@pytest.mark.parametrize("case", STAND)
def test_a_commit_stands_beside_what_does_not_concern_it(parted: Any, other: client.Catalog, case: str) -> None:
    ours, reads, theirs = STAND[case]
    snapshot = parted.snapshot()
    actions, others = ours(parted, snapshot), theirs(parted, snapshot)
    other.table(parted.name).commit(2, others)
    assert parted.commit_after(snapshot, actions, reads=reads).version == 3
    given = {kind for action in actions for kind in action}
    assert given <= set(last_commit(parted))
    paths = {file.path for file in parted.snapshot().files}
    for action in (*actions, *others):
        assert action.get("add", {"path": next(iter(paths), None)})["path"] in {*paths, None}
        assert action.get("remove", {"path": None})["path"] not in paths
    ids = [file.base_row_id for file in parted.snapshot().files]
    assert len(set(ids)) == len(ids), "no row has the id of another"


@pytest.mark.parametrize("isolation", ["Serializable", "WriteSerializable"])
def test_the_table_says_whether_blind_appends_are_in_the_way(
    catalog: Any, unique: str, other: client.Catalog, isolation: str
) -> None:
    table = catalog.create_table(
        f"main.default.{unique}", COLUMNS, partition_by=["name"], properties={"delta.isolationLevel": isolation}
    )
    table.append([{"id": 1, "name": "ebb"}])
    snapshot = table.snapshot()
    other.table(table.name).append([{"id": 3, "name": "ebb"}])
    actions = [removed(file_of(snapshot, "ebb"))]
    if isolation == "Serializable":
        with pytest.raises(client.ConcurrentAppend) as refused:
            table.commit_after(snapshot, actions, reads=WHOLE)
        assert refused.value.partition_values == {"name": "ebb"}
    else:
        assert table.commit_after(snapshot, actions, reads=WHOLE).version == 3
        assert read(table) == [{"id": 3, "name": "ebb"}]
        with pytest.raises(client.ConcurrentDeleteDelete):
            table.commit_after(snapshot, actions, reads=Reads())


def test_files_that_are_rearranged_do_not_mind_appends(parted: Any, other: client.Catalog) -> None:
    snapshot = parted.snapshot()
    file = file_of(snapshot, "ebb")
    kept = {"baseRowId": file.base_row_id, "defaultRowCommitVersion": file.default_row_commit_version}
    actions = [
        {"commitInfo": {"operation": "OPTIMIZE"}},
        {"remove": {**removed(file)["remove"], "dataChange": False}},
        copied(parted, snapshot, "ebb", dataChange=False, **kept),
    ]
    other.table(parted.name).append([{"id": 3, "name": "ebb"}])
    parted.commit_after(snapshot, actions, reads=Reads(files=[file]))
    told = last_commit(parted)
    assert (told["commitInfo"][0]["isolationLevel"], told["add"][0]["baseRowId"]) == ("SnapshotIsolation", 0)
    assert [row["id"] for row in read(parted)] == [1, 2, 3]


def test_row_ids_and_timestamps_go_on_from_what_others_committed(parted: Any, other: client.Catalog) -> None:
    snapshot = parted.snapshot()
    actions = [{"commitInfo": {"inCommitTimestamp": snapshot.timestamp + 1}}, copied(parted, snapshot, "ebb")]
    theirs = other.table(parted.name).append([{"id": number, "name": "slack"} for number in range(4)])
    response = parted.commit_after(snapshot, actions, reads=Reads())
    told = last_commit(parted)
    assert response.timestamp == told["commitInfo"][0]["inCommitTimestamp"] > theirs.timestamp
    assert (told["add"][0]["baseRowId"], told["add"][0]["defaultRowCommitVersion"]) == (6, 3)
    assert json.loads(told["domainMetadata"][0]["configuration"]) == {"rowIdHighWaterMark": 6}
    assert (told["commitInfo"][0]["isBlindAppend"], told["commitInfo"][0]["readVersion"]) == (True, 1)


class Noted(LocalFiles):
    """Files, and the staged ones that were written among them."""

    def __init__(self) -> None:
        self.staged: list[Path] = []

    def write_new(self, path: str, content: bytes) -> bool:
        if "_staged_commits" in path:
            self.staged.append(Path(path.removeprefix("file://")))
        return super().write_new(path, content)


class Crowd:
    """Others who are always a little earlier: something happens before a commit arrives, so many `times`."""

    def __init__(self, times: int) -> None:
        self.happens: Callable[[], object] | None = None
        self.left = times

    def __call__(self, line: str) -> Fault:
        if line.startswith("POST") and self.happens is not None and self.left > 0:
            self.left -= 1
            self.happens()
        return Fault.PASS


@dataclass
class Late:
    """A writer who is never the first."""

    crowd: Crowd
    proxy: Proxy
    catalog: Any
    files: Noted

    @property
    def left_behind(self) -> list[bool]:
        """Of the staged files, whether they are still there."""
        return [path.exists() for path in self.files.staged]


@pytest.fixture
def late(server: ServerProcess, face: str, inline_bytes_max: int) -> Iterator[Late]:
    crowd, files = Crowd(3), Noted()
    with proxy_to(server.url, crowd) as proxy:
        options = {"token": server.token, "patience": QUICK, "inline_bytes_max": inline_bytes_max}
        writer = open_face(face, proxy.url, files=files, **options)
        yield Late(crowd, proxy, writer, files)
        close_face(writer)


@KINDS
@pytest.mark.parametrize("properties", [{}, TRACKED], ids=["plain", "row ids"])
@pytest.mark.parametrize("reads", [Reads(), Reads(where={"name": "ebb"})], ids=["blind", "one partition"])
def test_lost_races_cost_one_proposal_each_and_a_look_at_inline_winners(
    catalog: Any,
    other: client.Catalog,
    late: Late,
    unique: str,
    properties: dict[str, str],
    reads: Reads,
    inline_bytes_max: int,
) -> None:
    """The server puts winners into files for one who stages."""
    made = catalog.create_table(f"main.default.{unique}", COLUMNS, partition_by=["name"], properties=properties)
    made.append([{"id": 1, "name": "ebb"}, {"id": 2, "name": "flood"}])
    somebody, table = other.table(made.name), late.catalog.table(made.name)
    snapshot = table.snapshot()
    actions = [copied(made, snapshot, "ebb")]
    late.crowd.happens = lambda: somebody.append([{"id": 9, "name": "flood"}])
    late.proxy.heard.clear()
    assert table.commit_after(snapshot, actions, reads=reads).version == 5
    looks = inline_bytes_max > 0 and (properties is TRACKED or reads.where is not None)
    assert [line.split()[0] for line in late.proxy.heard] == ["POST", *(["GET", "POST"] if looks else ["POST"]) * 3]
    assert late.left_behind == ([] if inline_bytes_max else [False] * 3 + [True])
    assert [row["id"] for row in read(made)] == [1, 1, 2, 9, 9, 9]
    ids = [file.base_row_id for file in made.snapshot().files]
    assert len(set(ids)) == (len(ids) if properties else 1)


@KINDS
def test_attempts_come_to_an_end(
    parted: Any, other: client.Catalog, late: Late, monkeypatch: pytest.MonkeyPatch, inline_bytes_max: int
) -> None:
    monkeypatch.setattr("tidegate.client.transactions.ATTEMPTS_MAX", 3)
    somebody, table = other.table(parted.name), late.catalog.table(parted.name)
    snapshot = table.snapshot()
    actions = [copied(parted, snapshot, "ebb")]
    late.crowd.happens = lambda: somebody.append([{"id": 9, "name": "flood"}])
    with pytest.raises(client.CommitConflict) as lost:
        table.commit_after(snapshot, actions, reads=Reads())
    assert (lost.value.version, lost.value.latest) == (4, 4)
    assert late.left_behind == ([] if inline_bytes_max else [False] * 3)
    assert table.commit_after(snapshot, actions, reads=Reads()).version == 5


@KINDS
def test_a_conflict_that_shows_only_when_the_version_is_lost_leaves_no_staged_file(
    parted: Any, other: client.Catalog, late: Late, inline_bytes_max: int
) -> None:
    somebody, table = other.table(parted.name), late.catalog.table(parted.name)
    snapshot = table.snapshot()
    late.crowd.happens = lambda: somebody.append([{"id": 9, "name": "ebb"}])
    with pytest.raises(client.ConcurrentAppend):
        table.commit_after(snapshot, ebb_gone(parted, snapshot), reads=WHOLE)
    assert late.left_behind == ([] if inline_bytes_max else [False])
    assert parted.load().latest_table_version == 2


def test_a_commit_without_an_answer_is_sent_again_and_counts_once(
    server: ServerProcess, parted: Any, other: client.Catalog, face: str
) -> None:
    broken = [False]
    with proxy_to(server.url, lambda line: Fault.DROP_ANSWER if broken[0] and "POST" in line else Fault.PASS) as proxy:
        writer = open_face(face, proxy.url, token=server.token, patience=IMPATIENT)
        table = writer.table(parted.name)
        snapshot = table.snapshot()
        other.table(parted.name).append([{"id": 3, "name": "flood"}])
        table.load()
        broken[0] = True
        with pytest.raises(client.CommitOutcomeUnknown) as unknown:
            table.commit_after(snapshot, ebb_gone(parted, snapshot), reads=Reads(where={"name": "ebb"}))
        broken[0] = False
        assert table.resend(unknown.value).version == 3
        close_face(writer)
    assert [row["id"] for row in read(parted)] == [2, 3]


def test_what_cannot_be_looked_at_any_more_is_in_the_way(parted: Any, other: client.Catalog) -> None:
    snapshot = parted.snapshot()
    somebody = other.table(parted.name)
    somebody.append([{"id": 3, "name": "flood"}])
    somebody.publish()
    (log_of(parted) / f"{2:020}.json").unlink()
    with pytest.raises(client.ConcurrentChange, match="no longer in the log"):
        parted.commit_after(snapshot, ebb_gone(parted, snapshot), reads=Reads())
    assert parted.load().latest_table_version == 2


BAD: dict[str, tuple[Any, str]] = {
    "no action": ([{"tide": {}}], "Action 1"),
    "no path": ([{"add": {"size": 1}}], "Action 1 is not what the protocol has as add"),
    "uncounted rows": ([{"add": {"path": "a", "partitionValues": {"name": "x"}, "size": 1}}], "numRecords"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_commit_is_refused_and_changes_nothing(parted: Any, case: str) -> None:
    actions, message = BAD[case]
    with pytest.raises(client.InvalidCommit, match=message):
        parted.commit_after(parted.snapshot(), actions, reads=Reads())
    assert parted.load().latest_table_version == 1


def test_a_snapshot_of_another_table_is_refused(parted: Any, catalog: Any, unique: str) -> None:
    another = catalog.create_table(f"main.default.{unique}_2", COLUMNS)
    with pytest.raises(client.InvalidCommit, match="another table"):
        catalog.table(another.name).commit_after(parted.snapshot(version=0), [], reads=Reads())
    assert another.load().latest_table_version == 0


def test_files_that_are_there_are_appended_past_others(parted: Any, other: client.Catalog) -> None:
    snapshot = parted.snapshot()
    adds = [copied(parted, snapshot, "ebb"), copied(parted, snapshot, "flood")]
    adds[0]["add"].pop("dataChange")
    adds[0]["add"].pop("modificationTime")
    assert parted.append_files(iter(adds[:1])).version == 2
    told = last_commit(parted)
    assert (told["commitInfo"][0]["isBlindAppend"], told["add"][0]["dataChange"]) == (True, True)
    other.table(parted.name).append([{"id": 3, "name": "slack"}])
    assert parted.append_files(adds[1:]).version == 4
    assert [row["id"] for row in read(parted)] == [1, 1, 2, 2, 3]
    ids = sorted(file.base_row_id for file in parted.snapshot().files)
    assert ids == [0, 1, 2, 3, 4]


@KINDS
@pytest.mark.parametrize("properties", [{}, TRACKED], ids=["plain", "row ids"])
def test_files_are_appended_by_one_who_is_never_the_first(
    catalog: Any, other: client.Catalog, late: Late, unique: str, properties: dict[str, str], inline_bytes_max: int
) -> None:
    """A version that is left open cannot be lost."""
    made = catalog.create_table(f"main.default.{unique}", COLUMNS, partition_by=["name"], properties=properties)
    made.append([{"id": 1, "name": "ebb"}])
    adds, somebody = [copied(made, made.snapshot(), "ebb")], other.table(made.name)
    late.crowd.happens = lambda: somebody.overwrite([{"id": 9, "name": "ebb"}])
    assert late.catalog.table(made.name).append_files(adds).version == (3 if inline_bytes_max else 5)
    assert [row["id"] for row in read(made)] == [1, 9]


@KINDS
@pytest.mark.parametrize(
    ("key", "value", "stands"), [("delta.enableDeletionVectors", "true", True), ("color", "blue", False)]
)
def test_files_are_appended_past_metadata_that_changed_if_they_fit(
    catalog: Any, other: client.Catalog, late: Late, unique: str, key: str, value: str, stands: bool
) -> None:
    made = catalog.create_table(f"main.default.{unique}", COLUMNS, partition_by=["name"])
    made.append([{"id": 1, "name": "ebb"}])
    adds, changed = [copied(made, made.snapshot(), "ebb")], with_property(made, key, value)
    late.crowd.left = 1
    late.crowd.happens = lambda: other.table(made.name).commit(2, [changed])
    table = late.catalog.table(made.name)
    if stands:
        assert table.append_files(adds).version == 3
    else:
        with pytest.raises(client.MetadataChanged) as refused:
            table.append_files(adds)
        assert (refused.value.version, refused.value.changed) == (2, ("properties",))
    assert len(read(made)) == (2 if stands else 1)


def test_looking_again_comes_to_an_end(
    parted: Any, other: client.Catalog, late: Late, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features that come stand in nobody's way, and have to be looked at all the same."""
    monkeypatch.setattr("tidegate.client.open_appends.ATTEMPTS_MAX", 3)
    adds = [copied(parted, parted.snapshot(), "ebb")]
    somebody, table = other.table(parted.name), late.catalog.table(parted.name)
    told, new = restated(parted, without="")["protocol"], ["allowColumnDefaults", "appendOnly", "changeDataFeed"]
    more = ({**told, "writerFeatures": sorted({*told["writerFeatures"], *new[:count]})} for count in (1, 2, 3))
    late.crowd.happens = lambda: somebody.commit(somebody.snapshot().version + 1, [{"protocol": next(more)}])
    with pytest.raises(client.RequirementConflict):
        table.append_files(adds)
    assert parted.get_ratified_commits().latest == 4
    assert table.append_files(adds).version == 5


@KINDS
def test_rows_get_ids_and_the_loss_of_others_is_told_if_row_tracking_begins_meanwhile(
    table: Any, other: client.Catalog
) -> None:
    """What was written before could not know of ids that its rows might have had."""
    told = restated(table, without="")["protocol"]
    features = sorted({*told["writerFeatures"], "rowTracking", "domainMetadata"})
    columns = {f"delta.rowTracking.materialized{kind}ColumnName": f"_{kind}" for kind in ("RowId", "RowCommitVersion")}
    metadata = metadata_of(table)
    configuration = {**metadata["configuration"], **TRACKED, **columns}
    begins = [
        {"protocol": {**told, "writerFeatures": features}},
        {"metaData": {**metadata, "configuration": configuration}},
    ]
    assert table.append(Meanwhile(lambda: other.table(table.name).commit(1, begins))).version == 2
    commit = last_commit(table)
    assert commit["commitInfo"][0]["tags"] == {"delta.rowTracking.preserved": "false"}
    assert (commit["add"][0]["baseRowId"], commit["add"][0]["defaultRowCommitVersion"]) == (0, 2)


@KINDS
def test_rows_get_no_ids_while_row_tracking_is_suspended(parted: Any, catalog: Any) -> None:
    metadata = metadata_of(parted)
    suspended = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
    parted.commit(2, [{"metaData": {**metadata, "configuration": {**metadata["configuration"], **suspended}}}])
    for table in (parted, parted, catalog.table(parted.name)):
        table.append([{"id": 3, "name": "ebb"}])
        commit = last_commit(parted)
        assert "domainMetadata" not in commit
        assert "baseRowId" not in commit["add"][0]


UNFIT: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no add": (lambda add: {"remove": add["add"]}, "Action 1 is no add"),
    "no object": (lambda add: "copy.parquet", "Action 1 is no add"),
    "not there": (lambda add: {"add": {**add["add"], "path": "elsewhere.parquet"}}, "it is not there"),
    "another size": (lambda add: {"add": {**add["add"], "size": 5}}, "should have 5 bytes, and it has"),
    "another partition": (lambda add: {"add": {**add["add"], "partitionValues": {}}}, "partitionValues"),
    "no rows": (lambda add: {"add": {**add["add"], "dataChange": False}}, "changes no data"),
    "no size": (lambda add: {"add": {"path": add["add"]["path"]}}, "not what the protocol has as add"),
    "no statistics": (lambda add: {"add": {**add["add"], "stats": "{}"}}, "numRecords"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_files_that_cannot_be_appended_are_refused_and_stay(parted: Any, case: str) -> None:
    change, message = UNFIT[case]
    add = copied(parted, parted.snapshot(), "ebb")
    before = data_files(parted)
    with pytest.raises(client.InvalidCommit, match=message):
        parted.append_files([change(add)])
    assert (parted.load().latest_table_version, data_files(parted)) == (1, before)


def test_a_file_is_appended_once(parted: Any) -> None:
    add = copied(parted, parted.snapshot(), "ebb")
    with pytest.raises(client.InvalidCommit, match="named twice"):
        parted.append_files([add, add])
    parted.append_files([add])
    with pytest.raises(client.InvalidCommit, match="part of the table already"):
        parted.append_files([add])
    assert len(read(parted)) == 3


def test_a_partition_is_told_by_the_names_of_its_columns(catalog: Any, unique: str) -> None:
    """In the log of a table with column mapping they have others."""
    mapped = {"delta.columnMapping.mode": "name"}
    table = catalog.create_table(f"main.default.{unique}", COLUMNS, partition_by=["name"], properties=mapped)
    snapshot = table.snapshot()
    table.append([{"id": 1, "name": "ebb"}])
    with pytest.raises(client.ConcurrentAppend, match="to the partition name=ebb") as refused:
        table.commit_after(snapshot, [{"txn": {"appId": "a", "version": 1}}], reads=Reads(whole_table=True))
    assert refused.value.partition_values == {"name": "ebb"}
