"""Catalogs: the conversations about them."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.client.address import UNITY, segment
from tidegate.client.conversations import Conversation, decoded, request
from tidegate.client.paging import list_all
from tidegate.client.wire import CatalogInfo, CatalogPage

_ALL = f"{UNITY}/catalogs"


def list_catalogs() -> Conversation[list[CatalogInfo]]:
    return list_all(_ALL, CatalogPage, lambda page: page.catalogs)


def get_catalog(name: str) -> Conversation[CatalogInfo]:
    return decoded((yield from request("GET", _one(name))), CatalogInfo)


def create_catalog(
    name: str, *, comment: str | None, properties: Mapping[str, str] | None, storage_root: str | None
) -> Conversation[CatalogInfo]:
    body = {"name": name, "comment": comment, "properties": properties, "storage_root": storage_root}
    return decoded((yield from request("POST", _ALL, body=body)), CatalogInfo)


def alter_catalog(
    name: str, *, new_name: str | None, comment: str | None, properties: Mapping[str, str] | None
) -> Conversation[CatalogInfo]:
    """What is None stays as it is."""
    body = {"new_name": new_name, "comment": comment, "properties": properties}
    return decoded((yield from request("PATCH", _one(name), body=body)), CatalogInfo)


def delete_catalog(name: str, *, force: bool) -> Conversation[None]:
    yield from request("DELETE", _one(name), query={"force": force})


def _one(name: str) -> str:
    return f"{_ALL}/{segment(name)}"
