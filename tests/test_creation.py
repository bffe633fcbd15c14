"""Creating a managed table: what version 0 in the log says and what the request declares must be the same.

Every refusal must name what is wrong, store nothing, and leave the staging table usable: the corrected request, sent
afterwards, succeeds.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import DELTA, UNITY, Draft, Lake, error_of
from tests.servers import ServerProcess
from tidegate.auth.tokens import ADMIN, ANONYMOUS
from tidegate.compose import build_server, prepare
from tidegate.domain.errors import NotAuthenticated
from tidegate.domain.privileges import Principal
from tidegate.settings import Settings

Actions = list[dict[str, Any]]
Change = Callable[[Actions], None]
"""Makes version 0 say something else than the request."""

INVALID = (400, "InvalidParameterValueException")

NESTED: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {"delta.columnMapping.id": 1}},
        {"name": "region", "type": "string", "nullable": True, "metadata": {}},
        {"name": "day", "type": "date", "nullable": True, "metadata": {}},
        {"name": "price", "type": "decimal(10,2)", "nullable": True, "metadata": {}},
        {
            "name": "tags",
            "type": {"type": "array", "element-type": "string", "contains-null": True},
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "scores",
            "type": {"type": "map", "key-type": "string", "value-type": "double", "value-contains-null": False},
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "home",
            "type": {
                "type": "struct",
                "fields": [
                    {"name": "street", "type": "string", "nullable": False, "metadata": {"comment": "and number"}},
                    {"name": "zip", "type": "integer", "nullable": True, "metadata": {}},
                ],
            },
            "nullable": True,
            "metadata": {},
        },
    ],
}
DOMAINS: dict[str, Any] = {"app.owner": {"team": "sea"}, "delta.rowTracking": {"rowIdHighWaterMark": 4}}


def draft_of(lake: Lake, name: str) -> Draft:
    return lake.draft(
        name,
        columns=NESTED,
        partition_columns=["region", "day"],
        domain_metadata=DOMAINS,
        properties={"delta.appendOnly": "false", "team": "sea"},
    )


def action(actions: Actions, name: str) -> dict[str, Any]:
    return next(each[name] for each in actions if name in each)


def in_action(name: str, /, **values: Any) -> Change:
    def change(actions: Actions) -> None:
        action(actions, name).update(values)

    return change


def in_features(kind: str, *, add: str | None = None, remove: str | None = None) -> Change:
    def change(actions: Actions) -> None:
        protocol = action(actions, "protocol")
        kept = [feature for feature in protocol[kind] if feature != remove]
        protocol[kind] = kept if add is None else [*kept, add]

    return change


def in_configuration(key: str, value: str | None) -> Change:
    def change(actions: Actions) -> None:
        kept = {k: v for k, v in action(actions, "metaData")["configuration"].items() if k != key}
        action(actions, "metaData")["configuration"] = kept if value is None else {**kept, key: value}

    return change


def in_fields(edit: Callable[[list[dict[str, Any]]], None]) -> Change:
    """Edits the list of top-level columns as the log spells them."""

    def change(actions: Actions) -> None:
        schema = json.loads(action(actions, "metaData")["schemaString"])
        edit(schema["fields"])
        action(actions, "metaData")["schemaString"] = json.dumps(schema)

    return change


def in_column(name: str, /, **values: Any) -> Change:
    def edit(fields: list[dict[str, Any]]) -> None:
        next(field for field in fields if field["name"] == name).update(values)

    return in_fields(edit)


def in_type(name: str, /, **values: Any) -> Change:
    def edit(fields: list[dict[str, Any]]) -> None:
        next(field for field in fields if field["name"] == name)["type"].update(values)

    return in_fields(edit)


def in_home(position: int, **values: Any) -> Change:
    """Edits a field of the nested struct."""

    def edit(fields: list[dict[str, Any]]) -> None:
        next(field for field in fields if field["name"] == "home")["type"]["fields"][position].update(values)

    return in_fields(edit)


def in_domain(domain: str, **values: Any) -> Change:
    def change(actions: Actions) -> None:
        found = [a["domainMetadata"] for a in actions if a.get("domainMetadata", {}).get("domain") == domain]
        found[0].update(values)

    return change


def without_domain(domain: str) -> Change:
    def change(actions: Actions) -> None:
        actions[:] = [a for a in actions if a.get("domainMetadata", {}).get("domain") != domain]

    return change


def with_domain(domain: str, configuration: str) -> Change:
    def change(actions: Actions) -> None:
        actions.append({"domainMetadata": {"domain": domain, "configuration": configuration, "removed": False}})

    return change


def later(actions: Actions) -> None:
    action(actions, "commitInfo")["inCommitTimestamp"] += 1


EXTRA = {"name": "extra", "type": "long", "nullable": True, "metadata": {}}

DIFFERENCES: dict[str, tuple[Change, tuple[str, ...]]] = {
    "reader version": (in_action("protocol", minReaderVersion=4), ("min-reader-version", "3", "4")),
    "writer version": (in_action("protocol", minWriterVersion=8), ("min-writer-version", "7", "8")),
    "reader feature in log only": (in_features("readerFeatures", add="typeWidening"), ("reader", "typeWidening")),
    "reader feature declared only": (in_features("readerFeatures", remove="v2Checkpoint"), ("reader", "v2Checkpoint")),
    "writer feature in log only": (in_features("writerFeatures", add="appendOnly"), ("writer", "appendOnly")),
    "writer feature declared only": (in_features("writerFeatures", remove="clustering"), ("writer", "clustering")),
    "no features in log": (in_action("protocol", readerFeatures=None), ("reader", "catalogManaged")),
    "column renamed": (in_column("price", name="cost"), ("price", "cost")),
    "column in other case": (in_column("price", name="Price"), ("price", "Price")),
    "column in log only": (in_fields(lambda fields: fields.append(EXTRA)), ("extra",)),
    "column declared only": (in_fields(lambda fields: fields.pop(3)), ("price",)),
    "columns in other order": (in_fields(lambda fields: fields.reverse()), ("id", "home")),
    "type": (in_column("id", type="integer"), ("id", "long", "integer")),
    "decimal's scale": (in_column("price", type="decimal(10,3)"), ("price", "decimal(10,2)", "decimal(10,3)")),
    "simple instead of nested": (in_column("home", type="string"), ("home", "string")),
    "element type": (in_type("tags", elementType="binary"), ("tags", "binary")),
    "element nullability": (in_type("tags", containsNull=False), ("tags", "containsNull")),
    "key type": (in_type("scores", keyType="integer"), ("scores", "integer")),
    "value type": (in_type("scores", valueType="float"), ("scores", "float")),
    "value nullability": (in_type("scores", valueContainsNull=True), ("scores", "valueContainsNull")),
    "nullability": (in_column("id", nullable=True), ("id", "nullable")),
    "field metadata": (in_column("id", metadata={"delta.columnMapping.id": 2}), ("id", "metadata")),
    "field metadata in log only": (in_column("region", metadata={"comment": "where"}), ("region", "metadata")),
    "field metadata declared only": (in_column("id", metadata={}), ("id", "metadata")),
    "nested name": (in_home(0, name="road"), ("home", "street", "road")),
    "nested type": (in_home(1, type="string"), ("home.zip", "integer", "string")),
    "nested nullability": (in_home(0, nullable=True), ("home.street", "nullable")),
    "nested field metadata": (in_home(0, metadata={}), ("home.street", "metadata")),
    "property's value": (in_configuration("team", "air"), ("team", "sea", "air")),
    "property in log only": (in_configuration("delta.logRetentionDuration", "1 day"), ("delta.logRetentionDuration",)),
    "property declared only": (in_configuration("delta.appendOnly", None), ("delta.appendOnly",)),
    "required property declared only": (in_configuration("delta.checkpointPolicy", None), ("delta.checkpointPolicy",)),
    "table id": (in_configuration("io.unitycatalog.tableId", "another"), ("io.unitycatalog.tableId", "another")),
    "no configuration": (in_action("metaData", configuration=None), ("property",)),
    "partition column": (in_action("metaData", partitionColumns=["region", "id"]), ("partition-columns", "day", "id")),
    "partition column declared only": (in_action("metaData", partitionColumns=["region"]), ("partition-columns",)),
    "no partition columns in log": (in_action("metaData", partitionColumns=[]), ("partition-columns",)),
    "order of partition columns": (in_action("metaData", partitionColumns=["day", "region"]), ("partition-columns",)),
    "timestamp": (later, ("last-commit-timestamp-ms",)),
    "domain's value": (in_domain("app.owner", configuration='{"team":"air"}'), ("app.owner", "sea", "air")),
    "domain declared only": (without_domain("app.owner"), ("app.owner",)),
    "domain removed in log": (in_domain("app.owner", removed=True), ("app.owner",)),
    "row tracking mark": (in_domain("delta.rowTracking", configuration='{"rowIdHighWaterMark":5}'), ("rowTracking",)),
    "row tracking declared only": (without_domain("delta.rowTracking"), ("delta.rowTracking",)),
    "clustering in log only": (with_domain("delta.clustering", '{"clusteringColumns":[["id"]]}'), ("clustering",)),
}


def check_refused_and_still_usable(lake: Lake, draft: Draft, *words: str) -> None:
    """The request is a 400 that holds the words, and stores nothing; with version 0 made right it succeeds."""
    name = draft.request["name"]
    response = lake.create(draft.request)
    assert response.status_code == 400, response.text
    assert error_of(response) == INVALID
    message = response.json()["error"]["message"]
    assert [word for word in words if word not in message] == [], message
    assert error_of(lake.load(name)) == (404, "NoSuchTableException")
    draft.write_version_0()
    response = lake.create(draft.request)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(("change", "words"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_a_single_difference_to_version_0_is_named_and_the_staging_table_stays_usable(
    lake: Lake, unique: str, change: Change, words: tuple[str, ...]
) -> None:
    draft = draft_of(lake, unique)
    actions = copy.deepcopy(draft.actions())
    change(actions)
    assert actions != draft.actions()
    draft.write_version_0(actions)
    check_refused_and_still_usable(lake, draft, *words)


def test_a_clustering_domain_that_only_the_request_has_is_named(lake: Lake, unique: str) -> None:
    clustering = {"delta.clustering": {"clusteringColumns": [["id"]]}}
    draft = lake.draft(unique, domain_metadata=clustering)
    draft.write_version_0([each for each in draft.actions() if "domainMetadata" not in each])
    check_refused_and_still_usable(lake, draft, "delta.clustering")


def test_what_version_0_says_in_other_words_is_no_difference(lake: Lake, unique: str) -> None:
    """Order of features, of keys and of actions, unknown fields, actions about files, case of partition columns, and
    the domain's name inside its configuration, where Spark repeats it."""
    draft = draft_of(lake, unique)
    actions = copy.deepcopy(draft.actions())
    for kind in ("readerFeatures", "writerFeatures"):
        action(actions, "protocol")[kind].reverse()
    metadata = action(actions, "metaData")
    metadata["configuration"] = dict(reversed(metadata["configuration"].items()))
    metadata["schemaString"] = json.dumps(json.loads(metadata["schemaString"]), sort_keys=True, indent=1)
    metadata["partitionColumns"] = ["REGION", "Day"]
    named = {"domainName": "delta.rowTracking", **DOMAINS["delta.rowTracking"]}
    in_domain("delta.rowTracking", configuration=json.dumps(named))(actions)
    metadata |= {"name": "of no interest", "aFieldFromTheFuture": {"a": [1]}}
    files = [{"add": {"path": f"part-{n}.parquet", "size": 1, "dataChange": True}} for n in range(3)]
    draft.write_version_0([*files, *actions[1:], actions[0], {"txn": {"appId": "a", "version": 1}}])
    response = lake.create(draft.request)
    assert response.status_code == 200, response.text
    assert response.json()["metadata"]["columns"] == NESTED


