"""Version 0: how the first file of the log is read, and that no difference to the request stays unnoticed."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.builders import CREATED_AT, field, json_values, metadata, metadatas, protocol, struct
from tidegate.domain.chain import FileDigest
from tidegate.domain.columns import ArrayType, DataType, Field, MapType, StructType, log_schema
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.first_commit import FirstCommit, check_agreement, parse_first_commit
from tidegate.domain.protocol import Protocol
from tidegate.domain.tables import TableMetadata

Actions = list[dict[str, Any]]
CLUSTERED = {"delta.clustering": {"clusteringColumns": [["id"]]}}
MARKED = {"delta.rowTracking": {"rowIdHighWaterMark": 7}}


def actions(declared: TableMetadata, timestamp: int = CREATED_AT) -> Actions:
    """The actions of version 0 that say what the request says."""
    return [
        {"commitInfo": {"inCommitTimestamp": timestamp, "operation": "CREATE TABLE"}},
        {
            "protocol": {
                "minReaderVersion": declared.protocol.min_reader_version,
                "minWriterVersion": declared.protocol.min_writer_version,
                "readerFeatures": sorted(declared.protocol.reader_features),
                "writerFeatures": sorted(declared.protocol.writer_features),
            }
        },
        {
            "metaData": {
                "id": "5c0c4d3e-0000-4000-8000-000000000001",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(log_schema(declared.columns)),
                "partitionColumns": list(declared.partition_columns),
                "configuration": dict(declared.properties),
            }
        },
        *(domain_action(domain, json.dumps(value)) for domain, value in declared.domains.items()),
    ]


def domain_action(domain: str, configuration: str | None, *, removed: bool = False) -> dict[str, Any]:
    return {"domainMetadata": {"domain": domain, "configuration": configuration, "removed": removed}}


def written(some: Actions) -> bytes:
    return "".join(json.dumps(action) + "\n" for action in some).encode()


def read(declared: TableMetadata, timestamp: int = CREATED_AT) -> FirstCommit:
    return parse_first_commit(written(actions(declared, timestamp)))


def said(content: bytes) -> FirstCommit:
    """What it says, whatever its bytes."""
    return replace(parse_first_commit(content), digest=None)


def changed_actions(action: str, **values: Any) -> Actions:
    """A sound version 0 in which one action says something else; None takes a value away."""
    some = copy.deepcopy(actions(metadata()))
    content = next(one[action] for one in some if action in one)
    for key, value in values.items():
        content[key] = value
        if value is None:
            del content[key]
    return some


# Reading


@given(declared=metadatas(), timestamp=st.integers(1, 2**63 - 1))
@settings(deadline=None)
def test_what_a_request_declares_agrees_with_a_version_0_that_says_the_same(
    declared: TableMetadata, timestamp: int
) -> None:
    log = read(declared, timestamp)
    assert log == FirstCommit(
        columns=declared.columns,
        partition_columns=declared.partition_columns,
        protocol=declared.protocol,
        properties=declared.properties,
        domains=declared.domains,
        timestamp=timestamp,
        digest=FileDigest.of(written(actions(declared, timestamp))),
    )
    check_agreement(declared, timestamp=timestamp, log=log)


def test_actions_about_files_and_blank_lines_are_passed_over() -> None:
    files: Actions = [
        {"add": {"path": "protocol", "partitionValues": {"metaData": "x"}, "size": 1}},
        {"txn": {"appId": "commitInfo", "version": 1}},
        {"remove": {"path": "a"}},
    ]
    plain = actions(metadata())
    content = b"\n \n" + written([*files, *plain, *files]).replace(b"\n", b"\r\n") + b"\n"
    assert said(content) == said(written(plain))


def test_a_version_0_in_any_order_and_without_a_last_line_break_is_read() -> None:
    plain = actions(metadata(domains=CLUSTERED))
    assert said(written(plain[::-1]).rstrip(b"\n")) == said(written(plain))


def test_text_beyond_ascii_is_read() -> None:
    declared = metadata(columns=struct(field("höhe", comment="🌊"), field("b")), properties={"größe": "µ"})
    raw = "\n".join(json.dumps(action, ensure_ascii=False) for action in actions(declared)).encode()
    check_agreement(declared, timestamp=CREATED_AT, log=parse_first_commit(raw))


def test_a_protocol_without_features_and_a_table_without_partitions_are_read() -> None:
    some = changed_actions("protocol", readerFeatures=None, writerFeatures=None)
    some[2]["metaData"].pop("partitionColumns")
    some[2]["metaData"].pop("configuration")
    log = parse_first_commit(written(some))
    assert log.protocol == Protocol(3, 7, frozenset(), frozenset())
    assert (log.partition_columns, log.properties) == ((), {})


def test_a_domain_that_is_removed_is_not_there() -> None:
    gone = domain_action("my", None, removed=True)
    assert parse_first_commit(written([*actions(metadata()), gone])).domains == {}


@pytest.mark.parametrize("missing", ["commitInfo", "protocol", "metaData"])
def test_a_missing_action_is_named(missing: str) -> None:
    rest = [action for action in actions(metadata()) if missing not in action]
    with pytest.raises(InvalidRequest, match=rf"has no {missing} action\. Write it before you create the table"):
        parse_first_commit(written(rest))


@pytest.mark.parametrize("content", [b"", b"\n\n", b" \r\n", b'{"add":{}}', b"{}"])
def test_a_file_without_any_action_lacks_the_first_one(content: bytes) -> None:
    with pytest.raises(InvalidRequest, match="has no commitInfo action"):
        parse_first_commit(content)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"protocol"', "Line 4 of version 0 of the log is not JSON. Write one action a line"),
        (b'{"protocol":{}} {}', "Line 4 of version 0 of the log is not JSON"),
        (b'{"metaData":{"id":"\xff"}}', "Line 4 of version 0 of the log is not JSON"),
        (b'{"commitInfo":' * 100_000, "Line 4 of version 0 of the log is not JSON"),
        (b'{"commitInfo":{"inCommitTimestamp":' + b"9" * 5000 + b"}}", "Line 4 of version 0 of the log is not JSON"),
        (b"PAR1", "Line 4 of version 0 of the log is not JSON"),
        (b"\0", "Line 4 of version 0 of the log is not JSON"),
        (b'{"add":{"path":"cut o', "Line 4 of version 0 of the log is not JSON"),
        (b"[]", "Line 4 of version 0 of the log is not a Delta action"),
        (b'["protocol"]', "Line 4 of version 0 of the log is not a Delta action"),
        (b'"protocol"', "Line 4 of version 0 of the log is not a Delta action"),
        (b'{"protocol":3}', "Line 4 of version 0 of the log is not a Delta action"),
        (b'{"metaData":null}', "Line 4 of version 0 of the log is not a Delta action"),
    ],
)
def test_a_line_that_is_no_action_is_named_by_its_number(line: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_first_commit(written(actions(metadata())) + line)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("action", "values", "message"),
    [
        ("commitInfo", {"inCommitTimestamp": None}, "inCommitTimestamp"),
        ("commitInfo", {"inCommitTimestamp": "soon"}, "not sound"),
        ("commitInfo", {"inCommitTimestamp": [5]}, "not sound"),
        ("protocol", {"minReaderVersion": None}, "minReaderVersion"),
        ("protocol", {"minWriterVersion": {}}, "not sound"),
        ("protocol", {"readerFeatures": 5}, "not sound"),
        ("metaData", {"schemaString": None}, "schemaString"),
        ("metaData", {"schemaString": ""}, "The schema in version 0 of the log is not JSON"),
        ("metaData", {"schemaString": "{"}, "The schema in version 0 of the log is not JSON"),
        ("metaData", {"schemaString": 5}, "The schema in version 0 of the log is not JSON"),
        ("metaData", {"schemaString": "[" * 100_000}, "The schema in version 0 of the log is not JSON"),
        ("metaData", {"schemaString": '"long"'}, "The schema is not a struct"),
        ("metaData", {"configuration": 5}, "not sound"),
        ("metaData", {"partitionColumns": 5}, "not sound"),
    ],
)
def test_an_action_that_is_not_sound_is_refused_by_what_is_wrong(
    action: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_first_commit(written(changed_actions(action, **values)))
    assert message in refused.value.message


@pytest.mark.parametrize("number", [b"1e999", b"-1e999"])
@pytest.mark.parametrize(("key", "value"), [("inCommitTimestamp", CREATED_AT), ("minReaderVersion", 3)])
def test_a_number_beyond_all_bounds_is_refused(key: str, value: int, number: bytes) -> None:
    sound = written(actions(metadata()))
    content = sound.replace(f'"{key}": {value}'.encode(), f'"{key}": '.encode() + number)
    assert content != sound
    with pytest.raises(InvalidRequest, match="not sound"):
        parse_first_commit(content)


@pytest.mark.parametrize("configuration", ["", "plain text", "5", "[]", "{"])
def test_a_domain_that_the_catalog_does_not_show_may_hold_any_text(configuration: str) -> None:
    """To Delta a domain's configuration is a string that belongs to whoever owns the domain."""
    log = parse_first_commit(written([*actions(metadata()), domain_action("my.domain", configuration)]))
    check_agreement(metadata(), timestamp=CREATED_AT, log=log)


