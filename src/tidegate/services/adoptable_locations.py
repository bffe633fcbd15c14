"""Where tables may be adopted from, besides the storage of managed tables: an admin says so."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.domain.errors import InvalidRequest, NotFound, TooManyRequests
from tidegate.domain.locations import lies_under, normalize_location
from tidegate.domain.ownership import AdoptableLocation, Promise
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment

LOCATIONS_MAX = 1000
PROMISES_MAX = 1000


async def list_adoptable(env: Environment, caller: Principal) -> Sequence[AdoptableLocation]:
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    return await env.database.read(lambda uow: uow.ownership.allowed())


async def allow_adoption(env: Environment, caller: Principal, location: str) -> AdoptableLocation:
    """A place that is allowed already stays so."""
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    place = AdoptableLocation(normalize_location(location), env.clock(), caller.name)
    if not place.location.startswith("file://"):
        raise InvalidRequest(f"{place.location} is on a store that this server cannot read. Only file:// is supported.")

    def allow(uow: UnitOfWork) -> AdoptableLocation:
        known = uow.ownership.allowed()
        if len(known) >= LOCATIONS_MAX:
            raise TooManyRequests(
                f"{LOCATIONS_MAX} places are adoptable already. Remove some, or allow one above them."
            )
        uow.ownership.allow(place)
        return next(one for one in [*known, place] if one.location == place.location)

    return await env.database.write(allow)


async def disallow_adoption(env: Environment, caller: Principal, location: str) -> None:
    """Tables that were adopted from there stay what they are."""
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    place = normalize_location(location)
    if not await env.database.write(lambda uow: uow.ownership.disallow(place)):
        raise NotFound(f"{place} is not among the adoptable places.")


async def list_promises(env: Environment, caller: Principal) -> Sequence[Promise]:
    """Changes of ownership that are under way, the oldest first."""
    await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    return await env.database.read(lambda uow: uow.ownership.all(limit=PROMISES_MAX))


async def check_no_way_out(env: Environment, place: str) -> None:
    """That tables may be adopted from the place, and no link leads from it to another where they may not: whoever may
    write to the one could have the server write to the other.
    """
    await env.database.read(lambda uow: check_adoptable_place(uow, env, place))
    roots = await env.database.read(lambda uow: _roots(uow, env))
    if not await env.found_tables.lies_within(place, roots):
        raise InvalidRequest(
            f"{place} leads, by a link, out of the places where tables may be adopted. Name the place itself."
        )


def check_adoptable_place(uow: UnitOfWork, env: Environment, place: str) -> None:
    roots = _roots(uow, env)
    if not any(place == root or lies_under(place, root) for root in roots):
        raise InvalidRequest(
            f"{place} is outside the storage of managed tables, and nobody has allowed to adopt tables there. An "
            f"admin can: tidegate adoptable add {place}"
        )


def _roots(uow: UnitOfWork, env: Environment) -> list[str]:
    return [env.storage_root, *(one.location for one in uow.ownership.allowed())]
