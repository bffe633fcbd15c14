"""Types that became wider while a table lived: which changes a reader can follow.

A data file keeps the type it was written with, and its values are cast when they are read. A table whose history has a
change that is not among these is refused rather than misread.
"""

from __future__ import annotations

import re
from typing import Any

from tidegate.client.log.errors import UnsupportedTable
from tidegate.client.log.types import StructType, all_fields

TYPE_CHANGES = "delta.typeChanges"
_INTEGERS = ("byte", "short", "integer", "long")
_OTHERS = {("float", "double"), ("date", "timestamp_ntz"), *((name, "double") for name in _INTEGERS[:3])}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""So many digits before the point does the protocol ask of a decimal that takes the values of an integer type."""


def check_type_changes(schema: StructType) -> None:
    """Refuses a table with a change of type that cannot be followed, by the column's name."""
    for field in all_fields(schema):
        changes: list[dict[str, Any]] = field.metadata.get(TYPE_CHANGES) or []
        for change in changes:
            before, after = str(change.get("fromType")), str(change.get("toType"))
            if not is_wider(after, than=before):
                told = f"Column {field.name!r} was changed from {before} to {after}, which this client cannot follow: "
                raise UnsupportedTable([f"{before} to {after}"], told + "read the table with a newer client.")


def is_wider(type: str, *, than: str) -> bool:
    """Whether all values of one type are values of the other, by the changes that the protocol allows."""
    if than in _INTEGERS and type in _INTEGERS:
        return _INTEGERS.index(than) < _INTEGERS.index(type)
    if (than, type) in _OTHERS:
        return True
    after, before = _decimal(type), _decimal(than)
    if before is None and than in _DIGITS:
        before = (_DIGITS[than], 0)
    if after is None or before is None:
        return False
    more_digits, more_decimals = after[0] - before[0], after[1] - before[1]
    return more_digits >= more_decimals >= 0


def _decimal(type: str) -> tuple[int, int] | None:
    found = _DECIMAL.fullmatch(type)
    return (int(found[1]), int(found[2])) if found else None
