"""What a server knows of tables is never older than its database: whoever changes a table, all servers tell at once.

Two servers share one database. Both have loaded the table, so both know it; then it is changed through the first, and
the second is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.domain.builders import managed_table
from tests.lake import UNITY, Lake, LakeTable, report
from tests.servers import ServerProcess
from tidegate.db.known_tables import KnownTables
from tidegate.domain.names import TableId
from tidegate.domain.tables import Table


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    home: Path = tmp_path_factory.mktemp("home")
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    started = [ServerProcess(home, database).start() for _ in range(2)]
    yield started
    for process in started:
        assert process.stop() == 0, "".join(process.log[-50:])


@dataclass(frozen=True)
class Both:
    first: Lake
    second: Lake
    table: LakeTable
    """Of the first."""


@pytest.fixture
def both(servers: list[ServerProcess], unique: str) -> Iterator[Both]:
    with servers[0].http() as one, servers[1].http() as other:
        for kind, path in (({"name": unique}, "catalogs"), ({"name": unique, "catalog_name": unique}, "schemas")):
            assert one.post(f"{UNITY}/{path}", json=kind).status_code == 200
        first, second = Lake(one, unique, unique), Lake(other, unique, unique)
        table = first.new_table("t")
        for version in (1, 2):
            assert table.commit(version).status_code == 200
        assert first.load("t").json() == second.load("t").json()
        yield Both(first, second, table)


def publish_and_report(both: Both) -> None:
    both.table.publish(1)
    assert both.table.update(report(1)).status_code == 200


def set_property(both: Both) -> None:
    assert both.table.update({"action": "set-properties", "updates": {"colour": "blue"}}).status_code == 200


CHANGES: list[Callable[[Both], Any]] = [lambda both: both.table.commit(3), publish_and_report, set_property]


@pytest.mark.parametrize("change", CHANGES, ids=["commit", "report", "property"])
def test_a_change_through_one_server_is_told_by_the_other(both: Both, change: Callable[[Both], Any]) -> None:
    before = both.second.load("t").json()
    change(both)
    after = both.second.load("t").json()
    assert after != before
    assert after == both.first.load("t").json()


def test_a_writer_on_the_other_server_goes_on_where_the_first_has_stopped(both: Both) -> None:
    elsewhere = LakeTable(both.second, "t", both.table.id, both.table.location, timestamp=both.table.timestamp)
    for version in range(3, 9):
        writer = elsewhere if version % 2 else both.table
        answer = writer.commit(version)
        assert answer.status_code == 200, answer.text
        assert [commit["version"] for commit in answer.json()["commits"]] == [*range(version, 0, -1)]


def rename_table(both: Both) -> Lake:
    assert both.first.http.post(f"{both.first.tables_url()}/t/rename", json={"new-name": "u"}).status_code == 204
    return both.second


def rename_schema(both: Both) -> Lake:
    path = f"{UNITY}/schemas/{both.first.catalog}.{both.first.schema}"
    assert both.first.http.patch(path, json={"new_name": "moved"}).status_code == 200
    return Lake(both.second.http, both.second.catalog, "moved")


def rename_catalog(both: Both) -> Lake:
    moved = f"{both.first.catalog}_moved"
    assert both.first.http.patch(f"{UNITY}/catalogs/{both.first.catalog}", json={"new_name": moved}).status_code == 200
    return Lake(both.second.http, moved, both.second.schema)


@pytest.mark.parametrize(("rename", "name"), [(rename_table, "u"), (rename_schema, "t"), (rename_catalog, "t")])
def test_a_table_is_found_and_written_under_its_new_name_only(
    both: Both, rename: Callable[[Both], Lake], name: str
) -> None:
    there = rename(both)
    gone = both.second.load("t")
    assert gone.status_code == 404, gone.text
    assert there.load(name).json()["latest-table-version"] == 2
    moved = LakeTable(there, name, both.table.id, both.table.location, timestamp=both.table.timestamp)
    answer = moved.commit(3)
    assert answer.status_code == 200, answer.text
    lost = LakeTable(both.second, "t", both.table.id, both.table.location, timestamp=both.table.timestamp + 9).commit(4)
    assert lost.status_code == 404
    assert f"{there.catalog}.{there.schema}.{name}" in lost.json()["error"]["message"]


def drop(both: Both) -> httpx.Response:
    return both.first.http.delete(f"{both.first.tables_url()}/t")


def test_a_dropped_table_is_gone_and_one_of_the_same_name_is_another(both: Both) -> None:
    assert drop(both).status_code == 204
    assert both.second.load("t").status_code == 404
    again = both.first.new_table("t")
    assert both.second.load("t").json()["metadata"]["table-uuid"] == again.id != both.table.id


# What is kept


def known(*tables: tuple[str, int, Table], entries_max: int = 100) -> KnownTables:
    kept = KnownTables(entries_max=entries_max)
    for id, state, table in tables:
        kept.put(TableId(id), state, table)
    return kept


def test_a_table_is_known_in_the_state_it_was_read_in_and_in_no_other() -> None:
    table = managed_table(latest=3)
    kept = known(("a", 7, table))
    assert kept.get(TableId("a"), 7) is table
    assert kept.get(TableId("a"), 8) is None
    assert kept.get(TableId("b"), 7) is None


def test_what_is_expected_may_be_loaded_but_has_not_happened_until_it_is_confirmed() -> None:
    before, after = managed_table(latest=3), managed_table(latest=4)
    kept = known(("a", 7, before))
    kept.expect({TableId("a"): (8, after)})
    assert kept.get(TableId("a"), 8) is after
    assert kept.newest(TableId("a")) is before
    kept.confirm()
    assert kept.newest(TableId("a")) is after
    assert kept.get(TableId("a"), 7) is None


def test_what_was_expected_and_did_not_happen_leaves_no_trace() -> None:
    before = managed_table(latest=3)
    kept = known(("a", 7, before))
    kept.expect({TableId("a"): (8, managed_table(latest=4))})
    kept.dismiss()
    kept.confirm()
    assert kept.get(TableId("a"), 8) is None
    assert kept.newest(TableId("a")) is before


def test_a_slow_reader_does_not_put_an_old_state_over_a_new_one() -> None:
    new = managed_table(latest=4)
    kept = known(("a", 8, new), ("a", 7, managed_table(latest=3)))
    assert kept.newest(TableId("a")) is new


def test_beyond_its_bound_what_was_put_longest_ago_is_forgotten() -> None:
    kept = known(("a", 1, managed_table(latest=4)), ("b", 2, managed_table()), entries_max=6)
    assert kept.newest(TableId("a")) is not None, "five entries for the one, one for the other"
    kept.put(TableId("c"), 3, managed_table())
    assert kept.newest(TableId("a")) is None
    assert kept.newest(TableId("b")) is not None
    assert kept.newest(TableId("c")) is not None


def test_one_table_is_kept_however_large_it_is() -> None:
    large = managed_table(latest=50)
    assert known(("a", 1, large), entries_max=1).newest(TableId("a")) is large
