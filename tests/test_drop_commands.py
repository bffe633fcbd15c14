"""`tidegate drop`, `dropped` and `restore`: what people see, and one clear line when it cannot be."""

from __future__ import annotations

import json

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.lake import Lake, LakeTable
from tests.servers import ServerProcess
from tidegate.cli.main import app

DROPPED = "/api/tidegate/v1/dropped-tables"


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    table = lake.new_table(unique)
    assert table.commit(1).status_code == 200
    return table


def run(server: ServerProcess, *arguments: str, typed: str | None = None) -> Result:
    environ = {"COLUMNS": "200", "TIDEGATE_URI": server.url, "TIDEGATE_TOKEN": server.token}
    return CliRunner().invoke(app, arguments, env=environ, input=typed)


def name_of(table: LakeTable) -> str:
    return f"main.default.{table.name}"


def test_a_table_is_dropped_listed_and_restored(server: ServerProcess, table: LakeTable) -> None:
    dropped = run(server, "drop", name_of(table))
    assert dropped.exit_code == 0, dropped.stderr
    assert f"For 168 hours it can be restored: tidegate restore {table.id}" in dropped.stdout
    assert table.lake.load(table.name).status_code == 404
    listed = run(server, "dropped").stdout
    assert [line for line in listed.splitlines() if name_of(table) in line and table.id in line]
    back = run(server, "restore", name_of(table))
    assert back.stdout == f"{name_of(table)} is back, at version 1.\n"
    assert table.commit(2).status_code == 200


def test_a_table_is_restored_under_another_name_by_its_id(server: ServerProcess, table: LakeTable) -> None:
    run(server, "drop", name_of(table))
    back = run(server, "restore", table.id, "--as", f"{name_of(table)}_2")
    assert back.stdout == f"{name_of(table)}_2 is back, at version 1.\n"


def test_of_two_that_were_dropped_under_one_name_the_id_says_which(server: ServerProcess, table: LakeTable) -> None:
    run(server, "drop", name_of(table))
    second = table.lake.new_table(table.name)
    run(server, "drop", name_of(table))
    refused = run(server, "restore", name_of(table))
    assert refused.exit_code == 2
    assert f"the last dropped first: {second.id}, {table.id}." in refused.stderr
    assert run(server, "restore", second.id).exit_code == 0


def test_a_purge_is_asked_about_and_no_is_no(server: ServerProcess, table: LakeTable) -> None:
    kept = run(server, "drop", name_of(table), "--purge", typed="n\n")
    assert kept.exit_code == 1
    assert f"all files in {table.location}" in kept.stderr
    assert table.commit(2).status_code == 200


@pytest.mark.parametrize("how", ["asked", "with --yes"])
def test_a_purge_leaves_no_way_back(server: ServerProcess, table: LakeTable, how: str) -> None:
    arguments, typed = (["--yes"], None) if how == "with --yes" else ([], "y\n")
    purged = run(server, "drop", name_of(table), "--purge", *arguments, typed=typed)
    assert purged.exit_code == 0, purged.stderr
    assert "being purged" in purged.stdout
    refused = run(server, "restore", table.id)
    assert refused.exit_code == 2
    assert "purged" in refused.stderr


def test_the_list_is_printed_as_json(server: ServerProcess, table: LakeTable) -> None:
    run(server, "drop", name_of(table))
    listed = json.loads(run(server, "dropped", "--json").stdout)
    assert [one["state"] for one in listed if one["table_id"] == table.id] == ["DROPPED"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["drop", "main.default.nothing"], "There is no table main.default.nothing."),
        (["drop", "nothing"], "is not a table's full name"),
        (["restore", "main.default.nothing"], "There is no dropped table main.default.nothing"),
    ],
)
def test_what_is_not_there_is_one_clear_line(server: ServerProcess, arguments: list[str], told: str) -> None:
    refused = run(server, *arguments)
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["drop", "a.b.c"], ["dropped"], ["restore", "a.b.c"]])
def test_without_a_server_it_is_one_clear_line(arguments: list[str]) -> None:
    ended = CliRunner().invoke(app, [*arguments, "--uri", "http://127.0.0.1:1"])
    assert ended.exit_code == 2
    assert "No server answers" in ended.stderr
