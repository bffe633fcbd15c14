"""`tidegate adopt`, `release` and `adoptable`: what people see, and one clear line when it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake import Lake
from tests.servers import ServerProcess
from tests.test_drop_commands import run
from tests.test_ownership import Plain, is_ours


@pytest.fixture
def plain(tmp_path: Path) -> Plain:
    return Plain(tmp_path / "orders").create()


def test_a_table_is_adopted_and_released(server: ServerProcess, lake: Lake, plain: Plain, unique: str) -> None:
    name = f"main.default.{unique}"
    refused = run(server, "adopt", plain.location, name)
    assert refused.exit_code == 2
    assert f"tidegate adoptable add {plain.location}" in refused.stderr
    allowed = run(server, "adoptable", "add", f"file://{plain.folder.parent}")
    assert allowed.stdout == f"Tables may be adopted from file://{plain.folder.parent} and below.\n"
    assert f"file://{plain.folder.parent}\n" in run(server, "adoptable", "list").stdout
    shown = run(server, "adopt", plain.location, name, "--dry-run")
    assert shown.stdout.startswith("The table can be adopted. Version 2 would be:\n")
    assert '"catalogManaged"' in shown.stdout
    assert not is_ours(plain)
    done = run(server, "adopt", plain.location, name)
    assert done.stdout == f"{name} is a managed table now, by its version 2.\n"
    assert lake.load(unique).json()["latest-table-version"] == 2
    back = run(server, "release", name, "--forget")
    assert back.stdout == (f"{name} is released by version 3: it is {plain.location}. The catalog has forgotten it.\n")
    assert not is_ours(plain)
    gone = run(server, "adoptable", "remove", f"file://{plain.folder.parent}")
    assert gone.exit_code == 0, gone.stderr
    assert run(server, "adoptable", "remove", f"file://{plain.folder.parent}").exit_code == 2


def test_a_table_is_only_made_known(server: ServerProcess, lake: Lake, plain: Plain, unique: str) -> None:
    name = f"main.default.{unique}"
    run(server, "adoptable", "add", plain.location)
    shown = run(server, "adopt", plain.location, name, "--external", "--dry-run")
    assert shown.stdout == "The table can be registered, at version 1. Nothing would be written.\n"
    done = run(server, "adopt", plain.location, name, "--external")
    assert done.stdout == f"{name} is known as an external table, at version 1. Nothing was written.\n"
    assert lake.load(unique).json()["metadata"]["table-type"] == "EXTERNAL"
    refused = run(server, "release", name)
    assert refused.exit_code == 2
    assert "external" in refused.stderr