@pytest.mark.parametrize("folder_is_there", [False, True], ids=["no folder", "empty folder"])
def test_without_version_0_nothing_is_created(lake: Lake, unique: str, folder_is_there: bool) -> None:
    draft = draft_of(lake, unique)
    if folder_is_there:
        draft.log.mkdir(parents=True)
    check_refused_and_still_usable(lake, draft, f"{0:020}.json")


def cut_off(content: bytes) -> bytes:
    return content[:-20]


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "only newlines": lambda content: b"\n\n\n",
    "not text": lambda content: bytes(range(128, 256)) + content,
    "first line cut off": lambda content: content[40:],
    "cut off in metaData": lambda content: content[: content.index(b'"schemaString"')],
    "cut off in a domain": cut_off,
    "cut off in an added file": lambda content: content + b'{"add":{"path":"part-0.parquet","si',
    "a line that is not JSON": lambda content: content + b"this is no action\n",
    "an action that is no object": lambda content: content + b'{"protocol":7}\n',
    "a line that is a list": lambda content: content + b'["metaData"]\n',
    "two actions without a line break": lambda content: content.replace(b"\n", b"", 1),
    "schema that is not JSON": lambda content: content.replace(b'"schemaString": "{', b'"schemaString": "[[{'),
    "schema that is no struct": lambda content: content.replace(rb"{\"type\": \"struct\", \"fields\"", b"{", 1),
    "domain that is not JSON": lambda content: content.replace(rb"{\"team\"", b"{team", 1),
    "nested without end": lambda content: b'{"protocol":' + b"[" * 100_000 + b"\n" + content,
}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN.keys())
def test_a_version_0_that_nobody_can_read_is_refused(lake: Lake, unique: str, damage: Callable[[bytes], bytes]) -> None:
    draft = draft_of(lake, unique)
    draft.write_version_0()
    file = draft.log / f"{0:020}.json"
    sound = file.read_bytes()
    file.write_bytes(damage(sound))
    assert file.read_bytes() != sound
    check_refused_and_still_usable(lake, draft)


