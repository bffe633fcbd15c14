"""Filters of scans: conditions on columns, which rows must meet all of.

    [("country", "=", "is"), ("amount", ">", 100), ("note", "is not null")]
    [("day", "in", [date(2026, 1, 1), date(2026, 1, 2)])]

A comparison with null is not met, as in SQL: `!=` and `not in` leave out rows without a value.
Each condition also tells, from partition values and statistics, of files that cannot have such a row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from tidegate.client.data.arrow import pa, pc
from tidegate.client.data.schema import arrow_type
from tidegate.client.data.values import filter_value, largest_value, statistic
from tidegate.client.log.actions import Statistics
from tidegate.client.log.errors import ColumnNotFound, InvalidFilter
from tidegate.client.log.types import Field, StructType

COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MEMBERSHIPS = ("in", "not in")
NULLNESS = ("is null", "is not null")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; `values` are those it compares with."""

    field: Field
    op: str
    values: tuple[Any, ...] = ()

    def met_by(self, value: Any) -> bool:
        """Whether a row with this value is wanted."""
        match self.op:
            case "is null":
                return value is None
            case "is not null":
                return value is not None
            case "in":
                return value is not None and value in self.values
            case "not in":
                return value is not None and value not in self.values
            case _:
                return value is not None and COMPARISONS[self.op](value, self.values[0])

    def met_in(self, column: Any) -> Any:
        """By row of an Arrow column, whether it is wanted."""
        if self.op in NULLNESS:
            return pc.is_null(column) if self.op == "is null" else pc.is_valid(column)
        type = arrow_type(self.field.type)
        if self.op in MEMBERSHIPS:
            found = pc.is_in(column, value_set=pa.array(self.values, type))
            return found if self.op == "in" else pc.and_(pc.invert(found), pc.is_valid(column))
        compare = {"=": "equal", "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal"}
        compare |= {">": "greater", ">=": "greater_equal"}
        return pc.call_function(compare[self.op], [column, pa.scalar(self.values[0], type)])

    def excluded_by(self, statistics: Statistics, name: str) -> bool:
        """Whether no row of a file can meet the condition, by its statistics, which call the column `name`."""
        nulls, records = statistics.null_count.get(name), statistics.num_records
        if self.op == "is null":
            return nulls == 0
        if isinstance(nulls, int) and nulls == records:
            return True  # Every other condition needs a value.
        least = statistic(statistics.min_values.get(name), self.field)
        return self._excluded_between(least, largest_value(statistics.max_values.get(name), self.field))

    def _excluded_between(self, least: Any, most: Any) -> bool:
        match self.op:
            case "=" | "==" | "in":
                return all(self._outside(value, least, most) for value in self.values)
            case "<" | "<=":
                return least is not None and not COMPARISONS[self.op](least, self.values[0])
            case ">" | ">=":
                return most is not None and not COMPARISONS[self.op](most, self.values[0])
            case _:
                return False

    @staticmethod
    def _outside(value: Any, least: Any, most: Any) -> bool:
        return (least is not None and value < least) or (most is not None and value > most)


def conditions(filter: Iterable[Sequence[Any]], schema: StructType) -> tuple[Condition, ...]:
    """A filter understood, or an error that says what is wrong with it."""
    return tuple(_condition(part, schema) for part in filter)


def _condition(part: Sequence[Any], schema: StructType) -> Condition:
    if isinstance(part, str) or len(part) not in {2, 3}:
        raise InvalidFilter(f"A condition is (column, operator, value) or (column, 'is null'), not {part!r}.")
    name, op, *values = part
    field = schema.field(name)
    if field is None:
        raise ColumnNotFound(name, schema.names)
    if op not in {*COMPARISONS, *MEMBERSHIPS, *NULLNESS}:
        known = ", ".join([*COMPARISONS, *MEMBERSHIPS, *NULLNESS])
        raise InvalidFilter(f"{op!r} is no operator of filters: there are {known}.")
    if (op in NULLNESS) != (not values):
        raise InvalidFilter(f"A condition with {op!r} has {'no' if op in NULLNESS else 'a'} value: {part!r}.")
    if op in NULLNESS:
        return Condition(field, op)
    if not isinstance(field.type, str):
        raise InvalidFilter(f"Column {name!r} is nested: it can be asked for being null, and not be compared.")
    return Condition(field, op, _values(values[0], op, field))


def _values(told: Any, op: str, field: Field) -> tuple[Any, ...]:
    if op not in MEMBERSHIPS:
        if told is None:
            raise InvalidFilter(f"Nothing compares with null: say ({field.name!r}, 'is null').")
        return (filter_value(told, field),)
    if isinstance(told, str | bytes) or not isinstance(told, Iterable):
        raise InvalidFilter(f"{op!r} needs a list of values, not {told!r}.")
    values = list(cast("Iterable[Any]", told))
    if None in values:
        raise InvalidFilter(f"Nothing compares with null: say ({field.name!r}, 'is null').")
    return tuple(filter_value(value, field) for value in values)
