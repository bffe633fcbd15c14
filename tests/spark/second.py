"""A server of its own for tests that stop it, and the catalog of it that the shared Spark session sees."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import httpx

from tests.lake import UNITY
from tests.servers import ServerProcess


class StoppableServer(ServerProcess):
    """After its first start it always comes back on the same port, as a service does."""

    def start(self) -> StoppableServer:
        if not self.url:
            super().start()
            return self
        port = str(httpx.URL(self.url).port)
        command = [sys.executable, "-m", "tidegate", "serve", "--home", str(self.home), "--port", port]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._read_log, args=(self.process,), daemon=True).start()
        self._wait_until_healthy()
        return self


def start_with_catalog(home: Path, catalog: str, **settings: str) -> StoppableServer:
    server = StoppableServer(home, settings=settings).start()
    with server.http() as http:
        response = http.post(f"{UNITY}/catalogs", json={"name": catalog})
        assert response.status_code == 200, response.text
    return server
