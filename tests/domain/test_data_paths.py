from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain.data_paths import check_data_paths
from tidegate.domain.errors import InvalidRequest

VALUES = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=5
)


@pytest.mark.parametrize("path", ["a.parquet", "day=a:b/x.parquet", "p=../x", "p=a%252F..%252Fb/x", "..a/b..", "é x"])
def test_a_file_below_the_table_is_taken(path: str) -> None:
    check_data_paths("add", {"path": path}, where="Line 2")


@pytest.mark.parametrize("path", ["..", "a/..", "..\\a", "%2Fetc", "s3://b/a", "abfss:x", "%66ile:/a"])
@pytest.mark.parametrize("name", ["add", "cdc"])
def test_a_file_elsewhere_is_refused_by_line_and_field(name: str, path: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^Line 2 leaves the table: {name}\.path is "):
        check_data_paths(name, {"path": path}, where="Line 2")


def test_what_is_removed_may_lie_anywhere() -> None:
    check_data_paths("remove", {"path": "s3://before/a"}, where="Line 2")


@given(name=st.sampled_from(["add", "cdc", "remove"]), path=VALUES, vector=VALUES)
def test_whatever_an_action_says_the_answer_is_yes_or_a_complaint(name: str, path: object, vector: object) -> None:
    with suppress(InvalidRequest):
        check_data_paths(name, {"path": path, "deletionVector": vector}, where="Line 2")
