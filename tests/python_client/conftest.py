"""A client of the shared server, with each of its faces in turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.python_client.faces import close_face, open_face
from tests.servers import ServerProcess
from tidegate.client import Patience

QUICK = Patience(attempts_max=200, first_seconds=0.005, seconds_max=0.05)
COLUMNS = {"id": "long", "name": "string"}


@pytest.fixture(params=["sync", "async"])
def face(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def catalog(server: ServerProcess, face: str) -> Iterator[Any]:
    opened = open_face(face, server.url, token=server.token, patience=QUICK)
    yield opened
    close_face(opened)


@pytest.fixture
def table(catalog: Any, unique: str) -> Any:
    return catalog.create_table(f"main.default.{unique}", COLUMNS)


def log_of(table: Any) -> Path:
    return Path(table.load().metadata.location.removeprefix("file://")) / "_delta_log"
