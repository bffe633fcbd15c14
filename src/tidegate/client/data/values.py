"""Single values: of partitions, of statistics and of filters, as the Python values that compare with one another."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from tidegate.client.data.arrow import pa
from tidegate.client.data.schema import arrow_type
from tidegate.client.log.errors import InvalidFilter, LogDamaged
from tidegate.client.log.types import Field


def partition_value(text: str | None, field: Field) -> Any:
    """A partition value of the log; empty is null, whatever the type."""
    if not text:
        return None
    try:
        return _plain(_parse(text, str(field.type)), field)
    except (ValueError, InvalidOperation, OverflowError, pa.ArrowException) as error:
        raise LogDamaged(f"partition value {text!r}", f"column {field.name!r} is a {field.type} ({error})") from None


def statistic(told: Any, field: Field) -> Any:
    """A smallest or largest value; None when it tells nothing, for statistics are a help and no more."""
    if told is None or not isinstance(field.type, str) or field.type in {"boolean", "binary", "void"}:
        return None
    try:
        value = _plain(_parse(told, field.type) if isinstance(told, str) else _number(told, field.type), field)
    except (ValueError, TypeError, InvalidOperation, OverflowError, pa.ArrowException):
        return None
    return None if value != value else value  # Nothing compares with NaN.


def largest_value(told: Any, field: Field) -> Any:
    """As `statistic`, for the upper bound: times are cut off at milliseconds, so that a value may be a bit later."""
    value = statistic(told, field)
    if value is None or field.type not in {"timestamp", "timestamp_ntz"}:
        return value
    try:
        return value + timedelta(milliseconds=1)
    except OverflowError:
        return None  # The end of Python's calendar.


def filter_value(value: Any, field: Field) -> Any:
    """The value that a filter compares a column with, as that column would have it."""
    try:
        return _plain(value, field)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise InvalidFilter(f"Column {field.name!r} is a {field.type}, and {value!r} is none ({error}).") from None


def _plain(value: Any, field: Field) -> Any:
    """As pyarrow has it: rounded to a float of 32 bits, scaled to the decimals of the column, in UTC."""
    return pa.scalar(value, arrow_type(field.type)).as_py()


def _number(told: Any, type: str) -> Any:
    if type in {"float", "double"}:
        return float(told)
    if type.startswith("decimal"):
        return Decimal(told)
    if type in {"byte", "short", "integer", "long"} and isinstance(told, int):
        return told
    raise ValueError("a value of this type is no number")


def _parse(text: str, type: str) -> Any:
    match type:
        case "string":
            return text
        case "binary":
            return text.encode()
        case "boolean" if text.lower() in {"true", "false"}:
            return text.lower() == "true"
        case "byte" | "short" | "integer" | "long":
            return int(text)
        case "float" | "double":
            return float(text)
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            # Writers that leave out the time zone mean their own, which nobody knows: UTC is what they should write.
            parsed = datetime.fromisoformat(text)
            return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
        case "timestamp_ntz":
            return datetime.fromisoformat(text).replace(tzinfo=None)
        case _ if type.startswith("decimal"):
            return Decimal(text)
        case _:
            raise ValueError("a value of this type has no text")
