"""Schemas: the conversations about them. They are called by their full names, `catalog.schema`."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.client.address import UNITY, segment, split_schema
from tidegate.client.conversations import Conversation, decoded, request
from tidegate.client.paging import list_all
from tidegate.client.wire import SchemaInfo, SchemaPage

_ALL = f"{UNITY}/schemas"


def list_schemas(catalog: str) -> Conversation[list[SchemaInfo]]:
    return list_all(_ALL, SchemaPage, lambda page: page.schemas, {"catalog_name": catalog})


def get_schema(name: str) -> Conversation[SchemaInfo]:
    return decoded((yield from request("GET", _one(name))), SchemaInfo)


def create_schema(
    name: str, *, comment: str | None, properties: Mapping[str, str] | None, storage_root: str | None
) -> Conversation[SchemaInfo]:
    catalog, schema = split_schema(name)
    body = {
        "name": schema,
        "catalog_name": catalog,
        "comment": comment,
        "properties": properties,
        "storage_root": storage_root,
    }
    return decoded((yield from request("POST", _ALL, body=body)), SchemaInfo)


def alter_schema(
    name: str, *, new_name: str | None, comment: str | None, properties: Mapping[str, str] | None
) -> Conversation[SchemaInfo]:
    """What is None stays as it is. `new_name` is the schema's own, without its catalog."""
    body = {"new_name": new_name, "comment": comment, "properties": properties}
    return decoded((yield from request("PATCH", _one(name), body=body)), SchemaInfo)


def delete_schema(name: str, *, force: bool) -> Conversation[None]:
    yield from request("DELETE", _one(name), query={"force": force})


def _one(name: str) -> str:
    split_schema(name)
    return f"{_ALL}/{segment(name)}"
