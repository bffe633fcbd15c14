"""Tables whose commits are put into the log: the property, the decision, and what a file in the log says."""

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
    external_table,
    iceberg_table,
    managed_table,
    metadata,
    proposal,
    timestamp_of,
)
from tidegate.domain.columns import log_schema
from tidegate.domain.commits import Commit, is_learned, published_name
from tidegate.domain.errors import InvalidRequest, Unavailable
from tidegate.domain.events import EventKind, update_events
from tidegate.domain.learned_commits import learned_commit
from tidegate.domain.names import Version
from tidegate.domain.protocol import required_properties
from tidegate.domain.publishing import PublishedFile
from tidegate.domain.put_if_absent import COMMITS_PROPERTY, PUT_IF_ABSENT, RATIFIED, check_commits_property
from tidegate.domain.ratification import Conflict, Decision, Proposal, Ratified, Rejected, Replay, ToPut, decide
from tidegate.domain.tables import Table, check_metadata
from tidegate.domain.updates import (
    AddCommit,
    RemoveProperties,
    SetProperties,
)

PUTTING = {COMMITS_PROPERTY: PUT_IF_ABSENT}
FILE = PublishedFile(size=100, modified_at=NOW)


def putting_table(*, latest: int = 4, published: int | None = None, **changes: Any) -> Table:
    published = latest if published is None else published
    return managed_table(latest=latest, published=published, metadata=metadata(properties=PUTTING), **changes)


def decided(table: Table, proposed: Proposal, *, ratified: Commit | None = None) -> Decision:
    return decide(table, proposed, ratified=ratified, limits=LIMITS, now=NOW)


def put(*actions: Any, etag: str | None = None) -> Proposal:
    return replace(proposal(*actions, etag=etag), put=True)


def file_of(*actions: dict[str, Any], timestamp: object = timestamp_of(5)) -> bytes:
    info = {"commitInfo": {"inCommitTimestamp": timestamp, "operation": "WRITE"}}
    return b"".join(json.dumps(action).encode() + b"\n" for action in (info, *actions))


def metadata_action(**changes: Any) -> dict[str, Any]:
    described = {
        "schemaString": json.dumps(log_schema(columns())),
        "partitionColumns": [],
        "configuration": {**required_properties(TABLE_ID), **PUTTING},
    }
    return {"metaData": {**described, **changes}}


# The property


@pytest.mark.parametrize("value", [RATIFIED, PUT_IF_ABSENT])
def test_both_ways_can_be_named(value: str) -> None:
    check_commits_property({COMMITS_PROPERTY: value})
    assert managed_table(metadata=metadata(properties={COMMITS_PROPERTY: value})).puts_if_absent == (value != RATIFIED)


@pytest.mark.parametrize("value", ["", "PUT-IF-ABSENT", "put_if_absent", "x" * 1000])
def test_any_other_value_is_refused(value: str) -> None:
    with pytest.raises(InvalidRequest, match="ratified or put-if-absent"):
        check_metadata(managed_table(metadata=metadata(properties={COMMITS_PROPERTY: value})))


def test_a_table_that_says_nothing_ratifies() -> None:
    assert not managed_table().puts_if_absent


def test_the_log_of_an_external_table_is_none_of_ours_whatever_it_says() -> None:
    table = external_table()
    said = replace(table, metadata=replace(table.metadata, properties={COMMITS_PROPERTY: PUT_IF_ABSENT}))
    assert not said.puts_if_absent
    check_metadata(replace(table, metadata=replace(table.metadata, properties={COMMITS_PROPERTY: "odd"})))


@pytest.mark.parametrize(
    "change", [SetProperties(PUTTING), RemoveProperties([COMMITS_PROPERTY]), SetProperties({COMMITS_PROPERTY: "x"})]
)
@pytest.mark.parametrize("table", [managed_table(), putting_table()])
def test_the_way_changes_with_a_commit_only(table: Table, change: SetProperties | RemoveProperties) -> None:
    match decided(table, proposal(change)):
        case Rejected(InvalidRequest() as error):
            assert "together with the add-commit" in error.message
        case other:
            pytest.fail(f"{other} where a refusal was expected")


# The decision


def test_a_commit_that_no_rule_is_against_is_to_be_put_and_changes_nothing_yet() -> None:
    table = putting_table()
    assert isinstance(decided(table, proposal(AddCommit(commit(5), None))), ToPut)


def test_the_commit_that_begins_with_it_is_ratified_and_the_one_that_ends_it_is_put() -> None:
    begins = proposal(AddCommit(commit(5), None), SetProperties(PUTTING))
    match decided(managed_table(latest=4, published=4), begins):
        case Ratified(after):
            assert after.puts_if_absent
            assert [waiting.version for waiting in after.unpublished] == [5]
        case other:
            pytest.fail(f"{other}")
    ends = proposal(AddCommit(commit(5), None), RemoveProperties([COMMITS_PROPERTY]))
    assert isinstance(decided(putting_table(), ends), ToPut)


