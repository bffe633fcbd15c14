"""How long a table keeps its history, as its properties say it.

delta.logRetentionDuration = 'interval 30 days'    delta.enableExpiredLogCleanup = true
"""

from __future__ import annotations

import re
from collections.abc import Mapping

DEFAULT_MS = 30 * 86_400_000
_UNITS_MS = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
    "millisecond": 1,
}
_PART = re.compile(r"([0-9]{1,12})\s+([a-z]+?)s?(?:\s+|$)")


def log_retention_ms(properties: Mapping[str, str]) -> int | None:
    """None if the table wants no cleanup, or says what cannot be understood: then nothing may be removed."""
    if properties.get("delta.enableExpiredLogCleanup", "true").strip().lower() != "true":
        return None
    stated = properties.get("delta.logRetentionDuration")
    return DEFAULT_MS if stated is None else parse_interval_ms(stated)


def parse_interval_ms(text: str) -> int | None:
    """`interval 1 week 2 days`; months and years have no fixed length, and are not understood."""
    rest = text.strip().lower().removeprefix("interval").strip()
    total = 0
    while rest:
        match = _PART.match(rest)
        if match is None or match[2] not in _UNITS_MS:
            return None
        total += int(match[1]) * _UNITS_MS[match[2]]
        rest = rest[match.end() :]
    return total if text.strip() and total > 0 else None
