"""Dropped tables, as Tidegate's own API shows them, brings them back or purges them."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.dropped_tables import DroppedTable
from tidegate.domain.names import parse_table_name
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.dropped_tables import list_dropped_tables, purge_now, restore_table
from tidegate.services.paging import PageRequest
from tidegate.wire import dropped_tables as wire


async def list_all(call: Call) -> wire.DroppedTableList:
    query: wire.DroppedTablesQuery = call.query
    page = await list_dropped_tables(call.env, call.caller, PageRequest(query.max_results, query.page_token))
    kept_ms = call.env.retentions.dropped_ms
    return wire.DroppedTableList([_from_dropped(dropped, kept_ms) for dropped in page.items], page.next_token)


async def restore(call: Call) -> wire.RestoredTable:
    body: wire.RestoreTable | None = call.body
    wanted = None if body is None or body.new_full_name is None else parse_table_name(body.new_full_name)
    table = await restore_table(call.env, call.caller, call.path["table_id"], name=wanted)
    return wire.RestoredTable(table.id, str(table.name), table.latest)


async def purge(call: Call) -> wire.PurgeInfo:
    left = await purge_now(call.env, call.caller, call.path["table_id"])
    return wire.PurgeInfo(call.path["table_id"].lower(), "GONE" if left is None else "PURGING")


def _from_dropped(dropped: DroppedTable, kept_ms: int) -> wire.DroppedTableInfo:
    removal = dropped.removal
    return wire.DroppedTableInfo(
        table_id=dropped.id,
        full_name=dropped.shown_name,
        table_type=dropped.type.value,
        storage_location=dropped.location,
        dropped_at=dropped.dropped_at,
        dropped_by=dropped.dropped_by,
        purge_at=dropped.dropped_at + kept_ms if removal is None else removal.begun_at,
        state="DROPPED" if removal is None else "PURGING",
        files_removed=0 if removal is None else removal.files_removed,
        problem=None if removal is None else removal.problem,
    )


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        "/dropped-tables",
        "listDroppedTables",
        "List the tables that were dropped and are not purged yet, the last dropped first, in pages.",
        list_all,
        query=wire.DroppedTablesQuery,
        answer=wire.DroppedTableList,
        errors=(errors.InvalidRequest,),
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        "/dropped-tables/{table_id}/restore",
        "restoreTable",
        "Bring a dropped table back, under its own name or another one, as it was.",
        restore,
        body=wire.RestoreTable,
        body_required=False,
        answer=wire.RestoredTable,
        errors=(
            errors.InvalidRequest,
            errors.NoSuchTable,
            errors.NoSuchSchema,
            errors.NoSuchCatalog,
            errors.TableAlreadyExists,
        ),
    ),
    Endpoint(
        TIDEGATE,
        "DELETE",
        "/dropped-tables/{table_id}",
        "purgeTable",
        "Purge a dropped table now: it cannot be restored any more, and its files go in the background.",
        purge,
        answer=wire.PurgeInfo,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
]
