"""Places for external tables: outside the storage of managed tables, and nobody else's."""

from __future__ import annotations

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.locations import lies_under, normalize_location
from tidegate.domain.names import SchemaName
from tidegate.domain.ownership import Promise
from tidegate.domain.ports import UnitOfWork
from tidegate.services.environment import Environment


def external_place(env: Environment, location: str) -> str:
    """The location in its normal form."""
    normal = normalize_location(location)
    if normal == env.storage_root or lies_under(normal, env.storage_root):
        raise InvalidRequest(f"{normal} lies in the storage of managed tables. Put external tables elsewhere.")
    return normal


async def check_leads_outside(env: Environment, place: str) -> None:
    """That no link leads from an external place into the storage of managed tables."""
    if place.startswith("file://") and await env.found_tables.lies_within(place, [env.storage_root]):
        raise InvalidRequest(
            f"{place} lies in the storage of managed tables, by a link. Put external tables elsewhere."
        )


def check_free(uow: UnitOfWork, place: str, *, tell: bool) -> None:
    """That nobody has the place. It stays free until the transaction ends. `tell` who has it, if somebody does: only
    to those who see every table.
    """
    uow.removals.lock_places()
    if not tell:
        _check_free_quietly(uow, place)
        return
    going = uow.removals.find_overlapping(place)
    if going is not None:
        raise InvalidRequest(
            f"{place} is at, above or below {going.location}, which is being emptied: {going.name} was there. "
            "Choose another place, or try again when it is gone."
        )
    promised = uow.ownership.find_overlapping(place)
    if promised is not None:
        raise InvalidRequest(f"{place} is at, above or below {promised.location}, which is being {promised.doing}.")
    if uow.staging_tables.overlaps(place):
        raise InvalidRequest(f"{place} is promised to a managed table that is being made. Choose another place.")
    taken = uow.tables.find_overlapping(place)
    if taken is not None:
        raise InvalidRequest(f"{place} is at, above or below the place of {taken}. Tables may not overlap.")


def _check_free_quietly(uow: UnitOfWork, place: str) -> None:
    found = [uow.removals.find_overlapping(place), uow.ownership.find_overlapping(place)]
    if any(one is not None for one in [*found, uow.tables.find_overlapping(place)]) or uow.staging_tables.overlaps(
        place
    ):
        raise InvalidRequest(f"{place} is at, above or below the place of something else. Tables may not overlap.")


def check_staying(uow: UnitOfWork, parent: SchemaName | str) -> None:
    """That no table of this schema, or catalog, is being taken over or given back: it has to come to an end here."""
    promise = uow.ownership.find_below(parent)
    if promise is not None:
        raise changing_owner(promise)


def changing_owner(promise: Promise) -> InvalidRequest:
    return InvalidRequest(f"{promise.name} is being {promise.doing} right now. Try again when that is done.")
