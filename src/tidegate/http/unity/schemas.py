"""Schemas."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.names import SchemaName, parse_schema_name
from tidegate.domain.namespaces import Change, Details, Schema
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.face import UNITY
from tidegate.services import schemas
from tidegate.services.paging import PageRequest
from tidegate.wire import unity as wire


async def create(call: Call) -> wire.SchemaInfo:
    body: wire.CreateSchema = call.body
    details = Details(body.comment, body.properties or {}, body.storage_root)
    name = SchemaName(body.catalog_name, body.name)
    return from_schema(await schemas.create_schema(call.env, call.caller, name, details))


async def list_all(call: Call) -> wire.SchemaList:
    query: wire.SchemasQuery = call.query
    page = await schemas.list_schemas(
        call.env, call.caller, query.catalog_name, PageRequest(query.max_results, query.page_token)
    )
    return wire.SchemaList([from_schema(schema) for schema in page.items], page.next_token)


async def get(call: Call) -> wire.SchemaInfo:
    return from_schema(await schemas.get_schema(call.env, call.caller, _name(call)))


async def update(call: Call) -> wire.SchemaInfo:
    body: wire.UpdateSchema = call.body
    change = Change(body.new_name, body.comment, body.properties)
    return from_schema(await schemas.update_schema(call.env, call.caller, _name(call), change))


async def delete(call: Call) -> wire.Empty:
    await schemas.delete_schema(call.env, call.caller, _name(call), force=call.query.force)
    return wire.Empty()


def _name(call: Call) -> SchemaName:
    return parse_schema_name(call.path["full_name"])


def from_schema(schema: Schema) -> wire.SchemaInfo:
    details, stamps = schema.details, schema.stamps
    return wire.SchemaInfo(
        name=schema.name.schema,
        catalog_name=schema.name.catalog,
        comment=details.comment,
        properties=dict(details.properties),
        full_name=str(schema.name),
        owner=stamps.owner,
        created_at=stamps.created_at,
        created_by=stamps.created_by,
        updated_at=stamps.updated_at,
        updated_by=stamps.updated_by,
        schema_id=schema.id,
        storage_root=details.storage_root,
        storage_location=schema.storage_location,
    )


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        UNITY,
        "POST",
        "/schemas",
        "createSchema",
        "Create a schema.",
        create,
        body=wire.CreateSchema,
        answer=wire.SchemaInfo,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog, errors.SchemaAlreadyExists),
    ),
    Endpoint(
        UNITY,
        "GET",
        "/schemas",
        "listSchemas",
        "List the schemas of a catalog by name, in pages.",
        list_all,
        query=wire.SchemasQuery,
        answer=wire.SchemaList,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog),
    ),
    Endpoint(
        UNITY,
        "GET",
        "/schemas/{full_name}",
        "getSchema",
        "Get a schema.",
        get,
        answer=wire.SchemaInfo,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog, errors.NoSuchSchema),
    ),
    Endpoint(
        UNITY,
        "PATCH",
        "/schemas/{full_name}",
        "updateSchema",
        "Change a schema's name, comment or properties.",
        update,
        body=wire.UpdateSchema,
        answer=wire.SchemaInfo,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog, errors.NoSuchSchema, errors.SchemaAlreadyExists),
    ),
    Endpoint(
        UNITY,
        "DELETE",
        "/schemas/{full_name}",
        "deleteSchema",
        "Delete a schema; with force=true also one that holds tables, which are dropped.",
        delete,
        query=wire.DeleteQuery,
        answer=wire.Empty,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog, errors.NoSuchSchema, errors.NotEmpty),
    ),
]
