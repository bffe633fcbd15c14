"""Owners, guards and explanations of rights: their JSON."""

from __future__ import annotations

from msgspec import Struct

from tidegate.wire.unity_access import PrivilegeName


class ObjectAccess(Struct, frozen=True):
    """`owner` is null for the metastore."""

    owner: str | None
    guarded: bool


class ChangeAccess(Struct, frozen=True, forbid_unknown_fields=True):
    """What is left out stays as it is."""

    owner: str | None = None
    guarded: bool | None = None


class CanQuery(Struct, frozen=True):
    """About the caller, or about another principal for those who may manage the object."""

    privilege: PrivilegeName
    principal: str | None = None


class Explained(Struct, frozen=True):
    allowed: bool
    why: str
