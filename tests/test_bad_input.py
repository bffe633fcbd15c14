"""Bad input: the right 4xx in the error body of the face that was called, and nothing stored. Never a 5xx.

The tests take requests that succeed and spoil them: every part of every body, the bytes themselves, paths, queries,
headers, and what the rules forbid. Where it can be, a spoiled request is followed by the sound one, which must succeed:
then what was spoiled was the only reason, and the refusal left everything usable.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import sqlalchemy as sa

from tests.lake import COLUMNS, DELTA, UNITY, Draft, Lake, LakeTable, add_commit, error_of, report, set_properties
from tests.servers import ServerProcess
from tidegate.db import schema as db
from tidegate.settings import Settings

MALFORMED = "BadRequestException"
INVALID = "InvalidParameterValueException"
UNITY_INVALID = "INVALID_PARAMETER_VALUE"
BODY_BYTES_MAX = Settings().body_bytes_max
MEBIBYTE = 2**20
UNUSED_ID = "01234567-89ab-cdef-0123-456789abcdef"
LEAKS = re.compile(r"Traceback|File \"|sqlalchemy|psycopg|sqlite|\b(SELECT|INSERT|UPDATE|DELETE) .*\b(FROM|INTO|SET)\b")

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Yard:
    """A schema of our own with a table in it, and a look at all that is stored."""

    http: httpx.Client
    lake: Lake
    table: LakeTable
    schema_id: str
    engine: sa.Engine

    def stored(self) -> list[Any]:
        """How much there is of everything but what is written in the background, where each table of our schema stands,
        and what the catalog says of ours.
        """
        state = sa.select(db.tables.c["id", "name", "revision", "latest", "published", "updated_at", "dropped_at"])
        ours = state.where(db.tables.c.schema_id == self.schema_id).order_by(db.tables.c.id)
        with self.engine.connect() as connection:
            kept = [t for t in db.metadata.sorted_tables if t not in (db.audit, db.dead_letters)]
            counts = [connection.scalar(sa.select(sa.func.count()).select_from(t)) for t in kept]
            tables = [tuple(row) for row in connection.execute(ours)]
        catalog = self.http.get(f"{UNITY}/catalogs/{self.lake.catalog}").json()
        schemas = self.http.get(f"{UNITY}/schemas", params={"catalog_name": self.lake.catalog}).json()
        return [counts, tables, catalog, schemas, self.table.load()]

    def next_commit(self, *updates: dict[str, Any]) -> dict[str, Any]:
        """The action that would commit the next version of the table, whose file says what these updates say."""
        return add_commit(self.table.stage_commit(self.table.load()["latest-table-version"] + 1, *updates))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = self.stored()
        yield
        assert self.stored() == before


_numbers = itertools.count(1)


def fresh(prefix: str = "n") -> str:
    return f"bad_{prefix}{next(_numbers)}"


@pytest.fixture(scope="module")
def yard(server: ServerProcess) -> Iterator[Yard]:
    engine = sa.create_engine(server.database or f"sqlite:///{server.home}/catalog.db")
    with server.http() as http:
        catalog = fresh("yard")
        assert http.post(f"{UNITY}/catalogs", json={"name": catalog}).status_code == 200
        made = http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": catalog})
        assert made.status_code == 200, made.text
        lake = Lake(http, catalog, "s")
        yield Yard(http, lake, lake.new_table("kept", columns=WIDE), made.json()["schema_id"], engine)
    engine.dispose()


def check_refused(response: httpx.Response, status: int, *codes: str) -> None:
    """One of the codes, in exactly the error body of the face that was called."""
    assert response.status_code == status, response.text[:500]
    assert error_of(response)[1] in codes, response.text
    body, on_delta = response.json(), response.request.url.path.startswith(DELTA)
    beyond = {"conflict"} if "CommitVersionConflictException" in codes else set[str]()
    assert set(body) == ({"error"} | beyond if on_delta else {"error_code", "message"})
    assert not on_delta or set(body["error"]) == {"type", "code", "message"}
    assert not LEAKS.search(response.text), response.text
    assert "Write into the commit what the request declares" not in response.text, "its file spoiled it, not the test"


def check_invalid(response: httpx.Response) -> None:
    on_delta = response.request.url.path.startswith(DELTA)
    check_refused(response, 400, INVALID if on_delta else UNITY_INVALID)


# Sound bodies, to be spoiled


def _columns(*fields: tuple[str, Any]) -> dict[str, Any]:
    described = [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in fields]
    return {"type": "struct", "fields": described}


def _array(element: Any) -> dict[str, Any]:
    return {"type": "array", "element-type": element, "contains-null": True}


def _map(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "key-type": key, "value-type": value, "value-contains-null": True}


WIDE = _columns(
    ("id", "long"), ("name", "string"), ("a", _array("string")), ("m", _map("string", "long")), ("s", COLUMNS)
)
HISTOGRAM = {"sorted-bin-boundaries": [0, 10], "file-counts": [1, 2], "total-bytes": [3, 40], "commit-version": 0}
COUNTS = [
    *(f"num-{what}-{done}" for what in ("files", "bytes") for done in ("added", "removed")),
    *(f"num-rows-{done}" for done in ("inserted", "removed", "updated")),
]


@dataclass(frozen=True)
class Sound:
    """A request that succeeds, and the parts of its body that must be there."""

    make: Callable[[Yard], tuple[str, str, dict[str, Any]]]
    required: tuple[str, ...]


def _creation(yard: Yard) -> tuple[str, str, dict[str, Any]]:
    draft = yard.lake.draft(
        fresh(),
        columns=WIDE,
        partition_columns=["name"],
        comment="c",
        domain_metadata={"mine": {"x": 1}},
        properties={"delta.universalFormat.enabledFormats": "iceberg"},
    )
    draft.request["uniform"] = {"iceberg": iceberg(draft.location, 0, draft.request["last-commit-timestamp-ms"])}
    draft.write_version_0()
    return "POST", yard.lake.tables_url(), draft.request


def iceberg(location: str, version: int, timestamp: int) -> dict[str, Any]:
    place = f"{location}/metadata/v{version}.json"
    return {"metadata-location": place, "converted-delta-version": version, "converted-delta-timestamp": timestamp}


def _update(make: Callable[[Yard], dict[str, Any]]) -> Callable[[Yard], tuple[str, str, dict[str, Any]]]:
    """An update by this action together with a commit, all that a table's writer can assert asserted."""

    def made(yard: Yard) -> tuple[str, str, dict[str, Any]]:
        action = make(yard)
        others = [] if action["action"] == "add-commit" else [yard.next_commit(action)]
        body = yard.table.request(action, *others, etag=yard.table.load()["metadata"]["etag"])
        return "POST", f"{yard.lake.tables_url()}/{yard.table.name}", body

    return made


