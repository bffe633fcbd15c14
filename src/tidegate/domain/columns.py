"""A table's columns: Delta's struct type as a tree, and its JSON form in the log.

The log writes `{"type":"array","elementType":...,"containsNull":...}`; the REST face has hyphens instead. Both are
read into the same tree, so that two schemas can be compared whatever they came from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.json_values import NESTING_MAX, check_nesting

_NUMBERS = frozenset({"long", "integer", "short", "byte", "float", "double"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_PRIMITIVES = _NUMBERS | _TIMES | {"string", "boolean", "binary", "variant", "void"}
_DECIMAL = re.compile(r"decimal\(([0-9]{1,2}), ?([0-9]{1,2})\)")
_PARAMETRISED = re.compile(
    r"(var)?char\([0-9]+\)|interval( (year|month|day|hour|minute|second)( to (month|hour|minute|second))?)?"
    r"|(geometry|geography)(\([^()]{1,64}\))?|string collate \S{1,128}"
)


@frozen
class ArrayType:
    element: DataType
    contains_null: bool


@frozen
class MapType:
    key: DataType
    value: DataType
    value_contains_null: bool


@frozen
class Field:
    name: str
    type: DataType
    nullable: bool
    metadata: Mapping[str, Any]


@frozen
class StructType:
    fields: tuple[Field, ...]

    def names(self) -> list[str]:
        return [field.name for field in self.fields]


DataType: TypeAlias = str | ArrayType | MapType | StructType


def check_columns(columns: StructType) -> None:
    """Columns exist, their types are known, and names differ per level also when case is ignored."""
    if not columns.fields:
        raise InvalidRequest("The table has no columns. Declare at least one.")
    _check_struct(columns, path="", depth=1)


def check_partition_columns(columns: StructType, partition_columns: tuple[str, ...]) -> None:
    known = {name.lower() for name in columns.names()}
    seen: set[str] = set()
    for name in partition_columns:
        if name.lower() not in known:
            raise InvalidRequest(f"Partition column {name!r} is not among the columns {columns.names()}.")
        if name.lower() in seen:
            raise InvalidRequest(f"Partition column {name!r} is listed twice.")
        seen.add(name.lower())
    if len(seen) == len(known):
        raise InvalidRequest("All columns are partition columns. Leave at least one that is not.")


def _check_struct(struct: StructType, *, path: str, depth: int) -> None:
    seen: dict[str, str] = {}
    for field in struct.fields:
        where = f"{path}{field.name}"
        if not field.name:
            raise InvalidRequest(f"A column {f'below {path[:-1]} ' if path else ''}has an empty name.")
        other = seen.get(field.name.lower())
        if other is not None:
            alike = "are called the same" if other == field.name else "differ in case only"
            raise InvalidRequest(f"Columns {path}{other} and {where} {alike}. Rename one of them.")
        seen[field.name.lower()] = field.name
        check_nesting(field.metadata, f"The metadata of column {where}")
        _check_type(field.type, where=where, depth=depth)


def _check_type(data_type: DataType, *, where: str, depth: int) -> None:
    if depth > NESTING_MAX:
        raise InvalidRequest(f"Column {where[:200]} is nested more than {NESTING_MAX} levels deep.")
    match data_type:
        case str():
            if not is_known_primitive(data_type):
                raise InvalidRequest(f"Column {where} has the unknown type {data_type[:100]!r}.")
        case ArrayType(element):
            _check_type(element, where=f"{where}.element", depth=depth + 1)
        case MapType(key, value):
            _check_type(key, where=f"{where}.key", depth=depth + 1)
            _check_type(value, where=f"{where}.value", depth=depth + 1)
        case StructType():
            _check_struct(data_type, path=f"{where}.", depth=depth + 1)


def is_known_primitive(name: str) -> bool:
    if name in _PRIMITIVES or _PARAMETRISED.fullmatch(name):
        return True
    decimal = decimal_parts(name)
    return decimal is not None and 1 <= decimal[0] <= 38 and decimal[1] <= decimal[0]


def decimal_parts(name: str) -> tuple[int, int] | None:
    """Precision and scale of `decimal(p,s)`, None for any other type."""
    match = _DECIMAL.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]))


def parse_log_schema(node: object) -> StructType:
    """The tree of a `schemaString`, already decoded from JSON."""
    parsed = _parse(node, depth=1)
    if not isinstance(parsed, StructType):
        raise InvalidRequest("The schema is not a struct.")
    return parsed


def parse_log_type(node: object) -> DataType:
    """Any type of a `schemaString`, already decoded from JSON."""
    return _parse(node, depth=1)


def parse_log_field(node: Mapping[str, Any]) -> Field:
    try:
        return _parse_field(dict(node), depth=1)
    except (KeyError, TypeError, ValueError) as missing:
        raise InvalidRequest(f"The column is not one of a Delta schema: {missing} is missing or misshapen.") from None


def _parse(node: object, *, depth: int) -> DataType:
    if depth > NESTING_MAX + 2:
        raise InvalidRequest(f"The schema is nested more than {NESTING_MAX} levels deep.")
    if isinstance(node, str):
        return node
    if not isinstance(node, dict):
        raise InvalidRequest("The schema holds a type that is neither a name nor an object.")
    part = cast("dict[str, Any]", node)
    try:
        match part["type"]:
            case "struct":
                return StructType(tuple(_parse_field(field, depth=depth) for field in part["fields"]))
            case "array":
                return ArrayType(_parse(part["elementType"], depth=depth + 1), bool(part["containsNull"]))
            case "map":
                key, value = part["keyType"], part["valueType"]
                return MapType(
                    _parse(key, depth=depth + 1),
                    _parse(value, depth=depth + 1),
                    bool(part["valueContainsNull"]),
                )
            case other:
                raise InvalidRequest(f"The schema holds the unknown type {other!r}.")
    except (KeyError, TypeError, ValueError) as missing:
        raise InvalidRequest(f"The schema is not a Delta schema: {missing} is missing or misshapen.") from None


def _parse_field(field: dict[str, Any], *, depth: int) -> Field:
    name = str(field["name"])
    metadata = dict(field.get("metadata") or {})
    check_nesting(metadata, f"The metadata of column {name}")
    return Field(name, _parse(field["type"], depth=depth + 1), bool(field["nullable"]), metadata)


def log_schema(data_type: DataType) -> Any:
    """The type as the log writes it, ready for JSON."""
    match data_type:
        case str():
            return data_type
        case ArrayType(element, contains_null):
            return {"type": "array", "elementType": log_schema(element), "containsNull": contains_null}
        case MapType(key, value, contains_null):
            return {
                "type": "map",
                "keyType": log_schema(key),
                "valueType": log_schema(value),
                "valueContainsNull": contains_null,
            }
        case StructType(fields):
            return {"type": "struct", "fields": [log_field(field) for field in fields]}


def log_field(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": log_schema(field.type),
        "nullable": field.nullable,
        "metadata": dict(field.metadata),
    }
