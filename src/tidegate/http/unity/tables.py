"""Tables, as the old API makes and shows them."""

from __future__ import annotations

import json

from msgspec import UNSET, structs

from tidegate.domain import errors
from tidegate.domain.names import SchemaName, TableName, parse_table_name
from tidegate.domain.stated_properties import CLUSTERING_PROPERTY, clustering_shown
from tidegate.domain.tables import Table, TableType, served_properties
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.columns import from_columns, to_stated
from tidegate.http.unity.constraints import from_all
from tidegate.http.unity.face import UNITY
from tidegate.http.unity.uniform import from_uniform
from tidegate.services import tables
from tidegate.services.constraints import shown_constraints
from tidegate.services.create_stated_table import StatedTable, create_stated_table
from tidegate.services.paging import PageRequest
from tidegate.services.stage_table import stage_table
from tidegate.wire import unity as wire


async def stage(call: Call) -> wire.StagingTableInfo:
    body: wire.CreateStagingTable = call.body
    name = TableName(body.catalog_name, body.schema_name, body.name)
    staging = await stage_table(call.env, call.caller, name)
    return wire.StagingTableInfo(body.name, body.catalog_name, body.schema_name, staging.id, staging.location)


async def create(call: Call) -> wire.TableInfo:
    body: wire.CreateTable = call.body
    stated = StatedTable(
        name=TableName(body.catalog_name, body.schema_name, body.name),
        type=TableType(body.table_type),
        format=body.data_source_format,
        location=_location(body.storage_location),
        columns=None if body.columns is None else to_stated(body.columns),
        properties=body.properties,
        comment=body.comment,
    )
    return from_table(await create_stated_table(call.env, call.caller, stated))


async def list_all(call: Call) -> wire.TableList:
    query: wire.TablesQuery = call.query
    page = await tables.list_tables(
        call.env,
        call.caller,
        SchemaName(query.catalog_name, query.schema_name),
        PageRequest(query.max_results, query.page_token),
    )
    return wire.TableList([from_table(table) for table in page.items], page.next_token)


async def get(call: Call) -> wire.TableInfo:
    table = await tables.get_table(call.env, call.caller, parse_table_name(call.path["full_name"]))
    shown = await shown_constraints(call.env, call.caller, table)
    return structs.replace(from_table(table), table_constraints=from_all(shown))


async def delete(call: Call) -> wire.Empty:
    name = parse_table_name(call.path["full_name"])
    await tables.drop_table(call.env, call.caller, name, force=call.query.force)
    return wire.Empty()


def _location(stated: str | None) -> str:
    """Clients that leave the choice of a place to the server send null, as other servers allow."""
    if stated is None:
        raise errors.InvalidRequest(
            "A table needs a storage_location: a managed table that of its staging table (POST /staging-tables), "
            "an external table the place where it lies."
        )
    return stated


def from_table(table: Table) -> wire.TableInfo:
    return wire.TableInfo(
        name=table.name.table,
        catalog_name=table.name.catalog,
        schema_name=table.name.schema,
        table_type=table.shown_type,
        data_source_format=table.format,
        columns=from_columns(table.metadata.columns, table.metadata.partition_columns),
        storage_location=table.location,
        comment=table.metadata.comment,
        properties=_properties(table),
        owner=table.owner,
        created_at=table.created_at,
        created_by=table.created_by,
        updated_at=table.updated_at,
        updated_by=table.updated_by,
        table_id=table.id,
        uniform=UNSET if table.uniform is None else from_uniform(table.uniform),
    )


def _properties(table: Table) -> dict[str, str]:
    """As in Delta REST v1.0, and the clustering columns also under the name that this API has for them."""
    served, clustering = served_properties(table), clustering_shown(table.metadata)
    if clustering is not None:
        served[CLUSTERING_PROPERTY] = json.dumps(clustering, separators=(",", ":"))
    return served


_STAGING_ERRORS = (errors.InvalidRequest, errors.NoSuchCatalog, errors.NoSuchSchema, errors.TableAlreadyExists)

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        UNITY,
        "POST",
        "/staging-tables",
        "stageTable",
        "Get an id and a location for a managed table that is about to be made.",
        stage,
        body=wire.CreateStagingTable,
        answer=wire.StagingTableInfo,
        errors=(*_STAGING_ERRORS, errors.BacklogFull),
    ),
    Endpoint(
        UNITY,
        "POST",
        "/tables",
        "registerTable",
        "Finish a staging table whose version 0 is written, or register an external table.",
        create,
        body=wire.CreateTable,
        answer=wire.TableInfo,
        errors=(*_STAGING_ERRORS, errors.NoSuchStagingTable),
    ),
    Endpoint(
        UNITY,
        "GET",
        "/tables",
        "listTables",
        "List the tables of a schema by name, in pages.",
        list_all,
        query=wire.TablesQuery,
        answer=wire.TableList,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog, errors.NoSuchSchema),
    ),
    Endpoint(
        UNITY,
        "GET",
        "/tables/{full_name}",
        "getTable",
        "Get a table.",
        get,
        answer=wire.TableInfo,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog, errors.NoSuchSchema, errors.NoSuchTable),
    ),
    Endpoint(
        UNITY,
        "DELETE",
        "/tables/{full_name}",
        "dropTable",
        "Drop a table; with force=true also one that foreign keys refer to, which are removed.",
        delete,
        query=wire.DeleteQuery,
        answer=wire.Empty,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
]