def _metrics(yard: Yard) -> tuple[str, str, dict[str, Any]]:
    report = {"commit-report": {**dict.fromkeys(COUNTS, 1), "file-size-histogram": HISTOGRAM}}
    return "POST", f"{yard.lake.tables_url()}/kept/metrics", {"table-id": yard.table.id, "report": report}


def _renaming(yard: Yard) -> tuple[str, str, dict[str, Any]]:
    table = yard.lake.new_table(fresh())
    return "POST", f"{yard.lake.tables_url()}/{table.name}/rename", {"new-name": fresh()}


def _protocol(yard: Yard) -> dict[str, Any]:
    return {"action": "set-protocol", "protocol": Draft.of("x", yard.lake.stage(fresh()).json()).request["protocol"]}


FIELD = ("name", "type", "nullable", "metadata")
COMMIT = ("version", "timestamp", "file-name", "file-size", "file-modification-timestamp")
DESCRIBED = {"comment": "c", "properties": {"k": "v"}}
UPDATE = ("requirements", "requirements.0.type", "requirements.0.uuid", "requirements.1.etag", "updates.0.action")

SOUND: dict[str, Sound] = {
    "stage": Sound(
        lambda y: ("POST", y.lake.tables_url().replace("/tables", "/staging-tables"), {"name": fresh()}), ("name",)
    ),
    "create": Sound(
        _creation,
        (
            *("name", "location", "table-type", "columns", "protocol", "properties", "last-commit-timestamp-ms"),
            *("columns.type", "columns.fields", *(f"columns.fields.0.{name}" for name in FIELD)),
            *(f"columns.fields.2.type.{name}" for name in ("type", "element-type", "contains-null")),
            *(f"columns.fields.3.type.{name}" for name in ("type", "key-type", "value-type", "value-contains-null")),
            *(f"columns.fields.4.type.{name}" for name in ("type", "fields", "fields.0.name")),
            *("protocol.min-reader-version", "protocol.min-writer-version", "uniform.iceberg"),
            *(f"uniform.iceberg.{name}" for name in iceberg("", 0, 0)),
        ),
    ),
    "add-commit": Sound(
        _update(Yard.next_commit),
        (*UPDATE, "updates", "updates.0.commit", *(f"updates.0.commit.{name}" for name in COMMIT)),
    ),
    "report": Sound(_update(lambda y: report(0)), ("updates.0.latest-published-version",)),
    "set-properties": Sound(_update(lambda y: set_properties(k="v")), (*UPDATE, "updates.0.updates")),
    "remove-properties": Sound(
        _update(lambda y: {"action": "remove-properties", "removals": ["absent"]}), ("updates.0.removals",)
    ),
    "set-protocol": Sound(
        _update(_protocol),
        ("updates.0.protocol", *(f"updates.0.protocol.min-{x}-version" for x in ("reader", "writer"))),
    ),
    "set-columns": Sound(
        _update(lambda y: {"action": "set-columns", "columns": WIDE}),
        ("updates.0.columns", "updates.0.columns.type", *(f"updates.0.columns.fields.1.{name}" for name in FIELD)),
    ),
    "set-partition-columns": Sound(
        _update(lambda y: {"action": "set-partition-columns", "partition-columns": ["id"]}),
        ("updates.0.partition-columns",),
    ),
    "set-table-comment": Sound(
        _update(lambda y: {"action": "set-table-comment", "comment": "c"}), ("updates.0.comment",)
    ),
    "set-domain-metadata": Sound(
        _update(lambda y: {"action": "set-domain-metadata", "updates": {"mine": {"x": 1}}}), ("updates.0.updates",)
    ),
    "remove-domain-metadata": Sound(
        _update(lambda y: {"action": "remove-domain-metadata", "domains": ["absent"]}), ("updates.0.domains",)
    ),
    "metrics": Sound(
        _metrics,
        ("table-id", *(f"report.commit-report.file-size-histogram.{name}" for name in list(HISTOGRAM)[:3])),
    ),
    "rename": Sound(_renaming, ("new-name",)),
    "create-catalog": Sound(
        lambda y: ("POST", f"{UNITY}/catalogs", {"name": fresh("c"), "storage_root": "file:///bad-data", **DESCRIBED}),
        ("name",),
    ),
    "update-catalog": Sound(
        lambda y: ("PATCH", f"{UNITY}/catalogs/{y.lake.catalog}", {"new_name": y.lake.catalog, **DESCRIBED}), ()
    ),
    "create-schema": Sound(
        lambda y: (
            "POST",
            f"{UNITY}/schemas",
            {"name": fresh("s"), "catalog_name": y.lake.catalog, "storage_root": "file:///bad-data", **DESCRIBED},
        ),
        ("name", "catalog_name"),
    ),
    "update-schema": Sound(
        lambda y: ("PATCH", f"{UNITY}/schemas/{y.lake.catalog}.s", {"new_name": "s", **DESCRIBED}), ()
    ),
}

WRONG: dict[type, list[Any]] = {
    str: [1, True, [], {}],
    int: ["1", 1.5, True, [], 2**63, -(2**63) - 1, 10**400],
    bool: [1, "true", None],
    list: [{}, "x", 1],
    dict: [[], "x", 1],
}
"""For each type of JSON value some that are not of it."""


def paths_of(node: Any, path: Path = ()) -> Iterator[Path]:
    """Every part of a body, but not what lies inside column metadata and domains: that is the client's own."""
    if path:
        yield path
    if path[-1:] in {("metadata",), ("mine",)}:
        return
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from paths_of(value, (*path, key))


def at(body: Any, path: Path) -> Any:
    for key in path:
        body = body[key]
    return body


