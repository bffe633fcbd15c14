"""From actions to a commit, without a server: what is refused, how it is stamped, what the catalog is told."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.client import InvalidCommit
from tidegate.client.commits import commit
from tidegate.client.files import LocalFiles
from tidegate.client.known_tables import TableHandle
from tidegate.client.metadata_updates import metadata_updates
from tidegate.client.proposals import draft, encoded, stamped

METADATA = {
    "schemaString": '{"type":"struct","fields":[]}',
    "partitionColumns": [],
    "configuration": {"a": "1", "b": "2"},
}


def written(actions: Any) -> bytes:
    drafted = draft(actions)
    metadata_updates(drafted, before=METADATA)
    return encoded(stamped(drafted, previous=9, now=10), drafted.others)


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        ([{"add": {}, "remove": {}}], "one key"),
        (["add"], "one key"),
        ([{"checkpoint": {}}], "checkpoint"),
        ([{"add": []}], "not an object"),
        ([{"metaData": {}}, {"metaData": {}}], "second metaData"),
        ([{"commitInfo": {}}, {"commitInfo": {}}], "second commitInfo"),
        ([{"commitInfo": {"inCommitTimestamp": 5}}], "not later than"),
        ([{"commitInfo": {"inCommitTimestamp": "5"}}], "not later than"),
        ([{"commitInfo": {"txnId": 7}}], "txnId"),
        ([{"add": {"path": object()}}], "JSON"),
        ([{"protocol": {"minReaderVersion": 3}}], "minWriterVersion"),
        ([{"metaData": {"schemaString": "struct"}}], "schemaString"),
        ([{"domainMetadata": {"domain": "delta.rowTracking", "configuration": "7"}}], r"delta\.rowTracking"),
        ([{"domainMetadata": {"domain": "d"}}, {"domainMetadata": {"domain": "d"}}], "again"),
    ],
)
def test_actions_that_cannot_be_a_commit_are_refused(actions: Any, told: str) -> None:
    with pytest.raises(InvalidCommit, match=told):
        written(actions)


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, True])
def test_a_version_is_a_number_from_1_on(version: Any) -> None:
    with pytest.raises(InvalidCommit, match="1 or higher"):
        next(commit(TableHandle("a.b.c"), LocalFiles(), version, [], metadata_before=None))


@pytest.mark.parametrize(("previous", "now", "stamp"), [(None, 10, 10), (9, 10, 10), (10, 10, 11), (500, 10, 501)])
def test_a_timestamp_is_now_or_just_after_the_one_before(previous: int | None, now: int, stamp: int) -> None:
    info = stamped(draft([]), previous=previous, now=now)
    assert (info["inCommitTimestamp"], info["timestamp"]) == (stamp, stamp)


def test_every_commit_has_a_transaction_id_of_its_own() -> None:
    assert len({stamped(draft([]), previous=None, now=1)["txnId"] for _ in range(10)}) == 10


def test_the_first_line_of_a_commit_is_its_commit_info() -> None:
    drafted = draft([{"add": {"path": "a"}}, {"commitInfo": {"operation": "MERGE"}}])
    lines = encoded(stamped(drafted, previous=None, now=1), drafted.others).splitlines()
    assert lines[0].startswith(b'{"commitInfo":{"inCommitTimestamp":1,')
    assert lines[1:] == [b'{"add":{"path":"a"}}']


@pytest.mark.parametrize(
    ("changed", "updates"),
    [
        ({}, []),
        ({"name": "t", "createdTime": 5}, []),
        ({"configuration": {"a": "1", "b": "3", "c": "4"}}, [("set-properties", {"b": "3", "c": "4"})]),
        ({"configuration": {"b": "2"}}, [("remove-properties", ["a"])]),
        ({"partitionColumns": ["x"]}, [("set-partition-columns", ["x"])]),
        ({"description": "tides"}, [("set-table-comment", "tides")]),
        ({"schemaString": '{"fields": [], "type": "struct"}'}, []),
    ],
)
def test_the_catalog_is_told_what_differs(changed: Any, updates: Any) -> None:
    told = metadata_updates(draft([{"metaData": {**METADATA, **changed}}]), before=METADATA)
    assert [(one.pop("action"), *one.values()) for one in told] == updates
