"""The columns of a Delta table: the types of Delta, and the JSON in which the log keeps them.

A type is the name of a primitive type ("long", "decimal(10,2)") or one of `StructType`, `ArrayType`, `MapType`.
With column mapping a field has, besides the name that users see, a physical name and an id that data files know it by.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from tidegate.client.log.errors import LogDamaged

PHYSICAL_NAME = "delta.columnMapping.physicalName"
COLUMN_ID = "delta.columnMapping.id"
TYPES_DEEP_MAX = 100
"""Types are read by recursion; nobody means a deeper one."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    element: DeltaType
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class MapType:
    key: DeltaType
    value: DeltaType
    value_contains_null: bool = True


@dataclass(frozen=True, slots=True)
class StructType:
    fields: tuple[Field, ...]

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


DeltaType: TypeAlias = "str | ArrayType | MapType | StructType"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: DeltaType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def physical_name(self) -> str:
        """The name in data files, statistics and partition values."""
        return self.metadata.get(PHYSICAL_NAME, self.name)

    @property
    def id(self) -> int | None:
        return self.metadata.get(COLUMN_ID)


def parse_schema(text: str) -> StructType:
    """The `schemaString` of a table's metadata."""
    try:
        parsed = _type(json.loads(text), deep=0)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LogDamaged("schemaString", f"it is no schema of Delta ({error!r})") from None
    if not isinstance(parsed, StructType):
        raise LogDamaged("schemaString", "a table's schema is a struct")
    return parsed


def schema_string(schema: StructType) -> str:
    """What `parse_schema` reads."""
    return json.dumps(_json(schema), separators=(",", ":"), ensure_ascii=False)


def all_fields(type: DeltaType) -> Iterator[Field]:
    """Those of a type and of all types within it, each before its own."""
    match type:
        case StructType(fields):
            for field in fields:
                yield field
                yield from all_fields(field.type)
        case ArrayType(element):
            yield from all_fields(element)
        case MapType(key, value):
            yield from all_fields(key)
            yield from all_fields(value)
        case str():
            return


def _type(node: Any, *, deep: int) -> DeltaType:
    if deep > TYPES_DEEP_MAX:
        raise ValueError(f"types are nested more than {TYPES_DEEP_MAX} deep")
    if isinstance(node, str):
        return node
    inner = deep + 1
    match node["type"]:
        case "struct":
            return StructType(tuple(_field(field, deep=inner) for field in node["fields"]))
        case "array":
            return ArrayType(_type(node["elementType"], deep=inner), node.get("containsNull", True))
        case "map":
            key, value = _type(node["keyType"], deep=inner), _type(node["valueType"], deep=inner)
            return MapType(key, value, node.get("valueContainsNull", True))
        case other:
            raise ValueError(f"unknown type {other!r}")


def _field(node: Any, *, deep: int) -> Field:
    metadata = cast("dict[str, Any]", node.get("metadata") or {})
    return Field(str(node["name"]), _type(node["type"], deep=deep), bool(node.get("nullable", True)), metadata)


def _json(node: DeltaType) -> Any:
    match node:
        case StructType(fields):
            return {"type": "struct", "fields": [_field_json(field) for field in fields]}
        case ArrayType(element, contains_null):
            return {"type": "array", "elementType": _json(element), "containsNull": contains_null}
        case MapType(key, value, contains_null):
            return {
                "type": "map",
                "keyType": _json(key),
                "valueType": _json(value),
                "valueContainsNull": contains_null,
            }
        case str():
            return node


def _field_json(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": _json(field.type),
        "nullable": field.nullable,
        "metadata": dict(field.metadata),
    }
