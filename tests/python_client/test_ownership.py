"""Tables are adopted and released through the client, and rows go on through it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.servers import ServerProcess
from tests.test_ownership import Plain, allow, is_ours
from tidegate import client


@pytest.fixture
def plain(server: ServerProcess, tmp_path: Path) -> Plain:
    with server.http() as http:
        allow(http, tmp_path)
    return Plain(tmp_path / "orders").create()


def test_a_table_is_adopted_written_and_released(catalog: Any, plain: Plain, unique: str) -> None:
    name = f"main.default.{unique}"
    shown = catalog.adopt_table(plain.location, name, dry_run=True)
    assert (shown.version, [*shown.actions[0]]) == (2, ["commitInfo"])
    assert not is_ours(plain)
    adopted = catalog.adopt_table(plain.location, name)
    assert (adopted.version, adopted.location) == (2, plain.location)
    assert catalog.adopt_table(plain.location, name).table_id == adopted.table_id
    written = catalog.table(name).append([{"id": 7}])
    assert written.version == 3
    assert [file.path for file in catalog.table(name).snapshot(version=2).files] == ["1.parquet"]
    released = catalog.release_table(name)
    assert (released.version, released.kept) == (4, "external")
    assert not is_ours(plain)
    assert plain.versions() == [0, 1, 2, 3, 4]


def test_a_table_is_only_made_known_and_forgotten_tables_are_gone(catalog: Any, plain: Plain, unique: str) -> None:
    name = f"main.default.{unique}"
    catalog.adopt_table(plain.location, name, external=True)
    assert catalog.table(name).snapshot().version == 1
    with pytest.raises(client.InvalidRequest, match="external"):
        catalog.release_table(name)
    catalog.table(name).drop()
    catalog.adopt_table(plain.location, name)
    catalog.release_table(name, forget=True)
    assert not catalog.has_table(name)


def test_refusals_are_errors_that_say_what_to_do(catalog: Any, unique: str) -> None:
    with pytest.raises(client.InvalidRequest, match="tidegate adoptable add"):
        catalog.adopt_table("file:///nowhere", f"main.default.{unique}")
    with pytest.raises(client.NoSuchTable):
        catalog.release_table(f"main.default.{unique}")
