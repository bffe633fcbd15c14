"""Permissions, as the old API shows and changes them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tidegate.domain import errors
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.grants import Grant, GrantChange, Privilege, SecurableType
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.face import UNITY
from tidegate.services.grants import Securable, change_grants, get_grants
from tidegate.wire import unity_access as wire


async def get(call: Call) -> wire.PermissionsList:
    query: wire.PermissionsQuery = call.query
    return from_grants(await get_grants(call.env, call.caller, securable_of(call), principal=query.principal))


async def update(call: Call) -> wire.PermissionsList:
    body: wire.UpdatePermissions = call.body
    changes = [
        GrantChange(change.principal, [Privilege(p) for p in change.add], [Privilege(p) for p in change.remove])
        for change in body.changes
    ]
    return from_grants(await change_grants(call.env, call.caller, securable_of(call), changes))


def securable_of(call: Call) -> Securable:
    kind = call.path["securable_type"]
    if kind not in set(SecurableType):
        raise InvalidRequest(f"There are no permissions on a {kind[:50]!r}. Use {', '.join(SecurableType)}.")
    return Securable.named(SecurableType(kind), call.path["full_name"])


def from_grants(grants: Sequence[Grant]) -> wire.PermissionsList:
    return wire.PermissionsList(
        [
            wire.PrivilegeAssignment(principal, [grant.privilege.value for grant in given])
            for principal, given in groupby(grants, lambda grant: grant.principal)
        ]
    )


_PATH = "/permissions/{securable_type}/{full_name}"
_MISSING = (errors.NoSuchCatalog, errors.NoSuchSchema, errors.NoSuchTable)

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        UNITY,
        "GET",
        _PATH,
        "getPermissions",
        "What was granted on an object, for those who may manage it.",
        get,
        query=wire.PermissionsQuery,
        answer=wire.PermissionsList,
        errors=(errors.InvalidRequest, *_MISSING),
    ),
    Endpoint(
        UNITY,
        "PATCH",
        _PATH,
        "updatePermissions",
        "Grant privileges or take them away: all changes or none, effective at once.",
        update,
        body=wire.UpdatePermissions,
        answer=wire.PermissionsList,
        errors=(errors.InvalidRequest, *_MISSING, errors.BacklogFull),
    ),
]