@pytest.mark.parametrize("missing", ["commitInfo", "protocol", "metaData"])
def test_an_action_that_version_0_lacks_is_named(lake: Lake, unique: str, missing: str) -> None:
    draft = draft_of(lake, unique)
    draft.write_version_0([each for each in draft.actions() if missing not in each])
    check_refused_and_still_usable(lake, draft, missing)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("commitInfo", "inCommitTimestamp"),
        ("protocol", "minReaderVersion"),
        ("protocol", "minWriterVersion"),
        ("metaData", "schemaString"),
    ],
)
def test_a_field_that_version_0_lacks_is_named(lake: Lake, unique: str, name: str, field: str) -> None:
    draft = draft_of(lake, unique)
    actions = copy.deepcopy(draft.actions())
    del action(actions, name)[field]
    draft.write_version_0(actions)
    expected = "schema" if field == "schemaString" else field
    check_refused_and_still_usable(lake, draft, expected)


def test_a_version_0_beyond_the_limit_is_refused_and_not_held_in_memory(tmp_path: Path, unique: str) -> None:
    limit = 64 * 1024
    server = ServerProcess(tmp_path / "home", settings={"commit_bytes_max": str(limit)}).start()
    try:
        with server.lake() as lake:
            draft = draft_of(lake, unique)
            padding = {"add": {"path": "x" * limit, "size": 1, "dataChange": True}}
            draft.write_version_0([*draft.actions(), padding])
            check_refused_and_still_usable(lake, draft, str(limit))
    finally:
        assert server.stop() == 0


