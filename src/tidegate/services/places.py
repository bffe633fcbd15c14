"""Places for external tables: outside the storage of managed tables, and nobody else's."""

from __future__ import annotations

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.locations import lies_under, normalize_location
from tidegate.domain.ports import UnitOfWork
from tidegate.services.environment import Environment


def external_place(env: Environment, location: str) -> str:
    """The location in its normal form."""
    normal = normalize_location(location)
    if normal == env.storage_root or lies_under(normal, env.storage_root):
        raise InvalidRequest(f"{normal} lies in the storage of managed tables. Put external tables elsewhere.")
    return normal


def check_free(uow: UnitOfWork, place: str) -> None:
    """That nobody has the place. It stays free until the transaction ends."""
    uow.removals.lock_places()
    going = uow.removals.find_overlapping(place)
    if going is not None:
        raise InvalidRequest(
            f"{place} is at, above or below {going.location}, which is being emptied: {going.name} was there. "
            "Choose another place, or try again when it is gone."
        )
    promised = uow.ownership.find_overlapping(place)
    if promised is not None:
        raise InvalidRequest(f"{place} is at, above or below {promised.location}, which is being adopted.")
    if uow.staging_tables.overlaps(place):
        raise InvalidRequest(f"{place} is promised to a managed table that is being made. Choose another place.")
    taken = uow.tables.find_overlapping(place)
    if taken is not None:
        raise InvalidRequest(f"{place} is at, above or below the place of {taken}. Tables may not overlap.")
