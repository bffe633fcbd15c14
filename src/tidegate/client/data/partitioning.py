"""Rows by partition: the values as the log has them, and the folders that files lie in.

    {"country": "is", "day": date(2026, 1, 1)}    {"country":"is","day":"2026-01-01"}    country=is/day=2026-01-01/

An empty text is null, as the protocol has it. Folders are for people: readers go by the log.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any

from tidegate.client.data.arrow import pa
from tidegate.client.errors import InvalidRows
from tidegate.client.log.types import Field

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
FOLDER_BYTES_MAX = 200
"""File systems have names of 255 bytes at most."""
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 32)}

Key = tuple[str | None, ...]


def by_partition(table: Any, fields: Sequence[Field], names: Sequence[str]) -> Iterator[tuple[Key, Any]]:
    """The rows of each partition, without the partition columns, which the table calls `names`."""
    if not fields:
        yield (), table
        return
    texts = [_texts(table.column(name), field) for field, name in zip(fields, names, strict=True)]
    rows: dict[Key, list[int]] = {}
    for row, key in enumerate(zip(*texts, strict=True)):
        rows.setdefault(key, []).append(row)
    data = table.drop_columns(list(names))
    for key, indices in rows.items():
        yield key, data if len(rows) == 1 else data.take(pa.array(indices, pa.int64()))


def partition_folder(values: Mapping[str, str | None], *, randomized: bool) -> str:
    """With an end of "/", or nothing. `randomized`: two letters at random, as Delta does under column mapping."""
    folders = [f"{_escaped(name)}={NULL_FOLDER if text is None else _escaped(text)}" for name, text in values.items()]
    if randomized or any(len(folder.encode()) > FOLDER_BYTES_MAX for folder in folders):
        return secrets.token_hex(1) + "/"
    return "".join(f"{folder}/" for folder in folders)


def partition_text(value: Any, field: Field) -> str | None:
    """A value as the log has it; what `values.partition_value` reads."""
    if value is None:
        return None
    match field.type:
        case "boolean":
            return "true" if value else "false"
        case "timestamp":
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        case "timestamp_ntz":
            return value.isoformat(sep=" ")
        case "binary":
            return _binary_text(value, field)
        case "float" | "double":
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
        case str(type) if type.startswith("decimal"):
            return format(value, "f")
        case _:
            return str(value) or None


def _texts(column: Any, field: Field) -> list[str | None]:
    encoded: Any = pa.concat_arrays(column.chunks).dictionary_encode() if column.num_chunks else None
    if encoded is None:
        return []
    texts = [partition_text(value, field) for value in encoded.dictionary.to_pylist()]
    places: list[int | None] = encoded.indices.to_pylist()
    found = [None if place is None else texts[place] for place in places]
    if not field.nullable and None in found:
        told = f"Column {field.name!r} is NOT NULL, and a row has no value for it; an empty text counts as none, since "
        raise InvalidRows(told + "the table is partitioned by it.", column=field.name)
    return found


def _binary_text(value: bytes, field: Field) -> str | None:
    try:
        return value.decode() or None
    except UnicodeDecodeError:
        told = f"Column {field.name!r} partitions the table, and a value is not UTF-8, which Delta cannot keep there."
        raise InvalidRows(told, column=field.name) from None


def _escaped(text: str) -> str:
    """As Hive does it."""
    return "".join(f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in text)
