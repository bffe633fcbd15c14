"""Catalogs, and the metastore that holds them."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.namespaces import Catalog, Change, Details
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.face import UNITY
from tidegate.services import catalogs
from tidegate.services.paging import PageRequest
from tidegate.wire import unity as wire


async def metastore_summary(call: Call) -> wire.MetastoreSummary:
    return wire.MetastoreSummary(await catalogs.metastore_id(call.env, call.caller))


async def create(call: Call) -> wire.CatalogInfo:
    body: wire.CreateCatalog = call.body
    details = Details(body.comment, body.properties or {}, body.storage_root)
    return from_catalog(await catalogs.create_catalog(call.env, call.caller, body.name, details))


async def list_all(call: Call) -> wire.CatalogList:
    query: wire.PageQuery = call.query
    page = await catalogs.list_catalogs(call.env, call.caller, PageRequest(query.max_results, query.page_token))
    return wire.CatalogList([from_catalog(catalog) for catalog in page.items], page.next_token)


async def get(call: Call) -> wire.CatalogInfo:
    return from_catalog(await catalogs.get_catalog(call.env, call.caller, call.path["name"]))


async def update(call: Call) -> wire.CatalogInfo:
    body: wire.UpdateCatalog = call.body
    change = Change(body.new_name, body.comment, body.properties)
    return from_catalog(await catalogs.update_catalog(call.env, call.caller, call.path["name"], change))


async def delete(call: Call) -> wire.Empty:
    await catalogs.delete_catalog(call.env, call.caller, call.path["name"], force=call.query.force)
    return wire.Empty()


def from_catalog(catalog: Catalog) -> wire.CatalogInfo:
    details, stamps = catalog.details, catalog.stamps
    return wire.CatalogInfo(
        name=catalog.name,
        comment=details.comment,
        properties=dict(details.properties),
        owner=stamps.owner,
        created_at=stamps.created_at,
        created_by=stamps.created_by,
        updated_at=stamps.updated_at,
        updated_by=stamps.updated_by,
        id=catalog.id,
        storage_root=details.storage_root,
        storage_location=catalog.storage_location,
    )


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        UNITY,
        "GET",
        "/metastore_summary",
        "getMetastoreSummary",
        "The metastore's id.",
        metastore_summary,
        answer=wire.MetastoreSummary,
    ),
    Endpoint(
        UNITY,
        "POST",
        "/catalogs",
        "createCatalog",
        "Create a catalog.",
        create,
        body=wire.CreateCatalog,
        answer=wire.CatalogInfo,
        errors=(errors.InvalidRequest, errors.CatalogAlreadyExists),
    ),
    Endpoint(
        UNITY,
        "GET",
        "/catalogs",
        "listCatalogs",
        "List catalogs by name, in pages.",
        list_all,
        query=wire.PageQuery,
        answer=wire.CatalogList,
        errors=(errors.InvalidRequest,),
    ),
    Endpoint(
        UNITY,
        "GET",
        "/catalogs/{name}",
        "getCatalog",
        "Get a catalog.",
        get,
        answer=wire.CatalogInfo,
        errors=(errors.NoSuchCatalog,),
    ),
    Endpoint(
        UNITY,
        "PATCH",
        "/catalogs/{name}",
        "updateCatalog",
        "Change a catalog's name, comment or properties.",
        update,
        body=wire.UpdateCatalog,
        answer=wire.CatalogInfo,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog, errors.CatalogAlreadyExists),
    ),
    Endpoint(
        UNITY,
        "DELETE",
        "/catalogs/{name}",
        "deleteCatalog",
        "Delete a catalog; with force=true also one that holds schemas.",
        delete,
        query=wire.DeleteQuery,
        answer=wire.Empty,
        errors=(errors.InvalidRequest, errors.NoSuchCatalog, errors.NotEmpty),
    ),
]