def test_a_staging_table_is_finished_once(lake: Lake, unique: str) -> None:
    draft = draft_of(lake, unique)
    draft.write_version_0()
    first = lake.create(draft.request)
    assert first.status_code == 200, first.text
    again = lake.create(draft.request)
    assert error_of(again) == INVALID, again.text
    assert lake.load(unique).json() == first.json()


def test_a_finished_staging_table_cannot_be_finished_again_under_its_name_that_is_free_again(
    lake: Lake, unique: str
) -> None:
    draft = draft_of(lake, unique)
    draft.write_version_0()
    assert lake.create(draft.request).status_code == 200
    renamed = lake.http.post(f"{lake.tables_url()}/{unique}/rename", json={"new-name": f"{unique}_new"})
    assert renamed.status_code == 204
    again = lake.create(draft.request)
    assert error_of(again) == INVALID
    assert f"{unique}_new" in again.json()["error"]["message"]
    assert error_of(lake.load(unique)) == (404, "NoSuchTableException")


def test_a_staging_table_can_be_finished_under_its_own_name_only(lake: Lake, unique: str) -> None:
    draft = draft_of(lake, unique)
    draft.write_version_0()
    response = lake.create({**draft.request, "name": f"{unique}_other"})
    assert error_of(response) == INVALID
    assert unique in response.json()["error"]["message"]
    assert error_of(lake.load(f"{unique}_other")) == (404, "NoSuchTableException")
    assert lake.create(draft.request).status_code == 200


