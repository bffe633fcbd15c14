"""Owners, guards and explanations of rights, through Tidegate's own API."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.grants import Privilege
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.http.unity.permissions import securable_of
from tidegate.services import access
from tidegate.wire import access as wire


async def get(call: Call) -> wire.ObjectAccess:
    found = await access.get_access(call.env, call.caller, securable_of(call))
    return wire.ObjectAccess(found.owner, found.guarded)


async def change(call: Call) -> wire.ObjectAccess:
    body: wire.ChangeAccess = call.body
    changed = await access.change_access(
        call.env, call.caller, securable_of(call), owner=body.owner, guarded=body.guarded
    )
    return wire.ObjectAccess(changed.owner, changed.guarded)


async def can(call: Call) -> wire.Explained:
    query: wire.CanQuery = call.query
    told = await access.can(
        call.env, call.caller, securable_of(call), Privilege(query.privilege), principal=query.principal
    )
    return wire.Explained(told.allowed, told.why)


_PATH = "/access/{securable_type}/{full_name}"
_MISSING = (errors.NoSuchCatalog, errors.NoSuchSchema, errors.NoSuchTable)

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "GET",
        _PATH,
        "getAccess",
        "Who owns an object, and whether it is guarded.",
        get,
        answer=wire.ObjectAccess,
        errors=(errors.InvalidRequest, *_MISSING),
    ),
    Endpoint(
        TIDEGATE,
        "PATCH",
        _PATH,
        "changeAccess",
        "Give an object to another owner, or guard a table's metadata.",
        change,
        body=wire.ChangeAccess,
        answer=wire.ObjectAccess,
        errors=(errors.InvalidRequest, *_MISSING, errors.NoSuchIdentity),
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        _PATH + "/can",
        "can",
        "Whether somebody may exercise a privilege on an object, and why or why not.",
        can,
        query=wire.CanQuery,
        answer=wire.Explained,
        errors=(errors.InvalidRequest, errors.NoSuchIdentity),
    ),
]
