"""Policies of tables: their JSON in Tidegate's own API."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

_Writer = Annotated[str, Meta(min_length=1, max_length=255)]
_Most = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Policies(Struct, frozen=True):
    """What a table asks of its commits. Null: no limit, or no list."""

    admission: Literal["full", "declared"]
    append_only: bool
    schema_frozen: bool
    writers: list[str] | None
    files_max: int | None
    bytes_max: int | None


class ChangePolicies(Struct, frozen=True):
    """Those that are left out stay as they are."""

    admission: Literal["full", "declared"] | UnsetType = UNSET
    append_only: bool | UnsetType = UNSET
    schema_frozen: bool | UnsetType = UNSET
    writers: list[_Writer] | UnsetType | None = UNSET
    files_max: _Most | UnsetType | None = UNSET
    bytes_max: _Most | UnsetType | None = UNSET