def test_a_staging_table_can_be_finished_in_its_own_schema_only(lake: Lake, unique: str) -> None:
    assert lake.http.post(f"{UNITY}/schemas", json={"name": unique, "catalog_name": "main"}).status_code == 200
    elsewhere = Lake(lake.http, schema=unique)
    draft = draft_of(lake, unique)
    draft.write_version_0()
    assert error_of(elsewhere.create(draft.request)) == INVALID
    assert error_of(elsewhere.load(unique)) == (404, "NoSuchTableException")
    assert lake.create(draft.request).status_code == 200


def test_of_several_staging_tables_with_one_name_the_first_that_is_finished_gets_it(lake: Lake, unique: str) -> None:
    drafts = [draft_of(lake, unique) for _ in range(3)]
    assert len({draft.id for draft in drafts}) == len({draft.location for draft in drafts}) == 3
    for draft in drafts:
        draft.write_version_0()
    assert lake.create(drafts[1].request).status_code == 200
    for late in (drafts[0], drafts[2]):
        assert error_of(lake.create(late.request)) == (409, "AlreadyExistsException")
    assert error_of(lake.stage(unique)) == (409, "AlreadyExistsException")
    assert lake.load(unique).json()["metadata"]["table-uuid"] == drafts[1].id


def test_a_staging_table_that_came_too_late_can_be_finished_once_the_name_is_free(lake: Lake, unique: str) -> None:
    first, second = draft_of(lake, unique), draft_of(lake, unique)
    for draft in (first, second):
        draft.write_version_0()
    assert lake.create(first.request).status_code == 200
    assert error_of(lake.create(second.request)) == (409, "AlreadyExistsException")
    assert lake.http.delete(f"{lake.tables_url()}/{unique}").status_code == 204
    assert lake.create(second.request).status_code == 200
    assert lake.load(unique).json()["metadata"]["table-uuid"] == second.id


@pytest.mark.parametrize("beside", ["/more", "x", ""], ids=["below", "longer", "made up"])
def test_where_nothing_was_staged_nothing_is_created(lake: Lake, unique: str, beside: str) -> None:
    draft = draft_of(lake, unique)
    draft.write_version_0()
    location = draft.location + beside if beside else draft.location.rpartition("/")[0] + "/no-such-table"
    response = lake.create({**draft.request, "location": location})
    assert error_of(response) == (404, "NoSuchTableException")
    assert location in response.json()["error"]["message"]
    assert lake.create(draft.request).status_code == 200


