"""A server of its own for tests that stop it, and the catalog of it that the shared Spark session sees."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.lake import UNITY
from tests.servers import PUBLISHING, ServerProcess


def start_with_catalog(home: Path, catalog: str, **settings: str) -> ServerProcess:
    """After this start it always comes back on the same port, as a service does."""
    server = ServerProcess(home, settings={**PUBLISHING, **settings}).start()
    server.port = httpx.URL(server.url).port or 0
    with server.http() as http:
        response = http.post(f"{UNITY}/catalogs", json={"name": catalog})
        assert response.status_code == 200, response.text
    return server
