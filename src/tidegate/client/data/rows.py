"""Rows as programs have them -> Arrow tables, one after the other.

    pyarrow      Table, RecordBatch, RecordBatchReader, Dataset, Scanner
    pandas       DataFrame
    others       whatever has `__arrow_c_stream__`: DataFrames of Polars, relations of DuckDB
    plain        a list of dicts, whose values must be of the type that Python has for the column's

Nothing is guessed for plain values: a number is no text, and a time without a zone is no point in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

from tidegate.client.data.arrow import pa
from tidegate.client.data.frames import frame_columns, is_frame
from tidegate.client.data.schema import arrow_type
from tidegate.client.errors import InvalidRows
from tidegate.client.log.types import ArrayType, DeltaType, Field, MapType, StructType

PLAIN_AT_ONCE_MAX = 65_536
_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "binary": (bytes, bytearray, memoryview),
    "boolean": (bool,),
    **dict.fromkeys(_INTEGERS, (int,)),
    "float": (int, float),
    "double": (int, float),
    "date": (date,),
    "timestamp": (datetime,),
    "timestamp_ntz": (datetime,),
}


def arrow_tables(rows: Any, schema: StructType) -> Iterator[Any]:
    """The rows as `pyarrow.Table`s, columns as they were given. May be read once."""
    if isinstance(rows, pa.Table):
        return iter([rows])
    if isinstance(rows, pa.RecordBatch):
        return iter([pa.Table.from_batches([rows])])
    if is_frame(rows):
        return iter([_frame_table(rows, schema)])
    if (reader := _reader(rows)) is not None:
        return (pa.Table.from_batches([batch]) for batch in reader)
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes):
        return _plain_tables(cast("Sequence[Any]", rows), schema)
    raise InvalidRows(
        f"Rows are an Arrow table, something with __arrow_c_stream__ such as a DataFrame, or a list of dicts, not "
        f"{type(rows).__name__}."
    )


def _reader(rows: Any) -> Any:
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if hasattr(rows, "to_reader"):
        return rows.to_reader()
    if hasattr(rows, "scanner"):
        return rows.scanner().to_reader()
    if not hasattr(rows, "__arrow_c_stream__"):
        return None
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except pa.ArrowException as error:
        raise InvalidRows(f"The {type(rows).__name__} is not read as a table ({error}): give one.") from None


def _frame_table(frame: Any, schema: StructType) -> Any:
    known = {field.name.lower(): field for field in schema.fields}
    names: list[str] = []
    columns: list[Any] = []
    for name, given in frame_columns(frame, schema.names):
        field = known.get(name.lower())
        if field is None:
            given = pa.nulls(len(frame))  # A column too many, which is judged elsewhere.
        elif isinstance(given, list):
            plain = cast("list[Any]", given)
            given = _array([_checked(value, field.type, field.name) for value in plain], field)
        names.append(name)
        columns.append(given)
    return pa.Table.from_arrays(columns, names=names) if columns else _without_columns(len(frame))


def _plain_tables(rows: Sequence[Any], schema: StructType) -> Iterator[Any]:
    for start in range(0, len(rows), PLAIN_AT_ONCE_MAX):
        yield _plain_table(rows[start : start + PLAIN_AT_ONCE_MAX], schema)


def _plain_table(rows: Sequence[Any], schema: StructType) -> Any:
    """Only the columns that some row has: what no row has is missing, and that is judged elsewhere."""
    checked = [_struct(row, schema, "a row") for row in rows]
    named = {name for row in checked for name in row}
    columns: dict[str, Any] = {}
    for field in schema.fields:
        if field.name in named:
            columns[field.name] = _array([row.get(field.name) for row in checked], field)
    return pa.table(columns) if columns else _without_columns(len(rows))


def _without_columns(count: int) -> Any:
    """A table that has rows and nothing else."""
    return pa.table({"": pa.nulls(count)}).select([])


def _array(values: list[Any], field: Field) -> Any:
    try:
        return pa.array(values, arrow_type(field.type))
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise InvalidRows(f"Column {field.name!r} does not fit: {error}.", column=field.name) from None


def _checked(value: Any, type: DeltaType, column: str) -> Any:
    """The value, with the keys of structs spelled as the table has them."""
    if value is None:
        return None
    match type:
        case StructType():
            return _struct(value, type, f"column {column!r}", prefix=f"{column}.")
        case ArrayType(element):
            if not isinstance(value, list | tuple):
                raise _wrong(value, "lists", column)
            return [_checked(one, element, column) for one in cast("Sequence[Any]", value)]
        case MapType(key, item):
            pairs: Any = cast("Mapping[Any, Any]", value).items() if isinstance(value, Mapping) else value
            if not isinstance(value, Mapping | list | tuple):
                raise _wrong(value, "dicts", column)
            return [(_checked(one, key, column), _checked(other, item, column)) for one, other in pairs]
        case str():
            return _checked_primitive(value, type, column)


def _struct(value: Any, type: StructType, what: str, *, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidRows(f"A dict is needed for {what}, not {builtin_name(value)}.", column=prefix.rstrip(".") or None)
    known = {field.name.lower(): field for field in type.fields}
    checked: dict[str, Any] = {}
    for name, inner in cast("Mapping[Any, Any]", value).items():
        field = known.get(str(name).lower())
        if field is None:
            raise InvalidRows(
                f"The table has no column {prefix + str(name)!r}: it has {', '.join(map(repr, type.names))}.",
                column=prefix + str(name),
            )
        if field.name in checked:
            raise InvalidRows(f"Column {prefix + field.name!r} is given twice.", column=prefix + field.name)
        checked[field.name] = _checked(inner, field.type, prefix + field.name)
    return checked


def _checked_primitive(value: Any, type: str, column: str) -> Any:
    wanted = _PYTHON.get(type, (int, Decimal) if type.startswith("decimal") else ())
    if not isinstance(value, wanted) or (isinstance(value, bool) and type != "boolean"):
        raise _wrong(value, f"values of type {type}", column)
    if isinstance(value, datetime):
        if type == "date":
            raise _wrong(value, "dates, and a time of day would be lost", column)
        if (value.tzinfo is None) != (type == "timestamp_ntz"):
            zone = "without a time zone" if type == "timestamp_ntz" else "with a time zone, such as tzinfo=UTC"
            raise _wrong(value, f"values of type {type}, a datetime {zone}", column)
    return value


def _wrong(value: Any, wanted: str, column: str) -> InvalidRows:
    return InvalidRows(
        f"Column {column!r} takes {wanted}, not {builtin_name(value)} {str(value)[:50]!r}.", column=column
    )


def builtin_name(value: Any) -> str:
    return "None" if value is None else f"the {type(value).__name__}"
