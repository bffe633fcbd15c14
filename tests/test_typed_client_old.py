"""`unitycatalog.client` 0.7.0, as published, on the calls of specification v0.1.0 and those around it.

What it offers for catalogs, schemas and the metastore is in `test_typed_client.py`. It has no call for metrics.

Its `get_commits` never sends what it is asked for: the package drops the body of every GET, so that no server can know
which table is meant. `Asking` puts the body into the query, where our server reads it too; nothing else is changed.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from unitycatalog.client import (
    ApiClient,
    CatalogsApi,
    ColumnInfo,
    ColumnInfos,
    ColumnTypeName,
    CreateStagingTable,
    CreateTable,
    DataSourceFormat,
    DeltaCommit,
    DeltaCommitInfo,
    DeltaCommitMetadataProperties,
    DeltaCommitsApi,
    DeltaGetCommits,
    DeltaMetadata,
    DeltaUniform,
    DeltaUniformIceberg,
    GenerateTemporaryPathCredential,
    GenerateTemporaryTableCredential,
    GrantsApi,
    MetastoresApi,
    PathOperation,
    PermissionsChange,
    Privilege,
    SchemasApi,
    SecurableType,
    TableOperation,
    TablesApi,
    TableType,
    TemporaryCredentialsApi,
    UpdatePermissions,
)
from unitycatalog.client.exceptions import (
    ApiException,
    BadRequestException,
    NotFoundException,
)

from tests.lake import Lake, error_of
from tests.old_lake import FIELDS, OldDraft, OldLake, OldTable, field, metadata_action
from tests.servers import ServerProcess
from tests.test_typed_client import connected, run_unity

SPOKEN = {
    CatalogsApi: {"create_catalog", "get_catalog", "list_catalogs", "update_catalog", "delete_catalog"},
    SchemasApi: {"create_schema", "get_schema", "list_schemas", "update_schema", "delete_schema"},
    MetastoresApi: {"summary"},
    TablesApi: {"create_staging_table", "create_table", "get_table", "list_tables", "delete_table"},
    DeltaCommitsApi: {"commit", "get_commits"},
    GrantsApi: {"get", "update"},
    TemporaryCredentialsApi: {"generate_temporary_table_credentials", "generate_temporary_path_credentials"},
}
"""Per API every call that is tested, here or in `test_typed_client.py`."""

ELSEWHERE = {"generate_temporary_volume_credentials", "generate_temporary_model_version_credentials"}
"""For volumes and models, which Tidegate does not have."""


def test_every_call_that_the_package_offers_for_these_is_tested() -> None:
    for api, tested in SPOKEN.items():
        calls = {
            name
            for name, call in inspect.getmembers(api, inspect.iscoroutinefunction)
            if not name.startswith("_") and not name.endswith(("_with_http_info", "_without_preload_content"))
        }
        assert calls - ELSEWHERE == tested, api


class Asking(ApiClient):
    async def call_api(
        self, method: str, url: str, headers: Any = None, body: Any = None, *rest: Any, **named: Any
    ) -> Any:
        if method == "GET" and body is not None:
            url = f"{url}?{urlencode(body)}"
        return await super().call_api(method, url, headers, body, *rest, **named)


def run(server: ServerProcess, story: Callable[[ApiClient], Awaitable[None]]) -> None:
    async def told() -> None:
        async with connected(Asking, server) as client:
            await story(client)

    asyncio.run(told())


async def staged_draft(client: ApiClient, old: OldLake, name: str, **changes: Any) -> OldDraft:
    """Stages with the typed client, and writes version 0."""
    request = CreateStagingTable(name=name, catalog_name="main", schema_name="default")
    staged = await TablesApi(client).create_staging_table(request)
    assert (staged.name, staged.catalog_name, staged.schema_name) == (name, "main", "default")
    draft = old.draft(f"{name}_other", **changes)
    draft.request |= {"name": name, "storage_location": staged.staging_location}
    draft.request["properties"]["io.unitycatalog.tableId"] = staged.id
    draft.actions["metaData"]["configuration"]["io.unitycatalog.tableId"] = staged.id
    draft.id, draft.location = staged.id, staged.staging_location
    draft.write_version_0()
    return draft


def create_request(draft: OldDraft) -> CreateTable:
    request = CreateTable.from_dict(draft.request)
    assert request is not None
    return request


async def created_table(client: ApiClient, old: OldLake, name: str, **changes: Any) -> OldTable:
    draft = await staged_draft(client, old, name, **changes)
    await TablesApi(client).create_table(create_request(draft))
    return old.table(name, draft.id, draft.location, timestamp=draft.timestamp)


def proposal(table: OldTable, version: int, *actions: dict[str, Any], **others: Any) -> DeltaCommit:
    info = table.stage_commit(version, *actions)
    table.files.staged[version] = info["file_name"]
    return DeltaCommit(**table.identity, commit_info=DeltaCommitInfo(**info), **others)


async def get_commits(client: ApiClient, table: OldTable, **asked: int) -> Any:
    request = DeltaGetCommits(**table.identity, **{"start_version": 0, **asked})
    return await DeltaCommitsApi(client).get_commits(request)


async def refused(call: Awaitable[Any], kind: type[ApiException]) -> dict[str, Any]:
    with pytest.raises(kind) as raised:
        await call
    return json.loads(raised.value.body or "")


@pytest.fixture
def old(lake: Lake) -> OldLake:
    return OldLake(lake.http)


def test_the_client_creates_a_managed_table(server: ServerProcess, old: OldLake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        draft = await staged_draft(client, old, unique, partitions=("day",))
        created = await TablesApi(client).create_table(create_request(draft))
        assert created == await TablesApi(client).get_table(f"main.default.{unique}")
        assert (created.table_id, created.storage_location) == (draft.id, draft.location)
        assert [(c.name, c.type_name, c.position, c.partition_index) for c in created.columns or []] == [
            ("id", ColumnTypeName.LONG, 0, None),
            ("name", ColumnTypeName.STRING, 1, None),
            ("day", ColumnTypeName.DATE, 2, 0),
        ]
        assert created.properties == draft.request["properties"]
        again = await refused(TablesApi(client).create_table(create_request(draft)), BadRequestException)
        assert again["error_code"] == "TABLE_ALREADY_EXISTS"
        taken = CreateStagingTable(name=unique, catalog_name="main", schema_name="default")
        told = await refused(TablesApi(client).create_staging_table(taken), BadRequestException)
        assert told["error_code"] == "TABLE_ALREADY_EXISTS"

    run(server, story)


def test_the_client_registers_an_external_table_lists_and_deletes_it(
    server: ServerProcess, unique: str, tmp_path: Path
) -> None:
    async def story(client: ApiClient) -> None:
        tables = TablesApi(client)
        column = ColumnInfo(
            name="price", type_text="decimal(10,2)", type_name=ColumnTypeName.DECIMAL, type_precision=10, type_scale=2
        )
        request = CreateTable(
            name=unique,
            catalog_name="main",
            schema_name="default",
            table_type=TableType.EXTERNAL,
            data_source_format=DataSourceFormat.DELTA,
            columns=[column],
            storage_location=tmp_path.as_uri(),
            comment="theirs",
        )
        created = await tables.create_table(request)
        assert (created.table_type, created.comment) == (TableType.EXTERNAL, "theirs")
        listed = (await tables.list_tables("main", "default", max_results=0)).tables or []
        (shown,) = [table for table in listed if table.name == unique]
        assert shown == created
        assert shown.columns is not None
        assert (shown.columns[0].type_precision, shown.columns[0].type_scale) == (10, 2)
        await tables.delete_table(f"main.default.{unique}")
        await refused(tables.get_table(f"main.default.{unique}"), NotFoundException)

    run(server, story)


def test_as_published_the_client_never_says_whose_commits_it_wants(
    server: ServerProcess, old: OldLake, unique: str
) -> None:
    """A release for which this fails sends what it is asked for: take `Asking` out of this file."""

    async def story(client: ApiClient) -> None:
        table = await created_table(client, old, unique)
        told = await refused(get_commits(client, table), BadRequestException)
        assert told["message"] == "table_id is missing. Send it in the query or in a JSON body."

    run_unity(server, story)


def test_the_client_proposes_commits_and_gets_them(server: ServerProcess, old: OldLake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        table, commits = await created_table(client, old, unique), DeltaCommitsApi(client)
        first = await get_commits(client, table)
        assert (first.commits, first.latest_table_version) == ([], 0)
        sent = proposal(table, 1)
        for _ in range(2):
            await commits.commit(sent)
        await commits.commit(proposal(table, 2))
        answer = await get_commits(client, table)
        assert ([c.version for c in answer.commits], answer.latest_table_version) == ([1, 2], 2)
        assert answer.commits[0] == sent.commit_info
        assert [c.version for c in (await get_commits(client, table, start_version=2, end_version=2)).commits] == [2]
        table.files.publish(1)
        await commits.commit(DeltaCommit(**table.identity, latest_backfilled_version=1))
        assert [c.version for c in (await get_commits(client, table)).commits] == [2]

    run(server, story)


def test_the_client_reads_why_a_commit_was_refused(server: ServerProcess, old: OldLake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        table, commits = await created_table(client, old, unique), DeltaCommitsApi(client)
        await commits.commit(proposal(table, 1))
        lost = await refused(commits.commit(proposal(table, 1)), ApiException)
        assert (lost["error_code"], "propose version 2" in lost["message"]) == ("ALREADY_EXISTS", True)
        gap = await refused(commits.commit(proposal(table, 5)), BadRequestException)
        assert gap["error_code"] == "INVALID_PARAMETER_VALUE"
        other = DeltaGetCommits(table_id="00000000-0000-0000-0000-000000000000", table_uri="file:///x", start_version=0)
        missing = await refused(commits.get_commits(other), NotFoundException)
        assert missing["error_code"] == "TABLE_DOES_NOT_EXIST"

    run(server, story)


def test_the_client_changes_metadata_with_a_commit(server: ServerProcess, old: OldLake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        table = await created_table(client, old, unique)
        shown = await TablesApi(client).get_table(f"main.default.{unique}")
        assert shown.columns is not None
        added = ColumnInfo(name="height", type_text="double", type_name=ColumnTypeName.DOUBLE, position=3)
        desired = DeltaMetadata(
            description="typed",
            schema=ColumnInfos(columns=[*shown.columns, added]),
            properties=DeltaCommitMetadataProperties(properties={**(shown.properties or {}), "team": "sea"}),
        )
        config = {"delta.enableInCommitTimestamps": "true", "io.unitycatalog.tableId": table.files.id}
        wider = metadata_action([*FIELDS, field("height", "double")], {**config, "team": "sea"}, description="typed")
        await DeltaCommitsApi(client).commit(proposal(table, 1, {"metaData": wider}, metadata=desired))
        after = await TablesApi(client).get_table(f"main.default.{unique}")
        assert (after.comment, (after.properties or {})["team"]) == ("typed", "sea")
        assert [column.name for column in after.columns or []] == ["id", "name", "day", "height"]
        assert (after.columns or [])[:3] == shown.columns
        # And as Spark does it: the schema is in the staged file alone.
        action = {"metaData": metadata_action(FIELDS, config)}
        only = DeltaMetadata(properties=DeltaCommitMetadataProperties(properties=config))
        await DeltaCommitsApi(client).commit(proposal(table, 2, action, metadata=only))
        narrow = await TablesApi(client).get_table(f"main.default.{unique}")
        assert [column.name for column in narrow.columns or []] == ["id", "name", "day"]

    run(server, story)


def test_the_client_sends_uniform(server: ServerProcess, old: OldLake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        enabled = {"delta.universalFormat.enabledFormats": "iceberg"}
        table = await created_table(client, old, unique, properties=enabled)
        converted = DeltaUniformIceberg(
            metadata_location=f"{table.files.location}/metadata/v1.json",
            converted_delta_version=1,
            converted_delta_timestamp="2025-01-04T03:13:11.423Z",
        )
        await DeltaCommitsApi(client).commit(proposal(table, 1, uniform=DeltaUniform(iceberg=converted)))
        assert table.get()["uniform"]["iceberg"]["converted_delta_timestamp"] == "2025-01-04T03:13:11.423000Z"
        assert error_of(table.commit(2)) == (400, "INVALID_PARAMETER_VALUE")

    run(server, story)


def test_the_client_reads_the_credentials_of_local_files(server: ServerProcess, old: OldLake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        credentials = TemporaryCredentialsApi(client)
        draft = await staged_draft(client, old, unique)
        for_staging = GenerateTemporaryTableCredential(table_id=draft.id, operation=TableOperation.READ_WRITE)
        staged = await credentials.generate_temporary_table_credentials(for_staging)
        assert (staged.url, staged.aws_temp_credentials, staged.expiration_time) == (draft.location, None, None)
        await TablesApi(client).create_table(create_request(draft))
        for_table = GenerateTemporaryTableCredential(table_id=draft.id, operation=TableOperation.READ)
        assert (await credentials.generate_temporary_table_credentials(for_table)).url == draft.location
        place = GenerateTemporaryPathCredential(url="file:///data/typed", operation=PathOperation.PATH_CREATE_TABLE)
        assert (await credentials.generate_temporary_path_credentials(place)).url == "file:///data/typed"
        unknown = GenerateTemporaryTableCredential(table_id=draft.id, operation=TableOperation.UNKNOWN_TABLE_OPERATION)
        await refused(credentials.generate_temporary_table_credentials(unknown), BadRequestException)

    run(server, story)


def test_the_client_grants_and_takes_away(server: ServerProcess, old: OldLake, unique: str) -> None:
    async def story(client: ApiClient) -> None:
        grants, name = GrantsApi(client), f"main.default.{unique}"
        old.new_table(unique)
        assert (await grants.get(SecurableType.TABLE, name)).privilege_assignments == []
        given = PermissionsChange(principal="ada", add=[Privilege.SELECT, Privilege.MODIFY], remove=[])
        changed = await grants.update(SecurableType.TABLE, name, UpdatePermissions(changes=[given]))
        (assignment,) = changed.privilege_assignments
        assert (assignment.principal, assignment.privileges) == ("ada", [Privilege.MODIFY, Privilege.SELECT])
        taken = PermissionsChange(principal="ada", add=[], remove=[Privilege.MODIFY])
        await grants.update(SecurableType.TABLE, name, UpdatePermissions(changes=[taken]))
        left = await grants.get(SecurableType.TABLE, name, principal="ada")
        assert [one.privileges for one in left.privilege_assignments] == [[Privilege.SELECT]]
        assert (await grants.get(SecurableType.TABLE, name, principal="bob")).privilege_assignments == []

    run(server, story)


def test_without_the_right_token_nothing_of_this_opens(server: ServerProcess) -> None:
    async def story() -> None:
        async with connected(ApiClient, server, token="wrong") as client:
            request = DeltaGetCommits(table_id="x", table_uri="y", start_version=0)
            told = await refused(DeltaCommitsApi(client).get_commits(request), ApiException)
            assert told["error_code"] == "UNAUTHENTICATED"

    asyncio.run(story())