def with_value(body: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    at(changed, path[:-1])[path[-1]] = value
    return changed


def without(body: dict[str, Any], dotted: str) -> dict[str, Any]:
    path: Path = tuple(int(key) if key.isdigit() else key for key in dotted.split("."))
    changed = copy.deepcopy(body)
    del at(changed, path[:-1])[path[-1]]
    return changed


def refuse_all(yard: Yard, sound: Sound, spoil: Callable[[dict[str, Any]], Iterator[Any]], *codes: str) -> None:
    """Sends every spoiled body, each of which must be refused, and then the sound one."""
    method, url, body = sound.make(yard)
    with yard.unchanged():
        for spoiled in spoil(body):
            response = yard.http.request(method, url, content=json.dumps(spoiled))
            assert response.status_code == 400, (spoiled, response.text[:500])
            check_refused(response, 400, *codes, UNITY_INVALID)
    succeeded = yard.http.request(method, url, json=body)
    assert succeeded.status_code in {200, 204}, succeeded.text


every_body = pytest.mark.parametrize("name", SOUND)


@every_body
def test_a_body_without_a_required_part_is_refused(yard: Yard, name: str) -> None:
    sound = SOUND[name]
    refuse_all(yard, sound, lambda body: (without(body, part) for part in sound.required), MALFORMED)


@every_body
def test_a_body_with_a_value_of_a_wrong_type_or_out_of_range_is_refused(yard: Yard, name: str) -> None:
    def spoil(body: dict[str, Any]) -> Iterator[Any]:
        for path in paths_of(body):
            for value in WRONG[type(at(body, path))]:
                yield with_value(body, path, value)

    refuse_all(yard, SOUND[name], spoil, MALFORMED, INVALID)


@every_body
def test_a_body_with_a_nul_character_in_any_text_is_refused(yard: Yard, name: str) -> None:
    def spoil(body: dict[str, Any]) -> Iterator[Any]:
        for path in paths_of(body):
            if isinstance(at(body, path), str) and path[-1] not in {"action", "type", "table-type"}:
                yield with_value(body, path, at(body, path) + "\0")
            if path[-1] in {"properties", "metadata", "mine"} or (path[-1] == "updates" and len(path) > 1):
                known = at(body, path)
                yield with_value(body, path, {**known, "k\0": next(iter(known.values()), "v")})
            if path[-1] in {"properties", "metadata", "mine"}:
                yield with_value(body, path, {**known, "k": "\0"})

    refuse_all(yard, SOUND[name], spoil, INVALID)


@every_body
def test_a_body_with_half_a_surrogate_pair_in_any_text_is_refused(yard: Yard, name: str) -> None:
    def spoil(body: dict[str, Any]) -> Iterator[Any]:
        for path in paths_of(body):
            if isinstance(at(body, path), str):
                for half in ("\ud800", "\udc00", "\ud800x", "\udc00\ud800"):
                    yield with_value(body, path, half)

    refuse_all(yard, SOUND[name], spoil, MALFORMED)


@pytest.mark.parametrize("half", ["\ud800", "k\0"], ids=ascii)
@pytest.mark.parametrize("part", ["key", "value", "feature", "column"])
def test_a_version_0_with_such_a_text_is_refused_in_the_error_body_too(yard: Yard, part: str, half: str) -> None:
    draft = yard.lake.draft(fresh())
    actions = copy.deepcopy(draft.actions())
    protocol, metadata = actions[1]["protocol"], actions[2]["metaData"]
    match part:
        case "key":
            metadata["configuration"][half] = "v"
        case "value":
            metadata["configuration"]["delta.checkpointPolicy"] = half
        case "feature":
            protocol["writerFeatures"].append(half)
        case "column":
            metadata["schemaString"] = json.dumps(_columns((half, "long")))
    draft.write_version_0(actions)
    with yard.unchanged():
        check_invalid(yard.lake.create(draft.request))
    draft.write_version_0()
    assert yard.lake.create(draft.request).status_code == 200


NOT_THE_JSON_WE_NEED: dict[str, bytes] = {
    "empty": b"",
    "blank": b"  \n",
    "cut off": b'{"name": "a',
    "null": b"null",
    "a list": b"[]",
    "a text": b'"name"',
    "a number": b"1e400",
    "two objects": b"{}{}",
    "single quotes": b"{'name': 'a'}",
    "not a number": b'{"name": NaN}',
    "a trailing comma": b'{"name": "a",}',
    "a byte order mark": b'\xef\xbb\xbf{"name": "a"}',
    "latin-1": '{"name": "é", "comment": "é"}'.encode("latin-1"),
    "utf-16": '{"name": "a"}'.encode("utf-16"),
    "a surrogate in utf-8": b'{"name": "\xed\xa0\x80", "comment": "\xed\xa0\x80"}',
    "a raw nul": b'{"name": "a\0"}',
    "a raw line break": b'{"name": "a\n"}',
    "a form": b"name=a",
    "deep lists": b"[" * 100_000,
    "deep lists, closed": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"name":' * 100_000 + b"1" + b"}" * 100_000,
}


@pytest.fixture(scope="module")
def targets(yard: Yard) -> set[tuple[str, str]]:
    """Method and address of every endpoint that takes a body."""
    return {sound.make(yard)[:2] for sound in SOUND.values()}


@pytest.mark.parametrize("content", NOT_THE_JSON_WE_NEED.values(), ids=NOT_THE_JSON_WE_NEED)
def test_bytes_that_are_not_the_json_we_need_are_refused_by_every_endpoint(
    yard: Yard, targets: set[tuple[str, str]], content: bytes
) -> None:
    with yard.unchanged():
        for method, url in targets:
            check_refused(yard.http.request(method, url, content=content), 400, MALFORMED, UNITY_INVALID)


UNKNOWN: dict[str, bytes] = {
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "huge": b"9" * 5000,
    "nul": b'"\\u0000"',
    "huge with a nul": b"[" + b"9" * 5000 + b', "\\u0000"]',
    "deep with a nul": b"[" + b"[" * 900 + b"]" * 900 + b', "\\u0000"]',
}


@pytest.mark.parametrize("name", ["stage", "add-commit", "create-catalog"])
@pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN)
def test_a_part_that_nobody_knows_cannot_bring_the_reader_down(yard: Yard, name: str, unknown: bytes) -> None:
    method, url, body = SOUND[name].make(yard)
    content = json.dumps(body).encode()[:-1] + b', "unknown-part": ' + unknown + b"}"
    response = yard.http.request(method, url, content=content)
    # Skipped or refused: both are right, as long as it is the server's decision.
    assert response.status_code in {200, 400}, response.text
    assert yard.http.request(method, url, json=body).status_code in {200, 400}


# Sizes


def test_what_is_accepted_however_deep_can_be_shown_afterwards(yard: Yard) -> None:
    """Around the depth where the reader gives up, nothing may be let in that a writer or a listing cannot bear."""
    names = {"catalog_name": yard.lake.catalog, "schema_name": fresh("s")}
    created = yard.http.post(f"{UNITY}/schemas", json={"name": names["schema_name"], **names})
    assert created.status_code == 200, created.text
    lake = Lake(yard.http, names["catalog_name"], names["schema_name"])
    for depth in (60, 500, 900, *range(950, 975), 1000, 1100):
        for url, content in _deep_requests(lake, depth):
            response = yard.http.post(url, content=content)
            assert response.status_code in ({200} if depth == 60 else {200, 400}), (depth, url, response.text[:500])
        shown = yard.http.get(f"{UNITY}/tables", params=names)
        assert shown.status_code == 200, (depth, shown.text)


