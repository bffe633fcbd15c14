"""A table's columns as a program states them, and in the two spellings that they have: the log's and the wire's.

{"id": "long", "tags": {"type": "array", "elementType": "string", "containsNull": True}}      stated, in short
{"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, ...}]}         Delta's own, the log's
{"type": "array", "element-type": "string", "contains-null": true}                            the wire's
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeGuard, cast

from tidegate.client.errors import InvalidRequest


class ArrowSchema(Protocol):
    """A `pyarrow.Schema`, which has no types to give."""

    @property
    def names(self) -> list[str]: ...
    @property
    def types(self) -> list[Any]: ...


DataType: TypeAlias = str | Mapping[str, Any]
"""A name such as "long" or "decimal(10,2)", or Delta's JSON of an array, a map or a struct."""
Columns: TypeAlias = Mapping[str, DataType] | Sequence[Mapping[str, Any]] | ArrowSchema
"""Types by name, Delta's fields or a schema of Arrow; Delta's whole struct type is one of the former, by its looks."""

_WIRE = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}
_LOG = {wire: log for log, wire in _WIRE.items()}
TYPES_IN = frozenset({"elementType", "keyType", "valueType"})


def log_schema(columns: Columns) -> dict[str, Any]:
    """Delta's struct type, whichever way the columns were stated."""
    if _is_of_arrow(columns):
        # Not at the top: most of the client does without pyarrow.
        from tidegate.client.data.schema import delta_schema
        from tidegate.client.log.types import schema_string

        return json.loads(schema_string(delta_schema(columns)))
    if isinstance(columns, Mapping):
        if columns.get("type") == "struct" and isinstance(columns.get("fields"), list):
            return {"type": "struct", "fields": [_field(field) for field in cast("Any", columns)["fields"]]}
        return {"type": "struct", "fields": [_field({"name": name, "type": type}) for name, type in columns.items()]}
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise InvalidRequest(f"Columns are types by name, Delta's fields or Arrow's schema, not {columns!r:.80}.")
    return {"type": "struct", "fields": [_field(field) for field in cast("Sequence[Any]", columns)]}


def _is_of_arrow(columns: Columns) -> TypeGuard[ArrowSchema]:
    """Without importing pyarrow: who has a schema of it has imported it."""
    pyarrow: Any = sys.modules.get("pyarrow")
    return pyarrow is not None and isinstance(columns, pyarrow.Schema)


def to_wire(data_type: DataType) -> Any:
    return _spelled(data_type, _WIRE)


def to_log(data_type: DataType) -> Any:
    return _spelled(data_type, _LOG)


def primitives(data_type: DataType) -> Iterator[str]:
    """The names of all types that it is made of."""
    if not isinstance(data_type, Mapping):
        yield data_type
        return
    for field in data_type.get("fields") or ():
        yield from primitives(field["type"])
    for key in TYPES_IN:
        if key in data_type:
            yield from primitives(data_type[key])


def every_field(data_type: DataType) -> Iterator[Mapping[str, Any]]:
    """Of a type as the log has it, those of structs in it too."""
    if not isinstance(data_type, Mapping):
        return
    for field in data_type.get("fields") or ():
        yield field
        yield from every_field(field["type"])
    for key in TYPES_IN & data_type.keys():
        yield from every_field(data_type[key])


def _field(told: Any) -> dict[str, Any]:
    stated = cast("dict[str, Any]", told if isinstance(told, Mapping) else {})
    if not isinstance(stated.get("name"), str) or "type" not in stated:
        raise InvalidRequest(f"A column needs a name and a type, and this one is {told!r}.")
    return {
        "name": stated["name"],
        "type": _type(stated["type"]),
        "nullable": stated.get("nullable", True),
        "metadata": dict(stated.get("metadata") or {}),
    }


def _type(stated: Any) -> Any:
    """Delta's JSON with every field complete, however deep it lies."""
    if not isinstance(stated, Mapping):
        return stated
    whole = dict(cast("Mapping[str, Any]", stated))
    if "fields" in whole:
        whole["fields"] = [_field(field) for field in whole["fields"]]
    for key in TYPES_IN & whole.keys():
        whole[key] = _type(whole[key])
    return whole


def _spelled(node: Any, names: Mapping[str, str]) -> Any:
    """Keys of types are spelled anew; the metadata of fields is the user's own and stays as it is."""
    if not isinstance(node, Mapping):
        return node
    spelled: dict[str, Any] = {}
    for key, value in cast("Mapping[str, Any]", node).items():
        if key == "fields":
            spelled[key] = [{**field, "type": _spelled(field["type"], names)} for field in value]
        else:
            spelled[names.get(key, key)] = value if key == "metadata" else _spelled(value, names)
    return spelled
