"""Tables: the conversations about them, but for their commits and their creation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.client.address import UNITY, segment, split_schema, split_table, table_path
from tidegate.client.conversations import Conversation, decoded, exchange, request
from tidegate.client.known_tables import KnownTable, TableHandle, known_table
from tidegate.client.paging import list_all
from tidegate.client.refusals import refusal
from tidegate.client.wire import LoadedTable, TableInfo, TablePage


def list_tables(schema: str) -> Conversation[list[TableInfo]]:
    catalog, name = split_schema(schema)
    query = {"catalog_name": catalog, "schema_name": name}
    return list_all(f"{UNITY}/tables", TablePage, lambda page: page.tables, query)


def describe_table(name: str) -> Conversation[TableInfo]:
    split_table(name)
    return decoded((yield from request("GET", f"{UNITY}/tables/{segment(name)}")), TableInfo)


def has_table(name: str) -> Conversation[bool]:
    answer = yield from exchange("HEAD", table_path(name))
    if answer.status in {204, 404}:
        return answer.status == 204
    # HEAD has no body that could say what is wrong; the same question as a GET has one.
    refused = yield from exchange("GET", table_path(name))
    if refused.status == 200:
        return True
    raise refusal(refused.status, refused.body, url=refused.url)


def load(table: TableHandle) -> Conversation[LoadedTable]:
    loaded = decoded((yield from request("GET", table_path(table.name))), LoadedTable)
    table.known = None if loaded.latest_table_version is None else known_table(table.name, loaded)
    return loaded


def refresh(table: TableHandle) -> Conversation[KnownTable]:
    """As `load`, for a managed table."""
    loaded = yield from load(table)
    table.known = known = known_table(table.name, loaded)
    return known


def rename_table(table: TableHandle, new_name: str) -> Conversation[None]:
    """`new_name` is the table's own, without its schema."""
    yield from request("POST", f"{table_path(table.name)}/rename", body={"new-name": new_name})
    catalog, schema, _ = split_table(table.name)
    table.name = f"{catalog}.{schema}.{new_name}"


def drop_table(table: TableHandle, *, force: bool) -> Conversation[None]:
    yield from request("DELETE", table_path(table.name), query={"force": True} if force else None)
    table.known = None


def set_properties(table: TableHandle, properties: Mapping[str, str]) -> Conversation[None]:
    return _change(table, {"action": "set-properties", "updates": dict(properties)})


def remove_properties(table: TableHandle, keys: Iterable[str]) -> Conversation[None]:
    return _change(table, {"action": "remove-properties", "removals": list(keys)})


def set_comment(table: TableHandle, comment: str | None) -> Conversation[None]:
    return _change(table, {"action": "set-table-comment", "comment": comment})


def _change(table: TableHandle, update: dict[str, Any]) -> Conversation[None]:
    """Said twice, it says the same: it may be repeated."""
    loaded = yield from load(table)
    requirement = {"type": "assert-table-uuid", "uuid": loaded.metadata.table_uuid}
    body = {"requirements": [requirement], "updates": [update]}
    yield from request("POST", table_path(table.name), body=body, repeatable=True)
