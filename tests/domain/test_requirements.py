"""What a caller asserts of a table: the id always, the etag if it wants to."""

from __future__ import annotations

import pytest

from tests.domain.builders import NAME, TABLE_ID, managed_table
from tidegate.domain.errors import InvalidRequest, RequirementConflict
from tidegate.domain.requirements import (
    AssertEtag,
    AssertTableId,
    Requirement,
    Requirements,
    check_etag,
    collect_requirements,
)


def test_the_order_of_requirements_means_nothing() -> None:
    one, other = AssertTableId(TABLE_ID), AssertEtag("e.1")
    assert collect_requirements([one, other]) == collect_requirements([other, one]) == Requirements(TABLE_ID, "e.1")


def test_the_etag_may_be_left_out() -> None:
    assert collect_requirements([AssertTableId(TABLE_ID)]) == Requirements(TABLE_ID, None)


def test_a_table_id_is_recognised_in_upper_case() -> None:
    assert collect_requirements([AssertTableId(TABLE_ID.upper())]).table_id == TABLE_ID


@pytest.mark.parametrize("requirements", [[], [AssertEtag("e.1")]])
def test_an_update_that_does_not_assert_the_table_id_is_told_to(requirements: list[Requirement]) -> None:
    with pytest.raises(InvalidRequest, match=r"needs the requirement assert-table-uuid\. Send it"):
        collect_requirements(requirements)


@pytest.mark.parametrize(
    ("twice", "spelled"),
    [(AssertTableId(TABLE_ID), "assert-table-uuid"), (AssertEtag("e.1"), "assert-etag")],
)
def test_a_requirement_that_is_sent_twice_is_named(twice: Requirement, spelled: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"{spelled} is required 2 times\. Send at most one of each kind"):
        collect_requirements([AssertTableId(TABLE_ID), AssertEtag("e.1"), twice])


@pytest.mark.parametrize(
    "id", ["", "tides", f"{TABLE_ID} ", f"{{{TABLE_ID}}}", TABLE_ID.replace("-", ""), "x" * 100_000]
)
def test_an_id_that_is_no_uuid_is_quoted_in_short(id: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        collect_requirements([AssertTableId(id)])
    assert f"{id[:100]!r} in assert-table-uuid is not a UUID. Send the table's id." == refused.value.message


@pytest.mark.parametrize("etag", [None, f"{TABLE_ID}.5"])
def test_the_current_etag_or_none_is_met(etag: str | None) -> None:
    check_etag(Requirements(TABLE_ID, etag), managed_table(revision=5))


@pytest.mark.parametrize("etag", ["", f"{TABLE_ID}.4", f"{TABLE_ID}.6", f"{TABLE_ID}.5 ", f'"{TABLE_ID}.5"', "5"])
def test_any_other_etag_is_a_conflict_that_names_both(etag: str) -> None:
    with pytest.raises(RequirementConflict) as refused:
        check_etag(Requirements(TABLE_ID, etag), managed_table(revision=5))
    assert f"The metadata of {NAME} has changed: its etag is {TABLE_ID}.5, not {etag}." in refused.value.message
    assert "Reload the table" in refused.value.message


def test_a_huge_etag_is_not_repeated_in_full() -> None:
    with pytest.raises(RequirementConflict) as refused:
        check_etag(Requirements(TABLE_ID, "x" * 100_000), managed_table())
    assert len(refused.value.message) < 500
