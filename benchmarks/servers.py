"""The servers under test, each a process of its own on a port of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.postgres import free_port

START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
UNPUBLISHED_MAX = 1_000_000
_PROBE = b"GET /health HTTP/1.1\r\nHost: catalog\r\nConnection: close\r\n\r\n"


@dataclass(slots=True)
class RunningServer:
    process: subprocess.Popen[bytes]
    url: str
    start_seconds: float
    """From the start of the process to the first 200 of /health."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def start_tidegate(home: Path, database: str | None, *, publishing: bool) -> RunningServer:
    """Where the driver publishes, or keeps commits unpublished in order to load them, the server does not; it then
    takes as many of them as the driver wants to keep."""
    more = [] if database is None else ["--database", database]
    command = ["-m", "tidegate", "serve", "--home", str(home), "--log-level", "warning", *more]
    kept = {"TIDEGATE_PUBLISHING": "off", "TIDEGATE_UNPUBLISHED_COMMITS_MAX": str(UNPUBLISHED_MAX)}
    return _start(command, home.parent, **({"TIDEGATE_PUBLISHING": "on"} if publishing else kept))


def start_echo(size: int, folder: Path) -> RunningServer:
    return _start(["-m", "benchmarks.echo", "--bytes", str(size)], folder)


def start_responder(size: int, folder: Path) -> RunningServer:
    return _start(["-m", "benchmarks.responder", "--bytes", str(size)], folder)


def _start(arguments: Sequence[str], folder: Path, **variables: str) -> RunningServer:
    port = free_port()
    log = folder / f"server-{port}.log"
    command = [sys.executable, *arguments, "--port", str(port)]
    with log.open("wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **variables})
    while not _is_healthy(port):
        if process.poll() is not None or time.perf_counter() - started > START_SECONDS_MAX:
            process.kill()
            raise RuntimeError(f"{' '.join(command)} does not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.002)
    return RunningServer(process, f"http://127.0.0.1:{port}", time.perf_counter() - started)


def _is_healthy(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS_MAX) as probe:
        probe.sendall(_PROBE)
        return probe.recv(64).startswith(b"HTTP/1.1 200")
    return False
