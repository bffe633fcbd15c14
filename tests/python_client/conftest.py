"""A client of the shared server, with each of its faces in turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.python_client.faces import close_face, open_face
from tests.servers import ServerProcess
from tidegate.client import Patience
from tidegate.client.inline_limits import INLINE_BYTES_MAX

QUICK = Patience(attempts_max=200, first_seconds=0.005, seconds_max=0.05)
COLUMNS = {"id": "long", "name": "string"}
KINDS = pytest.mark.parametrize("inline_bytes_max", [0, INLINE_BYTES_MAX], ids=["staged", "inline"])
"""Both ways in which commits go to the server."""


@pytest.fixture(params=["sync", "async"])
def face(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def inline_bytes_max() -> int:
    """Commits go inline, as a rule. 0: they are staged."""
    return INLINE_BYTES_MAX


@pytest.fixture
def catalog(server: ServerProcess, face: str, inline_bytes_max: int) -> Iterator[Any]:
    opened = open_face(face, server.url, token=server.token, patience=QUICK, inline_bytes_max=inline_bytes_max)
    yield opened
    close_face(opened)


@pytest.fixture
def table(catalog: Any, unique: str) -> Any:
    return catalog.create_table(f"main.default.{unique}", COLUMNS)


def log_of(table: Any) -> Path:
    """Without a load: that would put inline commits into files."""
    return Path(table.describe().storage_location.removeprefix("file://")) / "_delta_log"
