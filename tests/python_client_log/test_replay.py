"""Reconciliation: the newest wins, compared with a model that is as simple as can be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.python_client_log.logs import add, info, lines, metadata, protocol, remove
from tidegate.client.log.actions import parse_actions
from tidegate.client.log.errors import LogDamaged
from tidegate.client.log.replay import State

vectors = st.none() | st.builds(
    lambda name, offset: {
        "storageType": "u",
        "pathOrInlineDv": name,
        "offset": offset,
        "sizeInBytes": 1,
        "cardinality": 1,
    },
    st.sampled_from(["x" * 20, "y" * 20]),
    st.none() | st.integers(1, 2),
)
paths = st.sampled_from(["a", "b", "c", "a%20b"])


def file_action(kind: Any, path: str, vector: dict[str, Any] | None, size: int) -> dict[str, Any]:
    return kind(path, size=size, **({"deletionVector": vector} if vector else {}))


actions = st.one_of(
    st.builds(file_action, st.just(add), paths, vectors, st.integers(0, 9)),
    st.builds(file_action, st.just(remove), paths, vectors, st.integers(0, 9)),
    st.builds(lambda app, version: {"txn": {"appId": app, "version": version}}, paths, st.integers(0, 9)),
    st.builds(
        lambda domain, value, removed: {
            "domainMetadata": {"domain": domain, "configuration": value, "removed": removed}
        },
        paths,
        st.text(max_size=3),
        st.booleans(),
    ),
    st.builds(lambda owner: metadata(owner=owner), st.text(max_size=3)),
    st.builds(lambda feature: protocol(feature), st.sampled_from(["deletionVectors", "columnMapping"])),
    st.builds(lambda unknown: {"unknown": {"any": unknown}}, st.integers()),
)
commits = st.lists(st.lists(actions, max_size=6), max_size=8)


def replayed(commits: list[list[dict[str, Any]]]) -> State:
    state = State()
    for commit in commits:
        state.apply(parse_actions(lines(commit), "a commit"))
    return state


def vector_id(told: dict[str, Any]) -> str | None:
    vector = told.get("deletionVector")
    if vector is None:
        return None
    offset = "" if vector["offset"] is None else f"@{vector['offset']}"
    return f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"


def newest(commits: list[list[dict[str, Any]]], kind: str, key: Any) -> dict[Any, Any]:
    """Looks from the end for the newest action of each key: the other way round than the code under test."""
    found: dict[Any, Any] = {}
    for action in reversed([action for commit in commits for action in commit]):
        for name, told in action.items():
            if name in kind.split():
                found.setdefault(key(told), (name, told))
    return found


@settings(deadline=None)
@given(commits)
def test_newest_reference_to_a_logical_file_decides(commits: list[list[dict[str, Any]]]) -> None:
    model = newest(commits, "add remove", lambda told: (told["path"], vector_id(told)))
    expected = {key: told["size"] for key, (kind, told) in model.items() if kind == "add"}
    assert {file.key: file.size for file in replayed(commits).files} == expected


@settings(deadline=None)
@given(commits)
def test_newest_of_all_else_wins(commits: list[list[dict[str, Any]]]) -> None:
    state = replayed(commits)
    domains = newest(commits, "domainMetadata", lambda told: told["domain"])
    kept = {name: told["configuration"] for name, (_, told) in domains.items() if not told["removed"]}
    assert state.domains == kept
    apps = newest(commits, "txn", lambda told: told["appId"])
    assert {app: txn.version for app, txn in state.transactions.items()} == {
        a: t["version"] for a, (_, t) in apps.items()
    }
    table = newest(commits, "metaData", lambda told: None)
    assert (state.metadata.configuration if state.metadata else None) == (
        table[None][1]["configuration"] if table else None
    )
    needed = newest(commits, "protocol", lambda told: None)
    assert (state.protocol.reader_features if state.protocol else None) == (
        needed[None][1]["readerFeatures"] if needed else None
    )


@settings(deadline=None)
@given(commits, st.data())
def test_commits_may_be_read_compacted(commits: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    """What a compaction keeps (the newest of each key, tombstones too) stands for the commits it was made from."""
    start = data.draw(st.integers(0, len(commits)))
    end = data.draw(st.integers(start, len(commits)))
    chosen = commits[start:end]
    keys = {
        "add": vector_key,
        "remove": vector_key,
        "txn": lambda t: t["appId"],
        "domainMetadata": lambda t: t["domain"],
    }
    compacted = [
        {kind: told}
        for kinds, key in (
            ("add remove", vector_key),
            ("txn", keys["txn"]),
            ("domainMetadata", keys["domainMetadata"]),
            ("metaData", lambda told: None),
            ("protocol", lambda told: None),
        )
        for kind, told in newest(chosen, kinds, key).values()
    ]
    one, other = replayed(commits), replayed([*commits[:start], compacted, *commits[end:]])
    assert {file.key: file for file in one.files} == {file.key: file for file in other.files}
    assert (one.domains, one.transactions, one.metadata, one.protocol) == (
        other.domains,
        other.transactions,
        other.metadata,
        other.protocol,
    )


def vector_key(told: dict[str, Any]) -> tuple[str, str | None]:
    return told["path"], vector_id(told)


def test_in_commit_timestamp_is_that_of_the_last_commit() -> None:
    assert replayed([[info(5)], [info(6)]]).in_commit_timestamp == 6
    assert replayed([[info(5)], [add("a")]]).in_commit_timestamp is None


def test_unknown_fields_are_ignored_and_known_ones_checked() -> None:
    (action,) = parse_actions(lines([add("a", futureField={"x": [1]})]), "a commit")
    assert action.add is not None and action.add.path == "a"
    with pytest.raises(LogDamaged, match="line 2 is no action"):
        list(parse_actions(lines([add("a"), add("b", size="many")]), "a commit"))


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_actions_or_a_damaged_log(content: bytes) -> None:
    try:
        read = list(parse_actions(content, "a commit"))
    except LogDamaged:
        return
    assert len(read) <= content.count(b"{")


@pytest.mark.parametrize("stats", [None, "", "{", "[]", "7", "null", '{"numRecords":"many","minValues":[]}'])
def test_statistics_that_are_none_are_nothing(stats: str | None) -> None:
    (action,) = parse_actions(lines([add("a", stats=stats)]), "a commit")
    assert action.add is not None
    told = action.add.statistics
    assert told is None or (told.num_records, told.min_values) == (None, {})


def test_statistics_keep_every_digit() -> None:
    stats = json.dumps({"numRecords": 2, "nullCount": {"x": 1}})[:-1] + ',"minValues":{"x":0.12345678901234567890}}'
    (action,) = parse_actions(lines([add("a", stats=stats)]), "a commit")
    assert action.add is not None and action.add.statistics is not None
    assert str(action.add.statistics.min_values["x"]) == "0.12345678901234567890"
    assert action.add.statistics.num_records == 2
