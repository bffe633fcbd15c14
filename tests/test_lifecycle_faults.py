"""Servers killed while tables end. Faults to survive, each at every step of its work:

- a purge: what was marked is purged to the end, once, and nothing else is touched;
- the expiry of staging tables: their folders go, also those that only a note remembers;
- the cleaning of logs: what is left can be read, and the rest of what has to go goes;
- a store that fails for a while, loses its answers, or answers late: what it delays says so, and goes on when it is
  over.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.conftest import DATABASES
from tests.lake import Draft, LakeTable, file_name
from tests.servers import ServerProcess
from tests.waiting import PATIENCE_SECONDS, wait_until
from tidegate.db.engines import parse_url, writing_engine
from tidegate.steps import STEPS

DROPPED = "/api/tidegate/v1/dropped-tables"
TABLES = 3
HURRIED = {"publishing": "off", "housekeeping_seconds": "1", "log_cleaning_seconds": "1"}


@dataclass
class Catalog:
    home: Path
    database: str

    def server(self, **settings: str) -> ServerProcess:
        return ServerProcess(self.home, self.database, {**HURRIED, **settings})

    def select(self, statement: str) -> list[tuple[object, ...]]:
        engine = writing_engine(parse_url(self.database))
        with engine.begin() as connection:
            rows = [tuple(row) for row in connection.execute(sa.text(statement))]
        engine.dispose()
        return rows

    def visit(self, steps: list[str], **settings: str) -> None:
        """Lets a server die at each of these steps, one after the other: each is reached, or this fails."""
        for step in steps:
            server = self.server(fault=f"{step}:kill", **settings)
            with contextlib.suppress(RuntimeError):  # it may die before it can say that it serves
                server.start()
            assert server.process is not None
            assert server.process.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL, step


@pytest.fixture(params=DATABASES)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    home = tmp_path / "home"
    if request.param == "postgresql":
        return Catalog(home, request.getfixturevalue("postgres").create_database())
    home.mkdir()
    return Catalog(home, f"sqlite:///{home}/catalog.db")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    yield folder
    assert [file.name for file in folder.iterdir()] == ["kept"]


def steps_of(work: str) -> list[str]:
    return [step for step in STEPS if step.startswith(f"{work}.")]


def folder_of(table: LakeTable | Draft) -> Path:
    return table.log.parent


def finish(catalog: Catalog, done: Callable[[], bool], **settings: str) -> ServerProcess:
    server = catalog.server(**settings).start()
    wait_until(done, "everything finishes after the fault ends")
    return server


def test_a_server_killed_at_every_step_of_a_purge_purges_once_and_nothing_else(catalog: Catalog, outside: Path) -> None:
    server = catalog.server().start()
    with server.lake() as lake:
        tables = [lake.new_table(f"t{number}") for number in range(TABLES)]
        kept = lake.new_table("kept")
        for table in tables:
            for version in (1, 2):
                table.commit(version)
            (folder_of(table) / "link").symlink_to(outside)
            assert lake.http.delete(f"{lake.tables_url()}/{table.name}").status_code == 204
    assert server.stop() == 0
    catalog.visit(steps_of("purge"), dropped_retention_hours="0")
    server = finish(catalog, lambda: not catalog.select("SELECT table_id FROM removals"), dropped_retention_hours="0")
    with server.lake() as lake:
        wait_until(lambda: lake.http.get(DROPPED).json()["tables"] == [], "all are purged")
        assert LakeTable(lake, "kept", kept.id, kept.location).commit(1).status_code == 200
    assert server.stop() == 0
    assert not any(folder_of(table).exists() for table in tables)
    told = catalog.select("SELECT table_id FROM events WHERE kind = 'table.purged'")
    assert sorted(told) == sorted((table.id,) for table in tables)
    assert catalog.select("SELECT DISTINCT table_id FROM commits") == [(kept.id,)]


def test_a_server_killed_at_every_step_of_an_expiry_leaves_no_folder_and_no_lost_table(
    catalog: Catalog, outside: Path
) -> None:
    server = catalog.server().start()
    with server.lake() as lake:
        drafts = [lake.draft(f"t{number}") for number in range(TABLES)]
        for draft in drafts:
            draft.write_version_0()
            (folder_of(draft) / "link").symlink_to(outside)
        finished = lake.new_table("finished")
    assert server.stop() == 0
    catalog.visit(steps_of("expire"), staging_retention_hours="0")
    server = finish(
        catalog, lambda: not any(folder_of(draft).exists() for draft in drafts), staging_retention_hours="0"
    )
    with server.lake() as lake:
        refused = lake.create(drafts[0].request)
        assert refused.status_code == 404
        assert "expired" in refused.json()["error"]["message"]
        assert LakeTable(lake, "finished", finished.id, finished.location).commit(1).status_code == 200
    wait_until(lambda: not catalog.select("SELECT table_id FROM removals"), "the notes are gone")
    assert server.stop() == 0


def test_a_server_killed_at_every_step_of_cleaning_cleans_in_the_end(catalog: Catalog) -> None:
    server = catalog.server(log_cleaning_seconds="3600").start()
    with server.lake() as lake:
        tables = [lake.new_table(f"t{number}") for number in range(TABLES)]
        for table in tables:
            table.commit(1)
    assert server.stop() == 0
    lost = [table.log / "_staged_commits" / file_name(1) for table in tables]
    for file in lost:
        file.write_text("lost")
        moment = time.time() - 3 * 86_400
        os.utime(file, (moment, moment))
    catalog.visit(["store.removed", *steps_of("clean")])
    server = finish(catalog, lambda: not any(file.exists() for file in lost))
    with server.lake() as lake:
        for table in tables:
            assert (table.log / "_staged_commits" / table.staged[1]).exists(), "it is not published yet"
            assert LakeTable(lake, table.name, table.id, table.location).versions() == [1]
    assert server.stop() == 0


def test_a_purge_whose_store_fails_says_so_and_goes_on_when_that_is_over(catalog: Catalog) -> None:
    server = catalog.server(fault="purge.files_removed:fail:2", dropped_retention_hours="0").start()
    with server.lake() as lake:
        failing = lake.new_table("failing")
        lake.http.delete(f"{lake.tables_url()}/failing")
        wait_until(lambda: problem_of(lake.http.get(DROPPED).json()["tables"]), "the failure shows")
        wait_until(lambda: lake.http.get(DROPPED).json()["tables"] == [], "it is purged all the same")
        assert not folder_of(failing).exists()
    assert server.stop() == 0


def one_of_each_kind_ends(catalog: Catalog) -> tuple[LakeTable, list[Path]]:
    """A table that lives, and what goes as soon as retentions end: a dropped table, a staging table, a staged file."""
    server = catalog.server(log_cleaning_seconds="3600").start()
    with server.lake() as lake:
        dropped, staged, cleaned = lake.new_table("dropped"), lake.draft("staged"), lake.new_table("cleaned")
        staged.write_version_0()
        cleaned.commit(1)
        lake.http.delete(f"{lake.tables_url()}/dropped")
        live = lake.new_table("live")
    lost = cleaned.log / "_staged_commits" / file_name(1)
    lost.write_text("lost")
    moment = time.time() - 3 * 86_400
    os.utime(lost, (moment, moment))
    assert server.stop() == 0
    return live, [folder_of(dropped), folder_of(staged), lost]


AT_ONCE = {"dropped_retention_hours": "0", "staging_retention_hours": "0"}


def test_a_store_that_loses_its_answer_while_tables_end_is_asked_again(catalog: Catalog) -> None:
    """Each has to be asked for its files, and once more whether any are left."""
    live, gone = one_of_each_kind_ends(catalog)
    server = catalog.server(fault="store.removed:fail:6", **AT_ONCE).start()
    with server.lake() as lake:
        live.lake = lake
        wait_until(lambda: any("is cleaned later" in line for line in server.log), "cleaning fails")
        for what in ("dropped", "staged"):
            wait_until(lambda: any(f"{what} is tried again" in line for line in server.log), f"{what} fails")  # noqa: B023
        assert live.commit(1).status_code == 200
        wait_until(lambda: not catalog.select("SELECT table_id FROM removals"), "everything finishes")
        wait_until(lambda: lake.http.get(DROPPED).json()["tables"] == [], "it is purged")
        assert not any(path.exists() for path in gone)
        assert live.versions() == [1]
    assert catalog.select("SELECT count(*) FROM events WHERE kind = 'table.purged'") == [(1,)]
    assert server.stop() == 0


def test_a_store_that_answers_late_while_tables_end_holds_up_nobody_else(catalog: Catalog) -> None:
    live, gone = one_of_each_kind_ends(catalog)
    server = catalog.server(fault="store.removed:hang:6", **AT_ONCE).start()
    with server.lake() as lake:
        live.lake = lake
        wait_until(lambda: not all(path.exists() for path in gone), "it is under way")
        started = time.monotonic()
        assert live.commit(1).status_code == 200
        assert live.versions() == [1]
        assert time.monotonic() - started < 5, "commits and loads wait for the store"
        wait_until(lambda: not any(path.exists() for path in gone), "everything finishes")
    assert server.stop() == 0


def problem_of(tables: list[dict[str, str | None]]) -> bool:
    return any(table["problem"] for table in tables)


def test_a_creation_that_finishes_as_its_staging_table_expires_wins_or_is_refused(catalog: Catalog) -> None:
    server = catalog.server(staging_retention_hours="0").start()
    won = 0
    with server.lake() as lake:
        for number in range(20):
            staged = lake.stage(f"t{number}")
            draft = Draft.of(f"t{number}", staged.json())
            draft.write_version_0()
            answer = lake.create(draft.request)
            if answer.status_code == 200:
                won += 1
                assert LakeTable(lake, f"t{number}", draft.id, draft.location).commit(1).status_code == 200
            else:
                assert answer.status_code in {400, 404}, answer.text
                assert lake.load(f"t{number}").status_code == 404
            time.sleep(0.05)  # so that some meet the housekeeping, which comes every second
    assert won, "at least some are quick enough"
    assert server.stop() == 0
