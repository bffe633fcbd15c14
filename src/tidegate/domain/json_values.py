"""JSON values compared as JSON does it: `true` is not `1`, whatever Python's == says."""

from __future__ import annotations

import json


def same_json(one: object, other: object) -> bool:
    return canonical_json(one) == canonical_json(other)


def canonical_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
