"""Dropped tables: list them, bring one back, or give it up for good."""

from __future__ import annotations

from tidegate.domain.dropped_tables import DroppedTable, no_such_dropped_table, restored_name
from tidegate.domain.errors import InvalidRequest, NoSuchTable, Unavailable
from tidegate.domain.events import EventKind, table_event
from tidegate.domain.grants import Privilege
from tidegate.domain.names import TableId, TableName, check_name, parse_table_id
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table
from tidegate.services.environment import Environment
from tidegate.services.paging import Page, PageRequest, bad_token, read_page
from tidegate.services.places import changing_owner, check_free
from tidegate.services.purge_table import begin_purge


async def list_dropped_tables(env: Environment, caller: Principal, page: PageRequest) -> Page[DroppedTable]:
    """Those that the caller may manage, the last dropped first. Tables that are being purged are among them until
    nothing is left.
    """
    allowed = await env.authorize(caller, Operation.USE_METASTORE, "metastore")
    only_for = None if Privilege.MANAGE in allowed.held else allowed.names

    def work(uow: UnitOfWork) -> Page[DroppedTable]:
        return read_page(
            page,
            lambda after, limit: uow.dropped_tables.page(before=_place_in(after), limit=limit, only_for=only_for),
            lambda dropped: f"{dropped.dropped_at}-{dropped.id}",
            size_max=env.page_size_max,
        )

    return await env.database.read(work)


def _place_in(token: str) -> tuple[int, TableId] | None:
    if not token:
        return None
    moment, _, id = token.partition("-")
    if not (moment.isascii() and moment.isdigit() and len(moment) < 19 and id):
        raise bad_token()
    return int(moment), TableId(id)


async def restore_table(env: Environment, caller: Principal, id: str, *, name: TableName | None) -> Table:
    """Under its own name or another one. Id, place, commits, what is unpublished and grants are as they were."""
    table_id = parse_table_id("the path", id)
    if name is not None:
        check_name("table", name.table)
    await _authorize(env, caller, table_id)
    dropped = await env.database.read(lambda uow: uow.dropped_tables.find(table_id))
    into = None if dropped is None or dropped.removal is not None else restored_name(dropped, name).parent
    # What is in a schema is seen by others than those who see a dropped table: to put it there takes more.
    tell = into is not None and (await env.authorize(caller, Operation.RESTORE_INTO, into)).names is None

    def work(uow: UnitOfWork) -> Table:
        _check_not_live(uow, table_id)
        dropped = uow.dropped_tables.lock(table_id)
        to = restored_name(dropped, name)
        if into not in (None, to.parent):
            raise Unavailable(f"{dropped.shown_name} was dropped anew meanwhile. Try again.")
        schema = uow.schemas.get(to.parent)
        _check_place(uow, dropped, tell=tell)
        now = env.clock()
        uow.dropped_tables.restore(table_id, to, schema, by=caller, now=now)
        table = uow.tables.get_by_id(table_id)
        dropped_as = dropped.shown_name
        uow.events.add([table_event(EventKind.RESTORED, table, at=now, by=caller.name, dropped_as=dropped_as)])
        return table

    table = await env.database.write(work)
    env.access.epoch.advance()
    if table.unpublished:
        env.publishing.notice(table.id, table.latest, waiting=len(table.unpublished))
    return table


async def purge_now(env: Environment, caller: Principal, id: str) -> DroppedTable | None:
    """Begins without waiting for the retention; background work does the rest. None if nothing is left to do."""
    table_id = parse_table_id("the path", id)
    await _authorize(env, caller, table_id)

    def work(uow: UnitOfWork) -> DroppedTable | None:
        _check_not_live(uow, table_id)
        return begin_purge(uow, uow.dropped_tables.lock(table_id), by=caller.name, now=env.clock())

    return await env.database.write(work)


async def _authorize(env: Environment, caller: Principal, id: TableId) -> None:
    try:
        await env.authorize(caller, Operation.MANAGE_DROPPED_TABLE, id)
    except NoSuchTable:
        raise no_such_dropped_table(id) from None


def _check_not_live(uow: UnitOfWork, id: TableId) -> None:
    try:
        table = uow.tables.get_by_id(id)
    except NoSuchTable:
        return
    raise InvalidRequest(f"The table with id {id} is not dropped: it is {table.name}.")


def _check_place(uow: UnitOfWork, dropped: DroppedTable, *, tell: bool) -> None:
    uow.removals.lock_places()
    if not tell:
        check_free(uow, dropped.location, tell=False)
    taken = uow.tables.find_overlapping(dropped.location)
    if taken is not None:
        raise InvalidRequest(
            f"{dropped.shown_name} lies at {dropped.location}, and {taken} is at, above or below that place by now. "
            f"Drop {taken} first: tables may not overlap."
        )
    going = uow.removals.find_overlapping(dropped.location)
    promise = uow.ownership.find_overlapping(dropped.location)
    if promise is not None:
        raise changing_owner(promise)
    if going is not None or uow.staging_tables.overlaps(dropped.location):
        raise InvalidRequest(
            f"{dropped.shown_name} lies at {dropped.location}, and by now that place overlaps with one that is "
            f"{'promised to a new table' if going is None else 'being emptied'}. It cannot be restored."
        )