def test_what_was_put_is_ratified_and_published_at_once_with_its_events() -> None:
    table = putting_table()
    match decided(table, put(AddCommit(commit(5), None), SetProperties({"team": "sea"}))):
        case Ratified(after):
            assert (after.latest, after.published, after.unpublished) == (5, 5, ())
            kinds = [(event.kind, event.version) for event in update_events(table, after, at=NOW, by="bob")]
            assert kinds == [
                (EventKind.COMMITTED, 5),
                (EventKind.METADATA_CHANGED, 5),
                (EventKind.PUBLISHED, 5),
            ]
        case other:
            pytest.fail(f"{other}")


def test_what_was_put_is_recorded_whatever_the_etag_is_by_now() -> None:
    assert isinstance(decided(putting_table(), proposal(AddCommit(commit(5), None), etag="old")), Rejected)
    assert isinstance(decided(putting_table(), put(AddCommit(commit(5), None), etag="old")), Ratified)


def test_what_was_put_and_is_recorded_already_is_a_replay_by_whatever_name() -> None:
    learned = replace(commit(4), file_name=published_name(4))
    assert decided(putting_table(), put(AddCommit(commit(4), None)), ratified=learned) == Replay(
        putting_table(), learned
    )


def test_a_conflict_says_whether_the_winner_is_known_from_the_log_alone() -> None:
    learned = replace(commit(4), file_name=published_name(4))
    for winner, told in ((learned, learned), (commit(4, writer="b"), None)):
        match decided(putting_table(), proposal(AddCommit(commit(4), None)), ratified=winner):
            case Conflict(_, _, known):
                assert known == told
            case other:
                pytest.fail(f"{other}")


def test_nothing_is_recorded_as_put_before_what_was_ratified_is_published() -> None:
    match decided(putting_table(latest=4, published=3), put(AddCommit(commit(5), None))):
        case Rejected(Unavailable()):
            pass
        case other:
            pytest.fail(f"{other}")


# What a file in the log says


def learn(table: Table, content: bytes) -> Table:
    actions = learned_commit(table, Version(table.latest + 1), content, FILE).actions
    match decided(table, put(*actions)):
        case Ratified(after):
            return after
        case Rejected(error):
            raise error
        case other:
            pytest.fail(f"{other}")


def test_a_plain_commit_is_learned_under_its_name_in_the_log() -> None:
    content = file_of({"add": {"path": "x"}})
    (addition,) = learned_commit(putting_table(), Version(5), content, FILE).actions
    assert addition == AddCommit(Commit(Version(5), timestamp_of(5), published_name(5), len(content), NOW), None)
    assert is_learned(replace(commit(5), file_name=published_name(5)))
    assert not is_learned(commit(5))
    after = learn(putting_table(), content)
    assert (after.latest, after.latest_timestamp, after.revision) == (5, timestamp_of(5), putting_table().revision)


def test_metadata_is_learned_as_the_file_has_it() -> None:
    configuration = {**required_properties(TABLE_ID), **PUTTING, "team": "sea"}
    after = learn(putting_table(), file_of(metadata_action(configuration=configuration, description="tides")))
    assert after.metadata.properties == configuration
    assert after.metadata.comment == "tides"
    assert (after.revision, after.metadata_version) == (putting_table().revision + 1, 5)


def test_a_commit_that_ends_it_is_learned_and_is_the_last_one() -> None:
    after = learn(putting_table(), file_of(metadata_action(configuration=required_properties(TABLE_ID))))
    assert not after.puts_if_absent


def test_what_was_converted_to_iceberg_last_stays_known() -> None:
    table = iceberg_table(latest=4)
    table = replace(table, published=Version(4), unpublished=())
    table = replace(table, metadata=replace(table.metadata, properties={**table.metadata.properties, **PUTTING}))
    assert learn(table, file_of()).uniform == table.uniform
    assert learn(table, file_of(metadata_action())).uniform is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "no commitInfo"),
        (b'{"add":{"path":"x"}}\n', "no commitInfo"),
        (b'{"commitInfo":{"inCommitTi', "not JSON"),
        (b'{"commitInfo":{"operation":"WRITE"}}\n', "inCommitTimestamp"),
        (file_of(timestamp=True), "inCommitTimestamp"),
        (file_of(timestamp=str(timestamp_of(5))), "inCommitTimestamp"),
        (file_of(timestamp=timestamp_of(4)), "must rise"),
        (file_of(timestamp=10**18), "before the year 10000"),
        (file_of(metadata_action(schemaString="{")), "not JSON"),
        (file_of(metadata_action(configuration={})), "A managed table needs the property"),
        (
            file_of(metadata_action(configuration={**required_properties(TABLE_ID), COMMITS_PROPERTY: "odd"})),
            "ratified or put-if-absent",
        ),
        (file_of({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}), "min-reader-version 3"),
    ],
)
def test_what_is_not_sound_is_not_learned(content: bytes, told: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        learn(putting_table(), content)
    assert told in refused.value.message
