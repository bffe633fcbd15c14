"""Clustering columns: as paths of the names that users see, or of the names that the files have.

With column mapping the two differ. The domain metadata `delta.clustering` has the names of the files; the property
`clusteringColumns` of the Unity Catalog API has the names that users see:

    domain    [["col-5f3a","col-77c0"]]
    property  [["address","city"]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from tidegate.domain.columns import DataType, Field, StructType

PHYSICAL_NAME_KEY = "delta.columnMapping.physicalName"


def is_list_of_paths(value: object) -> bool:
    return isinstance(value, list) and all(_is_path(path) for path in cast("list[object]", value))


def _is_path(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(part, str) for part in cast("list[object]", value))


def logical_paths(columns: StructType, paths: Sequence[Sequence[str]]) -> list[list[str]]:
    return [_renamed(columns, path, find=physical_name, give=lambda field: field.name) for path in paths]


def physical_paths(columns: StructType, paths: Sequence[Sequence[str]]) -> list[list[str]]:
    return [_renamed(columns, path, find=lambda field: field.name, give=physical_name) for path in paths]


def _renamed(
    columns: StructType, path: Sequence[str], *, find: Callable[[Field], str], give: Callable[[Field], str]
) -> list[str]:
    """The path in other names; what is no column stays as it is."""
    renamed: list[str] = []
    at: DataType = columns
    for part in path:
        fields = at.fields if isinstance(at, StructType) else ()
        field = next((field for field in fields if find(field) == part), None)
        if field is None:
            return [*renamed, *path[len(renamed) :]]
        renamed.append(give(field))
        at = field.type
    return renamed


def physical_name(field: Field) -> str:
    name = field.metadata.get(PHYSICAL_NAME_KEY)
    return name if isinstance(name, str) else field.name
