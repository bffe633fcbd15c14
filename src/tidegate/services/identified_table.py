"""A table that is named by its id and its location, as specification v0.1.0 does it."""

from __future__ import annotations

from tidegate.domain.errors import InvalidRequest, NoSuchTable
from tidegate.domain.locations import normalize_location
from tidegate.domain.names import parse_table_id
from tidegate.domain.privileges import Operation, Principal
from tidegate.domain.tables import Table
from tidegate.services.authorized_table import authorize_by_id
from tidegate.services.environment import Environment


async def identified_table(
    env: Environment, caller: Principal, operation: Operation, *, table_id: str, location: str
) -> Table:
    """The table, if the caller may do this to it and it is where the caller thinks it is."""
    id = parse_table_id("table_id", table_id)
    try:
        table = await env.database.read(lambda uow: uow.tables.get_by_id(id))
    except NoSuchTable as missing:
        # Who may not see it cannot tell a table that is hidden from one that is not there.
        await env.authorize(caller, operation, f"with id {id}")
        raise missing
    try:
        await authorize_by_id(env, caller, operation, table.name, id)
    except NoSuchTable:
        raise NoSuchTable(f"with id {id}") from None
    if normalize_location(location) != table.location:
        raise InvalidRequest(
            f"table_uri {location[:200]!r} is not where the table with id {table_id} is: {table.location}. "
            "Get the table anew."
        )
    return table
