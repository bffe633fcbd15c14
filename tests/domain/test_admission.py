"""Admission: a commit says what the request says, and the table takes such commits."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.domain.builders import (
    LIMITS,
    NOW,
    TABLE_ID,
    columns,
    commit,
    field,
    managed_table,
    metadata,
    proposal,
    protocol,
    struct,
    timestamp_of,
)
from tidegate.domain.admission import admit_staged
from tidegate.domain.columns import log_schema
from tidegate.domain.commit_policies import Admission, CommitPolicies, policies_of
from tidegate.domain.errors import InvalidRequest, PermissionDenied, TidegateError
from tidegate.domain.protocol import Protocol, required_properties
from tidegate.domain.ratification import Conflict, Decision, Ratified, Rejected, Replay, ToRead, decide
from tidegate.domain.tables import Table, TableMetadata
from tidegate.domain.updates import (
    Action,
    AddCommit,
    RemoveDomainMetadata,
    RemoveProperties,
    SetColumns,
    SetComment,
    SetDomainMetadata,
    SetPartitionColumns,
    SetPolicies,
    SetProperties,
    SetProtocol,
)

INFO = {"inCommitTimestamp": timestamp_of(5), "txnId": "6f1c0d0e-0000-4000-8000-000000000001"}
CLUSTERED = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["id"]],"domainName":"x"}'}
MARK = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":9}'}
WIDER = struct(*columns().fields, field("depth"))


def table_at_4(**changes: Any) -> Table:
    return managed_table(latest=4, metadata=metadata(**{"catalog_properties": {}, **changes}))


def file_of(*actions: dict[str, Any], info: dict[str, Any] = INFO) -> bytes:
    return b"".join(json.dumps(action).encode() + b"\n" for action in ({"commitInfo": info}, *actions))


def meta(**changes: Any) -> dict[str, Any]:
    described = {
        "id": "m",
        "schemaString": json.dumps(log_schema(columns())),
        "partitionColumns": [],
        "configuration": required_properties(TABLE_ID),
    }
    return {"metaData": {**described, **changes}}


def protocol_of(said: Protocol) -> dict[str, Any]:
    return {
        "protocol": {
            "minReaderVersion": said.min_reader_version,
            "minWriterVersion": said.min_writer_version,
            "readerFeatures": sorted(said.reader_features),
            "writerFeatures": sorted(said.writer_features),
        }
    }


def decided(content: bytes, *updates: Action, table: Table | None = None, by: str = "bob") -> Decision:
    proposed = replace(commit(5), file_size=len(content))
    asked = replace(proposal(AddCommit(proposed, None), *updates), seen=admit_staged(content, proposed), principal=by)
    return decide(table or table_at_4(), asked, ratified=None, limits=LIMITS, now=NOW)


def refused(decision: Decision) -> TidegateError:
    assert isinstance(decision, Rejected), decision
    return decision.error


# What can be told without the table


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "Line 1 of the staged commit is not a commitInfo"),
        (file_of()[:-5], "Line 1 of the staged commit is not JSON"),
        (b'{"add":{"path":"x"}}\n' + file_of(), "Line 1 of the staged commit is not a commitInfo"),
        (file_of() + file_of(), "Line 2 of the staged commit is a second commitInfo"),
        (file_of(meta(), meta()), "Line 3 of the staged commit is a second metaData"),
        (file_of({"domainMetadata": MARK}, {"domainMetadata": MARK}), "a second domainMetadata delta.rowTracking"),
        (file_of({"add": {"path": "x"}, "remove": {"path": "y"}}), "Line 2 of the staged commit is not a single"),
        (file_of({"sidecar": {"path": "x"}}), "Line 2 of the staged commit, 'sidecar', is no action"),
        (file_of({"add": {"path": "../x"}}), "Line 2 of the staged commit leaves the table: add.path"),
        (file_of({"cdc": {"path": "s3://b/x"}}), "Line 2 of the staged commit leaves the table: cdc.path"),
        (file_of(info={"txnId": "x"}), "Line 1 of the staged commit, commitInfo.inCommitTimestamp, is missing"),
        (file_of(info={**INFO, "inCommitTimestamp": str(timestamp_of(5))}), "commitInfo.inCommitTimestamp, is missing"),
        (
            file_of(info={**INFO, "inCommitTimestamp": timestamp_of(6)}),
            f"Line 1 of the staged commit, commitInfo.inCommitTimestamp, is {timestamp_of(6)}, but {timestamp_of(5)}",
        ),
        (file_of(info={"inCommitTimestamp": timestamp_of(5)}), "commitInfo.txnId, is missing"),
        (file_of(meta(schemaString="{")), "schema in the staged commit is not JSON"),
    ],
)
def test_what_is_wrong_with_a_file_is_named_with_its_line(content: bytes, told: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        admit_staged(content, replace(commit(5), file_size=len(content)))
    assert told in error.value.message


def test_a_file_of_another_size_is_not_the_one_that_was_proposed() -> None:
    with pytest.raises(InvalidRequest, match=r"but 1024 are proposed \(file-size\)"):
        admit_staged(file_of(), commit(5))


# The request says what the file says

GROWN = replace(protocol(), writer_features=protocol().writer_features | {"appendOnly"})
HONEST: list[tuple[bytes, list[Action]]] = [
    (file_of({"add": {"path": "a"}}, {"remove": {"path": "b"}}, {"txn": {"appId": "q", "version": 1}}), []),
    (file_of({"domainMetadata": MARK}), []),
    (file_of({"domainMetadata": MARK}), [SetDomainMetadata({"delta.rowTracking": {"rowIdHighWaterMark": 9}})]),
    (file_of({"domainMetadata": MARK}), [SetDomainMetadata({"delta.rowTracking": {"rowIdHighWaterMark": 8}})]),
    (file_of({"domainMetadata": {"domain": "mine", "configuration": "{}"}}), []),
    (
        file_of({"domainMetadata": CLUSTERED}),
        [SetDomainMetadata({"delta.clustering": {"clusteringColumns": [["id"]]}})],
    ),
    (file_of(meta()), []),
    (file_of(meta(description="in the log alone")), []),
    (file_of(), [SetComment("in the catalog alone")]),
    (file_of(), [SetColumns(columns())]),
    (file_of(meta(configuration={**required_properties(TABLE_ID), "a": "b"})), [SetProperties({"a": "b"})]),
    (file_of(meta(schemaString=json.dumps(log_schema(WIDER)))), [SetColumns(WIDER)]),
    (file_of(meta(partitionColumns=["port"])), [SetPartitionColumns(("port",))]),
    (file_of(protocol_of(GROWN)), [SetProtocol(GROWN)]),
]


@pytest.mark.parametrize(("content", "updates"), HONEST)
def test_a_request_that_says_what_the_file_says_is_ratified(content: bytes, updates: list[Action]) -> None:
    assert isinstance(decided(content, *updates), Ratified)


CONFIGURATION = required_properties(TABLE_ID)
UNKNOWN = replace(protocol(), writer_features=protocol().writer_features | {"teleport"})
FORGED: list[tuple[bytes, list[Action], str]] = [
    (file_of(meta(configuration={**CONFIGURATION, "a": "b"})), [], "Line 2 of the staged commit, metaData.configurat"),
    (file_of(meta(configuration={**CONFIGURATION, "a": "b"})), [SetProperties({"a": "c"})], "request leads to c, the"),
    (file_of(meta(schemaString=json.dumps(log_schema(WIDER)))), [], "Line 2 of the staged commit, metaData.schemaS"),
    (file_of({"add": {"path": "a"}}, meta(partitionColumns=["port"])), [], "Line 3 of the staged commit, metaData.par"),
    (file_of(protocol_of(GROWN)), [], "Line 2 of the staged commit, protocol.writerFeatures, is not what"),
    (file_of(protocol_of(UNKNOWN)), [SetProtocol(UNKNOWN)], "'teleport', which this catalog does not know"),
    (file_of({"domainMetadata": CLUSTERED}), [], "Line 2 of the staged commit, domainMetadata 'delta.clustering'"),
    (
        file_of({"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}", "removed": True}}),
        [],
        "domainMetadata 'delta.rowTracking'",
    ),
    (file_of(), [SetProperties({"a": "b"})], "the staged commit has no such metaData"),
    (file_of(), [RemoveProperties(["was"])], "the staged commit has no such metaData"),
    (file_of(), [SetColumns(WIDER)], "metaData.schemaString, but the staged commit has no such metaData"),
    (file_of(), [SetProtocol(GROWN)], "protocol.writerFeatures, but the staged commit has no such protocol"),
    (file_of(), [SetDomainMetadata({"mine": {}})], "no such domainMetadata"),
    (file_of(), [RemoveDomainMetadata(["delta.rowTracking"])], "no such domainMetadata"),
    (file_of(), [SetDomainMetadata({"delta.rowTracking": {"rowIdHighWaterMark": 8}})], "no such domainMetadata"),
]


@pytest.mark.parametrize(("content", "updates", "told"), FORGED)
def test_what_only_one_of_them_says_is_refused(content: bytes, updates: list[Action], told: str) -> None:
    table = table_at_4(properties={"was": "there"}, domains={"delta.rowTracking": {"rowIdHighWaterMark": 3}})
    there = b'"was": "there", "delta.enableInCommitTimestamps"'
    content = content.replace(b'"delta.enableInCommitTimestamps"', there)
    error = refused(decided(content, *updates, table=table))
    assert isinstance(error, InvalidRequest)
    assert told in error.message


# Nobody has looked


def test_a_commit_that_nobody_has_read_is_read_before_it_is_decided_on() -> None:
    asked = proposal(AddCommit(commit(5), None))
    assert isinstance(decide(table_at_4(), asked, ratified=None, limits=LIMITS, now=NOW), ToRead)
    trusting = table_at_4(catalog_properties={"tidegate.admission": "declared"})
    assert isinstance(decide(trusting, asked, ratified=None, limits=LIMITS, now=NOW), Ratified)
    counting = table_at_4(catalog_properties={"tidegate.admission": "declared", "tidegate.policy.files-max": "3"})
    assert isinstance(decide(counting, asked, ratified=None, limits=LIMITS, now=NOW), ToRead)


def test_a_version_that_is_taken_is_a_conflict_or_a_replay_whatever_its_file_is() -> None:
    wrong = InvalidRequest("not sound")
    for table, proposed, outcome in (
        (table_at_4(), commit(4, writer="b"), Conflict),
        (table_at_4(), commit(4), Replay),
        (table_at_4(), commit(6), Conflict),
        (table_at_4(), commit(5), Rejected),
    ):
        asked = replace(proposal(AddCommit(proposed, None)), refusal=wrong)
        holder = table.ratified(proposed.version)
        assert isinstance(decide(table, asked, ratified=holder, limits=LIMITS, now=NOW), outcome)


# Column mapping


def mapped() -> TableMetadata:
    names = [replace(one, metadata={"delta.columnMapping.physicalName": f"col-{one.name}"}) for one in columns().fields]
    return metadata(columns=struct(*names), properties={"delta.columnMapping.mode": "name"}, catalog_properties={})


@pytest.mark.parametrize(
    ("add", "taken"),
    [
        ({"stats": '{"numRecords":1,"minValues":{"col-id":1}}'}, True),
        ({"stats": '{"numRecords":1,"minValues":{"col-dropped":1}}'}, True),
        ({"stats": '{"numRecords":1}'}, True),
        ({"stats": "no JSON"}, True),
        ({"stats": '{"nullCount":{"id":0}}', "deletionVector": {"storageType": "u"}}, True),
        ({"stats": '{"numRecords":1,"minValues":{"id":1}}'}, False),
        ({"partitionValues": {"port": "Husum"}}, False),
    ],
)
def test_files_with_the_names_that_users_see_are_refused_where_files_have_others(
    add: dict[str, Any], taken: bool
) -> None:
    table = managed_table(latest=4, metadata=mapped())
    outcome = decided(file_of({"add": {"path": "a", **add}}), table=table)
    if taken:
        assert isinstance(outcome, Ratified)
    else:
        assert "The table has column mapping" in refused(outcome).message


# Policies


def guarded(**policies: Any) -> Table:
    return table_at_4(catalog_properties=CommitPolicies(**policies).properties())


ADD, REMOVE = {"add": {"path": "a", "size": 600}}, {"remove": {"path": "b", "dataChange": True}}
MOVED = {"remove": {"path": "b", "dataChange": False}}


@pytest.mark.parametrize(
    ("table", "content", "told"),
    [
        (guarded(append_only=True), file_of(ADD, REMOVE), "Line 3 of the staged commit, remove, takes data away"),
        (guarded(append_only=True), file_of(ADD, MOVED), None),
        (table_at_4(properties={"delta.appendOnly": "true"}), file_of(REMOVE), "(delta.appendOnly)"),
        (table_at_4(properties={"delta.appendOnly": "false"}), file_of(REMOVE), None),
        (guarded(files_max=1), file_of(ADD, ADD), "adds 2 files"),
        (guarded(files_max=2), file_of(ADD, ADD), None),
        (guarded(bytes_max=1199), file_of(ADD, ADD), "adds 1200 bytes"),
        (guarded(bytes_max=1200), file_of(ADD, ADD), None),
        (guarded(writers=("bob",)), file_of(ADD), None),
        (guarded(writers=("eve",)), file_of(ADD), "not of bob"),
    ],
)
def test_a_policy_says_no_and_says_why(table: Table, content: bytes, told: str | None) -> None:
    outcome = decided(content, table=table)
    if told is None:
        assert isinstance(outcome, Ratified)
    else:
        error = refused(outcome)
        assert told in error.message
        assert isinstance(error, PermissionDenied if "not of" in told else InvalidRequest)


def test_a_frozen_schema_lets_properties_change_and_columns_not() -> None:
    table = guarded(schema_frozen=True)
    configuration = {**CONFIGURATION, "a": "b"}
    assert isinstance(
        decided(file_of(meta(configuration=configuration)), SetProperties({"a": "b"}), table=table), Ratified
    )
    wider = file_of(meta(schemaString=json.dumps(log_schema(WIDER))))
    assert "is frozen" in refused(decided(wider, SetColumns(WIDER), table=table)).message


def test_policies_are_changed_by_their_own_action_only() -> None:
    wanted = CommitPolicies(Admission.DECLARED, True, True, ("ann", "etl"), 3, 0)
    changed = decide(guarded(files_max=9), proposal(SetPolicies(wanted)), ratified=None, limits=LIMITS, now=NOW)
    assert isinstance(changed, Ratified)
    assert policies_of(changed.table.metadata) == wanted
    for action in (SetProperties({"tidegate.admission": "declared"}), RemoveProperties(["tidegate.policy.writers"])):
        with pytest.raises(InvalidRequest, match="is a policy of the table"):
            action.check()
