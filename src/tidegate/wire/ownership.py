"""Tables that are taken over and given back: their JSON in Tidegate's own API."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct


class AdoptTable(Struct, frozen=True):
    """`external`: the catalog only gets to know the table, whose file system goes on deciding on it. `dry_run`: nothing
    changes, and the answer shows the commit.
    """

    location: str
    full_name: str
    external: bool = False
    dry_run: bool = False


class AdoptedTable(Struct, frozen=True):
    """`version` and `actions`: the commit that changes the owner; an external table has no such commit."""

    full_name: str
    table_id: str
    location: str
    version: int
    actions: list[dict[str, Any]]


class ReleaseTable(Struct, frozen=True):
    """What the catalog keeps of the table: an external one, or nothing."""

    keep: Literal["external", "nothing"] = "external"


class ReleasedTable(Struct, frozen=True):
    """`version`: the commit that gives the table back."""

    full_name: str
    table_id: str
    location: str
    version: int
    kept: str


class OwnershipPromise(Struct, frozen=True):
    """A change of ownership that is under way. Without a `version` nothing has been put into the log;
    of a change called `own` it is the version that a client is going to put."""

    table_id: str
    change: str
    full_name: str
    location: str
    version: int | None
    begun_at: int
    begun_by: str


class OwnershipPromises(Struct, frozen=True):
    promises: list[OwnershipPromise]


class AllowLocation(Struct, frozen=True):
    location: str


class AdoptableLocation(Struct, frozen=True):
    location: str
    added_at: int
    added_by: str


class AdoptableLocations(Struct, frozen=True):
    locations: list[AdoptableLocation]


class LocationQuery(Struct, frozen=True):
    """Which location."""

    location: str
