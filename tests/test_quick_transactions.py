"""SQLite's groups on the event loop: what is quick happens there, what may take long does not, and none is lost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from tests.domain.builders import managed_table
from tests.groups import NAME, Group, group_on
from tidegate.db import quick_transactions
from tidegate.db.engines import parse_url, quick_engine
from tidegate.db.hot_statements import hot_statements
from tidegate.db.known_tables import KnownTables
from tidegate.db.migrate import migrate
from tidegate.db.quick_transactions import CHECKPOINT_AFTER, ROWS_OF_A_COMMIT, QuickTransactions
from tidegate.domain.names import TableId
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.ratification import Conflict, Ratified

KNOWN = managed_table(latest=1, published=1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture(params=[("on the event loop", 60.0), ("on the thread", -1.0)], ids=lambda param: param[0])
def sync_seconds_max(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_transactions, "SYNC_SECONDS_MAX", request.param[1])


@pytest.fixture
def group(file: Path, tmp_path: Path) -> Iterator[Group]:
    with group_on(f"sqlite:///{file}", tmp_path / "home") as group:
        yield group


@pytest.mark.usefixtures("sync_seconds_max")
def test_what_is_answered_is_stored_wherever_the_sync_happens(group: Group, file: Path) -> None:
    for version in (3, 4, 5):
        winner, loser = group.decide(*(group.proposal(group.new(version, writer)) for writer in "ab"))
        assert isinstance(winner, Ratified)
        assert isinstance(loser, Conflict)
        assert newest_version(file) == version


def test_the_event_loop_goes_on_while_another_process_writes(group: Group, file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)

    async def commit_meanwhile() -> None:
        other.execute("BEGIN IMMEDIATE")
        proposed = asyncio.ensure_future(group.database.ratify(group.proposal(group.new(3, "a"))))
        for _ in range(100):
            assert (await group.database.table(NAME)).latest == 2
        assert not proposed.done()
        other.execute("ROLLBACK")
        assert isinstance(await proposed, Ratified)

    asyncio.run(commit_meanwhile())
    assert newest_version(file) == 3


def test_the_log_is_copied_into_the_database_every_so_often(group: Group, file: Path) -> None:
    for version in range(3, 4 + CHECKPOINT_AFTER // 2):
        group.decide(group.proposal(group.new(version, "a")))
    lone = file.with_name("without-its-log.db")
    lone.write_bytes(file.read_bytes())
    assert newest_version(lone) > 2


@pytest.fixture
def engine(file: Path) -> Iterator[sa.Engine]:
    url = f"sqlite:///{file}"
    migrate(url)
    engine = quick_engine(parse_url(url))
    yield engine
    engine.dispose()


@pytest.fixture
def quick(engine: sa.Engine) -> Iterator[QuickTransactions]:
    known = KnownTables(entries_max=10)
    known.put(KNOWN.id, 1, KNOWN)
    quick = QuickTransactions(engine, known, hot_statements("sqlite"))
    yield quick
    quick.close()


def test_nothing_is_begun_while_another_process_writes(quick: QuickTransactions, file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert quick.begin(found("first"), []) is None
    other.execute("ROLLBACK")
    assert quick.begin(found("second"), []) is not None
    assert quick.end()
    assert metastores(file) == ["second"]


def test_work_that_fails_leaves_nothing_and_does_not_stand_in_the_way(quick: QuickTransactions, file: Path) -> None:
    def fail(uow: UnitOfWork) -> bool:
        uow.metastore.create("lost", now=1)
        raise ValueError

    assert quick.begin(fail, []) is None
    assert quick.begin(found("kept"), [])
    assert quick.end()
    assert metastores(file) == ["kept"]


def test_a_commit_that_fails_is_told_and_the_next_one_gets_another_connection(
    engine: sa.Engine, quick: QuickTransactions, file: Path
) -> None:
    refusing = [True]

    @event.listens_for(engine, "connect")
    def refuse_once(connection: sqlite3.Connection, _record: Any) -> None:
        if refusing:
            refusing.pop()
            connection.set_authorizer(_no_commits)

    assert quick.begin(found("lost"), [])
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        quick.end()
    assert quick.begin(found("kept"), [])
    assert quick.end()
    assert metastores(file) == ["kept"]


def test_a_slow_sync_and_a_long_log_are_left_to_the_thread(
    quick: QuickTransactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick_transactions, "SYNC_SECONDS_MAX", 60.0)
    for _ in range(ceil(CHECKPOINT_AFTER / ROWS_OF_A_COMMIT)):
        assert quick.ends_quickly
        quick.begin(touch, [KNOWN.id])
        quick.end()
    assert not quick.ends_quickly
    quick.checkpoint()
    assert quick.ends_quickly
    monkeypatch.setattr(quick_transactions, "SYNC_SECONDS_MAX", 0.0)
    assert not quick.ends_quickly


def test_tables_that_must_be_read_first_are_left_to_the_thread(quick: QuickTransactions, file: Path) -> None:
    assert quick.begin(found("one"), [KNOWN.id, TableId("another")]) is None
    assert quick.begin(found("two"), [KNOWN.id])
    assert quick.end()
    assert metastores(file) == ["two"]


def touch(uow: UnitOfWork) -> bool:
    return uow.metastore.id() is None


def found(id: str) -> Callable[[UnitOfWork], bool]:
    def work(uow: UnitOfWork) -> bool:
        uow.metastore.create(id, now=1)
        return True

    return work


def metastores(file: Path) -> list[str]:
    with sqlite3.connect(file) as connection:
        return [id for (id,) in connection.execute("SELECT id FROM metastore")]


def newest_version(file: Path) -> int:
    with sqlite3.connect(file) as connection:
        return connection.execute("SELECT max(version) FROM commits").fetchone()[0]


def _no_commits(action: int, argument: str | None, *_: str | None) -> int:
    refused = action == sqlite3.SQLITE_TRANSACTION and argument == "COMMIT"
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK
