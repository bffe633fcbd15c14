"""DataFrames of pandas -> columns of Arrow, and back, value by value.

To Arrow: a column of dtype object holds values of Python, which are taken as those of dicts are; every other dtype has
a type of Arrow. What pandas takes for missing (None, NaN, NaT, NA) is null. The index is no column.

From Arrow: the dtype of a column follows from its type alone, and no value changes on the way. pandas would make floats
of integers as soon as one is null; so integers and booleans become the dtypes that know nulls, and nested values stay
values of Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, cast

from tidegate.client.data.arrow import pa
from tidegate.client.errors import InvalidRows
from tidegate.client.log.errors import PandasMissing

_EXACT = {"int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64", "bool": "boolean"}


def is_frame(rows: Any) -> bool:
    """Without importing pandas: who has a DataFrame has imported it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(rows, pandas.DataFrame)


def frame_columns(frame: Any, wanted: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """By name the columns: an array of Arrow, or a list of plain values. `wanted` are the names the table has."""
    _check_index(frame, wanted)
    for place, label in enumerate(frame.columns):
        column, name = frame.iloc[:, place], str(label)
        if not len(frame):
            yield name, pa.nulls(0)  # Without values, the dtype says nothing.
        elif column.dtype == object:
            yield name, [_plain(value, name, top=True) for value in column]
        else:
            yield name, _array(column, name)


def pandas_module() -> Any:
    """Raises PandasMissing."""
    try:
        return import_module("pandas")
    except ImportError:
        raise PandasMissing from None


def frame_of(table: Any) -> Any:
    """A `pyarrow.Table` as a DataFrame. Raises PandasMissing."""
    pandas = pandas_module()
    columns = {name: _series(table.column(name), pandas) for name in table.column_names}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(table.num_rows), copy=False)


def _series(column: Any, pandas: Any) -> Any:
    if pa.types.is_nested(column.type):
        return pandas.Series(column.to_pylist(), dtype=object)
    exact = _EXACT.get(str(column.type))
    mapper: Callable[[Any], Any] | None = None if exact is None else lambda _: pandas.array([], dtype=exact).dtype
    return column.to_pandas(types_mapper=mapper)


def _check_index(frame: Any, wanted: Iterable[str]) -> None:
    """An index that was made of a column is missed only when it is too late."""
    given = {str(label).lower() for label in frame.columns}
    known = {name.lower() for name in wanted}
    for label in frame.index.names:
        name = str(label).lower()
        if label is not None and name in known and name not in given:
            told = f"Column {label!r} is the index of the DataFrame, which is not written: call reset_index() first."
            raise InvalidRows(told, column=str(label))


def _array(column: Any, name: str) -> Any:
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowException, TypeError, ValueError) as error:
        told = f"Column {name!r} has the dtype {column.dtype}, which Arrow does not know ({error}): cast it first."
        raise InvalidRows(told, column=name) from None


def _plain(value: Any, column: str, *, top: bool = False) -> Any:
    """A value of an object column as plain Python has it; inside of lists NaN is a number."""
    pandas = sys.modules["pandas"]
    if value is None or value is pandas.NA or value is pandas.NaT:
        return None
    if isinstance(value, float):
        return None if top and value != value else float(value)
    if isinstance(value, pandas.Timestamp):
        return _datetime(value, column)
    if isinstance(value, Mapping):
        return {key: _plain(one, column) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(one, column) for one in cast("Iterable[Any]", value)]
    if type(value).__module__ == "numpy":
        return _plain(_unboxed(value), column, top=top)
    return value


def _datetime(value: Any, column: str) -> Any:
    if value.nanosecond:
        told = f"Column {column!r} has {value}, and Delta has no nanoseconds: round it first."
        raise InvalidRows(told, column=column)
    return value.to_pydatetime()


def _unboxed(value: Any) -> Any:
    """Arrays and numbers of numpy; times by way of pandas, since numpy would make bare numbers of them."""
    pandas = sys.modules["pandas"]
    if value.dtype.kind != "M":
        return value.tolist()
    return pandas.Timestamp(value) if value.ndim == 0 else list(pandas.DatetimeIndex(value))