def _deep_requests(lake: Lake, depth: int) -> Iterator[tuple[str, str]]:
    """A creation and an update with column metadata and a domain that are so deep.

    A mark stands for the deep part until all is text: our own JSON writer would not bear it.
    """

    def deepen(text: str) -> str:
        return re.sub(r'\\?"@deep@\\?"', "[" * depth + "]" * depth, text)

    columns, domains = _columns(("id", "long")), {"mine": {"deep": "@deep@"}}
    columns["fields"][0]["metadata"] = {"deep": "@deep@"}
    draft = lake.draft(fresh(), columns=columns, domain_metadata=domains)
    draft.write_version_0()
    first = draft.log / f"{0:020}.json"
    first.write_text(deepen(first.read_text()))
    yield lake.tables_url(), deepen(json.dumps(draft.request))
    table = lake.new_table(fresh())
    changes = [{"action": "set-columns", "columns": columns}, {"action": "set-domain-metadata", "updates": domains}]
    commit = table.stage_commit(1, *changes)
    staged = table.log / "_staged_commits" / commit["file-name"]
    commit["file-size"] = staged.write_text(deepen(staged.read_text()))
    yield f"{lake.tables_url()}/{table.name}", deepen(json.dumps(table.request(*changes, add_commit(commit))))


@pytest.mark.parametrize("name", ["stage", "create-catalog"])
@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
def test_a_body_beyond_the_limit_is_refused_and_one_at_the_limit_is_not(yard: Yard, name: str, chunked: bool) -> None:
    method, url, body = SOUND[name].make(yard)

    def send(size: int) -> httpx.Response:
        content = json.dumps(body).encode().ljust(size)
        pieces = (content[start : start + MEBIBYTE] for start in range(0, size, MEBIBYTE))
        return yard.http.request(method, url, content=pieces if chunked else content)

    with yard.unchanged():
        for size in (BODY_BYTES_MAX + 1, 10_000_000):
            check_refused(send(size), 413, MALFORMED, "REQUEST_TOO_LARGE")
    assert send(BODY_BYTES_MAX).status_code == 200


def test_long_comments_and_property_values_simply_work(yard: Yard) -> None:
    long, name = "ü" * MEBIBYTE, fresh("long")
    described = {"comment": long, "properties": {"k": long}}
    for made in (
        yard.http.post(f"{UNITY}/catalogs", json={"name": name, **described}),
        yard.http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": name, **described}),
        yard.http.get(f"{UNITY}/catalogs/{name}"),
        yard.http.get(f"{UNITY}/schemas/{name}.s"),
    ):
        assert made.status_code == 200, made.text[:500]
        assert (made.json()["comment"], made.json()["properties"]["k"]) == (long, long)
    table = Lake(yard.http, name, "s").new_table("t", comment=long, properties={"k": long})
    assert table.load()["metadata"]["properties"]["k"] == long
    assert table.update(set_properties(other=long), {"action": "set-table-comment", "comment": long}).status_code == 200
    shown = yard.http.get(f"{UNITY}/tables/{name}.s.t").json()
    assert (shown["comment"], shown["properties"]["other"]) == (long, long)


# Names

BAD_NAMES = [
    *("", ".", "..", "a.b", "a/b", "/", "a\\b", "a b", " a", "a ", "a\nb", "a\n", "a\tb", "\x1f", "\x7f", "a\u0085b"),
    *("😀", "é", "名", "a\u200bb", "\u202ea", "١", "a%2Fb", "%00", "a'b", 'a"b', "a;b", "a`b", "*", "a" * 256),
    "a" * 9999,
]
NAMED = {
    "stage": "name",
    "rename": "new-name",
    "create-catalog": "name",
    "create-schema": "name",
    "update-catalog": "new_name",
    "update-schema": "new_name",
}


@pytest.mark.parametrize("name", NAMED)
def test_a_name_outside_the_alphabet_is_refused(yard: Yard, name: str) -> None:
    refuse_all(yard, SOUND[name], lambda body: ({**body, NAMED[name]: bad} for bad in BAD_NAMES), INVALID)


def test_an_external_table_with_a_name_outside_the_alphabet_is_refused(yard: Yard) -> None:
    with yard.unchanged():
        for bad in BAD_NAMES:
            check_invalid(yard.lake.create(external(bad)))


def test_the_longest_name_and_every_allowed_character_work(yard: Yard) -> None:
    for name in ("a" * 255, "-_@09azAZ", "-", "0"):
        assert yard.lake.new_table(name).load()["latest-table-version"] == 0


def external(name: str, **changes: Any) -> dict[str, Any]:
    protocol = {"min-reader-version": 1, "min-writer-version": 2}
    place = {"name": name, "table-type": "EXTERNAL", "location": f"file:///bad-lake/{fresh()}"}
    rest = {"columns": COLUMNS, "protocol": protocol, "properties": {}, "last-commit-timestamp-ms": 1}
    return {**place, **rest, **{key.replace("_", "-"): value for key, value in changes.items()}}


# Paths and methods

SEGMENTS = [
    *("a%2Fb", "%2F", "%252F", "%00", "a%00b", "%2E%2E", "%2E", "%20", "%0A", "%7F", "%F0%9F%98%80", "%C3%A9", "%"),
    *("%zz", "%25", "a%3Fb", "a%23b", "'", "a" * 300, "a" * 20_000, "%27%20OR%201=1--"),
]
NOT_UTF_8 = ["%FF", "%C3%28", "%ED%A0%80", "a%FFb"]
MISSING = ["NoSuchTableException", "NoSuchSchemaException", "NoSuchCatalogException", INVALID]
MISSING_UNITY = ["TABLE_DOES_NOT_EXIST", "SCHEMA_DOES_NOT_EXIST", "CATALOG_DOES_NOT_EXIST", UNITY_INVALID]


def _addressed(yard: Yard, segment: str) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """A request for every endpoint with a name in its path, with this segment as that name."""
    tables, schemas = yard.lake.tables_url(), f"{DELTA}/catalogs/{yard.lake.catalog}/schemas"
    for method in ("GET", "DELETE", "HEAD"):
        yield method, f"{tables}/{segment}", None
    yield "POST", f"{tables}/{segment}", yard.table.request(set_properties(k="v"))
    yield "POST", f"{tables}/{segment}/rename", {"new-name": fresh()}
    yield "POST", f"{tables}/{segment}/metrics", {"table-id": yard.table.id}
    yield "GET", f"{tables}/{segment}/credentials?operation=READ", None
    yield "GET", f"{DELTA}/staging-tables/{segment}/credentials", None
    for above in (f"{schemas}/{segment}", f"{DELTA}/catalogs/{segment}/schemas/s"):
        yield "GET", f"{above}/tables/kept", None
        yield "POST", f"{above}/staging-tables", {"name": fresh()}
        yield "POST", f"{above}/tables", external(fresh())
    for kind, name in (("catalogs", segment), ("schemas", f"{yard.lake.catalog}.{segment}")):
        yield "GET", f"{UNITY}/{kind}/{name}", None
        yield "PATCH", f"{UNITY}/{kind}/{name}", {"comment": "c"}
        yield "DELETE", f"{UNITY}/{kind}/{name}?force=true", None
    for method in ("GET", "DELETE"):
        yield method, f"{UNITY}/tables/{yard.lake.catalog}.s.{segment}", None


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda segment: segment[:20])
def test_a_strange_name_in_a_path_finds_nothing(yard: Yard, segment: str) -> None:
    with yard.unchanged():
        for method, url, body in _addressed(yard, segment):
            response = yard.http.request(method, url, json=body)
            assert response.status_code in {400, 404}, (method, url[:200], response.text)
            if method != "HEAD":
                check_refused(response, response.status_code, *MISSING, *MISSING_UNITY)


