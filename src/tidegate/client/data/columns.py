"""Columns of data files -> columns of the table: found by name or id, renamed, widened, filled up with nulls.

A data file has the columns that the table had when it was written, by their physical names. What the table has got
since is null in it, what the table has dropped since is left out, and a type that was widened since is cast.
"""

from __future__ import annotations

from typing import Any

from tidegate.client.data.arrow import pa, pc
from tidegate.client.data.schema import FIELD_ID, arrow_type
from tidegate.client.log.errors import LogDamaged
from tidegate.client.log.types import ArrayType, DeltaType, Field, MapType, StructType


def find(field: Field, candidates: Any, mode: str) -> int | None:
    """The place of a table's field among those of a file (a schema or a struct), None when the file has none of it."""
    for place, candidate in enumerate(candidates):
        if mode == "id":
            if field.id is not None and _field_id(candidate) == field.id:
                return place
        elif candidate.name == (field.physical_name if mode == "name" else field.name):
            return place
    return None


def _field_id(field: Any) -> int | None:
    metadata: dict[bytes, bytes] = field.metadata or {}
    told = metadata.get(FIELD_ID)
    return None if told is None else int(told)


def conform(column: Any, type: DeltaType, mode: str) -> Any:
    """A column of a file (a `pyarrow.ChunkedArray`) as the table has it."""
    wanted = arrow_type(type)
    return pa.chunked_array([_conform(chunk, type, mode) for chunk in column.chunks], type=wanted)


def _conform(array: Any, type: DeltaType, mode: str) -> Any:
    wanted = arrow_type(type)
    if array.type == wanted and not isinstance(type, StructType | ArrayType | MapType):
        return array
    match type:
        case StructType():
            return _conform_struct(array, type, mode)
        case ArrayType(element):
            values = _conform(array.values, element, mode)
            return pa.ListArray.from_arrays(_offsets(array), values, type=wanted)
        case MapType(key, value):
            keys, items = _conform(array.keys, key, mode), _conform(array.items, value, mode)
            return pa.MapArray.from_arrays(_offsets(array), keys, items, type=wanted)
        case str():
            return _cast(array, wanted)


def _conform_struct(array: Any, type: StructType, mode: str) -> Any:
    children: list[Any] = []
    for field in type.fields:
        place = find(field, array.type, mode)
        if place is None:
            children.append(pa.nulls(len(array), arrow_type(field.type)))
        else:
            children.append(_conform(array.field(place), field.type, mode))
    fields = list(arrow_type(type))
    if not fields:
        return pa.nulls(len(array), arrow_type(type))
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)


def _offsets(array: Any) -> Any:
    """Where lists begin, null where a list is null: so pyarrow wants to be told of it."""
    offsets = array.offsets
    if not array.null_count:
        return offsets
    missing = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(missing, pa.scalar(None, offsets.type), offsets)


def _cast(array: Any, wanted: Any) -> Any:
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(wanted):
        # Old writers keep nanoseconds, of which Delta has none; and times without a zone that are meant in UTC.
        return array.cast(pa.timestamp("us", tz=array.type.tz), safe=False).cast(wanted)
    try:
        return array.cast(wanted)
    except pa.ArrowException as error:
        raise LogDamaged("a data file", f"its {array.type} cannot become {wanted} ({error})") from None
