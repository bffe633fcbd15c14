"""Users, service accounts and groups: create, list, remove; who belongs to which group; and who the caller is."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.domain.errors import BacklogFull, InvalidRequest, NoSuchIdentity, NotFound, PermissionDenied
from tidegate.domain.frozen import frozen
from tidegate.domain.identities import RESERVED, Identity, IdentityKind, check_identity_name, is_identity_name
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment
from tidegate.services.paging import Page, PageRequest, read_page


@frozen
class Oneself:
    """`kind` is None for whom the catalog knows by name alone: the admin, whoever comes to a server that asks nobody,
    and those whom an identity provider vouches for, where that is enough.
    """

    name: str
    kind: IdentityKind | None
    groups: Sequence[str]


async def who_am_i(env: Environment, caller: Principal) -> Oneself:
    await env.authorize(caller, Operation.BE_KNOWN, "metastore")

    def work(uow: UnitOfWork) -> Oneself:
        groups = {*uow.identities.groups_of(caller.name), *caller.groups}
        return Oneself(caller.name, uow.identities.kind_of(caller.name), sorted(groups))

    return await env.database.read(work)


def known_identity(uow: UnitOfWork, caller: Principal) -> Identity | None:
    """The caller's; None for those that every catalog has. Who is not known any more, or not yet, is refused."""
    if caller.name in RESERVED:
        return None
    try:
        return uow.identities.get(caller.name)
    except NoSuchIdentity:
        raise PermissionDenied(f"This catalog knows nobody called {caller.name}. Ask an administrator.") from None


async def create_identity(env: Environment, caller: Principal, name: str, kind: IdentityKind) -> Identity:
    check_identity_name(name)
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    identity = Identity(name, kind, env.clock(), caller.name)

    def work(uow: UnitOfWork) -> None:
        if uow.identities.count() >= env.access.identities_max:
            raise BacklogFull(
                f"There are {env.access.identities_max} users, service accounts and groups already, the setting "
                "identities_max. Remove some, or raise it."
            )
        uow.identities.add(identity)

    await env.database.write(work)
    env.access.epoch.advance()
    return identity


async def list_identities(
    env: Environment, caller: Principal, page: PageRequest, *, kind: IdentityKind | None
) -> Page[Identity]:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    return await env.database.read(
        lambda uow: read_page(
            page,
            lambda after, limit: uow.identities.page(kind=kind, after=after, limit=limit),
            lambda identity: identity.name,
            size_max=env.page_size_max,
            valid=is_identity_name,
        )
    )


async def remove_identity(env: Environment, caller: Principal, name: str) -> None:
    """Nothing of it is left to somebody who is called so later."""
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")

    def work(uow: UnitOfWork) -> None:
        uow.identities.remove(uow.identities.get(name).name)

    await env.database.write(work)
    env.access.epoch.advance()


async def list_members(env: Environment, caller: Principal, group: str) -> Sequence[str]:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    return await env.database.read(lambda uow: uow.identities.members(_group(uow, group)))


async def add_member(env: Environment, caller: Principal, group: str, member: str) -> Sequence[str]:
    """Who is in the group afterwards. Groups hold users and service accounts, no groups."""
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")

    def work(uow: UnitOfWork) -> Sequence[str]:
        if uow.identities.get(member).kind is IdentityKind.GROUP:
            raise InvalidRequest(f"{member} is a group. Only users and service accounts can be in a group.")
        uow.identities.join(_group(uow, group), member)
        return uow.identities.members(group)

    members = await env.database.write(work)
    env.access.epoch.advance()
    return members


async def remove_member(env: Environment, caller: Principal, group: str, member: str) -> Sequence[str]:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")

    def work(uow: UnitOfWork) -> Sequence[str]:
        if not uow.identities.leave(_group(uow, group), member):
            raise NotFound(f"{member} is not in the group {group}.")
        return uow.identities.members(group)

    members = await env.database.write(work)
    env.access.epoch.advance()
    return members


def _group(uow: UnitOfWork, name: str) -> str:
    if uow.identities.get(name).kind is not IdentityKind.GROUP:
        raise InvalidRequest(f"{name} is not a group.")
    return name
