"""Which protocol version a client and the server agree on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.versions import SUPPORTED, negotiate

versions = st.tuples(st.integers(0, 9999), st.integers(0, 9999))


@pytest.mark.parametrize("offered", ["1.0", "1.1", "1.9999", "1.1,2.3", "2.3,1.0", " 1.0 , 2.0 ", "1.0,1.0", "0.9,1.4"])
def test_every_client_that_knows_1_0_is_answered_1_0(offered: str) -> None:
    """A client names the highest minor that it knows: 1.4 means that it speaks 1.0 too."""
    assert negotiate(offered) == "1.0"


@given(offered=st.lists(versions, min_size=1, max_size=5))
@settings(deadline=None)
def test_the_answer_is_1_0_exactly_when_major_version_1_is_offered(offered: list[tuple[int, int]]) -> None:
    written = ",".join(f"{major}.{minor}" for major, minor in offered)
    if any(major == 1 for major, _ in offered):
        assert negotiate(written) == "1.0"
    else:
        with pytest.raises(InvalidRequest, match=r"No common protocol version: this server supports 1\.0"):
            negotiate(written)


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [("1.0,2.3", "2.1"), ("2.3,1.0", "2.1"), ("2.0,1.5", "2.0"), ("1.0", "1.0"), ("2.1,3.0", "2.1")],
)
def test_of_several_common_versions_the_highest_is_chosen(
    offered: str, agreed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUPPORTED, 2, 1)
    assert negotiate(offered) == agreed


def test_without_a_common_version_the_answer_names_both_sides() -> None:
    with pytest.raises(InvalidRequest, match=r"supports 1\.0, the client 2\.3,3\.0"):
        negotiate("2.3,3.0")


@pytest.mark.parametrize(
    "offered",
    [
        "",
        " ",
        "1",
        "1.",
        ".0",
        "v1.0",
        "1.0.0",
        "1,0",
        "1.0,",
        ",1.0",
        "-1.0",
        "1.0;2.0",
        "latest",
        "10000.0",
        "١.٠",
        "1.٠",
    ],
)
def test_what_is_no_version_is_quoted_and_told_how_to_write_one(offered: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is not a version\. Write them like 1\.0,2\.3"):
        negotiate(offered)


def test_a_long_list_of_versions_is_not_repeated_in_full() -> None:
    with pytest.raises(InvalidRequest) as refused:
        negotiate(",".join(["2.0"] * 10_000))
    assert len(refused.value.message) < 300