@pytest.mark.parametrize("configuration", ["", "plain text", "5", "[]", "{", None])
def test_a_domain_that_the_catalog_shows_is_refused_when_it_cannot_be_read(configuration: str | None) -> None:
    content = written([*actions(metadata()), domain_action("delta.clustering", configuration)])
    with pytest.raises(InvalidRequest, match=r"domainMetadata|delta\.clustering"):
        check_agreement(metadata(domains=CLUSTERED), timestamp=CREATED_AT, log=parse_first_commit(content))


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a JSON value with each of its keys."""
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from places(node[key])


nonsense = json_values() | st.floats() | st.sampled_from(["struct", "{}", "[]", '{"type":"struct","fields":[{}]}'])


@given(declared=metadatas(), value=nonsense, data=st.data())
@settings(deadline=None, max_examples=150)
def test_whatever_one_value_of_version_0_is_it_is_read_or_refused_and_nothing_else(
    declared: TableMetadata, value: Any, data: st.DataObject
) -> None:
    some = copy.deepcopy(actions(declared))
    container, key = data.draw(st.sampled_from(list(places(some))))
    container[key] = value
    with contextlib.suppress(InvalidRequest):
        log = parse_first_commit(written(some))
        check_agreement(declared, timestamp=CREATED_AT, log=log)
        assert (log.protocol, log.partition_columns) == (declared.protocol, declared.partition_columns)


@given(cut=st.integers(0, 2000), junk=st.binary(max_size=20))
@settings(deadline=None)
def test_a_torn_file_is_refused_unless_all_of_it_is_there(cut: int, junk: bytes) -> None:
    content = written(actions(metadata())).rstrip(b"\n")
    torn = content[: cut % len(content)]
    with pytest.raises(InvalidRequest):
        parse_first_commit(torn + b"\n" + junk.replace(b"\n", b""))


# Agreement


def difference(declared: TableMetadata, log: FirstCommit, timestamp: int = CREATED_AT) -> str:
    with pytest.raises(InvalidRequest) as refused:
        check_agreement(declared, timestamp=timestamp, log=log)
    return refused.value.message


@st.composite
def changed_metadata(draw: st.DrawFn, before: TableMetadata) -> tuple[TableMetadata, str]:
    """Metadata that differs in one thing, and how a message about it must name that thing."""
    match draw(st.sampled_from(["versions", "features", "columns", "properties", "partition columns", "domains"])):
        case "versions":
            which = draw(st.sampled_from(["reader", "writer"]))
            name = f"min_{which}_version"
            other = replace(before.protocol, **{name: getattr(before.protocol, name) + draw(st.sampled_from([-1, 1]))})
            return replace(before, protocol=other), f"min-{which}-version"
        case "features":
            return draw(changed_features(before))
        case "columns":
            columns, where = draw(changed_struct(before.columns, path=""))
            return replace(before, columns=columns), f"The columns differ from version 0 in the log: {where}"
        case "properties":
            return draw(changed_properties(before))
        case "partition columns":
            names = before.partition_columns
            return replace(before, partition_columns=names[1:] if names else ("more",)), "differ in partition-columns:"
        case _:
            return draw(changed_domains(before))


@st.composite
def changed_features(draw: st.DrawFn, before: TableMetadata) -> tuple[TableMetadata, str]:
    which = draw(st.sampled_from(["reader", "writer"]))
    now = getattr(before.protocol, f"{which}_features")
    feature = draw(st.sampled_from([*sorted(now), "anotherFeature"]))
    other = replace(before.protocol, **{f"{which}_features": now ^ {feature}})
    return replace(before, protocol=other), f"protocol {which}-features: {feature!r}"


@st.composite
def changed_properties(draw: st.DrawFn, before: TableMetadata) -> tuple[TableMetadata, str]:
    key = draw(st.sampled_from([*before.properties, "another.key"]))
    properties = dict(before.properties)
    value = properties.pop(key, "")
    if draw(st.booleans()) or key == "another.key":
        properties[key] = f"{value}."
    return replace(before, properties=properties), f"differ in property {key}:"


@st.composite
def changed_domains(draw: st.DrawFn, before: TableMetadata) -> tuple[TableMetadata, str]:
    """Of the domains that the catalog shows: only those must be in the request when they are in the log."""
    domain = draw(st.sampled_from(["delta.clustering", "delta.rowTracking"]))
    domains = dict(before.domains)
    value = domains.pop(domain, None)
    if value is None or draw(st.booleans()):
        domains[domain] = {**(value or {}), "more": 1}
    return replace(before, domains=domains), f"differ in domain metadata {domain}:"


@st.composite
def changed_struct(draw: st.DrawFn, before: StructType, *, path: str) -> tuple[StructType, str]:
    if not before.fields or draw(st.sampled_from([False, False, True])):
        return draw(changed_names(before)), path.rstrip(".") if path else "the table has the columns"
    index = draw(st.integers(0, len(before.fields) - 1))
    other, where = draw(changed_field(before.fields[index], path=path))
    return StructType((*before.fields[:index], other, *before.fields[index + 1 :])), where


@st.composite
def changed_names(draw: st.DrawFn, before: StructType) -> StructType:
    """One column more, fewer, in another place, or under another name."""
    fields = list(before.fields)
    index = draw(st.integers(0, len(fields)))
    if index == len(fields):
        return StructType((*fields, field("more")))
    kind = draw(st.sampled_from(["fewer", "renamed", "moved"]))
    if kind == "moved" and len(fields) > 1:
        return StructType((*fields[1:], fields[0]))
    renamed = [replace(fields[index], name=f"{fields[index].name}.")] if kind == "renamed" else []
    return StructType((*fields[:index], *renamed, *fields[index + 1 :]))


@st.composite
def changed_field(draw: st.DrawFn, before: Field, *, path: str) -> tuple[Field, str]:
    where = f"{path}{before.name}"
    match draw(st.sampled_from(["nullable", "metadata", "type", "type"])):
        case "nullable":
            return replace(before, nullable=not before.nullable), f"{where} has nullable="
        case "metadata":
            return replace(before, metadata={**before.metadata, "more": [None]}), f"{where} has other metadata"
        case _ if isinstance(before.type, StructType):
            inner, place = draw(changed_struct(before.type, path=f"{where}."))
            return replace(before, type=inner), place
        case _:
            return replace(before, type=draw(changed_type(before.type))), f"{where} is "


@st.composite
def changed_type(draw: st.DrawFn, before: DataType) -> DataType:
    match before:
        case ArrayType(element, contains_null) if draw(st.booleans()):
            return ArrayType(draw(changed_type(element)), contains_null)
        case ArrayType(element, contains_null):
            return ArrayType(element, not contains_null)
        case MapType(key, value, contains_null) if draw(st.booleans()):
            return MapType(draw(changed_type(key)), value, contains_null)
        case MapType(key, value, contains_null):
            return MapType(key, value, not contains_null)
        case StructType():
            return draw(changed_struct(before, path=""))[0]
        case _:
            return "void"


@given(declared=metadatas(), data=st.data(), in_log=st.booleans())
@settings(deadline=None, max_examples=200)
def test_any_single_difference_is_found_and_named_on_whichever_side_it_is(
    declared: TableMetadata, data: st.DataObject, in_log: bool
) -> None:
    other, name = data.draw(changed_metadata(declared))
    message = difference(declared, read(other)) if in_log else difference(other, read(declared))
    assert name in message


@given(declared=metadatas(), apart=st.integers(1, 10**6), sign=st.sampled_from([-1, 1]))
@settings(deadline=None, max_examples=30)
def test_another_timestamp_is_found_and_both_are_named(declared: TableMetadata, apart: int, sign: int) -> None:
    message = difference(declared, read(declared), timestamp=CREATED_AT + sign * apart)
    assert f"differ in last-commit-timestamp-ms: {CREATED_AT + sign * apart} is declared" in message
    assert f"{CREATED_AT} is in the log. Send what the log says" in message


@pytest.mark.parametrize(
    ("declared", "log", "message"),
    [
        ({"properties": {"a": "1"}}, {"properties": {"a": "2"}}, 'property a: "1" is declared, "2" is in the log'),
        ({"properties": {"a": "1"}}, {}, 'property a: "1" is declared, nothing is in the log'),
        ({}, {"properties": {"a": "1"}}, 'property a: nothing is declared, "1" is in the log'),
        ({"protocol": protocol(writer=frozenset({"x"}))}, {}, "writer-features: 'x' is declared but not in the log"),
        ({}, {"protocol": protocol(writer=frozenset({"x"}))}, "writer-features: 'x' is in the log but not declared"),
        ({"partition_columns": ("id",)}, {}, 'partition-columns: ["id"] is declared, [] is in the log'),
        (
            {"partition_columns": ("id", "port")},
            {"partition_columns": ("port", "id")},
            'partition-columns: ["id", "port"] is declared, ["port", "id"] is in the log',
        ),
        ({"domains": MARKED}, {}, 'delta.rowTracking: {"rowIdHighWaterMark": 7} is declared, nothing is in the log'),
        ({}, {"domains": CLUSTERED}, "delta.clustering: nothing is declared"),
        ({"domains": {"my": {}}}, {}, "domain metadata my: {} is declared, nothing is in the log"),
    ],
)
def test_a_difference_is_told_from_both_sides(declared: dict[str, Any], log: dict[str, Any], message: str) -> None:
    told = difference(metadata(**declared), read(metadata(**log)))
    assert message in told
    assert "Send what the log says" in told


@pytest.mark.parametrize(
    ("declared", "log", "message"),
    [
        (struct(field("a")), struct(field("b")), "the table has the columns ['a'] in the request and ['b'] in the log"),
        (struct(field("a")), struct(field("A")), "the table has the columns ['a'] in the request and ['A'] in the log"),
        (
            struct(field("a"), field("b")),
            struct(field("b"), field("a")),
            "the table has the columns ['a', 'b'] in the request and ['b', 'a'] in the log",
        ),
        (struct(field("a", "long")), struct(field("a", "integer")), 'a is "long" in the request and "integer" in the'),
        (struct(field("a")), struct(field("a", nullable=False)), "a has nullable=True in the request and False in the"),
        (struct(field("a", comment="x")), struct(field("a")), "a has other metadata in the request than in the log"),
        (
            struct(field("s", struct(field("x", nullable=False)))),
            struct(field("s", struct(field("x")))),
            "s.x has nullable=False in the request and True in the log",
        ),
        (
            struct(field("s", struct(field("x")))),
            struct(field("s", struct(field("y")))),
            ": s has the columns ['x'] in the request and ['y'] in the log",
        ),
    ],
)
def test_a_difference_of_columns_is_told_by_its_place(declared: StructType, log: StructType, message: str) -> None:
    assert message in difference(metadata(columns=declared), read(metadata(columns=log)))


def test_true_is_not_taken_for_1() -> None:
    """JSON keeps them apart; Python's == does not."""
    flags = [metadata(columns=struct(field("a", flag=value), field("b"))) for value in (1, True)]
    assert "a has other metadata" in difference(flags[0], read(flags[1]))
    marks = [metadata(domains={"my": {"on": value}}) for value in (1, True)]
    assert "domain metadata my" in difference(marks[1], read(marks[0]))


