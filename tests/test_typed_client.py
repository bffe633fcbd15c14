"""The typed client from PyPI, `unitycatalog-client` 0.7.0, against our server: its models read every answer.

`unitycatalog.client` is used exactly as published. `unitycatalog.delta` cannot be: the wheel carries its API classes
and models, but not the modules they import, so that not even the import succeeds. This file stands in for what is
missing, and leaves every file of the package as it is:

- `api_client`, `api_response` and `rest`: the modules of the same name in `unitycatalog.client`, which come from the
  same generator; and the lookup of a model by its name, which there knows the models of `unitycatalog.client` only.
- The package patches `DeltaDataType.from_dict` for types that are plain strings, but `DeltaStructType` has a method
  of its own that hides the patch and reads no struct at all, whoever sent it. It gets the patched one.

Two things the package cannot do, whatever the server answers: read a credential without an expiry (see below), and
send set-columns, whose types it loses on the way. Columns also lose their field metadata when it reads them.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pydantic
import pytest
from unitycatalog.client import (
    ApiClient,
    CatalogsApi,
    Configuration,
    CreateCatalog,
    CreateSchema,
    MetastoresApi,
    SchemasApi,
    TablesApi,
    UpdateCatalog,
    UpdateSchema,
)
from unitycatalog.client.exceptions import (
    ApiException,
    BadRequestException,
    NotFoundException,
    UnauthorizedException,
)

from tests.lake import COLUMNS, UNITY, Draft, Lake, LakeTable
from tests.servers import ServerProcess

READER_FEATURES = ["catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"]
MISSING = [
    name
    for name in ("api_client", "api_response", "rest")
    if importlib.util.find_spec(f"unitycatalog.delta.{name}") is None
]
for _name in MISSING:
    sys.modules[f"unitycatalog.delta.{_name}"] = importlib.import_module(f"unitycatalog.client.{_name}")

# The package says that its models import this module by themselves; as published they do not.
importlib.import_module("unitycatalog.delta.internal.serde.delta_data_type_module")


def model(name: str) -> Any:
    """A class of `unitycatalog.delta.models`, whose modules are named after their classes."""
    module = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return getattr(importlib.import_module(f"unitycatalog.delta.models.{module}"), name)


def _reads_structs() -> bool:
    try:
        model("DeltaStructType").from_dict(COLUMNS)
    except pydantic.ValidationError:
        return False
    return True


READS_STRUCTS = _reads_structs()
if not READS_STRUCTS:
    model("DeltaStructType").from_dict = vars(model("DeltaDataType"))["from_dict"]

ConfigurationApi = importlib.import_module("unitycatalog.delta.api.delta_configuration_api").DeltaConfigurationApi
DeltaTablesApi = importlib.import_module("unitycatalog.delta.api.delta_tables_api").DeltaTablesApi
CredentialsApi = importlib.import_module(
    "unitycatalog.delta.api.delta_temporary_credentials_api"
).DeltaTemporaryCredentialsApi


class DeltaApiClient(ApiClient):
    """Finds the models of `unitycatalog.delta` by name."""

    def deserialize(self, response_text: str, response_type: str, content_type: str | None) -> Any:
        return super().deserialize(response_text, model(response_type), content_type)


@asynccontextmanager
async def connected(kind: type[ApiClient], server: ServerProcess, token: str | None = None) -> AsyncIterator[ApiClient]:
    """The package's operations declare no security scheme, so the token goes into a default header."""
    configuration = Configuration(host=f"{server.url}{UNITY}")
    header = f"Bearer {server.token if token is None else token}"
    async with kind(configuration, header_name="Authorization", header_value=header) as client:
        yield client


def run_delta(server: ServerProcess, story: Callable[[ApiClient], Awaitable[None]]) -> None:
    _run(DeltaApiClient, server, story)


def run_unity(server: ServerProcess, story: Callable[[ApiClient], Awaitable[None]]) -> None:
    _run(ApiClient, server, story)


