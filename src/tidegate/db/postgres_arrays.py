"""Values as PostgreSQL sends and takes them in its binary format.

In this format a text is its length and its bytes, so there is nothing to escape: quotes, braces, commas and backslashes
are bytes like any other.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

BIGINT_OID = 20
TEXT_OID = 25

_HEADER = struct.Struct("!iiIii")
"""Dimensions, whether there are NULLs, the type of the elements; then the length and the first index of the one
dimension.
"""
_LENGTH = struct.Struct("!i")
_BIGINT = struct.Struct("!iq")
_NULL = _LENGTH.pack(-1)


def texts(values: Sequence[str | None]) -> bytes:
    """A `text[]`."""
    parts = [_header(values, TEXT_OID)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            encoded = value.encode()
            parts += (_LENGTH.pack(len(encoded)), encoded)
    return b"".join(parts)


def bigints(values: Sequence[int | None]) -> bytes:
    """A `bigint[]`. Fails by `struct.error` for what has more than 64 bits."""
    return _header(values, BIGINT_OID) + b"".join(
        _NULL if value is None else _BIGINT.pack(8, value) for value in values
    )


def read_bigint(sent: bytes) -> int:
    return int.from_bytes(sent, "big", signed=True)


def _header(values: Sequence[object], oid: int) -> bytes:
    return _HEADER.pack(1, None in values, oid, len(values), 1)
