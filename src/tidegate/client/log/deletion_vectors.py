"""Which rows of a data file are deleted: deletion vectors, inline or from files, decoded.

A vector is a set of row numbers in Delta's envelope around a 64-bit Roaring bitmap, in the portable format:

    in a file      | size (4, big endian) | vector | CRC-32 of the vector (4, big endian) |   at the given offset
    the vector     | magic (4) | number of buckets (8) | bucket | bucket | ...
    a bucket       | upper 32 bits of its rows (4) | a 32-bit Roaring bitmap of the lower ones

Everything inside a vector is little endian. (The protocol's example of an inline vector is in an older format, with
another magic number, big endian and with the sizes of buckets in place of their numbers; it is read as well.)

A vector comes from somebody else's file, so nothing in it is believed: sizes are checked against the bytes there are,
and the rows against the cardinality that the log tells.
"""

from __future__ import annotations

import struct
import sys
import uuid
import zlib
from array import array

from tidegate.client.log.actions import DeletionVector
from tidegate.client.log.errors import LogDamaged
from tidegate.client.log.storage import Files, join, resolve

MAGIC = 1681511377
OLD_MAGIC = 1681511376
FILE_VERSION = 1
_UUID_LENGTH = 20
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_VALUES = {character: value for value, character in enumerate(_Z85)}

_COOKIE_WITHOUT_RUNS = 12346
_COOKIE = 12347
_OFFSETS_FROM = 4
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_BITS = [tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256)]


def deleted_rows(vector: DeletionVector, *, location: str, files: Files) -> array[int]:
    """The numbers of the deleted rows, rising. `location` is the table's."""
    if vector.storage_type == "i":
        path = "an inline deletion vector"
        data = z85_decode(vector.path_or_inline_dv)[: vector.size_in_bytes]
    else:
        path = vector_path(vector, location)
        data = _stored(vector, path, files)
    try:
        return decode_rows(data, cardinality=vector.cardinality)
    except (ValueError, struct.error) as error:
        raise LogDamaged(path, str(error)) from None


def vector_path(vector: DeletionVector, location: str) -> str:
    """The address of the file that a vector is stored in."""
    name = vector.path_or_inline_dv
    match vector.storage_type:
        case "u" if len(name) >= _UUID_LENGTH:
            prefix, id = name[:-_UUID_LENGTH], uuid.UUID(bytes=z85_decode(name[-_UUID_LENGTH:]))
            return join(location, *([prefix] if prefix else []), f"deletion_vector_{id}.bin")
        case "p":
            return resolve(location, name)
        case other:
            raise LogDamaged("a deletion vector", f"it is stored in an unknown way ({other!r}, {name!r})")


def _stored(vector: DeletionVector, path: str, files: Files) -> bytes:
    content = files.read(path)
    if content is None:
        raise LogDamaged(path, "the deletion vector's file is not there")
    start = vector.offset or 0
    if content[:1] != bytes([FILE_VERSION]):
        raise LogDamaged(path, f"it is no file of deletion vectors of version {FILE_VERSION}")
    end = start + 4 + vector.size_in_bytes
    if start < 0 or vector.size_in_bytes < 0 or end + 4 > len(content):
        raise LogDamaged(path, f"it ends before the deletion vector at {start} does")
    (size,) = struct.unpack_from(">I", content, start)
    if size != vector.size_in_bytes:
        raise LogDamaged(path, f"the deletion vector at {start} has {size} bytes, not {vector.size_in_bytes}")
    data = content[start + 4 : end]
    if struct.unpack_from(">I", content, end) != (zlib.crc32(data),):
        raise LogDamaged(path, f"the checksum of the deletion vector at {start} does not fit its bytes")
    return data


def z85_decode(text: str) -> bytes:
    """ZeroMQ's base 85: five characters for four bytes."""
    if len(text) % 5:
        raise LogDamaged("a deletion vector", "its text is cut off")
    decoded = bytearray()
    for start in range(0, len(text), 5):
        value = 0
        for character in text[start : start + 5]:
            digit = _Z85_VALUES.get(character)
            if digit is None:
                raise LogDamaged("a deletion vector", f"its text has the character {character!r}")
            value = value * 85 + digit
        if value >= 1 << 32:
            raise LogDamaged("a deletion vector", "its text is no base 85")
        decoded += value.to_bytes(4, "big")
    return bytes(decoded)


