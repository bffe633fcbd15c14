from __future__ import annotations

from pathlib import Path

import pytest

from tests.python_client_log.logs import Table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """An empty folder with room for a log; its name is one that URIs spell differently."""
    return Table(tmp_path / "a table %41")
