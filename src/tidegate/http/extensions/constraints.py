"""Keys of a table and those that refer to it, through Tidegate's own API."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.names import parse_table_name
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.http.unity.constraints import from_foreign_key, from_shown
from tidegate.services.constraints import get_constraints
from tidegate.wire import constraints as wire


async def get(call: Call) -> wire.Constraints:
    name = parse_table_name(call.path["full_name"])
    found = await get_constraints(call.env, call.caller, name)
    return wire.Constraints(
        table_constraints=[from_shown(one) for one in found.own],
        referred_by=[
            wire.ReferringKey(str(one.table), from_foreign_key(one.constraint, name)) for one in found.referring
        ],
    )


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        "/tables/{full_name}/constraints",
        "getConstraints",
        "The keys of a table, and the foreign keys of others that refer to it.",
        get,
        answer=wire.Constraints,
        errors=(errors.InvalidRequest, errors.NoSuchTable, errors.UnsupportedTableFormat),
    ),
]
