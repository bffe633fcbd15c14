"""Names and ids: what a catalog, a schema and a table may be called.

Names keep their case and are compared exactly. The alphabet is that of the servers and clients that exist
(letters, digits, `_`, `-`, `@`), so that a full name can be split at its dots and put into a path unharmed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NewType

from tidegate.domain.errors import InvalidRequest

TableId = NewType("TableId", str)
Version = NewType("Version", int)

NAME_LENGTH_MAX = 255
_NAME = re.compile(r"[A-Za-z0-9_@-]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(frozen=True, slots=True, order=True)
class SchemaName:
    catalog: str
    schema: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}"


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    catalog: str
    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"

    @property
    def parent(self) -> SchemaName:
        return SchemaName(self.catalog, self.schema)


def parse_table_id(field: str, text: str) -> TableId:
    """`field` is for the message: what the request calls it."""
    if not _UUID.fullmatch(text):
        raise InvalidRequest(f"{text[:100]!r} in {field} is not a UUID. Send the table's id.")
    return TableId(text.lower())


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and len(text) <= NAME_LENGTH_MAX


def check_name(kind: str, name: str) -> str:
    """The name, if an object may be called so. `kind` is for the message: catalog, schema, table."""
    if not name:
        raise InvalidRequest(f"The {kind} name is empty. Give it a name.")
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidRequest(f"The {kind} name has {len(name)} characters. Use at most {NAME_LENGTH_MAX} of them.")
    if not is_name(name):
        raise InvalidRequest(
            f"{name!r} cannot be the name of a {kind}. Use letters a-z and A-Z, digits, '_', '-' and '@' only."
        )
    return name


def parse_schema_name(full_name: str) -> SchemaName:
    match full_name.split("."):
        case [catalog, schema] if catalog and schema:
            return SchemaName(catalog, schema)
        case _:
            raise InvalidRequest(f"{full_name!r} is not a schema's full name. Write catalog.schema.")


def parse_table_name(full_name: str) -> TableName:
    match full_name.split("."):
        case [catalog, schema, table] if catalog and schema and table:
            return TableName(catalog, schema, table)
        case _:
            raise InvalidRequest(f"{full_name!r} is not a table's full name. Write catalog.schema.table.")
