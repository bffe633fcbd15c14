"""Proposed commits: what can be said of one without looking at its table."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.builders import commit, staged_name
from tidegate.domain.commits import TIMESTAMP_MAX, check_commit, published_name
from tidegate.domain.errors import InvalidRequest

UUID_TEXT = "0f8fad5b-d9cb-469f-a165-70867728950e"
versions = st.integers(1, 2**63 - 1)


@given(version=versions, id=st.uuids(), upper=st.booleans())
@settings(deadline=None)
def test_a_staged_file_is_named_after_its_version_and_a_uuid(version: int, id: UUID, upper: bool) -> None:
    name = f"{version:020}.{str(id).upper() if upper else id}.json"
    check_commit(commit(version, file_name=name))


@given(version=versions, other=versions)
@settings(deadline=None)
def test_a_file_staged_for_another_version_is_refused_with_the_name_it_should_have(version: int, other: int) -> None:
    if version == other:
        other = version + 1
    with pytest.raises(InvalidRequest) as refused:
        check_commit(commit(version, file_name=staged_name(other)))
    assert f"cannot be the staged file of version {version}" in refused.value.message
    assert f"Name it {version:020}.<uuid>.json and put it into _delta_log/_staged_commits" in refused.value.message


@pytest.mark.parametrize(
    "name",
    [
        "",
        f"{1:020}.json",
        f"{1:020}.{UUID_TEXT}",
        f"{1:020}.{UUID_TEXT}.json.tmp",
        f"{1:020}.{UUID_TEXT}.JSON",
        f"{1:020}.{UUID_TEXT}.json\n",
        f" {1:020}.{UUID_TEXT}.json",
        f"{1:019}.{UUID_TEXT}.json",
        f"{1:021}.{UUID_TEXT}.json",
        f"1.{UUID_TEXT}.json",
        f"-{1:019}.{UUID_TEXT}.json",
        f"{1:020}.{UUID_TEXT.replace('-', '')}.json",
        f"{1:020}.{{{UUID_TEXT}}}.json",
        f"{1:020}.not-a-uuid.json",
        f"_staged_commits/{1:020}.{UUID_TEXT}.json",
        f"../{1:020}.{UUID_TEXT}.json",
        f"..%2F{1:020}.{UUID_TEXT}.json",
        "../../../etc/passwd",
        f"{1:020}.{UUID_TEXT}.json\0",
        "x" * 100_000,
    ],
)
def test_any_other_name_is_refused_and_quoted_in_short(name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"Name it 00000000000000000001\.<uuid>\.json") as refused:
        check_commit(commit(1, file_name=name))
    assert repr(name[:100]) in refused.value.message
    assert len(refused.value.message) < 400


@pytest.mark.parametrize("zero_and_one", ["٠١", "०१", "０１", "𝟎𝟏"])
def test_a_version_in_the_digits_of_another_script_is_no_file_name(zero_and_one: str) -> None:
    """Readers list the log by ASCII digits: they would never find such a file."""
    zero, one = zero_and_one
    with pytest.raises(InvalidRequest, match="cannot be the staged file of version 1"):
        check_commit(commit(1, file_name=f"{zero * 19}{one}.{UUID_TEXT}.json"))


@pytest.mark.parametrize("version", [0, -1, -(2**63)])
def test_a_version_below_1_is_refused_because_creation_makes_version_0(version: int) -> None:
    with pytest.raises(InvalidRequest, match=rf"1 or higher, not {version}\. Version 0 is made by creating the table"):
        check_commit(commit(version))


@pytest.mark.parametrize("value", [0, -1, -(2**63)])
@pytest.mark.parametrize(
    ("attribute", "spelled"),
    [
        ("timestamp", "timestamp"),
        ("file_size", "file size"),
        ("file_modified_at", "file modification timestamp"),
    ],
)
def test_a_number_that_is_not_positive_is_refused_by_its_name(attribute: str, spelled: str, value: int) -> None:
    with pytest.raises(InvalidRequest, match=rf"A commit's {spelled} is positive, not {value}\."):
        check_commit(commit(1, **{attribute: value}))


@pytest.mark.parametrize("value", [TIMESTAMP_MAX + 1, 2**63 - 1])
def test_a_timestamp_beyond_all_calendars_is_refused_because_no_later_one_could_follow(value: int) -> None:
    check_commit(commit(1, timestamp=TIMESTAMP_MAX))
    with pytest.raises(InvalidRequest, match="before the year 10000"):
        check_commit(commit(1, timestamp=value))


@pytest.mark.parametrize(
    ("version", "name"),
    [(0, "00000000000000000000.json"), (7, "00000000000000000007.json"), (2**63 - 1, "09223372036854775807.json")],
)
def test_a_published_file_is_named_by_20_digits(version: int, name: str) -> None:
    assert published_name(version) == name
