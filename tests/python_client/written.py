"""Rows of all types that Delta has, and tables for them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

PRIMITIVES: dict[str, Any] = {
    "a_string": "string",
    "a_long": "long",
    "an_integer": "integer",
    "a_short": "short",
    "a_byte": "byte",
    "a_float": "float",
    "a_double": "double",
    "a_boolean": "boolean",
    "a_binary": "binary",
    "a_date": "date",
    "a_time": "timestamp",
    "a_local_time": "timestamp_ntz",
    "a_decimal": "decimal(12,3)",
    "a_big_decimal": "decimal(38,10)",
}
NESTED: dict[str, Any] = {
    "a_struct": {
        "type": "struct",
        "fields": [
            {"name": "x", "type": "long"},
            {"name": "Deep", "type": {"type": "struct", "fields": [{"name": "t", "type": "timestamp"}]}},
        ],
    },
    "an_array": {"type": "array", "elementType": "string", "containsNull": True},
    "a_map": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
    "structs": {
        "type": "array",
        "elementType": {"type": "struct", "fields": [{"name": "y", "type": "integer"}]},
        "containsNull": True,
    },
}
EVERYTHING = {"id": "long", **PRIMITIVES, **NESTED}

LOW: dict[str, Any] = {
    "id": 1,
    "a_string": "",
    "a_long": -(2**63),
    "an_integer": -(2**31),
    "a_short": -(2**15),
    "a_byte": -128,
    "a_float": -1.5,
    "a_double": -1e300,
    "a_boolean": False,
    "a_binary": b"",
    "a_date": date(1, 1, 1),
    "a_time": datetime(1905, 6, 30, 1, 2, 3, 999_999, tzinfo=UTC),
    "a_local_time": datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
    "a_decimal": Decimal("-999999999.999"),
    "a_big_decimal": Decimal("-9999999999999999999999999999.0123456789"),
    "a_struct": {"x": 1, "Deep": {"t": datetime(2026, 1, 1, tzinfo=UTC)}},
    "an_array": [],
    "a_map": [],
    "structs": [],
}
HIGH: dict[str, Any] = {
    "id": 2,
    "a_string": "Þingvellir 🌊 " * 10,
    "a_long": 2**63 - 1,
    "an_integer": 2**31 - 1,
    "a_short": 2**15 - 1,
    "a_byte": 127,
    "a_float": 0.25,
    "a_double": 0.1,
    "a_boolean": True,
    "a_binary": bytes(range(256)),
    "a_date": date(9999, 12, 31),
    "a_time": datetime(2026, 3, 29, 3, 30, 0, 123_456, tzinfo=timezone(timedelta(hours=2))).astimezone(UTC),
    "a_local_time": datetime(2026, 3, 29, 2, 30, 0, 123_456),  # noqa: DTZ001
    "a_decimal": Decimal("0.001"),
    "a_big_decimal": Decimal("9999999999999999999999999999.0123456789"),
    "a_struct": {"x": None, "Deep": None},
    "an_array": ["a", None, ""],
    "a_map": [("k", 1), ("other", None)],
    "structs": [{"y": 1}, None, {"y": None}],
}
NOTHING: dict[str, Any] = {**dict.fromkeys(EVERYTHING), "id": 3}
ROWS = [LOW, HIGH, NOTHING]
