"""Frozen records: small values that never change once they are made.

    @frozen
    class Commit:
        version: Version
        timestamp: int

The type checker refuses every assignment to a field. Python is not asked to check it again: a dataclass that is frozen
at run time takes five times as long to make, and a commit makes some twenty values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

C = TypeVar("C")


@dataclass_transform(frozen_default=True, eq_default=True, field_specifiers=(field,))
def frozen(cls: type[C]) -> type[C]:
    """A slotted dataclass that is compared, and hashed, by its fields."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
