"""JSON values: compared as JSON does it (`true` is not `1`, whatever Python's == says), not nested without end, and
with texts that can be written again.
"""

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


def check_texts(value: object, what: str) -> None:
    """JSON may escape what is no text: half a surrogate pair, or a NUL, which a database cannot keep."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        waiting += _children(node)
        if isinstance(node, dict):
            waiting += cast("dict[str, object]", node).keys()
        if isinstance(node, str) and ("\0" in node or not _is_unicode(node)):
            raise InvalidRequest(f"{what} holds a text with a NUL character or half a surrogate pair. Remove it.")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _children(node: object) -> list[object]:
    if isinstance(node, dict):
        return list(cast("dict[str, object]", node).values())
    return cast("list[object]", node) if isinstance(node, list) else []
