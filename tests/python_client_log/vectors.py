"""Writes deletion vectors, in every form that the format allows."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from itertools import groupby
from typing import Any

MAGIC = 1681511377
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def encode(rows: Iterable[int], *, runs: bool) -> bytes:
    """The rows as a vector; `runs` writes containers as runs, otherwise as arrays and bitmaps."""
    buckets = [
        (key, [row & 0xFFFFFFFF for row in group]) for key, group in groupby(sorted(rows), lambda row: row >> 32)
    ]
    body = b"".join(struct.pack("<I", key) + _bitmap(group, runs=runs) for key, group in buckets)
    return struct.pack("<IQ", MAGIC, len(buckets)) + body


def _bitmap(rows: list[int], *, runs: bool) -> bytes:
    containers = [(key, [row & 0xFFFF for row in group]) for key, group in groupby(rows, lambda row: row >> 16)]
    count = len(containers)
    if runs:
        start = struct.pack("<I", 12347 | (count - 1) << 16) + b"\xff" * ((count + 7) // 8)
    else:
        start = struct.pack("<II", 12346, count)
    header = b"".join(struct.pack("<HH", key, len(values) - 1) for key, values in containers)
    bodies = [_runs(values) if runs else _plain(values) for _, values in containers]
    offsets = b"\0\0\0\0" * count if not runs or count >= 4 else b""
    return start + header + offsets + b"".join(bodies)


def _plain(values: list[int]) -> bytes:
    if len(values) <= 4096:
        return struct.pack(f"<{len(values)}H", *values)
    bits = bytearray(8192)
    for value in values:
        bits[value >> 3] |= 1 << (value & 7)
    return bytes(bits)


def _runs(values: list[int]) -> bytes:
    groups = [list(group) for _, group in groupby(enumerate(values), lambda pair: pair[1] - pair[0])]
    pairs = [(group[0][1], len(group) - 1) for group in groups]
    return struct.pack("<H", len(pairs)) + b"".join(struct.pack("<HH", *pair) for pair in pairs)


def z85(data: bytes) -> str:
    padded = data + bytes(-len(data) % 4)
    text = ""
    for (value,) in struct.iter_unpack(">I", padded):
        text += "".join(Z85[value // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text


def in_file(data: bytes, *, before: bytes = b"") -> bytes:
    """A file of vectors: this one after those in `before`."""
    return b"\x01" + before + stored(data)


def stored(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def inline(rows: list[int], *, runs: bool = False) -> dict[str, Any]:
    data = encode(rows, runs=runs)
    return {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(set(rows))}