MANY = tuple(field(f"column_{number}") for number in range(10_000))


@pytest.mark.parametrize(
    "huge",
    [
        {"properties": {"a": "x" * 100_000}},
        {"properties": {"a" * 100_000: "x"}},
        {"columns": struct(*MANY)},
        {"columns": struct(field("s", struct(*MANY)))},
        {"columns": struct(field("a" * 100_000))},
        {"partition_columns": tuple(one.name for one in MANY)},
        {"domains": {"delta.clustering": {"clusteringColumns": [["a" * 100_000]]}}},
        {"protocol": protocol(writer=frozenset({"A" * 100_000}))},
    ],
    ids=lambda huge: next(iter(huge)),
)
def test_a_long_difference_is_not_repeated_in_full(huge: dict[str, Any]) -> None:
    small = metadata(columns=struct(field("s", struct(field("x"))))) if "columns" in huge else metadata()
    assert len(difference(metadata(**huge), read(small))) < 2000
    assert len(difference(small, read(metadata(**huge)))) < 2000


@pytest.mark.parametrize(
    "odd",
    [
        {"properties": {"\ud800": "x"}},
        {"properties": {"a": "\ud800"}},
        {"columns": struct(field("\ud800"))},
        {"columns": struct(field("id", "\ud800"))},
        {"partition_columns": ("\ud800",)},
        {"protocol": protocol(writer=frozenset({"\ud800"}))},
        {"domains": {"delta.clustering": {"\ud800": 1}}},
    ],
    ids=lambda odd: next(iter(odd)),
)
def test_half_a_character_in_the_log_does_not_make_the_answer_unsendable(odd: dict[str, Any]) -> None:
    """JSON can write an unpaired surrogate as an escape; UTF-8 cannot hold one."""
    small = metadata(columns=struct(field("id"))) if "columns" in odd else metadata()
    assert difference(small, read(metadata(**odd))).encode()


