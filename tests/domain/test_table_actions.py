"""The actions of a commit file: whatever it holds, it is read or refused, and nothing else happens."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.builders import json_values, managed_table, metadata, properties
from tidegate.domain.columns import log_schema
from tidegate.domain.desired_metadata import metadata_actions
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.protocol import Protocol
from tidegate.domain.table_actions import check_storable, parse_table_actions
from tidegate.domain.tables import check_metadata
from tidegate.domain.updates import apply_metadata

WHAT = "the staged commit"
FIELDS = {
    "metaData": ("schemaString", "partitionColumns", "configuration", "description"),
    "protocol": ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"),
    "domainMetadata": ("domain", "configuration", "removed"),
    "commitInfo": ("inCommitTimestamp",),
}


def sound() -> dict[str, dict[str, Any]]:
    table = metadata()
    return {
        "commitInfo": {"inCommitTimestamp": 5},
        "protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["a"], "writerFeatures": ["a"]},
        "metaData": {
            "schemaString": json.dumps(log_schema(table.columns)),
            "partitionColumns": ["port"],
            "configuration": dict(table.properties),
            "description": "d",
        },
        "domainMetadata": {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["id"]]}'},
    }


def written(actions: dict[str, dict[str, Any]]) -> bytes:
    return "".join(json.dumps({name: action}) + "\n" for name, action in actions.items()).encode()


def test_what_speaks_of_the_table_is_read_and_what_speaks_of_files_is_passed_over() -> None:
    files = b'{"add":{"path":"x","stats":"{"}}\n' * 3
    read = parse_table_actions(files + written(sound()) + files, what=WHAT)
    assert read.protocol == Protocol(3, 7, frozenset({"a"}), frozenset({"a"}))
    assert read.metadata is not None
    assert (read.metadata.partition_columns, read.metadata.description) == (("port",), "d")
    assert read.domains == {"delta.clustering": {"clusteringColumns": [["id"]]}}
    assert read.commit_info == {"inCommitTimestamp": 5}


def test_a_file_of_data_only_says_nothing_of_the_table() -> None:
    read = parse_table_actions(b'{"add":{"path":"x"}}\n{"remove":{"path":"y"}}\n', what=WHAT)
    assert (read.protocol, read.metadata, read.domains, read.removed_domains) == (None, None, {}, ())


@pytest.mark.parametrize(
    ("removals", "domains", "removed"),
    [((False,), {"d"}, ()), ((True,), set(), ("d",)), ((False, True), set(), ("d",)), ((True, False), {"d"}, ())],
)
def test_of_two_actions_about_one_domain_the_later_one_counts(
    removals: tuple[bool, ...], domains: set[str], removed: tuple[str, ...]
) -> None:
    lines = [
        json.dumps({"domainMetadata": {"domain": "d", "configuration": "{}", "removed": gone}}) for gone in removals
    ]
    read = parse_table_actions("\n".join(lines).encode(), what=WHAT)
    assert (set(read.domains), read.removed_domains) == (domains, removed)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Sound actions with some parts replaced by any JSON, some of it as text."""
    actions = sound()
    for name, keys in FIELDS.items():
        for key in keys:
            match draw(st.integers(0, 5)):
                case 0:
                    actions[name][key] = draw(json_values())
                case 1:
                    actions[name][key] = json.dumps(draw(json_values() | properties()))
                case 2:
                    actions[name].pop(key, None)
                case _:
                    pass
    return written(actions)


@given(content=spoiled() | st.binary(max_size=50))
@settings(deadline=None, max_examples=300)
def test_whatever_a_file_holds_it_is_read_or_refused(content: bytes) -> None:
    table = managed_table()
    with suppress(InvalidRequest):
        read = parse_table_actions(content, what=WHAT)
        check_storable(read, what=WHAT)
        after = apply_metadata(table.metadata, metadata_actions(table.metadata, None, read), in_log=True)
        check_metadata(managed_table(metadata=after))
        json.dumps([log_schema(after.columns), dict(after.domains)]).encode()


@pytest.mark.parametrize("bad", ["\ud800", "a\0b"], ids=ascii)
@pytest.mark.parametrize("part", ["schema", "key", "value", "description", "feature", "domain"])
def test_a_text_that_cannot_be_kept_is_refused_wherever_it_is(part: str, bad: str) -> None:
    actions = sound()
    match part:
        case "schema":
            named = {"name": bad, "type": "long", "nullable": True, "metadata": {}}
            actions["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": [named]})
        case "key":
            actions["metaData"]["configuration"][bad] = "v"
        case "value":
            actions["metaData"]["configuration"]["k"] = bad
        case "description":
            actions["metaData"]["description"] = bad
        case "feature":
            actions["protocol"]["writerFeatures"].append(bad)
        case "domain":
            actions["domainMetadata"]["configuration"] = json.dumps({"clusteringColumns": [[bad]]})
    read = parse_table_actions(written(actions), what=WHAT)
    with pytest.raises(InvalidRequest, match="NUL character or half a surrogate pair"):
        check_storable(read, what=WHAT)
