"""Arrow columns as they were given -> the columns of the table's data files, or one sentence about what does not fit.

Columns are found by name, whatever their case. A value is cast where nothing of it is lost (an int to a long,
nanoseconds that are whole microseconds); a column of another kind, such as text for a number, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidegate.client.data.arrow import pa, pc
from tidegate.client.data.schema import arrow_type
from tidegate.client.errors import InvalidRows
from tidegate.client.log.types import ArrayType, DeltaType, Field, MapType, StructType

DEFAULT = "CURRENT_DEFAULT"
_KINDS = (
    ("null", "is_null"),
    ("boolean", "is_boolean"),
    ("integer", "is_integer"),
    ("float", "is_floating"),
    ("decimal", "is_decimal"),
    ("text", "is_string"),
    ("text", "is_large_string"),
    ("text", "is_string_view"),
    ("binary", "is_binary"),
    ("binary", "is_large_binary"),
    ("binary", "is_binary_view"),
    ("binary", "is_fixed_size_binary"),
    ("date", "is_date"),
)
_LISTS = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
_LOSSLESS = frozenset({("integer", "float"), ("float", "integer"), ("integer", "decimal")})
"""Kinds that may become another; pyarrow then looks at each value. Integers with gaps are floats to pandas."""


def fitted(table: Any, schema: StructType, mode: str) -> Any:
    """A `pyarrow.Table` with all columns of the table, by their physical names."""
    places = _places(table.schema, schema)
    columns = [_column(table, places.get(field.name), field, mode) for field in schema.fields]
    fields = list(arrow_type(schema, mode=mode))
    if not fields:
        raise InvalidRows("The table has no columns: add one before you write rows.")
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _places(given: Iterable[Any], type: StructType, prefix: str = "") -> dict[str, int]:
    """By column of the table its place among those that were given."""
    known = {field.name.lower(): field.name for field in type.fields}
    places: dict[str, int] = {}
    for place, field in enumerate(given):
        name = known.get(field.name.lower())
        column = prefix + field.name
        if name is None:
            told = f"The table has no column {column!r}: it has {', '.join(map(repr, type.names))}."
            raise InvalidRows(told, column=column)
        if name in places:
            raise InvalidRows(f"Column {column!r} is given twice.", column=column)
        places[name] = place
    return places


def _column(table: Any, place: int | None, field: Field, mode: str) -> Any:
    wanted = arrow_type(field.type, mode=mode)
    if place is None:
        return pa.chunked_array([_missing(field, len(table), field.name, mode)], type=wanted)
    chunks = [_fitted_field(chunk, field, field.name, mode) for chunk in table.column(place).chunks]
    return pa.chunked_array(chunks, type=wanted)


def _missing(field: Field, count: int, column: str, mode: str) -> Any:
    if DEFAULT in field.metadata:
        told = f"Column {column!r} has a default, which this client cannot compute: give its values."
        raise InvalidRows(told, column=column)
    if not field.nullable and count:
        raise InvalidRows(f"Column {column!r} is NOT NULL: give its values.", column=column)
    return pa.nulls(count, arrow_type(field.type, mode=mode))


def _fitted_field(array: Any, field: Field, column: str, mode: str, inside: Any = None) -> Any:
    """`inside`: by row whether the struct around it is there; elsewhere a null says nothing."""
    result = _fitted(array, field.type, column, mode)
    if not field.nullable and result.null_count and field.type != "void":
        missing = result.is_null() if inside is None else pc.and_(result.is_null(), inside)
        if pc.any(missing).as_py():
            raise InvalidRows(f"Column {column!r} is NOT NULL, and a row has no value for it.", column=column)
    return result


def _fitted(array: Any, type: DeltaType, column: str, mode: str) -> Any:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(type, mode=mode))
    match type:
        case StructType():
            return _fitted_struct(array, type, column, mode)
        case ArrayType():
            return _fitted_list(array, type, column, mode)
        case MapType():
            return _fitted_map(array, type, column, mode)
        case str():
            return _fitted_primitive(array, type, column)


def _fitted_struct(array: Any, type: StructType, column: str, mode: str) -> Any:
    if not pa.types.is_struct(array.type):
        raise _wrong(array, "a struct", column)
    places = _places(array.type, type, f"{column}.")
    inside: Any = array.is_valid()
    children: list[Any] = []
    for field in type.fields:
        name, place = f"{column}.{field.name}", places.get(field.name)
        if place is None:
            children.append(_missing(field, len(array), name, mode))
        else:
            children.append(_fitted_field(array.field(place), field, name, mode, inside))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(arrow_type(type, mode=mode)), mask=mask)


def _fitted_list(array: Any, type: ArrayType, column: str, mode: str) -> Any:
    if not any(getattr(pa.types, holds)(array.type) for holds in _LISTS):
        raise _wrong(array, "an array", column)
    # Not by a cast of the whole: pyarrow makes lists of list views whose offsets end too early.
    values = _fitted(array.flatten(), type.element, column, mode)
    if not type.contains_null and values.null_count:
        raise InvalidRows(f"Column {column!r} takes no null inside its arrays, and a row has one.", column=column)
    return pa.ListArray.from_arrays(_offsets(array), values, type=arrow_type(type, mode=mode))


def _fitted_map(array: Any, type: MapType, column: str, mode: str) -> Any:
    if not pa.types.is_map(array.type):
        raise _wrong(array, "a map", column)
    # What lies under a null, or outside of a slice, is not looked at: through a list, flattened, it is gone.
    entries = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field]))).flatten()
    keys, items = _fitted(entries.field(0), type.key, column, mode), _fitted(entries.field(1), type.value, column, mode)
    if not type.value_contains_null and items.null_count:
        raise InvalidRows(f"Column {column!r} takes no null inside its maps, and a row has one.", column=column)
    return pa.MapArray.from_arrays(_offsets(array), keys, items, type=arrow_type(type, mode=mode))


def _offsets(array: Any) -> Any:
    """Where lists begin among the flattened values, null where a list is null."""
    if pa.types.is_map(array.type):
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    if not array.null_count:
        return offsets
    missing = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(missing, pa.scalar(None, offsets.type), offsets)


def _fitted_primitive(array: Any, type: str, column: str) -> Any:
    wanted = arrow_type(type)
    if array.type == wanted:
        return array
    source, target = _kind(array.type), _kind(wanted)
    if source != target and (source, target) not in _LOSSLESS:
        raise _wrong(array, f"of type {type}", column)
    try:
        return _cast(array, wanted, source, target)
    except pa.ArrowException as error:
        raise InvalidRows(
            f"Column {column!r} is of type {type}, and a value does not fit: {error}.", column=column
        ) from None


def _cast(array: Any, wanted: Any, source: str, target: str) -> Any:
    if (source, target) == ("integer", "decimal"):
        return array.cast(pa.decimal128(20, 0)).cast(wanted)
    result = array.cast(wanted)
    if source == target == "float" and wanted.bit_width < array.type.bit_width:
        # pyarrow rounds without a word; NaN is no other value than NaN.
        changed = pc.and_(pc.not_equal(result.cast(array.type), array), pc.invert(pc.is_nan(array)))
        if pc.any(changed).as_py():
            raise pa.ArrowInvalid("a double would be rounded: cast the column to float32 first")
    return result


def _kind(type: Any) -> str:
    if pa.types.is_timestamp(type):
        return "time without zone" if type.tz is None else "time"
    return next((kind for kind, holds in _KINDS if getattr(pa.types, holds)(type)), str(type))


def _wrong(array: Any, wanted: str, column: str) -> InvalidRows:
    return InvalidRows(f"Column {column!r} is {wanted}, not {array.type}: cast it first.", column=column)
