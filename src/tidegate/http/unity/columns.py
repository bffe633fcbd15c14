"""Columns as the Unity Catalog API shows them: one ColumnInfo each, types in Spark's words."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tidegate.domain.columns import ArrayType, DataType, Field, MapType, StructType, decimal_parts, log_field
from tidegate.wire import unity as wire

_SQL = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_NAMES = {"integer": "INT", "void": "NULL"}


def from_columns(columns: StructType, partition_columns: Sequence[str]) -> list[wire.ColumnInfo]:
    partitions = {name.lower(): index for index, name in enumerate(partition_columns)}
    return [_column_info(field, position, partitions) for position, field in enumerate(columns.fields)]


def _column_info(field: Field, position: int, partitions: dict[str, int]) -> wire.ColumnInfo:
    decimal = decimal_parts(field.type) if isinstance(field.type, str) else None
    comment = field.metadata.get("comment")
    return wire.ColumnInfo(
        name=field.name,
        type_text=sql_type(field.type),
        type_json=json.dumps(log_field(field), separators=(",", ":")),
        type_name=type_name(field.type),
        type_precision=None if decimal is None else decimal[0],
        type_scale=None if decimal is None else decimal[1],
        type_interval_type=_interval(field.type),
        position=position,
        comment=comment if isinstance(comment, str) else None,
        nullable=field.nullable,
        partition_index=partitions.get(field.name.lower()),
    )


def sql_type(data_type: DataType) -> str:
    match data_type:
        case str():
            return _SQL.get(data_type, data_type)
        case ArrayType(element):
            return f"array<{sql_type(element)}>"
        case MapType(key, value):
            return f"map<{sql_type(key)},{sql_type(value)}>"
        case StructType(fields):
            return f"struct<{','.join(f'{field.name}:{sql_type(field.type)}' for field in fields)}>"


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
            return _NAMES.get(plain, "STRING" if plain == "varchar" else plain.upper())


def _interval(data_type: DataType) -> str | None:
    if isinstance(data_type, str) and data_type.startswith("interval "):
        return data_type.removeprefix("interval ").upper()
    return None
