"""Tables, as the old API shows them."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.names import SchemaName, parse_table_name
from tidegate.domain.tables import Table, served_properties
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.columns import from_columns
from tidegate.http.unity.face import UNITY
from tidegate.services import tables
from tidegate.services.paging import PageRequest
from tidegate.wire import unity as wire


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
    return from_table(await tables.get_table(call.env, call.caller, parse_table_name(call.path["full_name"])))


async def delete(call: Call) -> wire.Empty:
    await tables.drop_table(call.env, call.caller, parse_table_name(call.path["full_name"]))
    return wire.Empty()


def from_table(table: Table) -> wire.TableInfo:
    return wire.TableInfo(
        name=table.name.table,
        catalog_name=table.name.catalog,
        schema_name=table.name.schema,
        table_type=table.type.value,
        data_source_format=table.format,
        columns=from_columns(table.metadata.columns, table.metadata.partition_columns),
        storage_location=table.location,
        comment=table.metadata.comment,
        properties=served_properties(table),
        owner=table.owner,
        created_at=table.created_at,
        created_by=table.created_by,
        updated_at=table.updated_at,
        updated_by=table.updated_by,
        table_id=table.id,
    )


ENDPOINTS: list[Endpoint] = [
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
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
    Endpoint(
        UNITY,
        "DELETE",
        "/tables/{full_name}",
        "dropTable",
        "Drop a table.",
        delete,
        answer=wire.Empty,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
]
