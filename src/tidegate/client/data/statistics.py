"""What a data file's add action tells of its rows: how many, and by column the smallest, the largest, how many nulls.

    {"numRecords":3,"minValues":{"id":1,"at":"2026-01-01T00:00:00.123Z"},"maxValues":{...},"nullCount":{"id":0,"at":1},
     "tightBounds":true}

As Delta does it: texts are cut to 32 characters, the largest so that it stays an upper bound; times are cut to
milliseconds, which readers know. A column with NaN or an infinity has neither smallest nor largest: JSON has no such
number, and Spark takes NaN for the largest of all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import msgspec

from tidegate.client.data.arrow import pa, pc
from tidegate.client.log.types import Field, StructType

INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"
STATS_COLUMNS = "delta.dataSkippingStatsColumns"
INDEXED_COLUMNS_DEFAULT = 32
TEXT_LENGTH_MAX = 32
_LAST = "\U0010ffff"
_NAME = re.compile(r"`((?:[^`]|``)*)`|([^.`,]+)|([.,])")
_DAY_ZERO, _TIME_ZERO = date(1970, 1, 1), datetime(1970, 1, 1)  # noqa: DTZ001

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that is no struct, by the names of the table and by those of the files."""

    path: Path
    physical: Path
    field: Field


@dataclass(slots=True)
class _Bounds:
    least: Any = None
    most: Any = None
    unknown: bool = False
    """NaN was met, or what Python has no value for."""


class Statistics:
    """Those of one file, gathered as its rows are written."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves
        self._bounds = [_Bounds() for _ in leaves]
        self._nulls = [0] * len(leaves)
        self.records = 0

    def add(self, table: Any) -> None:
        """Rows with the columns of the file."""
        self.records += table.num_rows
        for place, leaf in enumerate(self._leaves):
            column = _values(table, leaf.physical)
            self._nulls[place] += column.null_count
            if is_compared(leaf.field):
                _widen(self._bounds[place], column, str(leaf.field.type))

    def to_json(self) -> str:
        least: dict[str, Any] = {}
        most: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for leaf, bounds, count in zip(self._leaves, self._bounds, self._nulls, strict=True):
            _put(nulls, leaf.physical, count)
            if not bounds.unknown and bounds.least is not None:
                kind = str(leaf.field.type)
                _put(least, leaf.physical, lower_bound(bounds.least, kind))
                _put(most, leaf.physical, upper_bound(bounds.most, kind))
        told = {"numRecords": self.records, "minValues": least, "maxValues": most, "nullCount": nulls}
        return msgspec.json.Encoder(decimal_format="number").encode({**told, "tightBounds": True}).decode()


def is_compared(field: Field) -> bool:
    return isinstance(field.type, str) and field.type not in {"boolean", "binary", "void", "variant"}


def indexed_leaves(
    schema: StructType, properties: Mapping[str, str], *, mapped: bool, always: Sequence[Path] = ()
) -> list[Leaf]:
    """The columns that have statistics. `schema` is that of data files; `always`: more of them, by physical names."""
    leaves = list(_leaves(schema, mapped=mapped))
    chosen = properties.get(STATS_COLUMNS)
    if chosen is not None:
        wanted = column_paths(chosen)
        indexed = [leaf for leaf in leaves if any(_lower(leaf.path[: len(path)]) == _lower(path) for path in wanted)]
    else:
        count = _count(properties.get(INDEXED_COLUMNS))
        indexed = leaves if count < 0 else leaves[:count]
    return [leaf for leaf in leaves if leaf in indexed or leaf.physical in always]


def column_paths(text: str) -> list[Path]:
    """A list of columns: a,`b c`.d is [("a",), ("b c", "d")]."""
    paths: list[list[str]] = [[]]
    for quoted, plain, mark in (found.groups() for found in _NAME.finditer(text)):
        if mark == ",":
            paths.append([])
        elif mark is None:
            name = plain.strip() if quoted is None else quoted.replace("``", "`")
            paths[-1] += [name] if name else []
    return [tuple(path) for path in paths if path]


def lower_bound(value: Any, kind: str) -> Any:
    return value[:TEXT_LENGTH_MAX] if kind == "string" else _written(value, kind)


def upper_bound(value: Any, kind: str) -> Any:
    """None if none is short enough."""
    if kind != "string":
        return _written(value, kind)
    if len(value) <= TEXT_LENGTH_MAX:
        return value
    for end in range(TEXT_LENGTH_MAX, min(len(value), 2 * TEXT_LENGTH_MAX)):
        if value[end] != _LAST:
            return value[:end] + _LAST
    return None


def _widen(bounds: _Bounds, column: Any, kind: str) -> None:
    if bounds.unknown or column.null_count == len(column):
        return
    if kind in {"float", "double"} and not pc.all(pc.is_finite(column)).as_py():
        bounds.unknown = True
        return
    if kind in {"timestamp", "timestamp_ntz", "date"}:
        column = column.cast(pa.int32() if kind == "date" else pa.int64())  # Beyond Python's calendar there are times.
    found = pc.min_max(column).as_py()
    bounds.least = found["min"] if bounds.least is None else min(bounds.least, found["min"])
    bounds.most = found["max"] if bounds.most is None else max(bounds.most, found["max"])


def _written(value: Any, kind: str) -> Any:
    try:
        if kind == "date":
            return (_DAY_ZERO + timedelta(days=value)).isoformat()
        if kind in {"timestamp", "timestamp_ntz"}:
            # Times before 1970 are cut to the earlier millisecond too.
            time = _TIME_ZERO + timedelta(milliseconds=math.floor(value // 1000))
            return time.isoformat(timespec="milliseconds") + ("Z" if kind == "timestamp" else "")
    except OverflowError:
        return None
    return value


def _values(table: Any, path: Path) -> Any:
    """A struct that is null has fields that are null."""
    column = table.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _leaves(schema: StructType, *, mapped: bool, path: Path = (), physical: Path = ()) -> Iterator[Leaf]:
    for field in schema.fields:
        name = field.physical_name if mapped else field.name
        if isinstance(field.type, StructType):
            yield from _leaves(field.type, mapped=mapped, path=(*path, field.name), physical=(*physical, name))
        elif field.type != "void":
            yield Leaf((*path, field.name), (*physical, name), field)


def _put(told: dict[str, Any], path: Path, value: Any) -> None:
    if value is None:
        return
    for name in path[:-1]:
        told = told.setdefault(name, {})
    told[path[-1]] = value


def _count(told: str | None) -> int:
    try:
        return INDEXED_COLUMNS_DEFAULT if told is None else int(told)
    except ValueError:
        return INDEXED_COLUMNS_DEFAULT


def _lower(path: Path) -> Path:
    return tuple(name.lower() for name in path)