@pytest.mark.parametrize("segment", NOT_UTF_8)
def test_a_path_that_is_not_utf_8_is_refused(yard: Yard, segment: str) -> None:
    with yard.unchanged():
        for method, url, body in _addressed(yard, segment):
            response = yard.http.request(method, url, json=body)
            assert response.status_code == 400, (method, url, response.text)
            if method != "HEAD":
                check_refused(response, 400, MALFORMED, UNITY_INVALID)


def test_names_in_paths_may_be_percent_encoded(yard: Yard) -> None:
    loaded = yard.http.get(f"{yard.lake.tables_url()}/%6b%65%70t")
    assert loaded.json() == yard.table.load()


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/v1", "/config/x", "/Config", "/staging-tables", "/catalogs", "/catalogs/main"),
        *("/catalogs/main/schemas/default", "/catalogs//schemas/s/tables/t", "/catalogs/main/schemas/s/tables/t/x"),
    ],
)
def test_an_unknown_path_is_a_404_in_the_words_of_its_face(yard: Yard, path: str) -> None:
    check_refused(yard.http.get(DELTA + path), 404, "NotFoundException")
    check_refused(yard.http.get(f"{UNITY}/nothing{path}"), 404, "ENDPOINT_NOT_FOUND")
    check_refused(yard.http.get(f"/nothing{path}"), 404, "ENDPOINT_NOT_FOUND")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_a_wrong_method_is_a_405_that_names_the_right_ones(yard: Yard, method: str) -> None:
    with yard.unchanged():
        response = yard.http.request(method, f"{yard.lake.tables_url()}/kept", json={})
        check_refused(response, 405, MALFORMED)
        assert response.headers["allow"] == "DELETE, GET, HEAD, POST"
        response = yard.http.request(method, f"{UNITY}/metastore_summary")
        check_refused(response, 405, "METHOD_NOT_ALLOWED")
        assert response.headers["allow"] == "GET"


@pytest.mark.parametrize(
    "head",
    [b"GET /\xff HTTP/1.1", b"GET /api/2.1/unity-catalog/catalogs/\xc3\xa9 HTTP/1.1", b"\x16\x03\x01", b"nonsense"],
)
def test_what_is_not_http_is_refused_and_the_server_lives_on(yard: Yard, server: ServerProcess, head: bytes) -> None:
    target = urlsplit(server.url)
    with socket.create_connection((target.hostname, target.port), timeout=60) as connection:
        connection.sendall(head + b"\r\nHost: tidegate\r\nAuthorization: Bearer x\r\n\r\n")
        assert re.match(rb"HTTP/1.1 4\d\d ", connection.recv(1000))
    assert yard.table.load()["latest-table-version"] >= 0


# Queries


@pytest.mark.parametrize(
    "query",
    [
        *("max_results=-1", "max_results=many", "max_results=1.5", "max_results=", "max_results=2147483648"),
        *(f"max_results={10**400}", "max_results=-2147483649", "max_results=1&max_results=1", "max_results=%D9%A1"),
        *("page_token=!", "page_token=a", "page_token=%00", "page_token=AA", "page_token=AAAA", "page_token=_____w"),
        *("page_token=%C3%A9", "page_token=YQ%3D%3D%3D", "page_token=YQ&page_token=YQ", "page_token=%FF", "%FF=1"),
        "&".join(f"p{number}=1" for number in range(51)),
    ],
    ids=lambda query: query[:30],
)
def test_a_listing_asked_for_in_a_wrong_way_is_refused(yard: Yard, query: str) -> None:
    inside = f"catalog_name={yard.lake.catalog}&schema_name=s"
    for url in ("/catalogs?", f"/schemas?{inside}&", f"/tables?{inside}&"):
        check_refused(yard.http.get(UNITY + url + query), 400, UNITY_INVALID)


def test_a_listing_with_a_huge_limit_or_none_is_the_same_as_one_that_leaves_it_to_the_server(yard: Yard) -> None:
    inside = {"catalog_name": yard.lake.catalog, "schema_name": "s"}
    whole = yard.http.get(f"{UNITY}/tables", params=inside).json()
    for size in (0, 1000, 2**31 - 1):
        assert yard.http.get(f"{UNITY}/tables", params={**inside, "max_results": size}).json() == whole


CREDENTIALS = f"{DELTA}/temporary-path-credentials"


CONFIG = f"{DELTA}/config?catalog=main&protocol-versions"
WRONG_QUERIES = [
    *(f"{DELTA}/config{query}" for query in ("", "?catalog=main", "?protocol-versions=1.0")),
    *(f"{CONFIG}={v}" for v in ("", ",", "1", "one", "2.0", "0.9", "1.0,x", "1.0.0", "-1.0", "99999.0", "1.99999")),
    *(f"{CONFIG}={v}" for v in ("%EF%BC%91.0", "1.0&catalog=main", "1.0%00")),
    *(f"{CREDENTIALS}?{query}" for query in ("", "location=file:///d", "operation=READ", "location=&operation=READ")),
    *(f"{CREDENTIALS}?operation=READ&location={place}" for place in ("x", "file:///d/../e", "s3://b/d", "file:///")),
    *(f"{CREDENTIALS}?location=file:///d&operation={name}" for name in ("", "read", "WRITE", "READ&operation=READ")),
    *(f"{UNITY}/{kind}" for kind in ("schemas", "tables", "tables?catalog_name=main", "tables?schema_name=s")),
    *(f"{UNITY}/schemas/{name}" for name in ("one", "a.b.c", "%2E", "a.", ".b", "%2E%2E")),
    *(f"{UNITY}/tables/{name}" for name in ("one", "a.b", "a.b.c.d", "a..c", "..c")),
]


