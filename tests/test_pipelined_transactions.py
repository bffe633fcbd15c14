"""PostgreSQL's groups on the event loop: two round trips, and whatever goes wrong, none is lost or doubled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.groups import NAME, Group, group_on
from tests.postgres import PostgresServer
from tidegate.db import pipelined_transactions
from tidegate.db.engines import parse_url, postgres_connection
from tidegate.db.pipelined_transactions import PipelinedTransactions
from tidegate.db.transactions import Transactions
from tidegate.domain.errors import OutcomeUnknown
from tidegate.domain.names import Version
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.ratification import Conflict, Decision, Ratified, Rejected, Replay
from tidegate.domain.updates import AddCommit, ReportPublished, SetProperties

BACKEND = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT' AND state = 'idle'"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class Place:
    """A group on PostgreSQL whose table is known, and another connection to the same database."""

    def __init__(self, group: Group, other: psycopg.Connection[Any]) -> None:
        self.group = group
        self.other = other

    def one(self, query: str) -> Any:
        row = self.other.execute(query).fetchone()
        assert row is not None
        return row[0]

    def newest_version(self) -> int:
        return self.one("SELECT max(version) FROM commits")


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where each group was written, in order."""
    ways: list[str] = []
    on_the_loop, on_the_thread = PipelinedTransactions.run, Transactions.run

    async def run(self: PipelinedTransactions, *arguments: Any) -> Any:
        outcome = await on_the_loop(self, *arguments)
        if outcome is not None:
            ways.append("event loop")
        return outcome

    def run_again(self: Transactions, *arguments: Any) -> Any:
        ways.append("thread")
        return on_the_thread(self, *arguments)

    monkeypatch.setattr(PipelinedTransactions, "run", run)
    monkeypatch.setattr(Transactions, "run", run_again)
    return ways


@pytest.fixture
def place(postgres: PostgresServer, tmp_path: Path, ways: list[str]) -> Iterator[Place]:
    url = postgres.create_database()
    with group_on(url, tmp_path / "home") as group, postgres_connection(parse_url(url)) as other:
        # The first group finds a table that is not known yet, the second connects.
        for version in (3, 4):
            group.decide(group.proposal(group.new(version, "a")))
        assert ways == ["thread", "event loop"]
        ways.clear()
        yield Place(group, other)


def test_a_group_on_a_known_table_needs_no_thread(place: Place, ways: list[str]) -> None:
    group = place.group
    first, second, next_ = group.decide(
        group.proposal(group.new(5, "a")), group.proposal(group.new(5, "b")), group.proposal(group.new(6, "c"))
    )
    assert [type(first), type(second), type(next_)] == [Ratified, Conflict, Ratified]
    assert place.newest_version() == 6
    assert ways == ["event loop"]


@pytest.mark.parametrize(("commits_max", "way"), [(1_000, "event loop"), (3, "thread")])
def test_a_table_that_another_server_has_changed_is_read_where_that_is_quick(
    place: Place, ways: list[str], monkeypatch: pytest.MonkeyPatch, commits_max: int, way: str
) -> None:
    monkeypatch.setattr(pipelined_transactions, "COMMITS_READ_MAX", commits_max)
    place.other.execute("""
        INSERT INTO commits (table_id, version, timestamp, file_name, file_size, file_modified_at)
        SELECT table_id, 5, timestamp + 1, 'another.json', file_size, file_modified_at FROM commits WHERE version = 4
    """)
    place.other.execute("UPDATE tables SET latest = 5, owner = 'ä', updated_by = 'another', state = 17")
    late, right = place.group.decide(*(place.group.proposal(place.group.new(version, "b")) for version in (5, 6)))
    assert isinstance(late, Conflict)
    assert isinstance(right, Ratified)
    assert right.table.owner == "ä"
    assert [commit.version for commit in right.table.unpublished] == [1, 2, 3, 4, 5, 6]
    assert ways == [way]
    assert asyncio.run(place.group.database.table(NAME)) == right.table


def reports_and_replays(group: Group) -> Sequence[Decision]:
    group.decide(group.proposal(ReportPublished(Version(2)), verified=2))
    return group.decide(group.proposal(AddCommit(group.commits[2], None)))


def changes_metadata(group: Group) -> Sequence[Decision]:
    return group.decide(group.proposal(SetProperties({"colour": "blue"})))


@pytest.mark.parametrize(
    ("act", "kind", "expected"),
    [(reports_and_replays, Replay, ["event loop", "thread"]), (changes_metadata, Ratified, ["thread"])],
    ids=["a published version comes again", "metadata changes"],
)
def test_what_takes_more_round_trips_is_left_to_the_thread(
    place: Place, ways: list[str], act: Callable[[Group], Sequence[Decision]], kind: type, expected: list[str]
) -> None:
    assert [type(decision) for decision in act(place.group)] == [kind]
    assert ways == expected
    place.group.decide(place.group.proposal(place.group.new(5, "z")))
    assert ways[-1] == "event loop", "the next one is quick again"