def decode_rows(data: bytes, *, cardinality: int) -> array[int]:
    """The rows of a vector, rising; ValueError for anything but exactly one vector of `cardinality` rows."""
    reader = _Reader(data)
    magic = reader.take(4)
    rows: array[int] = array("Q")
    if magic == struct.pack("<I", MAGIC):
        _decode_buckets(reader, rows, cardinality)
    elif magic == struct.pack(">I", OLD_MAGIC):
        _decode_old_buckets(reader, rows, cardinality)
    else:
        raise ValueError("it is no deletion vector in a known format")
    if reader.left:
        raise ValueError(f"{reader.left} bytes are left after the deletion vector")
    if len(rows) != cardinality:
        raise ValueError(f"the deletion vector has {len(rows)} rows, not {cardinality}")
    return rows


def _decode_buckets(reader: _Reader, rows: array[int], rows_max: int) -> None:
    last = -1
    for _ in range(_at_most(reader.number("<Q"), reader.left // 12)):
        bucket = reader.number("<I")
        if not last < bucket < 1 << 31:
            raise ValueError("the buckets of the deletion vector are out of order")
        last = bucket
        _decode_bitmap(reader, bucket << 32, rows, rows_max)


def _decode_old_buckets(reader: _Reader, rows: array[int], rows_max: int) -> None:
    for bucket in range(_at_most(reader.number(">I"), reader.left // 12)):
        _at_most(reader.number(">I"), reader.left)
        _decode_bitmap(reader, bucket << 32, rows, rows_max)


class _Reader:
    """Takes one piece of the bytes after the other; ValueError at the end of them."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise ValueError("the deletion vector is cut off")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, format: str) -> int:
        return struct.unpack(format, self.take(struct.calcsize(format)))[0]

    def shorts(self, count: int) -> array[int]:
        numbers = array("H", self.take(2 * count))
        if sys.byteorder == "big":
            numbers.byteswap()
        return numbers


def _decode_bitmap(reader: _Reader, base: int, rows: array[int], rows_max: int) -> None:
    """A 32-bit Roaring bitmap: a header, and a container for each 2^16 values of which there are any."""
    cookie = reader.number("<I")
    if cookie & 0xFFFF == _COOKIE:
        count = (cookie >> 16) + 1
        runs = reader.take((count + 7) // 8)
    elif cookie == _COOKIE_WITHOUT_RUNS:
        count = _at_most(reader.number("<I"), 1 << 16)
        runs = bytes((count + 7) // 8)
    else:
        raise ValueError("the deletion vector holds no Roaring bitmap")
    header = reader.shorts(2 * count)
    if cookie == _COOKIE_WITHOUT_RUNS or count >= _OFFSETS_FROM:
        reader.take(4 * count)  # Where containers begin: they follow one another, so nobody needs to be told.
    last = -1
    for index in range(count):
        key, size = header[2 * index], header[2 * index + 1] + 1
        if key <= last:
            raise ValueError("the containers of the deletion vector are out of order")
        last = key
        _at_most(len(rows) + size, rows_max)
        _decode_container(reader, base + (key << 16), size, bool(runs[index // 8] >> index % 8 & 1), rows)


def _decode_container(reader: _Reader, base: int, size: int, is_runs: bool, rows: array[int]) -> None:
    before = len(rows)
    if is_runs:
        _decode_runs(reader, base, size, rows)
    elif size > _ARRAY_MAX:
        bitmap = reader.take(_BITMAP_BYTES)
        rows.extend(base + 8 * index + bit for index, byte in enumerate(bitmap) if byte for bit in _BITS[byte])
    else:
        values = reader.shorts(size)
        if any(values[index] >= values[index + 1] for index in range(size - 1)):
            raise ValueError("the rows of the deletion vector are out of order")
        rows.extend(base + value for value in values)
    if len(rows) - before != size:
        raise ValueError("a container of the deletion vector has another size than its header tells")


def _decode_runs(reader: _Reader, base: int, size: int, rows: array[int]) -> None:
    pairs = reader.shorts(2 * reader.number("<H"))
    last = -1
    left = size
    for index in range(0, len(pairs), 2):
        start, length = pairs[index], pairs[index + 1] + 1
        left -= length
        if start <= last or start + length > 1 << 16 or left < 0:
            raise ValueError("the runs of the deletion vector are out of order")
        last = start + length - 1
        rows.extend(range(base + start, base + start + length))


def _at_most(number: int, bound: int) -> int:
    if number > bound:
        raise ValueError("the deletion vector says it is larger than it can be")
    return number