@pytest.mark.parametrize("url", WRONG_QUERIES)
def test_a_query_that_lacks_something_or_says_something_wrong_is_refused(yard: Yard, url: str) -> None:
    check_invalid(yard.http.get(url))


@pytest.mark.parametrize("force", ["perhaps", "", "2", "true&force=true", "None"])
def test_a_deletion_with_an_unclear_force_deletes_nothing(yard: Yard, force: str) -> None:
    with yard.unchanged():
        check_invalid(yard.http.delete(f"{UNITY}/catalogs/{yard.lake.catalog}?force={force}"))
        check_invalid(yard.http.delete(f"{UNITY}/schemas/{yard.lake.catalog}.s?force={force}"))


# Who is calling


def _authorizations(token: str) -> dict[str, list[str]]:
    return {
        "none": [],
        "empty": [""],
        "scheme only": ["Bearer"],
        "no scheme": [token],
        "basic": [f"Basic {token}"],
        "glued": [f"Bearer{token}"],
        "wrong": ["Bearer wrong"],
        "cut off": [f"Bearer {token[:-1]}"],
        "too long": [f"Bearer {token}x"],
        "twice in one": [f"Bearer {token} {token}"],
        "listed": [f"Bearer {token}, Bearer {token}"],
        "other case": [f"Bearer {token.swapcase()}"],
        "not ascii": ["Bearer é"],
        "very long": ["Bearer " + "x" * 30_000],
        "sent twice": [f"Bearer {token}", f"Bearer {token}"],
        "right and wrong": [f"Bearer {token}", "Bearer wrong"],
    }