def test_a_table_that_is_gone_is_told_by_the_thread(place: Place, ways: list[str]) -> None:
    place.other.execute("UPDATE tables SET dropped_at = 1, dropped_by = 'x', state = 1")
    (decision,) = place.group.decide(place.group.proposal(place.group.new(5, "a")))
    assert isinstance(decision, Rejected)
    assert ways == ["thread"]


def test_the_event_loop_goes_on_while_another_server_holds_the_row(place: Place, ways: list[str]) -> None:
    group = place.group

    async def commit_meanwhile() -> None:
        with place.other.transaction():
            place.other.execute("SELECT id FROM tables FOR UPDATE")
            proposed = asyncio.ensure_future(group.database.ratify(group.proposal(group.new(5, "a"))))
            while place.one(WAITING) == 0:
                assert (await group.database.table(NAME)).latest == 4
            assert not proposed.done()
        assert isinstance(await proposed, Ratified)

    asyncio.run(commit_meanwhile())
    assert place.newest_version() == 5
    assert ways == ["event loop"]


def test_a_connection_that_was_lost_idle_is_no_error(place: Place, ways: list[str]) -> None:
    for version in (5, 6):
        place.other.execute("SELECT pg_terminate_backend(%s)", [place.one(BACKEND)])
        (decision,) = place.group.decide(place.group.proposal(place.group.new(version, "a")))
        assert isinstance(decision, Ratified)
    assert place.newest_version() == 6
    assert len(ways) == 2


def test_a_connection_that_is_lost_during_the_commit_leaves_the_outcome_unknown(place: Place, ways: list[str]) -> None:
    place.other.execute("""
        CREATE FUNCTION vanish() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END $$
    """)
    place.other.execute("""
        CREATE CONSTRAINT TRIGGER vanish AFTER INSERT ON commits DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION vanish()
    """)
    proposal = place.group.proposal(place.group.new(5, "a"))
    with pytest.raises(OutcomeUnknown):
        place.group.decide(proposal)
    assert ways == [], "nobody tries again what may have happened"
    place.other.execute("DROP TRIGGER vanish ON commits")
    assert [type(each) for each in place.group.decide(proposal)] == [Ratified]
    assert place.newest_version() == 5


def test_a_statement_that_fails_has_changed_nothing_and_the_thread_tells_the_truth(
    place: Place, ways: list[str]
) -> None:
    place.other.execute("ALTER TABLE commits ADD CONSTRAINT no_fifth CHECK (version <> 5)")
    proposal = place.group.proposal(place.group.new(5, "a"))
    with pytest.raises(OutcomeUnknown):
        place.group.decide(proposal)
    assert ways == ["thread"]
    assert place.newest_version() == 4
    assert asyncio.run(place.group.database.table(NAME)).latest == 4
    place.other.execute("ALTER TABLE commits DROP CONSTRAINT no_fifth")
    assert [type(each) for each in place.group.decide(proposal)] == [Ratified]


def test_a_group_that_the_database_ends_for_another_ones_sake_is_run_again_by_the_thread(
    place: Place, ways: list[str]
) -> None:
    place.other.execute("""
        CREATE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
            IF nextval('collisions') = 1 THEN RAISE EXCEPTION USING ERRCODE = '40P01'; END IF; RETURN NEW;
        END $$
    """)
    place.other.execute("CREATE SEQUENCE collisions")
    place.other.execute("CREATE TRIGGER collide BEFORE INSERT ON commits FOR EACH ROW EXECUTE FUNCTION collide()")
    assert [type(each) for each in place.group.decide(place.group.proposal(place.group.new(5, "a")))] == [Ratified]
    assert ways == ["thread"]
    assert place.newest_version() == 5


def test_what_is_decided_is_never_written_by_another_connection_than_the_one_that_locks(
    place: Place, monkeypatch: pytest.MonkeyPatch, ways: list[str]
) -> None:
    decide_group = place.group.database._writer._decide_group
    session = place.group.database._writer._pipelined._session  # type: ignore[union-attr]

    def lose_the_connection(uow: UnitOfWork, proposals: Any) -> Any:
        decided = decide_group(uow, proposals)
        session.close()
        return decided

    monkeypatch.setattr(place.group.database._writer, "_decide_group", lose_the_connection)
    assert [type(each) for each in place.group.decide(place.group.proposal(place.group.new(5, "a")))] == [Ratified]
    assert ways == ["thread"]


def test_what_waits_for_a_lock_when_the_server_stops_is_finished_first(place: Place) -> None:
    group = place.group

    async def stop_meanwhile() -> None:
        with ThreadPoolExecutor(1) as threads:
            place.other.execute("BEGIN")
            place.other.execute("SELECT id FROM tables FOR UPDATE")
            proposed = asyncio.ensure_future(group.database.ratify(group.proposal(group.new(5, "a"))))
            while place.one(WAITING) == 0:
                await asyncio.sleep(0.005)
            finishing = asyncio.ensure_future(group.database.finish())
            await asyncio.sleep(0)
            assert not finishing.done()
            await asyncio.get_running_loop().run_in_executor(threads, place.other.execute, "COMMIT")
            await finishing
            assert isinstance(await proposed, Ratified)

    asyncio.run(stop_meanwhile())
    assert place.newest_version() == 5
