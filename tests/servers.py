"""Tidegate servers as real processes, on a home of their own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.lake import Lake

START_SECONDS_MAX = 60
PUBLISHING = {"publishing": "on"}


@dataclass
class ServerProcess:
    """`tidegate serve` with the given settings. Start again after `kill()` to see what survived.

    Only writers publish, so that what is published when is for the test to say; unless the settings say when the server
    does, or that it does.
    """

    home: Path
    database: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[str] | None = None
    url: str = ""
    log: list[str] = field(default_factory=list)
    python: str = sys.executable

    def start(self) -> ServerProcess:
        command = [self.python, "-m", "tidegate", "serve", "--home", str(self.home), "--port", str(self.port)]
        if self.database is not None:
            command += ["--database", self.database]
        settings = {"publishing": "on" if "publish_after_ms" in self.settings else "off", **self.settings}
        environment = {**os.environ, **{f"TIDEGATE_{k.upper()}": v for k, v in settings.items()}}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        threading.Thread(target=self._read_log, args=(self.process,), daemon=True).start()
        self._wait_until_healthy()
        return self

    def _read_log(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.log.append(line)

    def _wait_until_healthy(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS_MAX
        seen = len(self.log)
        while time.monotonic() < deadline:
            announced = re.search(r"serves (https?://\S+)", "".join(self.log[seen:]))
            if announced:
                self.url = announced[1]
                with contextlib.suppress(httpx.TransportError):
                    if httpx.get(f"{self.url}/health", verify=False).status_code == 200:
                        return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError("the server did not start:\n" + "".join(self.log[-50:]))

    @property
    def token(self) -> str:
        return (self.home / "admin.token").read_text().strip()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def http(self, **options: object) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **options)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def lake(self) -> Iterator[Lake]:
        with self.http() as http:
            yield Lake(http)