def deeper(frames: int, call: Callable[[], None]) -> None:
    """Calls from further down the stack, as a server does that reads in one place and compares in another."""
    if frames:
        deeper(frames - 1, call)
    else:
        call()


@pytest.mark.parametrize("place", ["domain", "field"])
@pytest.mark.parametrize("levels", range(600, 1000, 50))
def test_what_is_nested_as_deep_as_can_be_read_is_refused_wherever_it_is_compared(levels: int, place: str) -> None:
    deep = f'{{"x":{"[" * levels}{"]" * levels}}}'
    column = f'{{"name":"id","type":"long","nullable":true,"metadata":{deep}}}'
    some = actions(metadata(columns=struct(field("id"))))
    if place == "domain":
        some.append(domain_action("delta.clustering", deep))
    else:
        some[2]["metaData"]["schemaString"] = f'{{"type":"struct","fields":[{column}]}}'

    def read_and_compare() -> None:
        log = parse_first_commit(written(some))
        deeper(200, lambda: check_agreement(metadata(columns=struct(field("id"))), timestamp=CREATED_AT, log=log))

    with pytest.raises(InvalidRequest):
        read_and_compare()


def test_what_stock_clients_write_differently_is_no_difference() -> None:
    declared = metadata(partition_columns=("PORT",), domains=CLUSTERED, comment="only in the catalog")
    some = actions(metadata(partition_columns=("port",), properties={"delta.feature.x": "supported"}))
    some[1]["protocol"]["writerFeatures"].reverse()
    named = {"clusteringColumns": [["id"]], "domainName": "delta.clustering"}
    some += [domain_action("delta.clustering", json.dumps(named)), domain_action("undeclared", "{}")]
    check_agreement(declared, timestamp=CREATED_AT, log=parse_first_commit(written(some)))


def test_a_request_that_repeats_the_name_of_a_domain_as_the_log_does_agrees() -> None:
    named = {"delta.clustering": {"clusteringColumns": [["id"]], "domainName": "delta.clustering"}}
    check_agreement(metadata(domains=named), timestamp=CREATED_AT, log=read(metadata(domains=named)))
