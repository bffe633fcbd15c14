"""Every call of Delta REST v1.0."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.credentials import CredentialOperation
from tidegate.domain.errors import NoSuchTable
from tidegate.domain.names import TableName
from tidegate.domain.protocol import (
    REQUIRED_PROTOCOL,
    SUGGESTED_PROPERTIES,
    SUGGESTED_READER_FEATURES,
    SUGGESTED_WRITER_FEATURES,
    required_properties,
)
from tidegate.domain.tables import TableMetadata, TableType
from tidegate.http.delta.answers import LoadAnswers
from tidegate.http.delta.conversion import (
    from_credential,
    from_protocol,
    to_action,
    to_columns,
    to_protocol,
    to_report,
    to_requirement,
    to_uniform,
)
from tidegate.http.delta.face import DELTA
from tidegate.http.endpoints import Call, Encoded, Endpoint
from tidegate.services.create_table import Creation, create_table
from tidegate.services.credentials import path_credentials, staging_credentials, table_credentials
from tidegate.services.load_table import load_table
from tidegate.services.negotiate import negotiate_version
from tidegate.services.report_metrics import report_metrics
from tidegate.services.stage_table import stage_table
from tidegate.services.tables import drop_table, rename_table, table_exists
from tidegate.services.update_table import update_table
from tidegate.wire import delta as wire

_SCHEMA = "/catalogs/{catalog}/schemas/{schema}"
_TABLE = _SCHEMA + "/tables/{table}"
_ANSWERS = LoadAnswers(bytes_max=64 * 1024 * 1024)


async def config(call: Call) -> wire.CatalogConfig:
    query: wire.ConfigQuery = call.query
    version = await negotiate_version(call.env, call.caller, catalog=query.catalog, offered=query.protocol_versions)
    offered = [f"{endpoint.method} /v1{endpoint.path}" for endpoint in ENDPOINTS if endpoint.path != "/config"]
    return wire.CatalogConfig(offered, version)


async def stage(call: Call) -> wire.StagingTable:
    name = TableName(call.path["catalog"], call.path["schema"], call.body.name)
    staging = await stage_table(call.env, call.caller, name)
    credential = call.env.vendor.vend(staging.location, CredentialOperation.READ_WRITE)
    return wire.StagingTable(
        table_id=staging.id,
        table_type="MANAGED",
        location=staging.location,
        # A typed client cannot read an entry without an expiry; where there is nothing to vend, there is no entry.
        storage_credentials=[from_credential(credential)] if credential.config else [],
        required_protocol=from_protocol(REQUIRED_PROTOCOL),
        suggested_protocol=wire.Features(sorted(SUGGESTED_READER_FEATURES), sorted(SUGGESTED_WRITER_FEATURES)),
        required_properties=dict(required_properties(staging.id)),
        suggested_properties=dict(SUGGESTED_PROPERTIES),
    )


async def create(call: Call) -> Encoded:
    body: wire.CreateTableRequest = call.body
    creation = Creation(
        name=TableName(call.path["catalog"], call.path["schema"], body.name),
        type=TableType(body.table_type),
        location=body.location,
        metadata=TableMetadata(
            columns=to_columns(body.columns),
            partition_columns=tuple(body.partition_columns or ()),
            protocol=to_protocol(body.protocol),
            properties=body.properties,
            domains=body.domain_metadata or {},
            comment=body.comment,
            catalog_properties={},
        ),
        timestamp=body.last_commit_timestamp_ms,
        uniform=to_uniform(body.uniform),
    )
    return _ANSWERS.of(await create_table(call.env, call.caller, creation))


async def load(call: Call) -> Encoded:
    return _ANSWERS.of(await load_table(call.env, call.caller, call.table_name))


async def update(call: Call) -> Encoded:
    body: wire.UpdateTableRequest = call.body
    table = await update_table(
        call.env,
        call.caller,
        call.table_name,
        requirements=[to_requirement(requirement) for requirement in body.requirements],
        actions=[to_action(update) for update in body.updates],
    )
    return _ANSWERS.of(table)


async def drop(call: Call) -> None:
    query: wire.DropQuery = call.query
    await drop_table(call.env, call.caller, call.table_name, force=query.force)


async def exists(call: Call) -> None:
    if not await table_exists(call.env, call.caller, call.table_name):
        raise NoSuchTable(call.table_name)


async def rename(call: Call) -> None:
    await rename_table(call.env, call.caller, call.table_name, new_name=call.body.new_name)


async def credentials(call: Call) -> wire.CredentialsResponse:
    operation = CredentialOperation(call.query.operation)
    credential = await table_credentials(call.env, call.caller, call.table_name, operation)
    return wire.CredentialsResponse([from_credential(credential)])


async def credentials_of_staging(call: Call) -> wire.CredentialsResponse:
    credential = await staging_credentials(call.env, call.caller, call.path["table_id"])
    return wire.CredentialsResponse([from_credential(credential)])


async def credentials_of_path(call: Call) -> wire.CredentialsResponse:
    query: wire.PathCredentialsQuery = call.query
    operation = CredentialOperation(query.operation)
    credential = await path_credentials(call.env, call.caller, query.location, operation)
    return wire.CredentialsResponse([from_credential(credential)])


async def metrics(call: Call) -> None:
    body: wire.ReportMetricsRequest = call.body
    sent = None if body.report is None else body.report.commit_report
    report = None if sent is None else to_report(sent)
    await report_metrics(call.env, call.caller, call.table_name, table_id=body.table_id, report=report)


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        DELTA,
        "GET",
        "/config",
        "getConfig",
        "Agree on a protocol version and learn what is served.",
        config,
        query=wire.ConfigQuery,
        answer=wire.CatalogConfig,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog),
    ),
    Endpoint(
        DELTA,
        "POST",
        _SCHEMA + "/staging-tables",
        "createStagingTable",
        "Get an id and a location for a managed table that is about to be made.",
        stage,
        body=wire.CreateStagingTableRequest,
        answer=wire.StagingTable,
        errors=(
            errors.InvalidRequest,
            errors.NoSuchCatalog,
            errors.NoSuchSchema,
            errors.TableAlreadyExists,
            errors.BacklogFull,
        ),
    ),
    Endpoint(
        DELTA,
        "POST",
        _SCHEMA + "/tables",
        "createTable",
        "Finish a staging table whose version 0 is written, or register an external table.",
        create,
        body=wire.CreateTableRequest,
        answer=wire.LoadTableResponse,
        errors=(
            errors.InvalidRequest,
            errors.NoSuchCatalog,
            errors.NoSuchSchema,
            errors.NoSuchStagingTable,
            errors.TableAlreadyExists,
        ),
    ),
    Endpoint(
        DELTA,
        "GET",
        _TABLE,
        "loadTable",
        "Metadata, ratified unpublished commits and the latest version, from one snapshot.",
        load,
        answer=wire.LoadTableResponse,
        errors=(errors.UnsupportedTableFormat, errors.NoSuchTable),
    ),
    Endpoint(
        DELTA,
        "POST",
        _TABLE,
        "updateTable",
        "Propose a commit, report publication, change metadata: all of it or nothing.",
        update,
        body=wire.UpdateTableRequest,
        answer=wire.LoadTableResponse,
        errors=(
            errors.InvalidRequest,
            errors.UnsupportedTableFormat,
            errors.NoSuchTable,
            errors.CommitVersionConflict,
            errors.RequirementConflict,
            errors.BacklogFull,
            errors.OutcomeUnknown,
        ),
    ),
    Endpoint(
        DELTA,
        "DELETE",
        _TABLE,
        "deleteTable",
        "Drop the table; with force=true, which is ours, also one that foreign keys refer to, which are removed.",
        drop,
        query=wire.DropQuery,
        status=204,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
    Endpoint(
        DELTA, "HEAD", _TABLE, "tableExists", "Whether the table exists.", exists, status=204, errors=(NoSuchTable,)
    ),
    Endpoint(
        DELTA,
        "POST",
        _TABLE + "/rename",
        "renameTable",
        "Give the table another name in its schema.",
        rename,
        body=wire.RenameTableRequest,
        status=204,
        errors=(errors.InvalidRequest, errors.NoSuchTable, errors.TableAlreadyExists),
    ),
    Endpoint(
        DELTA,
        "GET",
        _TABLE + "/credentials",
        "getTableCredentials",
        "Credentials for the table's files.",
        credentials,
        query=wire.CredentialsQuery,
        answer=wire.CredentialsResponse,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
    Endpoint(
        DELTA,
        "POST",
        _TABLE + "/metrics",
        "reportMetrics",
        "Tell what a commit did to the table's files.",
        metrics,
        body=wire.ReportMetricsRequest,
        status=204,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
    Endpoint(
        DELTA,
        "GET",
        "/staging-tables/{table_id}/credentials",
        "getStagingTableCredentials",
        "Credentials for a staging table, for the principal that made it.",
        credentials_of_staging,
        answer=wire.CredentialsResponse,
        errors=(errors.NoSuchStagingTable,),
    ),
    Endpoint(
        DELTA,
        "GET",
        "/temporary-path-credentials",
        "getTemporaryPathCredentials",
        "Credentials for a place where an external table shall be.",
        credentials_of_path,
        query=wire.PathCredentialsQuery,
        answer=wire.CredentialsResponse,
        errors=(errors.InvalidRequest,),
    ),
]
