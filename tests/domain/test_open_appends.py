"""Open appends: what the catalog writes into them, whatever came before."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.domain.builders import LIMITS, NOW, managed_table, metadata, proposal, protocol
from tidegate.domain.errors import InvalidRequest, RequirementConflict
from tidegate.domain.inline_commits import parse_inline_commit
from tidegate.domain.names import Version
from tidegate.domain.open_appends import OpenAppend, parse_open_append
from tidegate.domain.ratification import Conflict, Proposal, Ratified, Rejected, assigned, decide
from tidegate.domain.row_ids import RowMark
from tidegate.domain.tables import Table

TXN = "6f1c0d0e-0000-4000-8000-000000000001"


def add(rows: int, path: str = "a") -> dict[str, Any]:
    return {"add": {"path": path, "dataChange": True, "stats": json.dumps({"numRecords": rows})}}


def append(*adds: dict[str, Any], txn: str = TXN, metadata_version: int = 0, **info: Any) -> OpenAppend:
    lines = [{"commitInfo": {"txnId": txn, "operation": "WRITE", **info}}, *adds]
    content = "\n".join(map(json.dumps, lines)).encode()
    return parse_open_append(content, metadata_version=Version(metadata_version))


def placed(table: Table, sent: OpenAppend, *, now: int = NOW) -> Proposal | Conflict | Rejected:
    return assigned(table, replace(proposal(), append=sent), sent, now=now)


def plain(**changes: Any) -> Table:
    """A table that does not track its rows."""
    features = protocol()
    features = replace(features, writer_features=features.writer_features - {"rowTracking"})
    return managed_table(metadata=metadata(protocol=features), **changes)


def test_the_next_version_and_a_timestamp_that_rises_are_written_into_it() -> None:
    table = plain(latest=6, published=2)
    made = placed(table, append(add(3), inCommitTimestamp=5))
    assert isinstance(made, Proposal)
    assert made.commit is not None
    assert made.content is not None
    assert (made.commit.version, made.commit.file_name) == (7, f"{7:020}.{TXN}.json")
    assert made.commit.file_size == len(made.content)
    assert made.content_sha256 == sha256(made.content).digest()
    told = parse_inline_commit(made.content, version=Version(7), now=NOW)
    assert replace(told.commit, content_sha256=sha256(made.content).hexdigest()) == made.commit
    assert made.commit.timestamp > table.latest_timestamp


def test_a_clock_that_stands_still_does_not_stop_it() -> None:
    table = plain(latest=1)
    made = placed(table, append(add(1)), now=1)
    assert isinstance(made, Proposal)
    assert made.commit is not None
    assert made.commit.timestamp == table.latest_timestamp + 1


def test_lines_of_files_stay_byte_for_byte_where_rows_have_no_ids() -> None:
    line = b'{"add": {"path":"\xc3\xa9",  "dataChange":true}}'
    sent = parse_open_append(b'{"commitInfo":{"txnId":"%s"}}\n%s' % (TXN.encode(), line), metadata_version=Version(0))
    made = placed(plain(), sent)
    assert isinstance(made, Proposal)
    assert made.content is not None
    assert made.content.split(b"\n")[1:] == [line, b""]


def test_ids_are_given_where_they_are_known_and_else_it_is_a_conflict() -> None:
    table = managed_table(latest=3)
    assert isinstance(placed(table, append(add(2))), Conflict)
    known = replace(append(add(2)), row_mark=RowMark(Version(3), 9))
    made = placed(table, known)
    assert isinstance(made, Proposal)
    assert made.row_mark == RowMark(Version(4), 11)
    stale = replace(append(add(2)), row_mark=RowMark(Version(2), 9))
    assert isinstance(placed(table, stale), Conflict)


def test_while_row_tracking_is_suspended_rows_get_no_ids() -> None:
    table = managed_table(latest=3, metadata=metadata(properties={"delta.rowTrackingSuspended": "true"}))
    made = placed(table, append(add(2)))
    assert isinstance(made, Proposal)
    assert made.content is not None
    assert b"baseRowId" not in made.content


def test_metadata_that_changed_is_for_the_writer_to_look_at() -> None:
    refused = placed(plain(latest=3), append(add(1), metadata_version=2))
    assert isinstance(refused, Rejected)
    assert isinstance(refused.error, RequirementConflict)


@pytest.mark.parametrize("stats", [None, "{}", "no json", '{"numRecords":-1}', '{"numRecords":true}', "[" * 10_000])
def test_rows_that_are_not_counted_get_no_ids(stats: str | None) -> None:
    file = {"path": "a", "dataChange": True, **({} if stats is None else {"stats": stats})}
    table = replace(managed_table(), row_mark=RowMark(Version(0), -1))
    refused = placed(table, append({"add": file}))
    assert isinstance(refused, Rejected)
    assert isinstance(refused.error, InvalidRequest)


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), min_size=1, max_size=8))
def test_ids_and_versions_follow_each_other_without_a_gap(appends: list[list[int]]) -> None:
    table = replace(managed_table(), row_mark=RowMark(Version(0), -1))
    given_ids: list[range] = []
    for rows in appends:
        sent = append(*(add(count, str(uuid.uuid4())) for count in rows), txn=str(uuid.uuid4()))
        made = placed(table, sent)
        assert isinstance(made, Proposal)
        decision = decide(table, made, ratified=None, limits=LIMITS, now=NOW)
        assert isinstance(decision, Ratified)
        assert decision.table.latest == table.latest + 1
        assert decision.table.latest_timestamp > table.latest_timestamp
        table = decision.table
        assert made.content is not None
        adds = [one["add"] for one in map(json.loads, made.content.splitlines()) if "add" in one]
        assert {one["defaultRowCommitVersion"] for one in adds} == {table.latest}
        given_ids += [range(one["baseRowId"], one["baseRowId"] + count) for one, count in zip(adds, rows, strict=True)]
    every = [id for ids in given_ids for id in ids]
    assert every == list(range(sum(map(sum, appends))))
    assert table.row_mark == RowMark(table.latest, len(every) - 1)
