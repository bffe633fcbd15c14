"""Delta's columns <-> Arrow's.

    arrow_schema(snapshot.schema)              names that users see: what scans answer
    physical_schema(snapshot.schema, "name")   names, and ids, that data files know: what writers write
    delta_schema(table.schema)                 what a table of Arrow's would be in Delta

Delta has fewer types than Arrow. On the way to Delta a type becomes the narrowest of Delta's that holds all its values;
where there is none, it is refused by name.
"""

from __future__ import annotations

import re
from typing import Any

from tidegate.client.data.arrow import pa
from tidegate.client.log.errors import UnsupportedTable
from tidegate.client.log.types import ArrayType, DeltaType, Field, MapType, StructType

FIELD_ID = b"PARQUET:field_id"
MAPPING_MODES = ("none", "name", "id")
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")

_TO_ARROW: dict[str, Any] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal": pa.decimal128(10, 0),
    "void": pa.null(),
}
_TO_DELTA: dict[Any, str] = {
    **{arrow: delta for delta, arrow in _TO_ARROW.items() if delta != "decimal"},
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date64(): "date",
    pa.float16(): "float",
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
}


def arrow_schema(schema: StructType) -> Any:
    """The `pyarrow.Schema` of a table as users see it."""
    return pa.schema([_arrow_field(field, mode="none") for field in schema.fields])


def physical_schema(schema: StructType, mode: str) -> Any:
    """The `pyarrow.Schema` of a table's data files, for one of the modes of column mapping."""
    check_mapping(mode)
    return pa.schema([_arrow_field(field, mode=mode) for field in schema.fields])


def check_mapping(mode: str) -> None:
    if mode not in MAPPING_MODES:
        raise UnsupportedTable([f"column mapping {mode!r}"], f"Column mapping {mode!r} is not known to this client.")


def delta_schema(schema: Any) -> StructType:
    """The columns of a `pyarrow.Schema` as Delta has them, without column mapping."""
    return StructType(tuple(_delta_field(field) for field in schema))


def arrow_type(type: DeltaType, *, mode: str = "none") -> Any:
    match type:
        case StructType(fields):
            return pa.struct([_arrow_field(field, mode=mode) for field in fields])
        case ArrayType(element, contains_null):
            return pa.list_(_field("element", arrow_type(element, mode=mode), nullable=contains_null))
        case MapType(key, value, contains_null):
            item = _field("value", arrow_type(value, mode=mode), nullable=contains_null)
            return pa.map_(pa.field("key", arrow_type(key, mode=mode), nullable=False), item)
        case str():
            return _primitive(type)


def _primitive(name: str) -> Any:
    if (known := _TO_ARROW.get(name)) is not None:
        return known
    if found := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(found[1]), int(found[2]))
    raise UnsupportedTable([name], f"A column has the type {name!r}, which this client does not know.")


def _arrow_field(field: Field, *, mode: str) -> Any:
    type = arrow_type(field.type, mode=mode)
    if mode == "none":
        return _field(field.name, type, nullable=field.nullable)
    metadata = None if field.id is None else {FIELD_ID: str(field.id).encode()}
    return _field(field.physical_name, type, nullable=field.nullable, metadata=metadata)


def _field(name: str, type: Any, *, nullable: bool, metadata: dict[bytes, bytes] | None = None) -> Any:
    # What is nothing but null is nullable to Arrow, whatever Delta says of it.
    return pa.field(name, type, nullable=nullable or type == pa.null(), metadata=metadata)


def _delta_field(field: Any) -> Field:
    return Field(field.name, delta_type(field.type), field.nullable)


def delta_type(type: Any) -> DeltaType:
    """The type of Delta's that holds the values of one of Arrow's."""
    types = pa.types
    if (known := _TO_DELTA.get(type)) is not None:
        return known
    if types.is_decimal(type) and type.precision <= 38 and 0 <= type.scale <= type.precision:
        return f"decimal({type.precision},{type.scale})"
    if types.is_timestamp(type):
        return "timestamp_ntz" if type.tz is None else "timestamp"
    if types.is_dictionary(type):
        return delta_type(type.value_type)
    if types.is_struct(type):
        return StructType(tuple(_delta_field(field) for field in type))
    if types.is_map(type):
        return MapType(delta_type(type.key_type), delta_type(type.item_type), type.item_field.nullable)
    if types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type) or types.is_list_view(type):
        return ArrayType(delta_type(type.value_type), type.value_field.nullable)
    if types.is_fixed_size_binary(type):
        return "binary"
    raise UnsupportedTable([str(type)], f"Delta has no type for Arrow's {type}: cast the column to another type first.")