def test_a_location_may_be_spelled_as_java_spells_it(lake: Lake, unique: str) -> None:
    draft = draft_of(lake, unique)
    draft.write_version_0()
    spelled = draft.location.replace("file:///", "file:/") + "/"
    response = lake.create({**draft.request, "location": spelled})
    assert response.status_code == 200, response.text
    assert response.json()["metadata"]["location"] == draft.location


class Callers:
    """Knows each caller by a token of their own."""

    def __init__(self, **tokens: Principal) -> None:
        self._tokens = tokens

    async def authenticate(self, authorization: str | None) -> Principal:
        token = (authorization or "").removeprefix("Bearer ")
        if token not in self._tokens:
            raise NotAuthenticated("Who is calling?")
        return self._tokens[token]


@contextlib.asynccontextmanager
async def running(app: Any) -> AsyncIterator[None]:
    """The application's lifespan, as a web server drives it."""
    to_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    from_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    lifespan = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    assert (await asyncio.wait_for(from_app.get(), 60))["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        await asyncio.wait_for(lifespan, 60)


SCHEMA_URL = f"{DELTA}/catalogs/main/schemas/default"


async def stage_as(http: httpx.AsyncClient, token: str, name: str) -> httpx.Response:
    return await http.post(f"{SCHEMA_URL}/staging-tables", json={"name": name}, headers=bearer(token))


async def create_as(http: httpx.AsyncClient, token: str, draft: Draft) -> httpx.Response:
    return await http.post(f"{SCHEMA_URL}/tables", json=draft.request, headers=bearer(token))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_only_who_staged_a_table_may_finish_it(tmp_path: Path, database_url: str) -> None:
    async def story(http: httpx.AsyncClient) -> None:
        staged = await stage_as(http, "one", "t")
        assert staged.status_code == 200, staged.text
        draft = Draft.of("t", staged.json())
        draft.write_version_0()
        credentials = f"{DELTA}/staging-tables/{draft.id}/credentials"
        assert error_of(await create_as(http, "two", draft)) == (403, "PermissionDeniedException")
        assert error_of(await http.get(credentials, headers=bearer("two"))) == (403, "PermissionDeniedException")
        assert error_of(await create_as(http, "stranger", draft)) == (403, "PermissionDeniedException")
        assert error_of(await create_as(http, "nobody", draft)) == (401, "NotAuthorizedException")
        loaded = await http.get(f"{SCHEMA_URL}/tables/t", headers=bearer("one"))
        assert error_of(loaded) == (404, "NoSuchTableException")
        assert (await http.get(credentials, headers=bearer("one"))).status_code == 200
        created = await create_as(http, "one", draft)
        assert created.status_code == 200, created.text

    asyncio.run(with_callers(tmp_path, database_url, story))


def test_callers_may_stage_the_same_name_and_each_finishes_their_own(tmp_path: Path, database_url: str) -> None:
    async def story(http: httpx.AsyncClient) -> None:
        drafts = {token: Draft.of("t", (await stage_as(http, token, "t")).json()) for token in ("one", "two")}
        for draft in drafts.values():
            draft.write_version_0()
        assert error_of(await create_as(http, "one", drafts["two"])) == (403, "PermissionDeniedException")
        assert (await create_as(http, "two", drafts["two"])).status_code == 200
        assert error_of(await create_as(http, "one", drafts["one"])) == (409, "AlreadyExistsException")

    asyncio.run(with_callers(tmp_path, database_url, story))


async def with_callers(tmp_path: Path, database_url: str, story: Callable[[httpx.AsyncClient], Any]) -> None:
    """Runs the story against an application in this process, which knows two who may and a stranger who may not."""
    settings = Settings(home=tmp_path / "home", database=database_url)
    prepare(settings)
    callers = Callers(one=ADMIN, two=ANONYMOUS, stranger=Principal("stranger"))
    app = build_server(settings, authenticator=callers).app
    transport = httpx.ASGITransport(app=app)
    async with running(app), httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        await story(http)