def _run(kind: type[ApiClient], server: ServerProcess, story: Callable[[ApiClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with connected(kind, server) as client:
            await story(client)

    asyncio.run(run())


async def refusal(call: Awaitable[Any], status: int) -> Any:
    """The error's body, read by the package's model."""
    with pytest.raises(ApiException) as raised:
        await call
    assert raised.value.status == status, raised.value
    return raised.value.data


async def refused_as(call: Awaitable[Any], status: int, type: str) -> str:
    """The message of an error of Delta REST v1.0."""
    error = (await refusal(call, status)).error
    assert (error.type.value, error.code) == (type, status)
    return error.message


def test_the_stand_ins_are_still_needed() -> None:
    """A release that fails here is whole: take the stand-ins out of this file and use it as published."""
    assert MISSING == ["api_client", "api_response", "rest"]
    assert not READS_STRUCTS


# Delta REST v1.0


async def staged_draft(client: ApiClient, name: str) -> Draft:
    """Stages with the typed client; the draft's version 0 is real."""
    request = model("DeltaCreateStagingTableRequest")(name=name)
    staged = await DeltaTablesApi(client).create_staging_table("main", "default", request)
    return Draft.of(name, staged.to_dict())


def create_request(draft: Draft, **others: Any) -> Any:
    """The draft's request as the package's model, field metadata included."""
    request = model("DeltaCreateTableRequest").from_dict(draft.request)
    for sent, field in zip(draft.request["columns"]["fields"], request.columns.fields, strict=True):
        field.metadata = model("DeltaStructFieldMetadata").from_dict(sent["metadata"])
    return request.model_copy(update=others)


async def created_table(client: ApiClient, lake: Lake, name: str) -> LakeTable:
    draft = await staged_draft(client, name)
    draft.write_version_0()
    await DeltaTablesApi(client).create_table("main", "default", create_request(draft))
    return LakeTable(lake, name, draft.id, draft.location, timestamp=draft.request["last-commit-timestamp-ms"])


def update_request(table: LakeTable, *updates: Any) -> Any:
    uuid = model("DeltaAssertTableUUID")(type="assert-table-uuid", uuid=table.id)
    return model("DeltaUpdateTableRequest")(requirements=[uuid], updates=list(updates))


def add_commit(table: LakeTable, version: int, *others: Any) -> Any:
    """The commit's file says what the other updates say."""
    commit = table.stage_commit(version, *(other.to_dict() for other in others))
    table.staged[version] = commit["file-name"]
    return model("DeltaAddCommitUpdate")(action="add-commit", commit=model("DeltaCommit").from_dict(commit))


def report(version: int) -> Any:
    kind = model("DeltaSetLatestBackfilledVersionUpdate")
    return kind(action="set-latest-backfilled-version", latest_published_version=version)


async def update(client: ApiClient, table: LakeTable, *updates: Any) -> Any:
    return await DeltaTablesApi(client).update_table("main", "default", table.name, update_request(table, *updates))


async def load(client: ApiClient, name: str) -> Any:
    return await DeltaTablesApi(client).load_table("main", "default", name)


def versions(answer: Any) -> list[int]:
    return [commit.version for commit in answer.commits]


def test_the_client_learns_what_the_server_speaks(server: ServerProcess, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        config = ConfigurationApi(client)
        answer = await config.get_config("main", "1.0")
        assert answer.protocol_version == "1.0"
        assert "POST /v1/catalogs/{catalog}/schemas/{schema}/staging-tables" in answer.endpoints
        assert (await config.get_config("main", "1.7,2.3")).protocol_version == "1.0"
        assert "1.0" in await refused_as(config.get_config("main", "2.0"), 400, "InvalidParameterValueException")
        await refused_as(config.get_config(unique, "1.0"), 404, "NoSuchCatalogException")

    run_delta(server, story)


def test_the_client_stages_a_table_and_reads_what_it_must_have(server: ServerProcess, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        request = model("DeltaCreateStagingTableRequest")(name=unique)
        staged = await DeltaTablesApi(client).create_staging_table("main", "default", request)
        assert staged.table_type.value == "MANAGED"
        assert staged.location.startswith("file:///")
        assert staged.required_properties["io.unitycatalog.tableId"] == staged.table_id
        assert "inCommitTimestamp" in staged.required_protocol.writer_features
        assert "columnMapping" in staged.suggested_protocol.reader_features
        # Every entry must have an expiry for this model: where there is nothing to vend, there is no entry.
        assert staged.storage_credentials == []

    run_delta(server, story)


def test_the_client_creates_a_table_and_loads_it(server: ServerProcess, lake: Lake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        draft = await staged_draft(client, unique)
        draft.write_version_0()
        created = await DeltaTablesApi(client).create_table("main", "default", create_request(draft, comment="typed"))
        loaded = await load(client, unique)
        assert loaded == created
        assert (loaded.metadata.table_uuid, loaded.metadata.location) == (draft.id, draft.location)
        assert [(field.name, field.type.type) for field in loaded.metadata.columns.fields] == [
            ("id", "long"),
            ("name", "string"),
        ]
        assert (loaded.latest_table_version, loaded.commits) == (0, [])
        assert loaded.metadata.last_commit_timestamp_ms == draft.request["last-commit-timestamp-ms"]
        # The field metadata, which the package does not read back, arrived all the same.
        assert lake.load(unique).json()["metadata"]["columns"] == COLUMNS

    run_delta(server, story)


def test_the_client_creates_a_table_with_nested_columns(server: ServerProcess, lake: Lake, unique: str) -> None:
    inner = {"type": "struct", "fields": [{"name": "x", "type": "decimal(10,2)", "nullable": True, "metadata": {}}]}
    kinds: dict[str, Any] = {
        "list": {"type": "array", "element-type": inner, "contains-null": False},
        "map": {"type": "map", "key-type": "string", "value-type": inner, "value-contains-null": True},
        "struct": inner,
        "price": "decimal(38,18)",
    }
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    nested = {"type": "struct", "fields": fields}

    async def story(client: ApiClient) -> None:
        draft = await staged_draft(client, unique)
        draft.request["columns"] = nested
        draft.write_version_0()
        await DeltaTablesApi(client).create_table("main", "default", create_request(draft))
        assert (await load(client, unique)).metadata.columns.to_dict() == nested
        assert lake.load(unique).json()["metadata"]["columns"] == nested

    run_delta(server, story)


def test_the_client_commits_and_reports_publication(server: ServerProcess, lake: Lake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        table = await created_table(client, lake, unique)
        first = add_commit(table, 1)
        assert versions(await update(client, table, first)) == [1]
        assert versions(await update(client, table, first)) == [1]
        table.publish(1)
        assert versions(await update(client, table, add_commit(table, 2), report(1))) == [2]
        assert versions(await update(client, table, add_commit(table, 3), report(2))) == [3, 2]
        table.publish(2)
        answer = await update(client, table, report(2))
        assert versions(answer) == [3]
        assert answer == await load(client, unique)
        assert answer.latest_table_version == 3
        assert answer.commits[0].file_name == table.staged[3]

    run_delta(server, story)


def test_commits_that_come_with_a_conflict_do_not_disturb_the_client(
    server: ServerProcess, lake: Lake, unique: str
) -> None:
    """It reads the error as it always did, leaves what comes beside it, and goes on at the next version."""

    async def story(client: ApiClient) -> None:
        table = await created_table(client, lake, unique)
        for version in (1, 2, 3):
            await update(client, table, add_commit(table, version))
        with pytest.raises(ApiException) as raised:
            await update(client, table, add_commit(table, 2))
        error = raised.value.data.error
        assert (raised.value.status, error.type.value, error.code) == (409, "CommitVersionConflictException", 409)
        assert raised.value.data.to_dict().keys() == {"error"}
        beside = json.loads(raised.value.body)["conflict"]
        assert [commit["version"] for commit in beside["commits"]] == [2, 3]
        answer = await update(client, table, add_commit(table, 4))
        assert (versions(answer), answer.latest_table_version) == ([4, 3, 2, 1], 4)

    run_delta(server, story)


def test_the_client_reads_why_a_commit_was_refused(server: ServerProcess, lake: Lake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        table = await created_table(client, lake, unique)
        gap = await refused_as(update(client, table, add_commit(table, 2)), 409, "CommitVersionConflictException")
        assert "latest version is 0" in gap
        await update(client, table, add_commit(table, 1))
        await refused_as(update(client, table, add_commit(table, 1)), 409, "CommitVersionConflictException")
        await refused_as(update(client, table, report(9)), 400, "InvalidParameterValueException")
        etag = model("DeltaAssertEtag")(type="assert-etag", etag="old")
        request = update_request(table, report(0))
        request.requirements.append(etag)
        call = DeltaTablesApi(client).update_table("main", "default", unique, request)
        await refused_as(call, 409, "UpdateRequirementConflictException")
        await refused_as(load(client, f"{unique}_no"), 404, "NoSuchTableException")

    run_delta(server, story)


def test_the_client_changes_metadata(server: ServerProcess, lake: Lake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        table = await created_table(client, lake, unique)
        etag = (await load(client, unique)).metadata.etag
        domains = model("DeltaDomainMetadataUpdates")(
            delta_clustering=model("DeltaClusteringDomainMetadata")(clustering_columns=[["id"]]),
            delta_row_tracking=model("DeltaRowTrackingDomainMetadata")(row_id_high_water_mark=9),
        )
        protocol = model("DeltaProtocol")(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=READER_FEATURES,
            writer_features=[*READER_FEATURES, "inCommitTimestamp", "rowTracking", "clustering", "appendOnly"],
        )
        changes = [
            model("DeltaSetPropertiesUpdate")(action="set-properties", updates={"delta.appendOnly": "true"}),
            model("DeltaSetProtocolUpdate")(action="set-protocol", protocol=protocol),
            model("DeltaSetPartitionColumnsUpdate")(action="set-partition-columns", partition_columns=["name"]),
            model("DeltaSetDomainMetadataUpdate")(action="set-domain-metadata", updates=domains),
        ]
        answer = await update(client, table, add_commit(table, 1, *changes), *changes)
        properties = answer.metadata.properties
        assert properties["delta.appendOnly"] == "true"
        assert properties["delta.feature.appendOnly"] == "supported"
        assert json.loads(properties["delta.clusteringColumns"]) == [["id"]]
        assert properties["delta.rowTracking.rowIdHighWaterMark"] == "9"
        assert answer.metadata.partition_columns == ["name"]
        assert answer.metadata.last_commit_version == 1
        assert answer.metadata.etag != etag

    run_delta(server, story)


def test_the_client_removes_what_it_set_and_comments_alone(server: ServerProcess, lake: Lake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        table = await created_table(client, lake, unique)
        team = model("DeltaSetPropertiesUpdate")(action="set-properties", updates={"team": "sea"})
        assert (await update(client, table, team)).metadata.properties["team"] == "sea"
        gone = model("DeltaRemovePropertiesUpdate")(action="remove-properties", removals=["team"])
        assert "team" not in (await update(client, table, gone)).metadata.properties
        comment = model("DeltaSetTableCommentUpdate")(action="set-table-comment", comment="typed")
        await update(client, table, comment)
        async with connected(ApiClient, server) as unity:
            assert (await TablesApi(unity).get_table(f"main.default.{unique}")).comment == "typed"

    run_delta(server, story)


def test_columns_that_the_package_garbles_are_refused_and_not_stored(
    server: ServerProcess, lake: Lake, unique: str
) -> None:
    """It sends an array without its elements' type: nothing that a table could be read with."""

    async def story(client: ApiClient) -> None:
        table = await created_table(client, lake, unique)
        before = table.load()
        tags = {"name": "tags", "type": {"type": "array", "element-type": "string", "contains-null": True}}
        columns = model("DeltaStructType").from_dict({"type": "struct", "fields": [{**tags, "nullable": True}]})
        change = model("DeltaSetSchemaUpdate")(action="set-columns", columns=columns)
        await refused_as(update(client, table, add_commit(table, 1), change), 400, "BadRequestException")
        assert table.load() == before

    run_delta(server, story)


def test_the_client_asks_whether_a_table_exists_renames_and_deletes_it(
    server: ServerProcess, lake: Lake, unique: str
) -> None:
    async def story(client: ApiClient) -> None:
        tables = DeltaTablesApi(client)
        await created_table(client, lake, unique)
        await tables.table_exists("main", "default", unique)
        request = model("DeltaRenameTableRequest")(new_name=f"{unique}_new")
        await tables.rename_table("main", "default", unique, request)
        with pytest.raises(NotFoundException):
            await tables.table_exists("main", "default", unique)
        await tables.table_exists("main", "default", f"{unique}_new")
        again = tables.rename_table(
            "main", "default", f"{unique}_new", model("DeltaRenameTableRequest")(new_name="a b")
        )
        await refused_as(again, 400, "InvalidParameterValueException")
        await tables.delete_table("main", "default", f"{unique}_new")
        await refused_as(load(client, f"{unique}_new"), 404, "NoSuchTableException")
        await refused_as(tables.delete_table("main", "default", f"{unique}_new"), 404, "NoSuchTableException")

    run_delta(server, story)


def test_the_client_reports_metrics(server: ServerProcess, lake: Lake, unique: str) -> None:
    histogram = model("DeltaReportMetricsRequestReportCommitReportFileSizeHistogram")
    commit_report = model("DeltaReportMetricsRequestReportCommitReport")

    async def story(client: ApiClient) -> None:
        table = await created_table(client, lake, unique)
        sizes = histogram(
            sorted_bin_boundaries=[0, 8192], file_counts=[1, 2], total_bytes=[100, 20_000], commit_version=0
        )
        sent = commit_report(num_files_added=3, num_bytes_added=20_100, num_rows_inserted=7, file_size_histogram=sizes)
        whole = model("DeltaReportMetricsRequestReport")(commit_report=sent)
        request = model("DeltaReportMetricsRequest")(table_id=table.id, report=whole)
        report_metrics = DeltaTablesApi(client).report_metrics
        await report_metrics("main", "default", unique, request)
        sizes.sorted_bin_boundaries = [1, 8192]
        await refused_as(report_metrics("main", "default", unique, request), 400, "InvalidParameterValueException")
        other = model("DeltaReportMetricsRequest")(table_id="00000000-0000-0000-0000-000000000000")
        await refused_as(report_metrics("main", "default", unique, other), 400, "InvalidParameterValueException")

    run_delta(server, story)


def test_the_client_asks_for_credentials(server: ServerProcess, lake: Lake, unique: str) -> None:
    """Local files need none. The answer says so with a null expiry, as stock clients expect it, but this package's
    model demands a number: so its answers are taken as they came, without the model."""

    async def entries(call: Awaitable[Any]) -> list[dict[str, Any]]:
        response = await call
        assert response.status == 200
        return (await response.json())["storage-credentials"]

    async def story(client: ApiClient) -> None:
        credentials = CredentialsApi(client)
        operation = model("DeltaCredentialOperation")
        draft = await staged_draft(client, unique)
        entry = {"prefix": draft.location, "operation": "READ_WRITE", "config": {}, "expiration-time-ms": None}
        assert await entries(credentials.get_staging_table_credentials_without_preload_content(draft.id)) == [entry]
        draft.write_version_0()
        await DeltaTablesApi(client).create_table("main", "default", create_request(draft))
        of_table = credentials.get_table_credentials_without_preload_content
        for wanted in (operation.READ, operation.READ_WRITE):
            entry["operation"] = wanted.value
            assert await entries(of_table(wanted, "main", "default", unique)) == [entry]
        place = "file:///data/elsewhere"
        at_place = credentials.get_temporary_path_credentials_without_preload_content
        assert await entries(at_place(place, operation.READ)) == [{**entry, "prefix": place, "operation": "READ"}]
        with pytest.raises(pydantic.ValidationError, match="expiration-time-ms"):
            model("DeltaCredentialsResponse").from_dict({"storage-credentials": [entry]})

    run_delta(server, story)


# The surrounding Unity Catalog API


def test_without_the_right_token_nothing_opens(server: ServerProcess) -> None:
    async def run() -> None:
        async with connected(ApiClient, server, token="wrong") as client:
            with pytest.raises(UnauthorizedException):
                await CatalogsApi(client).list_catalogs()
        async with connected(DeltaApiClient, server, token="wrong") as client:
            await refused_as(load(client, "t"), 401, "NotAuthorizedException")

    asyncio.run(run())


def test_the_client_reads_the_metastore_summary(server: ServerProcess) -> None:
    async def story(client: ApiClient) -> None:
        first, second = await MetastoresApi(client).summary(), await MetastoresApi(client).summary()
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first.metastore_id)
        assert first == second

    run_unity(server, story)


def test_the_client_creates_gets_updates_and_deletes_a_catalog(server: ServerProcess, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        catalogs = CatalogsApi(client)
        created = await catalogs.create_catalog(CreateCatalog(name=unique, comment="typed", properties={"a": "1"}))
        assert await catalogs.get_catalog(unique) == created
        assert (created.comment, created.properties) == ("typed", {"a": "1"})
        changed = await catalogs.update_catalog(unique, UpdateCatalog(new_name=f"{unique}_new", comment="changed"))
        assert (changed.name, changed.comment, changed.properties) == (f"{unique}_new", "changed", {"a": "1"})
        assert changed.id == created.id
        with pytest.raises(NotFoundException):
            await catalogs.get_catalog(unique)
        with pytest.raises(BadRequestException, match="already exists"):
            await catalogs.create_catalog(CreateCatalog(name=f"{unique}_new"))
        await catalogs.delete_catalog(f"{unique}_new")
        with pytest.raises(NotFoundException):
            await catalogs.get_catalog(f"{unique}_new")

    run_unity(server, story)


def test_the_client_creates_gets_updates_and_deletes_a_schema(server: ServerProcess, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        schemas = SchemasApi(client)
        created = await schemas.create_schema(CreateSchema(name=unique, catalog_name="main", comment="typed"))
        assert await schemas.get_schema(f"main.{unique}") == created
        assert created.full_name == f"main.{unique}"
        change = UpdateSchema(new_name=f"{unique}_new", properties={"a": "1"})
        changed = await schemas.update_schema(f"main.{unique}", change)
        assert (changed.name, changed.comment, changed.properties) == (f"{unique}_new", "typed", {"a": "1"})
        assert changed.schema_id == created.schema_id
        await schemas.delete_schema(f"main.{unique}_new")
        with pytest.raises(NotFoundException):
            await schemas.get_schema(f"main.{unique}_new")

    run_unity(server, story)


async def read_names(fetch: Callable[..., Awaitable[Any]], key: str, size: int) -> list[str]:
    """Follows the pages as the package's own documentation shows it."""
    names: list[str] = []
    token: str | None = None
    for _ in range(100):
        page = await fetch(max_results=size, page_token=token)
        names += [item.name for item in getattr(page, key)]
        token = page.next_page_token
        if not token:
            return names
    raise AssertionError(f"more than 100 pages: {names}")


@pytest.mark.parametrize("size", [0, 1, 2, 50])
def test_the_client_lists_in_pages(server: ServerProcess, lake: Lake, unique: str, size: int) -> None:
    async def story(client: ApiClient) -> None:
        await CatalogsApi(client).create_catalog(CreateCatalog(name=unique))
        for name in ("c", "a", "b"):
            await SchemasApi(client).create_schema(CreateSchema(name=name, catalog_name=unique))
        in_schema = Lake(lake.http, catalog=unique, schema="a")
        for name in ("t3", "t1", "t2"):
            in_schema.new_table(name)

        async def schemas(**page: Any) -> Any:
            return await SchemasApi(client).list_schemas(unique, **page)

        async def tables(**page: Any) -> Any:
            return await TablesApi(client).list_tables(unique, "a", **page)

        assert await read_names(schemas, "schemas", size) == ["a", "b", "c"]
        assert await read_names(tables, "tables", size) == ["t1", "t2", "t3"]
        listed = await read_names(CatalogsApi(client).list_catalogs, "catalogs", max(size, 25) if size else 0)
        assert {"main", unique} <= set(listed)

    run_unity(server, story)


def test_the_client_gets_and_deletes_tables(server: ServerProcess, lake: Lake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        tables = TablesApi(client)
        table = lake.new_table(unique, comment="typed", partition_columns=["name"])
        shown = await tables.get_table(f"main.default.{unique}", read_streaming_table_as_managed=True)
        assert (shown.table_id, shown.storage_location, shown.comment) == (table.id, table.location, "typed")
        assert (shown.table_type.value, shown.data_source_format.value) == ("MANAGED", "DELTA")
        assert [(c.name, c.type_name.value, c.type_text, c.nullable, c.partition_index) for c in shown.columns] == [
            ("id", "LONG", "bigint", False, None),
            ("name", "STRING", "string", True, 0),
        ]
        await tables.delete_table(f"main.default.{unique}")
        with pytest.raises(NotFoundException):
            await tables.get_table(f"main.default.{unique}")

    run_unity(server, story)


TYPES = [
    *("boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz"),
    *("string", "binary", "decimal(10,2)", "variant", "void", "char(3)", "varchar(3)"),
]


def test_the_client_knows_the_name_of_every_type(server: ServerProcess, lake: Lake, unique: str) -> None:
    """Its models refuse a table with a type name that is not in their list."""
    nested = [
        {"type": "array", "element-type": "long", "contains-null": True},
        {"type": "map", "key-type": "long", "value-type": "long", "value-contains-null": True},
        COLUMNS,
    ]
    kinds = [*TYPES, "interval day to second", "interval year", "string collate UTF8_LCASE", *nested]
    fields = [{"name": f"c{n}", "type": kind, "nullable": True, "metadata": {}} for n, kind in enumerate(kinds)]

    async def story(client: ApiClient) -> None:
        lake.new_table(unique, columns={"type": "struct", "fields": fields})
        shown = await TablesApi(client).get_table(f"main.default.{unique}")
        names = [column.type_name.value for column in shown.columns]
        assert names[: len(TYPES)] == [
            *("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
            *("STRING", "BINARY", "DECIMAL", "VARIANT", "NULL", "CHAR", "STRING"),
        ]
        assert names[len(TYPES) :] == ["INTERVAL", "INTERVAL", "STRING", "ARRAY", "MAP", "STRUCT"]
        decimal = shown.columns[TYPES.index("decimal(10,2)")]
        assert (decimal.type_precision, decimal.type_scale) == (10, 2)

    run_unity(server, story)


def test_the_client_deletes_what_is_not_empty_with_force_only(server: ServerProcess, lake: Lake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        catalogs, schemas = CatalogsApi(client), SchemasApi(client)
        await catalogs.create_catalog(CreateCatalog(name=unique))
        await schemas.create_schema(CreateSchema(name="s", catalog_name=unique))
        Lake(lake.http, catalog=unique, schema="s").new_table("t")
        for call in (schemas.delete_schema(f"{unique}.s"), schemas.delete_schema(f"{unique}.s", force=False)):
            with pytest.raises(BadRequestException, match="force"):
                await call
        with pytest.raises(BadRequestException, match="force"):
            await catalogs.delete_catalog(unique)
        await schemas.delete_schema(f"{unique}.s", force=True)
        await schemas.create_schema(CreateSchema(name="s", catalog_name=unique))
        await catalogs.delete_catalog(unique, force=True)
        with pytest.raises(NotFoundException):
            await schemas.get_schema(f"{unique}.s")

    run_unity(server, story)
