"""Delta's rules for commits that meet, one by one and without a server: what is in the way of what."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import msgspec
import pytest

from tidegate import client
from tidegate.client.files import LocalFiles
from tidegate.client.log.actions import Action, Add, DomainMetadata, Metadata, Protocol
from tidegate.client.log.snapshot import Snapshot
from tidegate.client.logical_conflicts import Isolation, find_conflict, transaction_of
from tidegate.client.reads import Reads, understood
from tidegate.client.rebasing import after, ground_of, rebased
from tidegate.client.winners import Winner, winner_of

FEATURES = ["catalogManaged", "columnMapping", "deletionVectors", "domainMetadata", "inCommitTimestamp", "rowTracking"]
READER = ["catalogManaged", "columnMapping", "deletionVectors"]
FIELDS = [
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    {"name": "country", "type": "string", "nullable": True, "metadata": {}},
    {"name": "day", "type": "date", "nullable": True, "metadata": {}},
]
VERSION = 7


def schema(fields: list[dict[str, Any]]) -> str:
    return json.dumps({"type": "struct", "fields": fields})


def protocol(features: list[str] = FEATURES, **others: Any) -> dict[str, Any]:
    told = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": READER, "writerFeatures": features}
    return {"protocol": told | others}


def metadata(properties: Mapping[str, str] | None = None, fields: Any = None, **others: Any) -> dict[str, Any]:
    told = {"id": "t", "schemaString": schema(fields or FIELDS), "partitionColumns": ["country", "day"]}
    return {"metaData": told | {"configuration": dict(properties or {})} | others}


def add(path: str, country: str | None = "is", day: str | None = "2026-01-01", **others: Any) -> dict[str, Any]:
    told = {"path": path, "partitionValues": {"country": country, "day": day}, "size": 1, "modificationTime": 0}
    return {"add": told | {"dataChange": True, "stats": '{"numRecords":3}'} | others}


def remove(path: str, **others: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True} | others}


def info(**told: Any) -> dict[str, Any]:
    return {"commitInfo": told}


def txn(app: str) -> dict[str, Any]:
    return {"txn": {"appId": app, "version": 5}}


def domain(name: str, configuration: str = "{}") -> dict[str, Any]:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": False}}


FILES = [add("is-1"), add("is-2", day="2026-01-02"), add("no-1", country="no"), add("none", country=None)]
BLIND = info(operation="WRITE", isBlindAppend=True)
READING = info(operation="MERGE", isBlindAppend=False)


def snapshot(properties: Mapping[str, str] | None = None, *, partitioned: bool = True, **others: Any) -> Snapshot:
    by = {} if partitioned else {"partitionColumns": []}
    told = msgspec.convert(metadata(properties, **by)["metaData"], Metadata)
    facts: dict[str, Any] = {
        "location": "file:///t",
        "version": VERSION,
        "timestamp": 1000,
        "protocol": msgspec.convert(protocol()["protocol"], Protocol),
        "metadata": told,
        "schema": told.schema,
        "files": tuple(msgspec.convert(one["add"], Add) for one in FILES),
        "domains": {"delta.rowTracking": '{"rowIdHighWaterMark":11}'},
        "transactions": {},
    }
    return Snapshot(**(facts | others))


def won(*actions: dict[str, Any], version: int = VERSION + 1) -> Winner:
    return winner_of(version, [msgspec.convert(one, Action) for one in actions])


@dataclass
class Case:
    """What this commit does and has read, what the other did, and the error that comes of it."""

    ours: list[dict[str, Any]]
    theirs: list[dict[str, Any]]
    reads: Reads = field(default_factory=Reads)
    on: Snapshot = field(default_factory=snapshot)
    expected: type[client.ConcurrentChange] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def judged(case: Case) -> client.ConcurrentChange | None:
    read = understood(case.reads, case.on, LocalFiles())
    ours = transaction_of("a.b.c", case.on, case.ours, read)
    return find_conflict(ours, ground_of(case.on), won(*case.theirs))


def check(case: Case) -> None:
    found = judged(case)
    assert type(found) is (case.expected or type(None)), found
    if found is not None:
        assert found.version == VERSION + 1
        assert {name: getattr(found, name) for name in case.facts} == case.facts
        assert str(found).startswith("Version 8 of a.b.c, committed meanwhile, ")


WHOLE = Reads(whole_table=True)
WRITES_ONLY = snapshot({"delta.isolationLevel": "WriteSerializable"})
SERIALIZABLE = snapshot({"delta.isolationLevel": "serializable"})
OPTIMIZE = [info(operation="OPTIMIZE"), remove("is-1", dataChange=False), add("new", dataChange=False)]
EMPTY_DELETE = [info(operation="DELETE")]
APPEND, DELETE_READ, DELETE_DELETE = (
    client.ConcurrentAppend,
    client.ConcurrentDeleteRead,
    client.ConcurrentDeleteDelete,
)

FILES_THAT_CAME = {
    "blind append, blind append": Case([add("new")], [BLIND, add("x")]),
    "blind append, files of a merge": Case([add("new")], [READING, add("x"), remove("is-1")]),
    "whole table, blind append": Case([add("new")], [BLIND, add("x")], WHOLE, expected=APPEND, facts={"path": "x"}),
    "whole table, nobody says that it is blind": Case([add("new")], [add("x")], WHOLE, expected=APPEND),
    "whole table, Serializable": Case([add("new")], [BLIND, add("x")], WHOLE, SERIALIZABLE, APPEND),
    "whole table, WriteSerializable, blind append": Case([add("new")], [BLIND, add("x")], WHOLE, WRITES_ONLY),
    "whole table, WriteSerializable, merge": Case([add("new")], [READING, add("x")], WHOLE, WRITES_ONLY, APPEND),
    "whole table, WriteSerializable, blind by its own word only": Case(
        [add("new")], [info(isBlindAppend="true"), add("x")], WHOLE, WRITES_ONLY, APPEND
    ),
    "WriteSerializable and metadata, blind append": Case(
        [metadata({"delta.isolationLevel": "WriteSerializable", "a": "b"}), remove("no-1")],
        [BLIND, add("x")],
        WHOLE,
        WRITES_ONLY,
        APPEND,
    ),
    "an isolation that nobody knows": Case(
        [add("new")], [BLIND, add("x")], WHOLE, snapshot({"delta.isolationLevel": "whatever"}), APPEND
    ),
    "no data changed": Case(OPTIMIZE, [READING, add("x")], Reads(files=["is-1"])),
    "no data changed, WriteSerializable": Case(OPTIMIZE, [READING, add("x")], Reads(files=["is-1"]), WRITES_ONLY),
    "nothing done": Case(EMPTY_DELETE, [READING, add("x")], WHOLE),
    "nothing done by a DELETE, WriteSerializable": Case(EMPTY_DELETE, [READING, add("x")], WHOLE, WRITES_ONLY, APPEND),
    "no data changed, with progress": Case([*OPTIMIZE, txn("loader")], [READING, add("x")], WHOLE, expected=APPEND),
    "no data changed, with row ids": Case(
        [*OPTIMIZE, domain("delta.rowTracking", '{"rowIdHighWaterMark":14}')],
        [READING, add("x")],
        Reads(files=["is-1"]),
    ),
    "row ids for files that were there": Case(
        [add("new")], [info(operation="ROW TRACKING BACKFILL"), add("is-1", baseRowId=0)], WHOLE
    ),
    "without partitions, not blind": Case(
        [remove("is-1")], [BLIND, add("x")], Reads(files=["is-1"]), snapshot(partitioned=False), APPEND
    ),
    "with partitions, files by name": Case([remove("is-1")], [BLIND, add("x")], Reads(files=["is-1"])),
    "removes without having read": Case([remove("is-1")], [BLIND, add("x")]),
}


def is_icelandic(file: Add) -> bool:
    return file.partition_values["country"] == "is"


def reading(where: Any, theirs: dict[str, Any], expected: type[client.ConcurrentChange] | None = None) -> Case:
    return Case([add("new")], [READING, theirs], Reads(where=where), expected=expected)


NO_PARTITION = {"add": {**add("x")["add"], "partitionValues": {"day": "2026-01-01"}}}
PARTITIONS = {
    "the partition": reading({"country": "is"}, add("x"), APPEND),
    "another partition": reading({"country": "is"}, add("x", country="no")),
    "both values": reading({"country": "is", "day": date(2026, 1, 1)}, add("x"), APPEND),
    "one of both values": reading({"country": "is", "day": date(2026, 1, 3)}, add("x")),
    "null": reading({"country": None}, add("x", country=None), APPEND),
    "an empty text is null": reading({"country": None}, add("x", country=""), APPEND),
    "null is no value": reading({"country": "is"}, add("x", country=None)),
    "a range": reading([("day", ">=", date(2026, 1, 1))], add("x", day="2026-03-01"), APPEND),
    "outside of a range": reading([("day", ">=", date(2026, 1, 2))], add("x")),
    "a list": reading([("country", "in", ["se", "is"])], add("x"), APPEND),
    "not in a list": reading([("country", "in", ["se", "no"])], add("x")),
    "rows by another column": reading([("id", "=", 5)], add("x", stats='{"minValues":{"id":9}}'), APPEND),
    "both kinds of columns": reading([("id", "=", 5), ("country", "=", "no")], add("x")),
    "a function": reading(is_icelandic, add("x"), APPEND),
    "a function that says no": reading(is_icelandic, add("x", country="no")),
    "a function that cannot judge": reading(is_icelandic, NO_PARTITION, APPEND),
    "a value that is none": reading({"day": date(2026, 1, 1)}, add("x", day="someday"), APPEND),
    "a value that is missing": reading({"country": "is"}, NO_PARTITION, APPEND),
    "a value that is missing, another that is not wanted": reading(
        {"country": "is", "day": date(2026, 1, 2)}, NO_PARTITION
    ),
}
DELETION_VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
FILES_THAT_WENT = {
    "blind append": Case([add("new")], [READING, remove("is-1")]),
    "whole table": Case([add("new")], [remove("is-1")], WHOLE, expected=DELETE_READ, facts={"path": "is-1"}),
    "whole table, no data changed": Case(OPTIMIZE, [remove("no-1", dataChange=False)], WHOLE, expected=DELETE_READ),
    "a file by name": Case([add("new")], [remove("is-1")], Reads(files=["is-1"]), expected=DELETE_READ),
    "a file of the snapshot": Case(
        [add("new")], [remove("is-1")], Reads(files=[snapshot().files[0]]), expected=DELETE_READ
    ),
    "another file": Case([add("new")], [remove("is-2")], Reads(files=["is-1"])),
    "a file of the partition": Case(
        [add("new")], [remove("is-2")], Reads(where={"country": "is"}), expected=DELETE_READ
    ),
    "a file of another partition": Case([add("new")], [remove("no-1")], Reads(where={"country": "is"})),
    "a file for which the function is true": Case(
        [add("new")], [remove("is-2")], Reads(where=is_icelandic), expected=DELETE_READ
    ),
    "a file for which the function is false": Case([add("new")], [remove("no-1")], Reads(where=is_icelandic)),
    "the same file": Case([remove("is-1")], [remove("is-1")], expected=DELETE_DELETE, facts={"path": "is-1"}),
    "another one": Case([remove("is-1")], [remove("is-2")]),
    "the same file, of which the other marks rows": Case(
        [remove("is-1")], [remove("is-1"), add("is-1", deletionVector=DELETION_VECTOR)], expected=DELETE_DELETE
    ),
    "rows of the same file, marked by both": Case(
        [remove("is-1"), add("is-1", deletionVector=DELETION_VECTOR)],
        [READING, remove("is-1"), add("is-1", deletionVector=DELETION_VECTOR)],
        expected=DELETE_DELETE,
    ),
    "no data changed by either": Case(OPTIMIZE, [remove("is-1", dataChange=False)], expected=DELETE_DELETE),
    "read and removed": Case([remove("is-1")], [remove("is-1")], Reads(files=["is-1"]), expected=DELETE_READ),
}
CONCURRENT = client.ConcurrentTransaction
PROGRESS = {
    "same application": Case(
        [txn("loader")], [txn("loader")], expected=CONCURRENT, facts={"app_id": "loader", "recorded": 5}
    ),
    "another": Case([txn("loader")], [txn("other")]),
    "read": Case([add("new")], [txn("loader")], Reads(app_ids=["loader"]), expected=CONCURRENT),
    "another was read": Case([add("new")], [txn("other")], Reads(app_ids=["loader"])),
}
DOMAIN = client.DomainMetadataChanged
DOMAINS = {
    "same domain": Case([domain("a")], [domain("a")], expected=DOMAIN, facts={"domain": "a"}),
    "another": Case([domain("a")], [domain("b")]),
    "read": Case([add("new")], [domain("a")], Reads(domains=["a"]), expected=DOMAIN),
    "clustering": Case([domain("delta.clustering")], [domain("delta.clustering")], expected=DOMAIN),
    "row tracking": Case(
        [domain("delta.rowTracking", '{"rowIdHighWaterMark":14}')],
        [domain("delta.rowTracking", '{"rowIdHighWaterMark":20}')],
    ),
}
PROTOCOL = client.ProtocolChanged
WITHOUT = [one for one in FEATURES if one != "rowTracking"]
PROTOCOLS = {
    "both": Case([protocol()], [protocol()], expected=PROTOCOL, facts={"features": ()}),
    "ours": Case([protocol([*FEATURES, "appendOnly"])], [add("x")]),
    "a feature more": Case([add("new")], [protocol([*FEATURES, "appendOnly", "v2Checkpoint"])], WHOLE),
    "the same, stated anew": Case([add("new")], [protocol()], WHOLE),
    "a feature less": Case([add("new")], [protocol(WITHOUT)], expected=PROTOCOL, facts={"features": ("rowTracking",)}),
    "a feature that nobody here knows": Case(
        [add("new")], [protocol([*FEATURES, "tides"])], expected=PROTOCOL, facts={"features": ("tides",)}
    ),
    "a reader version that nobody here knows": Case([add("new")], [protocol(minReaderVersion=4)], expected=PROTOCOL),
    "ours drops a feature": Case(
        [protocol(WITHOUT)], [txn("x")], expected=PROTOCOL, facts={"features": ("rowTracking",)}
    ),
}
CHANGED = client.MetadataChanged
OLD = snapshot({"color": "red"})
MAPPED = {"color": "red", "delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}


def with_names(fields: list[dict[str, Any]], **others: Any) -> list[dict[str, Any]]:
    return [
        {**one, "metadata": {"delta.columnMapping.id": place, "delta.columnMapping.physicalName": one["name"]} | others}
        for place, one in enumerate(fields, start=1)
    ]


def changing(theirs: list[dict[str, Any]], *changed: str, on: Snapshot = OLD) -> Case:
    return Case([add("new")], theirs, on=on, expected=CHANGED if changed else None, facts={"changed": changed})


def setting(*, on: Mapping[str, str] | None = None, **values: str) -> list[dict[str, Any]]:
    """A commit that sets properties; `_` stands for a dot."""
    return [
        metadata(
            {"color": "red", **(on or {}), **{f"delta.{key.replace('_', '.')}": told for key, told in values.items()}}
        )
    ]


ENABLED = snapshot({"color": "red", "delta.enableRowTracking": "true"})
METADATA = {
    "the same, stated anew": changing([metadata({"color": "red"})]),
    "the same columns in other words": changing(
        [metadata({"color": "red"}, schemaString=schema(FIELDS).replace(" ", ""))]
    ),
    "a property": changing([metadata({"color": "blue"})], "properties"),
    "a property more": changing([metadata({"color": "red", "a": "b"})], "properties"),
    "a property less": changing([metadata({})], "properties"),
    "append-only": changing(setting(appendOnly="true"), "properties"),
    "comment": changing([metadata({"color": "red"}, description="now with one")], "comment"),
    "name": changing([metadata({"color": "red"}, name="t")], "name"),
    "another table": changing([metadata({"color": "red"}, id="u")], "id"),
    "partitions": changing([metadata({"color": "red"}, partitionColumns=["day"])], "partition columns"),
    "a column more": changing([metadata({"color": "red"}, [*FIELDS, {**FIELDS[0], "name": "z"}])], "columns"),
    "a column that takes no null": changing(
        [metadata({"color": "red"}, [{**FIELDS[0], "nullable": False}, *FIELDS[1:]])], "columns"
    ),
    "columns and properties": changing([metadata({}, FIELDS[:2])], "properties", "columns"),
    "deletion vectors on": changing(setting(enableDeletionVectors="true")),
    "deletion vectors off": changing(setting(enableDeletionVectors="false"), "properties"),
    "deletion vectors without the feature": changing(
        setting(enableDeletionVectors="true"),
        "properties",
        on=snapshot({"color": "red"}, protocol=Protocol(3, 7, ["catalogManaged"], ["catalogManaged"])),
    ),
    "the feature together with its property": changing(
        [protocol([*FEATURES, "v2Checkpoint"]), *setting(checkpointPolicy="v2")]
    ),
    "checkpoints without the feature": changing(setting(checkpointPolicy="v2"), "properties"),
    "classic checkpoints": changing(
        [protocol([*FEATURES, "v2Checkpoint"]), *setting(checkpointPolicy="classic")], "properties"
    ),
    "row tracking on": changing(setting(enableRowTracking="true", rowTracking_materializedRowIdColumnName="_row-id-1")),
    "row tracking's columns alone": changing(setting(rowTracking_materializedRowIdColumnName="_r"), "properties"),
    "row tracking off": changing(setting(enableRowTracking="false"), "properties", on=ENABLED),
    "in-commit timestamps on": changing(
        setting(enableInCommitTimestamps="true", inCommitTimestampEnablementVersion="8")
    ),
    "in-commit timestamps moved": changing(
        setting(inCommitTimestampEnablementVersion="8"),
        "properties",
        on=snapshot({"color": "red", "delta.inCommitTimestampEnablementVersion": "1"}),
    ),
    "the table's id, for the first time": changing([metadata({"color": "red", "io.unitycatalog.tableId": "u"})]),
    "another id": changing(
        [metadata({"io.unitycatalog.tableId": "u"})], "properties", on=snapshot({"io.unitycatalog.tableId": "t"})
    ),
    "column mapping by name": changing([metadata(MAPPED, with_names(FIELDS))]),
    "column mapping by id": changing(
        [metadata({**MAPPED, "delta.columnMapping.mode": "id"}, with_names(FIELDS))], "properties", "columns"
    ),
    "column mapping and a comment": changing([metadata(MAPPED, with_names(FIELDS, comment="c"))], "columns"),
    "column mapping and a column less": changing([metadata(MAPPED, with_names(FIELDS[:2]))], "columns"),
    "identities counted": changing(
        [info(tags={"delta.identity.schemaUpdate": "true"}), metadata({"color": "red"}, FIELDS[:2])]
    ),
    "tags of another kind": changing([info(tags="x"), metadata({})], "properties"),
}
BOTH_STATE_METADATA = {
    "both": Case([metadata({"a": "b"})], [metadata({"c": "d"})], expected=CHANGED, facts={"changed": ()}),
    "both, and the other is a feature": Case(
        [metadata({"a": "b"})], setting(enableDeletionVectors="true"), expected=CHANGED
    ),
    "both, and the other counts identities": Case(
        [metadata({"a": "b"})], [info(tags={"delta.identity.schemaUpdate": "true"}), metadata()], expected=CHANGED
    ),
    "ours alone": Case([metadata({"a": "b"})], [BLIND, add("x")]),
}
ORDER = {
    "the protocol is looked at first": Case([protocol(), metadata()], [metadata(), protocol()], expected=PROTOCOL),
    "then metadata": Case([domain("a"), metadata()], [metadata(), domain("a")], expected=CHANGED),
    "then domains": Case([txn("x"), domain("a")], [txn("x"), domain("a")], expected=DOMAIN),
    "then applications": Case([txn("x")], [txn("x"), add("x")], WHOLE, expected=CONCURRENT),
    "then files that came": Case([add("new")], [remove("is-1"), add("x")], WHOLE, expected=APPEND),
}


@pytest.mark.parametrize("case", FILES_THAT_CAME)
def test_files_that_came(case: str) -> None:
    check(FILES_THAT_CAME[case])


@pytest.mark.parametrize("case", PARTITIONS)
def test_files_that_came_to_partitions(case: str) -> None:
    check(PARTITIONS[case])


@pytest.mark.parametrize("case", FILES_THAT_WENT)
def test_files_that_went(case: str) -> None:
    check(FILES_THAT_WENT[case])


@pytest.mark.parametrize("case", PROGRESS)
def test_progress_of_applications(case: str) -> None:
    check(PROGRESS[case])


@pytest.mark.parametrize("case", DOMAINS)
def test_metadata_domains(case: str) -> None:
    check(DOMAINS[case])


@pytest.mark.parametrize("case", PROTOCOLS)
def test_protocols(case: str) -> None:
    check(PROTOCOLS[case])


@pytest.mark.parametrize("case", METADATA)
def test_metadata_that_changed(case: str) -> None:
    check(METADATA[case])


@pytest.mark.parametrize("case", BOTH_STATE_METADATA)
def test_commits_that_state_metadata(case: str) -> None:
    check(BOTH_STATE_METADATA[case])


@pytest.mark.parametrize("case", ORDER)
def test_of_several_conflicts_the_first_by_delta_is_told(case: str) -> None:
    check(ORDER[case])


@pytest.mark.parametrize(
    ("actions", "reads", "blind"),
    [
        ([add("new")], Reads(), True),
        ([add("new"), txn("x")], Reads(app_ids=["x"]), True),
        ([metadata()], Reads(), True),
        ([add("new")], WHOLE, False),
        ([add("new")], Reads(where={"country": "se"}), False),
        ([add("new")], Reads(files=["is-1"]), False),
        ([add("new"), remove("is-1")], Reads(), False),
        ([add("new"), {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}], Reads(), False),
    ],
    ids=["adds", "progress", "metadata", "whole table", "nothing found", "files", "removes", "changes"],
)
def test_others_are_told_whether_it_was_blind(actions: list[dict[str, Any]], reads: Reads, blind: bool) -> None:
    given = [info(operation="X", isBlindAppend=not blind), *actions]
    made = transaction_of("a.b.c", snapshot(), given, understood(reads, snapshot(), LocalFiles()))
    told = made.actions[0]["commitInfo"]
    assert (told["isBlindAppend"], told["readVersion"], told["operation"]) == (blind, VERSION, "X")
    assert told["isolationLevel"] == Isolation.SERIALIZABLE.value


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "no path": (lambda: transacted([{"add": {"size": 1}}]), "Action 1 is not what the protocol has as add"),
    "no text": (
        lambda: transacted([txn("a"), {"txn": {"appId": 5, "version": 1}}]),
        "Action 2 is not what the protocol has as txn",
    ),
    "two keys": (lambda: transacted([{"add": {}, "remove": {}}]), "Action 1"),
    "backfill": (lambda: transacted([info(operation="ROW TRACKING BACKFILL")]), "Let Spark do it"),
}


def transacted(actions: list[dict[str, Any]]) -> Any:
    return transaction_of("a.b.c", snapshot(), actions, understood(Reads(), snapshot(), LocalFiles()))


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_commit_is_refused(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(client.InvalidCommit, match=message):
        call()


def test_reads_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(client.InvalidCommit, match="not part of version 7"):
        understood(Reads(files=["is-1", "elsewhere"]), snapshot(), LocalFiles())
    with pytest.raises(client.ColumnNotFound, match="no partition column 'id'"):
        understood(Reads(where={"id": 5}), snapshot(), LocalFiles())
    with pytest.raises(client.InvalidFilter):
        understood(Reads(where=[("country", "~", "x")]), snapshot(), LocalFiles())
    with pytest.raises(ValueError, match="app_ids=\\['loader'\\]"):
        Reads(app_ids="loader")


def files_of(actions: list[Any]) -> dict[str, tuple[Any, Any]]:
    files = (one.get("add") or one.get("remove") for one in actions)
    return {file["path"]: (file.get("baseRowId"), file.get("defaultRowCommitVersion")) for file in files if file}


def mark_of(actions: list[Any]) -> int | None:
    marks = [one["domainMetadata"] for one in actions if "domainMetadata" in one]
    return json.loads(marks[0]["configuration"])["rowIdHighWaterMark"] if marks else None


def test_row_ids_are_those_of_the_version_at_which_a_commit_is_tried() -> None:
    """Those of rows that were there before stay."""
    made_for, ground = snapshot(), ground_of(snapshot())
    kept = add("is-1", baseRowId=3, defaultRowCommitVersion=2)
    stale = add("stale", baseRowId=12, defaultRowCommitVersion=8)
    actions = [info(), add("a"), kept, stale, domain("delta.rowTracking", '{"rowIdHighWaterMark":17}')]
    first = rebased(actions, made_for=made_for, ground=ground)
    assert files_of(first) == {"a": (12, 8), "is-1": (3, 2), "stale": (15, 8)}
    assert mark_of(first) == 17
    ground = after(ground, won(domain("delta.rowTracking", '{"rowIdHighWaterMark":20}')))
    ground = after(ground, won(txn("x"), version=9))
    second = rebased(actions, made_for=made_for, ground=ground)
    assert files_of(second) == {"a": (21, 10), "is-1": (3, 2), "stale": (24, 10)}
    assert mark_of(second) == 26


def test_a_commit_without_new_rows_says_nothing_of_ids() -> None:
    assert mark_of(rebased([remove("is-1")], made_for=snapshot(), ground=ground_of(snapshot()))) is None


def test_rows_need_to_be_counted_to_get_ids() -> None:
    with pytest.raises(client.InvalidCommit, match="numRecords; uncounted has none"):
        rebased([add("uncounted", stats=None)], made_for=snapshot(), ground=ground_of(snapshot()))


def test_row_tracking_that_came_meanwhile_gives_ids() -> None:
    plain = snapshot(protocol=Protocol(3, 7, READER, WITHOUT), domains={})
    actions = [info(tags={"delta.rowTracking.preserved": "true", "a": "b"}), add("a"), remove("is-1")]
    assert rebased(actions, made_for=plain, ground=ground_of(plain)) == actions
    ground = after(ground_of(plain), won(protocol()))
    backfill = [info(operation="ROW TRACKING BACKFILL"), add("is-1", baseRowId=0, defaultRowCommitVersion=9)]
    ground = after(ground, won(*backfill, domain("delta.rowTracking", '{"rowIdHighWaterMark":2}'), version=9))
    ground = after(ground, won(metadata({"delta.enableRowTracking": "true"}), version=10))
    moved = rebased(actions, made_for=plain, ground=ground)
    assert files_of(moved) == {"a": (3, 11), "is-1": (0, 9)}
    assert moved[0]["commitInfo"]["tags"] == {"delta.rowTracking.preserved": "false", "a": "b"}


def test_rows_that_got_ids_meanwhile_keep_them_when_some_of_them_are_deleted() -> None:
    plain = snapshot(protocol=Protocol(3, 7, READER, WITHOUT), domains={})
    backfill = [info(operation="ROW TRACKING BACKFILL"), add("is-1", baseRowId=0, defaultRowCommitVersion=8)]
    ground = after(
        ground_of(plain), won(protocol(), *backfill, domain("delta.rowTracking", '{"rowIdHighWaterMark":2}'))
    )
    moved = rebased([add("is-1", deletionVector=DELETION_VECTOR)], made_for=plain, ground=ground)
    assert (files_of(moved), mark_of(moved)) == ({"is-1": (0, 8)}, None)


def test_suspended_row_tracking_gives_no_ids() -> None:
    suspended = snapshot({"delta.rowTrackingSuspended": "true"})
    actions = [add("a", baseRowId=12, defaultRowCommitVersion=8), domain("delta.rowTracking"), domain("mine")]
    moved = rebased(actions, made_for=suspended, ground=ground_of(suspended))
    assert files_of(moved) == {"a": (None, None)}
    assert moved[1:] == [domain("mine")]


@pytest.mark.parametrize(("given", "kept"), [(1500, None), (2500, 2500)], ids=["earlier", "later"])
def test_a_timestamp_that_is_too_early_by_now_is_set_anew(given: int, kept: int | None) -> None:
    actions = [info(inCommitTimestamp=given)]
    first = rebased(actions, made_for=snapshot(), ground=ground_of(snapshot()))
    assert first == actions
    ground = after(ground_of(snapshot()), won(info(inCommitTimestamp=2000)))
    assert rebased(actions, made_for=snapshot(), ground=ground)[0]["commitInfo"].get("inCommitTimestamp") == kept


def test_types_that_a_commit_changes_are_changed_by_the_version_that_it_gets() -> None:
    """As the preview of type widening noted it."""

    def widened(version: int) -> dict[str, Any]:
        changes = [
            {"fromType": "short", "toType": "integer", "tableVersion": 3},
            {"fromType": "integer", "toType": "long", "tableVersion": version},
        ]
        return metadata(fields=[{**FIELDS[0], "metadata": {"delta.typeChanges": changes}}, *FIELDS[1:]])

    ground = after(ground_of(snapshot()), won(txn("x")))
    (moved,) = rebased([widened(8)], made_for=snapshot(), ground=ground)
    assert json.loads(moved["metaData"]["schemaString"]) == json.loads(widened(9)["metaData"]["schemaString"])


def test_the_ground_is_the_table_after_the_other_commits() -> None:
    ground = after(ground_of(snapshot()), won(info(inCommitTimestamp=2000), metadata({"a": "b"}), domain("x")))
    assert (ground.version, ground.timestamp, ground.metadata.configuration) == (8, 2000, {"a": "b"})
    assert (ground.highest_row_id, ground.protocol) == (11, snapshot().protocol)
    removed = DomainMetadata("delta.rowTracking", "", removed=True)
    assert after(ground, winner_of(9, [Action(domain_metadata=removed)])).highest_row_id == 11
