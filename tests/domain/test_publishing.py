"""Publication: a report is a claim, and only what was verified counts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.builders import LIMITS, NAME, NOW, managed_table, proposal
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import Version
from tidegate.domain.publishing import check_report, commits_to_verify
from tidegate.domain.ratification import Ratified, decide
from tidegate.domain.tables import Table
from tidegate.domain.updates import ReportPublished


@st.composite
def tables(draw: st.DrawFn) -> Table:
    published = draw(st.integers(0, 20))
    return managed_table(published=published, latest=published + draw(st.integers(0, 8)))


versions = st.integers(-1, 40).map(Version)


def mark_published(table: Table, verified: Version) -> Table:
    """The table after a report of everything, of which this much was verified."""
    reported = proposal(ReportPublished(table.latest), verified=verified)
    decision = decide(table, reported, ratified=None, limits=LIMITS, now=NOW)
    assert isinstance(decision, Ratified)
    return decision.table


@given(table=tables(), verified=versions)
@settings(deadline=None)
def test_marking_never_moves_backwards_nor_past_the_latest_and_leaves_no_gap(table: Table, verified: Version) -> None:
    marked = mark_published(table, verified)
    assert table.published <= marked.published <= table.latest
    assert [commit.version for commit in marked.unpublished] == list(range(marked.published + 1, table.latest + 1))
    assert set(marked.unpublished) <= set(table.unpublished)
    assert marked.latest == table.latest
    assert marked.metadata == table.metadata
    assert marked.etag == table.etag


@given(table=tables(), verified=versions)
@settings(deadline=None)
def test_marking_twice_is_marking_once(table: Table, verified: Version) -> None:
    marked = mark_published(table, verified)
    assert mark_published(marked, verified) == marked


@given(table=tables(), reported=versions)
@settings(deadline=None)
def test_every_commit_up_to_the_report_is_looked_at_in_order_before_it_is_forgotten(
    table: Table, reported: Version
) -> None:
    looked_at = commits_to_verify(table, reported)
    forgotten = set(table.unpublished) - set(mark_published(table, reported).unpublished)
    assert forgotten == set(looked_at)
    assert [commit.version for commit in looked_at] == sorted(commit.version for commit in looked_at)


def test_only_the_verified_part_of_a_report_counts() -> None:
    table = managed_table(published=3, latest=7)
    assert [commit.version for commit in commits_to_verify(table, Version(6))] == [4, 5, 6]
    marked = mark_published(table, Version(5))
    assert marked.published == 5
    assert [commit.version for commit in marked.unpublished] == [6, 7]


def test_a_report_of_what_is_published_already_changes_nothing() -> None:
    table = managed_table(published=3, latest=7)
    assert commits_to_verify(table, Version(3)) == ()
    assert mark_published(table, Version(2)) is table


@pytest.mark.parametrize("reported", [0, 3, 7])
def test_versions_up_to_the_latest_may_be_reported(reported: int) -> None:
    check_report(managed_table(published=3, latest=7), Version(reported))


@pytest.mark.parametrize("reported", [8, 2**63 - 1])
def test_a_report_beyond_the_latest_version_is_refused_with_the_latest(reported: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_report(managed_table(published=3, latest=7), Version(reported))
    assert f"Version {reported} of {NAME} is reported as published" in refused.value.message
    assert "latest ratified version is 7. Report versions that were ratified" in refused.value.message
