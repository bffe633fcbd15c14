"""Users, service accounts and groups, through Tidegate's own API; and who the caller is."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.identities import Identity, IdentityKind
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services import identities
from tidegate.services.paging import PageRequest
from tidegate.wire import identities as wire


async def whoami(call: Call) -> wire.Oneself:
    found = await identities.who_am_i(call.env, call.caller)
    return wire.Oneself(found.name, None if found.kind is None else found.kind.value, list(found.groups))


async def create(call: Call) -> wire.IdentityInfo:
    body: wire.CreateIdentity = call.body
    return _from_identity(await identities.create_identity(call.env, call.caller, body.name, IdentityKind(body.kind)))


async def list_all(call: Call) -> wire.IdentityList:
    query: wire.IdentitiesQuery = call.query
    kind = None if query.kind is None else IdentityKind(query.kind)
    page = PageRequest(query.max_results, query.page_token)
    found = await identities.list_identities(call.env, call.caller, page, kind=kind)
    return wire.IdentityList([_from_identity(one) for one in found.items], found.next_token)


async def remove(call: Call) -> None:
    await identities.remove_identity(call.env, call.caller, call.path["name"])


async def members(call: Call) -> wire.GroupMembers:
    return wire.GroupMembers(list(await identities.list_members(call.env, call.caller, call.path["group"])))


async def join(call: Call) -> wire.GroupMembers:
    path = call.path
    return wire.GroupMembers(list(await identities.add_member(call.env, call.caller, path["group"], path["member"])))


async def leave(call: Call) -> wire.GroupMembers:
    path = call.path
    left = await identities.remove_member(call.env, call.caller, path["group"], path["member"])
    return wire.GroupMembers(list(left))


def _from_identity(identity: Identity) -> wire.IdentityInfo:
    return wire.IdentityInfo(identity.name, identity.kind.value, identity.created_at, identity.created_by)


_PATH = "/identities"
_MEMBERS = "/groups/{group}/members"

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE, "GET", "/whoami", "whoAmI", "Who the caller is.", whoami, answer=wire.Oneself, for_everybody=True
    ),
    Endpoint(
        TIDEGATE,
        "POST",
        _PATH,
        "createIdentity",
        "Create a user, a service account or a group.",
        create,
        body=wire.CreateIdentity,
        answer=wire.IdentityInfo,
        errors=(errors.InvalidRequest, errors.IdentityAlreadyExists, errors.BacklogFull),
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        _PATH,
        "listIdentities",
        "List users, service accounts and groups by name, in pages.",
        list_all,
        query=wire.IdentitiesQuery,
        answer=wire.IdentityList,
        errors=(errors.InvalidRequest,),
    ),
    Endpoint(
        TIDEGATE,
        "DELETE",
        _PATH + "/{name}",
        "removeIdentity",
        "Remove one, with its tokens, memberships and grants; what it owned is the admin's then.",
        remove,
        status=204,
        errors=(errors.NoSuchIdentity,),
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        _MEMBERS,
        "listMembers",
        "List who is in a group.",
        members,
        answer=wire.GroupMembers,
        errors=(errors.InvalidRequest, errors.NoSuchIdentity),
    ),
    Endpoint(
        TIDEGATE,
        "PUT",
        _MEMBERS + "/{member}",
        "addMember",
        "Add a user or a service account to a group.",
        join,
        answer=wire.GroupMembers,
        errors=(errors.InvalidRequest, errors.NoSuchIdentity),
    ),
    Endpoint(
        TIDEGATE,
        "DELETE",
        _MEMBERS + "/{member}",
        "removeMember",
        "Take somebody out of a group.",
        leave,
        answer=wire.GroupMembers,
        errors=(errors.InvalidRequest, errors.NoSuchIdentity, errors.NotFound),
    ),
]
