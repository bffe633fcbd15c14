"""The names that the Unity Catalog API has for types: one word each, whatever the type is made of."""

from __future__ import annotations

from typing import Final

from tidegate.domain.columns import ArrayType, DataType, MapType, StructType
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.sql_types import parse_sql_type

_NAMES: Final = {"integer": "INT", "void": "NULL", "varchar": "STRING"}
_FROM_NAMES: Final = {"INT": "integer", "NULL": "void"}
_SAY_NOTHING: Final = frozenset({"USER_DEFINED_TYPE", "UNKNOWN_DEFAULT_OPEN_API"})
"""Clients send these for a type that they have no name for."""


def type_name(data_type: DataType) -> str:
    match data_type:
        case ArrayType():
            return "ARRAY"
        case MapType():
            return "MAP"
        case StructType():
            return "STRUCT"
        case str():
            plain = data_type.partition("(")[0].partition(" ")[0]
            if plain in {"geometry", "geography"}:
                return "USER_DEFINED_TYPE"
            return _NAMES.get(plain, plain.upper())


def names_type(name: str, data_type: DataType) -> bool:
    """Whether a client may call the type so."""
    return name in _SAY_NOTHING or name == type_name(data_type)


def named_type(name: str, *, precision: int | None, scale: int | None, interval: str | None) -> DataType:
    """The type of a column about which nothing else is said; InvalidRequest if that is too little."""
    plain = _FROM_NAMES.get(name, name.lower())
    match plain:
        case "decimal":
            if precision is None or scale is None:
                raise InvalidRequest("A DECIMAL needs type_precision and type_scale, or type_json. Send them.")
            plain = f"decimal({precision},{scale})"
        case "interval" if interval:
            plain = f"interval {interval.lower()}"
        case "array" | "map" | "struct" | "char":
            raise InvalidRequest(f"{name} does not say what the type is made of. Send type_json or type_text.")
        case _:
            pass
    return parse_sql_type(plain)
