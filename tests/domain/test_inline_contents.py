"""Contents of inline commits, line by line."""

from __future__ import annotations

import json

import pytest

from tidegate.domain.commit_contents import read_lines
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.inline_commits import WHAT
from tidegate.domain.json_values import NESTING_MAX, check_nesting


def nested(depth: int, opening: str, closing: str) -> bytes:
    """An action whose innermost value has so many containers around it."""
    inner = depth - 2
    return ('{"commitInfo":{"v":' + opening * inner + "1" + closing * inner + "}}").encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":[', "]}]")])
@pytest.mark.parametrize("off", range(-3, 4))
def test_a_line_may_be_nested_as_deeply_as_any_other_json(off: int, opening: str, closing: str) -> None:
    each = opening.count("[") + opening.count("{")
    line = nested(2 + (NESTING_MAX + off) // each, opening, closing)
    try:
        check_nesting(json.loads(line), "It")
    except InvalidRequest:
        with pytest.raises(InvalidRequest, match="Line 1 of the content is nested more than"):
            list(read_lines(line, what=WHAT))
    else:
        assert [one.written for one in read_lines(line, what=WHAT)] == [line]


def test_brackets_in_texts_are_no_nesting() -> None:
    line = json.dumps({"commitInfo": {"query": "[" * 200 + "{" * 200}}).encode()
    assert [one.written for one in read_lines(line, what=WHAT)] == [line]
