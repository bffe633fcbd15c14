from __future__ import annotations

from typing import Any

import pytest

from tests.python_client_log.logs import FIRST, Table, fields, metadata
from tidegate.client.log.errors import UnsupportedTable
from tidegate.client.log.widening import is_wider

ALLOWED = [
    ("byte", "short"),
    ("short", "long"),
    ("float", "double"),
    ("integer", "double"),
    ("date", "timestamp_ntz"),
    ("decimal(6,2)", "decimal(10,4)"),
    ("decimal(6,2)", "decimal(6, 2)"),
    ("integer", "decimal(10,0)"),
    ("byte", "decimal(12,2)"),
    ("long", "decimal(21,1)"),
]
NOT_ALLOWED = [
    ("long", "integer"),
    ("long", "double"),
    ("double", "float"),
    ("date", "timestamp"),
    ("decimal(6,2)", "decimal(7,4)"),
    ("decimal(6,2)", "decimal(6,1)"),
    ("integer", "decimal(9,0)"),
    ("integer", "decimal(10,1)"),
    ("long", "decimal(19,0)"),
    ("string", "long"),
    ("integer", "string"),
]


@pytest.mark.parametrize(("before", "after"), ALLOWED)
def test_changes_that_the_protocol_allows_are_followed(before: str, after: str) -> None:
    assert is_wider(after, than=before)


@pytest.mark.parametrize(("before", "after"), NOT_ALLOWED)
def test_all_others_are_not(before: str, after: str) -> None:
    assert not is_wider(after, than=before)


def column(name: str, type: Any, *changes: tuple[str, str]) -> dict[str, Any]:
    (told,) = fields((name, type))
    return told | {"metadata": {"delta.typeChanges": [{"fromType": b, "toType": a} for b, a in changes]}}


def test_table_with_a_change_that_cannot_be_followed_is_refused_by_its_column(table: Table) -> None:
    inner = column("x", "string", ("short", "integer"), ("integer", "string"))
    nested = {"type": "map", "keyType": "string", "valueType": {"type": "struct", "fields": [inner]}}
    table.publish(FIRST[0], metadata([*fields(("m", nested)), column("y", "long", ("integer", "long"))]))
    with pytest.raises(UnsupportedTable, match="Column 'x' was changed from integer to string"):
        table.snapshot()
