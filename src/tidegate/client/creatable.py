"""What a new table may be, and what this client would not make right. Refused by name before anything is asked for.

The catalog takes more than that: it stores what other clients state. What is let through here, stock Spark opens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidegate.client.columns import every_field, primitives
from tidegate.client.errors import InvalidRequest

FEATURES_BY_PROPERTY = {
    "delta.appendOnly": ("appendOnly",),
    "delta.enableChangeDataFeed": ("changeDataFeed",),
    "delta.enableRowTracking": ("rowTracking", "domainMetadata"),
    "delta.enableTypeWidening": ("typeWidening",),
}
"""Properties that ask for a feature where they are true."""
COLUMN_MAPPING = "delta.columnMapping.mode"

_TYPES = frozenset(
    {
        *("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary"),
        *("date", "timestamp", "timestamp_ntz", "variant"),
    }
)
_DECIMAL = re.compile(r"decimal\((\d{1,2}), ?(\d{1,2})\)")
_MEANT = {
    "int": "integer",
    "bigint": "long",
    "smallint": "short",
    "tinyint": "byte",
    "real": "float",
    "bool": "boolean",
    "str": "string",
    "varchar": "string",
    "char": "string",
    "text": "string",
    "timestamp_ltz": "timestamp",
    "datetime": "timestamp",
}
_IDENTITY = frozenset({"delta.identity.start", "delta.identity.step", "delta.identity.allowExplicitInsert"})
_ODD = frozenset(" ,;{}()\n\t=")
"""What Delta lets into the names of columns only where files have others."""
_MODES = ("none", "name", "id")
_ENABLED_ALSO = frozenset(
    {"delta.enableDeletionVectors", "delta.enableInCommitTimestamps", "delta.enableExpiredLogCleanup"}
)
"""Every managed table has the features of the first two; the third needs none."""


def check_creatable(
    schema: Mapping[str, Any], properties: Mapping[str, str], *, partition_by: Sequence[str], cluster_by: Sequence[str]
) -> None:
    """`schema`: a struct type as the log has it."""
    for name in primitives(schema):
        _check_type(name)
    _check_names("partition_by", partition_by)
    _check_names("cluster_by", cluster_by)
    if partition_by and cluster_by:
        raise InvalidRequest("A table is partitioned or clustered, not both. Leave out partition_by or cluster_by.")
    nested = {field["name"] for field in schema["fields"] if not isinstance(field["type"], str)}
    for name in partition_by:
        if name in nested:
            raise InvalidRequest(f"A table cannot be partitioned by {name!r}: it is an array, a map or a struct.")
    mode = properties.get(COLUMN_MAPPING, "none")
    if mode not in _MODES:
        raise InvalidRequest(f"{COLUMN_MAPPING} is one of {', '.join(_MODES)}, not {mode!r}.")
    for field in every_field(schema):
        missing = _IDENTITY - field["metadata"].keys()
        if 0 < len(missing) < len(_IDENTITY):
            raise InvalidRequest(
                f"The metadata of {field['name']!r} lacks {min(missing)}: an identity column needs it."
            )
    for field in every_field(schema) if mode == "none" else ():
        if _ODD.intersection(field["name"]):
            raise InvalidRequest(
                f"The column name {field['name']!r} has a space or one of ,;{{}}()=, which only tables with "
                f"{COLUMN_MAPPING} take. Set that property to name."
            )
    for key in _unknown_features(properties):
        raise InvalidRequest(f"This client cannot make a table with {key}: create it with Spark, or leave that out.")


def features_asked_for(schema: Mapping[str, Any], properties: Mapping[str, str]) -> Iterator[str]:
    """By columns and properties, of those who write to the table."""
    for name in primitives(schema):
        yield from _BY_TYPE.get(name, ())
    for field in every_field(schema):
        yield from (feature for key, feature in _BY_FIELD.items() if key in field["metadata"])
        if not field["nullable"]:
            yield "invariants"
    for key, features in FEATURES_BY_PROPERTY.items():
        if _is_true(properties, key):
            yield from features
    if any(key.startswith("delta.constraints.") for key in properties):
        yield "checkConstraints"
    if properties.get(COLUMN_MAPPING, "none") != "none":
        yield "columnMapping"


_BY_TYPE = {"timestamp_ntz": ("timestampNtz",), "variant": ("variantType",)}
_BY_FIELD = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
    "CURRENT_DEFAULT": "allowColumnDefaults",
}
"""By what the metadata of a column has."""


def _check_type(name: object) -> None:
    if isinstance(name, str) and (name in _TYPES or _is_decimal(name)):
        return
    known = f"{', '.join(sorted(_TYPES))}, decimal(precision,scale)"
    meant = _MEANT.get(str(name).lower().partition("(")[0])
    hint = f"Write {meant}." if meant else f"The types are {known}, and Delta's JSON of arrays, maps and structs."
    raise InvalidRequest(f"{name!r:.80} is no type of a column. {hint}")


def _is_decimal(name: str) -> bool:
    match = _DECIMAL.fullmatch(name)
    return match is not None and 1 <= int(match[1]) <= 38 and int(match[2]) <= int(match[1])


def _check_names(what: str, names: Sequence[str]) -> None:
    if isinstance(names, str):
        raise InvalidRequest(f"{what} is a list of columns, not {names!r:.80}.")
    if len(set(names)) < len(names):
        raise InvalidRequest(f"{what} names a column twice: {', '.join(map(repr, names))}.")


def _unknown_features(properties: Mapping[str, str]) -> Iterator[str]:
    for key in properties:
        enables = key.startswith("delta.enable") and _is_true(properties, key)
        if enables and key not in FEATURES_BY_PROPERTY and key not in _ENABLED_ALSO:
            yield key
        if key.startswith(("delta.coordinatedCommits.", "delta.universalFormat.")):
            yield key


def _is_true(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "").lower() == "true"
