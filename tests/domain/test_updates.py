"""The actions of an update: their shape, what each does to the metadata, and which of it changes the etag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.domain.builders import TABLE_ID, commit, domains, field, metadata, metadatas, protocol, schemas, struct
from tidegate.domain.columns import Field
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import Version
from tidegate.domain.protocol import TABLE_ID_PROPERTY
from tidegate.domain.tables import TableMetadata
from tidegate.domain.updates import (
    Action,
    AddCommit,
    MetadataAction,
    RemoveDomainMetadata,
    RemoveProperties,
    ReportPublished,
    SetColumns,
    SetComment,
    SetDomainMetadata,
    SetPartitionColumns,
    SetProperties,
    SetProtocol,
    SetSnapshotVersion,
    apply_metadata,
    check_actions,
    check_domains,
    check_property_keys,
    find,
    is_metadata_change,
)

ONE_OF_EACH: tuple[Action, ...] = (
    AddCommit(commit(1), None),
    ReportPublished(Version(0)),
    SetSnapshotVersion(Version(3), 5),
    SetProperties({"a": "1"}),
    RemoveProperties(["b"]),
    SetProtocol(protocol()),
    SetColumns(struct(field("a"))),
    SetPartitionColumns(("a",)),
    SetComment("c"),
    SetDomainMetadata({"d": {}}),
    RemoveDomainMetadata(["e"]),
)
SPELLED = (
    "add-commit",
    "set-latest-backfilled-version",
    "update-metadata-snapshot-version",
    "set-properties",
    "remove-properties",
    "set-protocol",
    "set-columns",
    "set-partition-columns",
    "set-table-comment",
    "set-domain-metadata",
    "remove-domain-metadata",
)


def test_the_actions_are_those_of_the_api() -> None:
    assert tuple(action.action for action in ONE_OF_EACH) == SPELLED


def test_one_of_each_kind_has_the_right_shape() -> None:
    check_actions(ONE_OF_EACH)


def test_an_update_without_an_action_is_told_to_send_one() -> None:
    with pytest.raises(InvalidRequest, match=r"The request holds no update\. Send at least one"):
        check_actions([])


@pytest.mark.parametrize("action", ONE_OF_EACH, ids=SPELLED)
def test_two_actions_of_one_kind_are_named(action: Action) -> None:
    with pytest.raises(InvalidRequest, match=rf"{action.action} is sent 2 times\. Send at most one of each kind"):
        check_actions([*ONE_OF_EACH, action])


@pytest.mark.parametrize("action", ONE_OF_EACH, ids=SPELLED)
def test_an_action_is_found_by_its_kind(action: Action) -> None:
    assert find(ONE_OF_EACH, type(action)) is action
    assert find([other for other in ONE_OF_EACH if other is not action], type(action)) is None


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (AddCommit(commit(0), None), "A commit's version is 1 or higher, not 0"),
        (AddCommit(commit(1, file_name="1.json"), None), "cannot be the staged file of version 1"),
        (ReportPublished(Version(-1)), "The latest published version is 0 or higher, not -1"),
        (SetSnapshotVersion(Version(-1), 5), "last-commit-version is 0 or higher"),
        (SetSnapshotVersion(Version(1), 0), "last-commit-timestamp-ms is positive"),
        (SetProperties({"": "x"}), "set-properties holds an empty property key. Remove it"),
        (RemoveProperties(["a", ""]), "remove-properties holds an empty property key"),
        (SetProperties({"delta.lastUpdateVersion": "9"}), "delta.lastUpdateVersion is derived by the catalog"),
        (RemoveProperties(["delta.feature.x"]), "delta.feature.x is derived by the catalog. Leave it out of remove-"),
        (SetDomainMetadata({}), "set-domain-metadata names no domain. Name at least one"),
        (RemoveDomainMetadata([]), "remove-domain-metadata names no domain. Name at least one"),
        (SetDomainMetadata({"": {}}), "has an empty name"),
        (SetDomainMetadata({"delta.clustering": {}}), "delta.clustering needs clusteringColumns, a list"),
        (SetDomainMetadata({"delta.rowTracking": {}}), "delta.rowTracking needs rowIdHighWaterMark, a whole number"),
    ],
)
def test_an_action_of_the_wrong_shape_is_refused_by_what_is_wrong(action: Action, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_actions([action])
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (
            SetProperties({"a": "1", "b": "2"}),
            RemoveProperties(["c", "b"]),
            "The property b is set and removed at once",
        ),
        (SetDomainMetadata({"d": {}, "e": {}}), RemoveDomainMetadata(["e"]), "The domain e is set and removed at once"),
    ],
)
def test_what_is_set_and_removed_at_once_is_named_in_either_order(one: Action, other: Action, message: str) -> None:
    for actions in ([one, other], [other, one]):
        with pytest.raises(InvalidRequest, match=message):
            check_actions(actions)


@pytest.mark.parametrize("paths", [[], [["a"]], [["a", "b"], ["c"]]])
def test_clustering_columns_are_a_list_of_paths(paths: list[list[str]]) -> None:
    check_domains({"delta.clustering": {"clusteringColumns": paths}})


@pytest.mark.parametrize("paths", [None, "a", ["a"], [[]], [["a", 1]], [["a"], None], {"a": 1}, 5])
def test_clustering_columns_of_any_other_shape_are_refused(paths: object) -> None:
    with pytest.raises(InvalidRequest, match=r"delta\.clustering needs clusteringColumns, a list of column paths"):
        check_domains({"delta.clustering": {"clusteringColumns": paths}})


@pytest.mark.parametrize("mark", [-(2**63), -1, 0, 2**63 - 1])
def test_a_row_tracking_mark_is_a_whole_number(mark: int) -> None:
    check_domains({"delta.rowTracking": {"rowIdHighWaterMark": mark}})


@pytest.mark.parametrize("mark", [None, "5", 5.0, True, [5], 2**63, -(2**63) - 1])
def test_a_row_tracking_mark_that_is_no_whole_number_of_64_bits_is_refused(mark: object) -> None:
    with pytest.raises(InvalidRequest, match=r"delta\.rowTracking needs rowIdHighWaterMark, a whole number"):
        check_domains({"delta.rowTracking": {"rowIdHighWaterMark": mark}})


@pytest.mark.parametrize("domain", ["my.domain", "delta.clustering"])
def test_a_domain_is_not_nested_without_end(domain: str) -> None:
    """What is stored must be readable again from anywhere in the program, however deep its stack is by then."""
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    with pytest.raises(InvalidRequest, match=rf"{domain}.* nested"):
        check_domains({domain: {"clusteringColumns": [["id"]], "x": deep}})


@given(any_domains=domains())
@settings(deadline=None)
def test_other_domains_may_hold_anything(any_domains: dict[str, Any]) -> None:
    check_domains(any_domains)


def test_the_place_of_a_derived_key_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"The property delta\.minReaderVersion is derived.*out of properties"):
        check_property_keys("properties", {"team": "sea", "delta.minReaderVersion": "3"})


# What the actions do


def applied(before: TableMetadata, *actions: Action, in_log: bool) -> TableMetadata:
    return apply_metadata(before, actions, in_log=in_log)


def test_a_property_set_without_a_commit_is_one_of_the_catalog() -> None:
    before = metadata(properties={"port": "1"}, catalog_properties={})
    after = applied(before, SetProperties({"team": "sea"}), in_log=False)
    assert after == replace(before, catalog_properties={"team": "sea"})


def test_a_property_set_with_a_commit_is_one_of_the_log_and_no_longer_of_the_catalog() -> None:
    before = metadata(properties={"port": "1"}, catalog_properties={"team": "sea", "kept": "1"})
    after = applied(before, SetProperties({"team": "log"}), in_log=True)
    assert after.properties == {**before.properties, "team": "log"}
    assert after.catalog_properties == {"kept": "1"}


def test_a_property_removed_with_a_commit_is_gone_from_log_and_catalog() -> None:
    before = metadata(properties={"a": "1", "b": "1"}, catalog_properties={"c": "1", "d": "1"})
    after = applied(before, RemoveProperties(["a", "c", "unknown"]), in_log=True)
    assert after == replace(
        before, properties=metadata(properties={"b": "1"}).properties, catalog_properties={"d": "1"}
    )


def test_a_property_of_the_catalog_is_removed_without_a_commit() -> None:
    before = metadata(catalog_properties={"c": "1", "d": "1"})
    after = applied(before, RemoveProperties(["c", "unknown"]), in_log=False)
    assert after == replace(before, catalog_properties={"d": "1"})


@pytest.mark.parametrize("key", ["in.log", "delta.appendOnly", "delta.x", TABLE_ID_PROPERTY, "delta.checkpointPolicy"])
@pytest.mark.parametrize("remove", [False, True])
def test_a_property_of_the_log_does_not_change_without_a_commit(key: str, remove: bool) -> None:
    before = metadata(properties={"in.log": "1"}, catalog_properties={"free": "1"})
    action = RemoveProperties(["free", key]) if remove else SetProperties({"free": "2", key: "2"})
    with pytest.raises(InvalidRequest) as refused:
        applied(before, action, in_log=False)
    assert f"The property {key} lives in the Delta log" in refused.value.message
    assert "together with the add-commit" in refused.value.message


IN_LOG: tuple[MetadataAction, ...] = (
    SetProtocol(protocol(writer=frozenset({"other"}))),
    SetColumns(struct(field("other"))),
    SetPartitionColumns(("port",)),
    SetDomainMetadata({"d": {"a": 1}}),
    RemoveDomainMetadata(["d"]),
)


@pytest.mark.parametrize("action", IN_LOG, ids=lambda action: action.action)
def test_metadata_of_the_log_does_not_change_without_a_commit(action: MetadataAction) -> None:
    with pytest.raises(
        InvalidRequest, match=rf"{action.action} changes the Delta log\. Send it together with the add-"
    ):
        applied(metadata(domains={"d": {}}), action, in_log=False)


@pytest.mark.parametrize(
    ("action", "changed"),
    [
        (IN_LOG[0], {"protocol": protocol(writer=frozenset({"other"}))}),
        (IN_LOG[1], {"columns": struct(field("other"))}),
        (IN_LOG[2], {"partition_columns": ("port",)}),
        (IN_LOG[3], {"domains": {"d": {"a": 1}, "kept": {}}}),
        (IN_LOG[4], {"domains": {"kept": {}}}),
        (SetComment("new"), {"comment": "new"}),
        (SetComment(None), {"comment": None}),
    ],
    ids=lambda value: getattr(value, "action", None),
)
def test_with_a_commit_each_action_changes_its_own_part(action: MetadataAction, changed: dict[str, Any]) -> None:
    before = metadata(domains={"d": {"old": True}, "kept": {}}, comment="old")
    assert applied(before, action, in_log=True) == replace(before, **changed)


@pytest.mark.parametrize("comment", ["new", "", None])
def test_a_comment_changes_alone(comment: str | None) -> None:
    before = metadata(comment="old")
    assert applied(before, SetComment(comment), in_log=False) == replace(before, comment=comment)


@pytest.mark.parametrize("action", ONE_OF_EACH[:3], ids=SPELLED[:3])
@pytest.mark.parametrize("in_log", [False, True])
def test_actions_about_versions_leave_the_metadata_alone(action: Action, in_log: bool) -> None:
    assert applied(metadata(), action, in_log=in_log) == metadata()


keys = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def shuffled_actions(draw: st.DrawFn) -> tuple[Sequence[Action], Sequence[Action]]:
    """Actions of the right shape, in two orders."""
    set_, removed = draw(st.dictionaries(keys, st.text(max_size=3))), draw(st.sets(keys))
    put, dropped = draw(st.dictionaries(keys, st.just({}), min_size=1)), draw(st.sets(keys, min_size=1))
    actions: list[Action] = [
        SetProperties(set_),
        RemoveProperties(sorted(removed - set(set_))),
        SetDomainMetadata(put),
        RemoveDomainMetadata(sorted(dropped - set(put)) or ["none"]),
        SetColumns(draw(schemas())),
        SetComment(draw(st.none() | st.text(max_size=3))),
        SetPartitionColumns(("port",)),
        AddCommit(commit(1), None),
    ]
    check_actions(actions)
    return actions, draw(st.permutations(actions))


@given(orders=shuffled_actions())
@settings(deadline=None)
def test_the_order_of_actions_means_nothing(orders: tuple[Sequence[Action], Sequence[Action]]) -> None:
    before = metadata(properties={"a": "1", "b": "1"}, catalog_properties={"c": "1"}, domains={"a": {}, "d": {}})
    one, other = orders
    assert apply_metadata(before, one, in_log=True) == apply_metadata(before, other, in_log=True)


# Which changes count


PARTS = [part.name for part in fields(TableMetadata) if part.name != "catalog_properties"]


def with_mark(before: TableMetadata, mark: int) -> TableMetadata:
    return replace(before, domains={**before.domains, "delta.rowTracking": {"rowIdHighWaterMark": mark}})


@given(before=metadatas(), mark=st.integers(-1, 2**63 - 1))
@settings(deadline=None)
def test_the_row_tracking_mark_may_appear_and_move_without_counting(before: TableMetadata, mark: int) -> None:
    assert not is_metadata_change(before, with_mark(before, mark))
    assert not is_metadata_change(before, before)


@given(before=metadatas(), other=metadatas(), part=st.sampled_from(PARTS), mark=st.integers(-1, 2**63 - 1))
@settings(deadline=None)
def test_another_value_of_any_part_counts_whatever_the_mark_does(
    before: TableMetadata, other: TableMetadata, part: str, mark: int
) -> None:
    after = replace(before, **{part: getattr(other, part)})
    assume(with_mark(before, 0) != with_mark(after, 0))
    assert is_metadata_change(with_mark(before, mark), with_mark(after, mark + 1))


@pytest.mark.parametrize(
    "changed",
    [
        {"columns": struct(field("other"))},
        {"partition_columns": ("port",)},
        {"protocol": protocol(writer=frozenset({"other"}))},
        {"properties": {}},
        {"domains": {"delta.clustering": {"clusteringColumns": []}}},
        {"domains": {"my": {}}},
        {"comment": ""},
        {"catalog_properties": {"team": "sea"}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_change_of_any_part_counts_there_and_back(changed: dict[str, Any]) -> None:
    before = metadata()
    after = replace(before, **changed)
    assert is_metadata_change(before, after)
    assert is_metadata_change(after, before)


def flagged(value: object) -> Field:
    return field("a", flag=value)


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), ([1], [True]), ({"x": 0}, {"x": False})])
def test_true_and_1_are_different_values(one: object, other: object) -> None:
    """JSON keeps them apart, and so does every reader of the log; Python's == does not."""
    assert is_metadata_change(metadata(domains={"my": {"on": one}}), metadata(domains={"my": {"on": other}}))
    assert is_metadata_change(metadata(columns=struct(flagged(one))), metadata(columns=struct(flagged(other))))


def test_the_id_of_the_table_is_never_a_property_of_the_catalog() -> None:
    """Without it in the log, the files could not tell which table they belong to."""
    lacking = replace(metadata(), properties={})
    with pytest.raises(InvalidRequest, match="lives in the Delta log"):
        applied(lacking, SetProperties({TABLE_ID_PROPERTY: TABLE_ID}), in_log=False)
