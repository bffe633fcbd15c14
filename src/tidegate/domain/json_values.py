"""JSON values: compared as JSON does it (`true` is not `1`, whatever Python's == says), and not nested without end."""

from __future__ import annotations

import json
from typing import cast

from tidegate.domain.errors import InvalidRequest

NESTING_MAX = 64


def same_json(one: object, other: object) -> bool:
    return canonical_json(one) == canonical_json(other)


def canonical_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def check_nesting(value: object, what: str) -> None:
    """What is nested too deeply could be stored and then not be read again."""
    level = [value]
    for _ in range(NESTING_MAX):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise InvalidRequest(f"{what} is nested more than {NESTING_MAX} levels deep.")


def _children(node: object) -> list[object]:
    if isinstance(node, dict):
        return list(cast("dict[str, object]", node).values())
    return cast("list[object]", node) if isinstance(node, list) else []