@pytest.fixture(scope="module")
def anonymous(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.mark.parametrize("case", _authorizations("x"))
def test_without_the_token_nothing_opens(yard: Yard, anonymous: httpx.Client, server: ServerProcess, case: str) -> None:
    sent = [(b"Authorization", value.encode("latin-1")) for value in _authorizations(server.token)[case]]
    with yard.unchanged():
        for method, url, code in (
            ("GET", f"{yard.lake.tables_url()}/kept", "NotAuthorizedException"),
            ("DELETE", f"{yard.lake.tables_url()}/kept", "NotAuthorizedException"),
            ("GET", f"{DELTA}/nothing", "NotAuthorizedException"),
            ("DELETE", f"{UNITY}/catalogs/{yard.lake.catalog}?force=true", "UNAUTHENTICATED"),
            ("GET", "/openapi.json", "UNAUTHENTICATED"),
        ):
            response = anonymous.request(method, url, headers=sent)
            check_refused(response, 401, code)
            assert response.headers["www-authenticate"] == "Bearer"
            assert server.token not in response.text


def test_the_scheme_of_the_token_may_be_written_in_any_case(yard: Yard, server: ServerProcess) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {server.token}"}
        assert yard.http.get(f"{UNITY}/metastore_summary", headers=headers).status_code == 200


# Locations

NOT_LOCATIONS = [
    *("", "x", "/data/t", "data/t", "file:", "file:data", "FILE:///data", "http://h/d", "s3:/x", "s3:///x"),
    *("file://h/d", "file:///", "file:///..", "file:///d/../e", "file:///d/./e", "file:///d/%2e%2e/e", "file:///d/%2E"),
    *("file:///d?x", "file:///d#x", "file:///d\n", "file:///d\x7f", "javascript:/x", " file:///d", "file ///d"),
    "file:///" + "d" * 5000,
]


@pytest.mark.parametrize("location", NOT_LOCATIONS, ids=lambda location: ascii(location[:25]))
def test_what_is_no_storage_location_is_refused_wherever_one_is_wanted(yard: Yard, location: str) -> None:
    with yard.unchanged():
        check_invalid(yard.lake.create(external(fresh(), location=location)))
        check_invalid(yard.http.post(f"{UNITY}/catalogs", json={"name": fresh(), "storage_root": location}))
        body = {"name": fresh(), "catalog_name": yard.lake.catalog, "storage_root": location}
        check_invalid(yard.http.post(f"{UNITY}/schemas", json=body))
        check_invalid(yard.http.get(CREDENTIALS, params={"location": location, "operation": "READ"}))


@pytest.mark.parametrize(
    ("elsewhere", "status"),
    [
        ("{parent}", 404),
        ("{parent}/{other}", 404),
        ("{here}/below", 404),
        ("{here}x", 404),
        ("{here}/../{name}", 400),
        ("{here}/..", 400),
        ("{parent}/./{name}", 400),
        ("{parent}/%2e%2e/{name}", 400),
        ("s3://bucket/{name}", 404),
        ("{here}?x", 400),
        ("{name}", 400),
        ("", 400),
    ],
)
def test_a_table_is_created_where_it_was_staged_and_nowhere_else(yard: Yard, elsewhere: str, status: int) -> None:
    draft = yard.lake.draft(fresh())
    draft.write_version_0()
    parent, _, name = draft.location.rpartition("/")
    other = str(uuid.uuid4())
    location = elsewhere.format(here=draft.location, parent=parent, name=name, other=other)
    with yard.unchanged():
        refused = yard.lake.create({**draft.request, "location": location})
        check_refused(refused, status, INVALID if status == 400 else "NoSuchTableException")
    assert yard.lake.create(draft.request).status_code == 200


@pytest.mark.parametrize("spelling", ["file://{path}/", "file:{path}", "file:{path}//", "file://localhost{path}"])
def test_another_spelling_of_the_same_place_is_the_same_place(yard: Yard, spelling: str) -> None:
    draft = yard.lake.draft(fresh())
    draft.write_version_0()
    location = spelling.format(path=draft.location.removeprefix("file://"))
    created = yard.lake.create({**draft.request, "location": location})
    assert created.status_code == 200, created.text
    assert created.json()["metadata"]["location"] == draft.location


def test_an_external_table_cannot_lie_in_the_storage_of_managed_ones(yard: Yard, server: ServerProcess) -> None:
    root = f"file://{server.home}/tables"
    with yard.unchanged():
        for location in (root, f"{root}/", f"{root}/x", yard.table.location, f"file:{server.home}/tables/x"):
            check_invalid(yard.lake.create(external(fresh(), location=location)))


def test_a_storage_root_that_no_file_system_can_hold_is_the_callers_mistake(yard: Yard) -> None:
    """A part of a path has 255 bytes at most on the usual file systems."""
    body = {"name": fresh("c"), "storage_root": "file:///tmp/" + "x" * 300}
    answers = [yard.http.post(f"{UNITY}/catalogs", json=body)]
    if answers[0].status_code == 200:
        answers.append(yard.http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": body["name"]}))
        lake = Lake(yard.http, body["name"], "s")
        answers.append(lake.create(lake.draft("t").request))
    check_invalid(answers[-1])


# Columns


def _deep(levels: int) -> Any:
    nested: Any = "long"
    for _ in range(levels):
        nested = _array(nested)
    return nested


TWINS = _columns(("x", "long"), ("X", "string"))
BAD_COLUMNS: dict[str, dict[str, Any]] = {
    "no columns": _columns(),
    "the same name": _columns(("a", "long"), ("a", "long")),
    "the same name but for case": _columns(("Straße", "long"), ("STRAßE", "long")),
    "twins in a struct": _columns(("a", TWINS)),
    "twins in an array": _columns(("a", _array(TWINS))),
    "twins in a key": _columns(("a", _map(TWINS, "long"))),
    "twins in a value": _columns(("a", _map("long", _array(TWINS)))),
    "an empty name": _columns(("", "long")),
    "an empty name inside": _columns(("a", _columns(("", "long")))),
    "too deep": _columns(("a", _deep(100))),
    **{
        f"type {type}": _columns(("a", type))
        for type in (
            *("", "int64", "LONG", "long ", " long", "array", "struct", "map", "decimal", "decimal()", "decimal(39,0)"),
            *("decimal(0,0)", "decimal(5,6)", "decimal(-1,0)", "decimal(1)", "decimal(１0,2)", "varchar", "varchar(x)"),
            *("varchar(١)", "bigint", "long\n", "array<long>", "x" * 1000),
        )
    },
    "an unknown type inside": _columns(("a", _array(_map("string", "int64")))),
}


@pytest.mark.parametrize("columns", BAD_COLUMNS.values(), ids=[ascii(name)[:40] for name in BAD_COLUMNS])
def test_columns_that_make_no_table_are_refused_at_creation_and_later(yard: Yard, columns: dict[str, Any]) -> None:
    draft = yard.lake.draft(fresh(), columns=columns)
    draft.write_version_0()
    change = {"action": "set-columns", "columns": columns}
    commit = yard.next_commit(change)
    with yard.unchanged():
        check_invalid(yard.lake.create(draft.request))
        check_invalid(yard.lake.create(external(fresh(), columns=columns)))
        check_invalid(yard.table.update(commit, change))
    draft.request["columns"] = COLUMNS
    draft.write_version_0()
    assert yard.lake.create(draft.request).status_code == 200


@pytest.mark.parametrize("names", [["absent"], ["id", "id"], ["id", "ID"], ["id", "name"], [""], ["inner.id"]])
def test_partition_columns_that_do_not_fit_are_refused(yard: Yard, names: list[str]) -> None:
    draft = yard.lake.draft(fresh(), partition_columns=names)
    draft.write_version_0()
    table = yard.lake.new_table(fresh())
    with yard.unchanged():
        check_invalid(yard.lake.create(draft.request))
        change = {"action": "set-partition-columns", "partition-columns": names}
        check_invalid(table.update(add_commit(table.stage_commit(1, change)), change))


# What updates must not do

DERIVED = [
    *("delta.minReaderVersion", "delta.minWriterVersion", "delta.feature.catalogManaged", "delta.feature.mine"),
    *("delta.clusteringColumns", "delta.rowTracking.rowIdHighWaterMark", "delta.lastUpdateVersion"),
    "delta.lastCommitTimestamp",
]


@pytest.mark.parametrize("key", [*DERIVED, ""])
def test_a_property_that_the_catalog_derives_cannot_be_sent(yard: Yard, key: str) -> None:
    draft = yard.lake.draft(fresh(), properties={key: "1"})
    draft.write_version_0()
    changes = [{"action": "set-properties", "updates": {key: "1"}}, {"action": "remove-properties", "removals": [key]}]
    with yard.unchanged():
        check_invalid(yard.lake.create(draft.request))
        check_invalid(yard.lake.create(external(fresh(), properties={key: "1"})))
        for change in changes:
            check_invalid(yard.table.update(change))
            check_invalid(yard.table.update(change, yard.next_commit(change)))


HARMLESS = set_properties(k="v")
REMOVED = {"action": "remove-properties", "removals": ["k"]}
DOMAIN_SET = {"action": "set-domain-metadata", "updates": {"d": {}}}
DOMAIN_REMOVED = {"action": "remove-domain-metadata", "domains": ["d"]}
ID, ETAG, COMMIT_ACTION = "id", "etag", "commit"

BAD_SHAPES: dict[str, tuple[list[Any], list[Any], str]] = {
    "no update": ([ID], [], INVALID),
    "no requirement": ([], [HARMLESS], INVALID),
    "no id asserted": ([ETAG], [HARMLESS], INVALID),
    "two ids": ([ID, ID], [HARMLESS], INVALID),
    "two etags": ([ID, ETAG, ETAG], [HARMLESS], INVALID),
    "two of a kind": ([ID], [HARMLESS, set_properties(other="v")], INVALID),
    "two commits": ([ID], [COMMIT_ACTION, COMMIT_ACTION], INVALID),
    "two reports": ([ID], [report(0), report(0)], INVALID),
    "set and removed": ([ID], [HARMLESS, REMOVED], INVALID),
    "set and removed with a commit": ([ID], [COMMIT_ACTION, REMOVED, HARMLESS], INVALID),
    "domain set and removed": ([ID], [COMMIT_ACTION, DOMAIN_SET, DOMAIN_REMOVED], INVALID),
    "no domain set": ([ID], [COMMIT_ACTION, {**DOMAIN_SET, "updates": {}}], INVALID),
    "no domain removed": ([ID], [COMMIT_ACTION, {**DOMAIN_REMOVED, "domains": []}], INVALID),
    "an unknown action": ([ID], [{"action": "drop-everything"}], MALFORMED),
    "an action in capitals": ([ID], [{**HARMLESS, "action": "SET-PROPERTIES"}], MALFORMED),
    "an action without a name": ([ID], [{"updates": {}}], MALFORMED),
    "an action that is a number": ([ID], [{"action": 1}], MALFORMED),
    "an action that is null": ([ID], [None], MALFORMED),
    "an unknown requirement": ([ID, {"type": "assert-luck"}], [HARMLESS], MALFORMED),
    "a requirement without a type": ([{"uuid": UNUSED_ID}], [HARMLESS], MALFORMED),
    "a known and an unknown action": ([ID], [HARMLESS, {"action": "x"}], MALFORMED),
}
"""Requirements and updates that break a rule of shape, and the error; three words stand for what the table has."""


@pytest.mark.parametrize("case", BAD_SHAPES)
def test_an_update_that_breaks_a_rule_of_shape_is_refused(yard: Yard, case: str) -> None:
    meant = {
        ID: {"type": "assert-table-uuid", "uuid": yard.table.id},
        ETAG: {"type": "assert-etag", "etag": yard.table.load()["metadata"]["etag"]},
        COMMIT_ACTION: yard.next_commit(),
    }
    requirements, updates, error = BAD_SHAPES[case]
    body = {
        "requirements": [meant[part] if isinstance(part, str) else part for part in requirements],
        "updates": [meant[part] if isinstance(part, str) else part for part in updates],
    }
    with yard.unchanged():
        check_refused(yard.lake.update("kept", body), 400, error)


BAD_COMMITS: list[dict[str, Any]] = [
    *({"version": version} for version in (0, -1, -(2**63))),
    *({"timestamp": timestamp} for timestamp in (0, -1, 1, -(2**63))),
    *({"file-size": size} for size in (0, -1)),
    *({"file-modification-timestamp": timestamp} for timestamp in (0, -1)),
    *(
        {"file-name": name}
        for name in (
            *("", "x", "x" * 10**6, "../../../etc/passwd", f"{1:020}.json", f"{1:020}..json"),
            *(f"{0:020}.{UNUSED_ID}.json", f"{1:019}.{UNUSED_ID}.json", f"{1:021}.{UNUSED_ID}.json"),
            *(f"{1:020}.{UNUSED_ID}.JSON", f"{1:020}.{UNUSED_ID}x.json", f"{1:020}.{UNUSED_ID}.json\n"),
            *(f"../{1:020}.{UNUSED_ID}.json", f"{1:020}.{UNUSED_ID}.json/x", f"{1:020}%2E{UNUSED_ID}.json"),
            *("٠" * 19 + f"١.{UNUSED_ID}.json", "０" * 19 + f"１.{UNUSED_ID}.json"),
        )
    ),
]


@pytest.mark.parametrize("change", BAD_COMMITS, ids=lambda change: ascii(change)[:60])
def test_a_commit_that_cannot_be_right_is_refused(yard: Yard, change: dict[str, Any]) -> None:
    table = yard.lake.new_table(fresh())
    commit = table.stage_commit(1)
    check_invalid(table.update(add_commit({**commit, **change})))
    assert table.load()["latest-table-version"] == 0
    assert table.update(add_commit(commit)).status_code == 200


@pytest.mark.parametrize("version", [2, 3, 2**31, 2**63 - 1])
def test_a_version_beyond_the_next_is_a_conflict_that_names_the_latest(yard: Yard, version: int) -> None:
    table = yard.lake.new_table(fresh())
    refused = table.commit(version)
    check_refused(refused, 409, "CommitVersionConflictException")
    assert "latest version is 0" in refused.json()["error"]["message"]
    assert table.load()["latest-table-version"] == 0


@pytest.mark.parametrize(
    "action",
    [
        *(report(version) for version in (-1, -(2**63), 1000, 2**63 - 1)),
        {"action": "update-metadata-snapshot-version", "last-commit-version": 1, "last-commit-timestamp-ms": 1},
        *(
            {"action": "set-domain-metadata", "updates": {"delta.rowTracking": {"rowIdHighWaterMark": mark}}}
            for mark in ("1", 1.5, True, None, [], 2**63, -(2**63) - 1, 10**400)
        ),
        *(
            {"action": "set-domain-metadata", "updates": {"delta.clustering": {"clusteringColumns": columns}}}
            for columns in (None, "id", ["id"], [[]], [[1]], {"id": 1})
        ),
        {"action": "set-domain-metadata", "updates": {"delta.clustering": {}}},
        {"action": "set-domain-metadata", "updates": {"": {}}},
        {"action": "set-protocol", "protocol": {"min-reader-version": 1, "min-writer-version": 2}},
        {"action": "set-protocol", "protocol": {"min-reader-version": -1, "min-writer-version": 2**31 - 1}},
        {"action": "remove-properties", "removals": ["io.unitycatalog.tableId"]},
        {"action": "set-properties", "updates": {"io.unitycatalog.tableId": UNUSED_ID}},
        {"action": "remove-properties", "removals": ["delta.enableInCommitTimestamps"]},
    ],
    ids=lambda action: ascii(action)[12:90],
)
def test_an_action_that_breaks_the_tables_contract_is_refused(yard: Yard, action: dict[str, Any]) -> None:
    commit = yard.next_commit()
    with yard.unchanged():
        check_refused(yard.table.update(action, commit), 400, INVALID, MALFORMED)
        check_refused(yard.table.update(action), 400, INVALID, MALFORMED)


@pytest.mark.parametrize(
    "change",
    [
        {"metadata-location": "file:///elsewhere/v0.json"},
        {"metadata-location": "metadata/v0.json"},
        {"metadata-location": ""},
        {"converted-delta-version": 1},
        {"converted-delta-version": -1},
        # A creation has nothing that it could be based on, and no retry would change that.
        {"base-converted-delta-version": 0},
    ],
    ids=ascii,
)
def test_a_creation_with_iceberg_metadata_that_does_not_fit_is_refused(yard: Yard, change: dict[str, Any]) -> None:
    _, _, body = SOUND["create"].make(yard)
    with yard.unchanged():
        check_invalid(yard.lake.create({**body, "uniform": {"iceberg": {**body["uniform"]["iceberg"], **change}}}))
        check_invalid(yard.lake.create({**body, "uniform": None}))
    assert yard.lake.create(body).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"sorted-bin-boundaries": [1, 2]},
        {"sorted-bin-boundaries": [0, 0]},
        {"sorted-bin-boundaries": [0]},
        {"sorted-bin-boundaries": [], "file-counts": [], "total-bytes": []},
        {"file-counts": [1]},
        {"file-counts": [1, -1]},
        {"total-bytes": [1, 2**63]},
        {"commit-version": -1},
    ],
    ids=ascii,
)
def test_a_histogram_that_does_not_add_up_is_refused(yard: Yard, change: dict[str, Any]) -> None:
    method, url, body = SOUND["metrics"].make(yard)
    report = {"commit-report": {"file-size-histogram": {**HISTOGRAM, **change}}}
    check_refused(yard.http.request(method, url, json={**body, "report": report}), 400, INVALID, MALFORMED)


def test_an_update_of_a_table_dropped_or_renamed_a_moment_before_finds_no_table(yard: Yard) -> None:
    dropped, renamed = yard.lake.new_table(fresh()), yard.lake.new_table(fresh())
    assert yard.http.delete(f"{yard.lake.tables_url()}/{dropped.name}").status_code == 204
    to = {"new-name": fresh()}
    assert yard.http.post(f"{yard.lake.tables_url()}/{renamed.name}/rename", json=to).status_code == 204
    with yard.unchanged():
        for table in (dropped, renamed):
            check_refused(table.commit(1), 404, "NoSuchTableException")
            check_refused(table.update(set_properties(k="v")), 404, "NoSuchTableException")
            check_refused(table.report(0), 404, "NoSuchTableException")
