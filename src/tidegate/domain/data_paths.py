"""Paths of data files, as actions name them: relative to their table, and below it.

part-0.parquet, day=2026-01-01/part-0.parquet      of the table
../other/part-0.parquet, %2e%2e/part-0.parquet     leaves it
/etc/passwd, s3://elsewhere/part-0.parquet         never was in it
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from tidegate.domain.errors import InvalidRequest

_NEW_FILES = ("add", "cdc")
"""What is removed may lie anywhere: a table that was adopted may have such files from before."""
_PLAIN = re.compile(r"(?:[\w=-][\w.=-]*/)*[\w=-][\w.=-]*", re.ASCII)
"""Below the table for certain: nothing is escaped, no part begins with a dot, and none has a colon."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def check_data_paths(name: str, action: Mapping[str, Any], *, where: str) -> None:
    """`where` names the line in messages. Actions that bring no files are passed over."""
    if name not in _NEW_FILES:
        return
    path = action.get("path")
    if not isinstance(path, str) or not path:
        raise InvalidRequest(f"{where} has no {name}.path. Say which file it is.")
    if _leaves_table(path):
        raise _outside(where, f"{name}.path", path)
    vector = action.get("deletionVector")
    if isinstance(vector, dict) and cast("dict[str, Any]", vector).get("storageType") == "p":
        place = str(cast("dict[str, Any]", vector).get("pathOrInlineDv"))
        raise _outside(where, f"{name}.deletionVector.pathOrInlineDv", place)


def _leaves_table(path: str) -> bool:
    """Paths are URIs: what is escaped counts as what it stands for."""
    if _PLAIN.fullmatch(path) is not None:
        return False
    plain = unquote(path).replace("\\", "/")
    return plain.startswith("/") or _SCHEME.match(plain) is not None or ".." in plain.split("/")


def _outside(where: str, field: str, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"{where} leaves the table: {field} is {path[:200]!r}. Name files below the table, relative to it."
    )
