"""Several processes that serve one address, for more cores than one process can use.

Each worker is a whole server; they share the listening socket and the database, and know nothing of each other. The
process that starts them looks after them: a worker that ends is replaced, unless workers keep ending right after their
start; when it is asked to stop, so are they; and when it vanishes, they notice and stop.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType

from tidegate.settings import Settings

Serve = Callable[[Settings, socket.socket], None]

SOON_SECONDS = 5
"""A worker that ends sooner than this after its start has not really started."""
FAILURES_MAX = 5
"""After so many of those in a row there is no point in going on."""
PATIENCE_SECONDS = 10
"""How much longer than a worker itself allows for its stop it is waited for."""

log = logging.getLogger(__name__)
# Spawned, not forked: nothing that the first process has opened, database or threads, leaks into a worker.
_processes = get_context("spawn")


def run_workers(settings: Settings, listening: socket.socket, serve: Serve) -> None:
    """Returns by SystemExit: 0 after a stop that was asked for, 1 when workers would not start."""
    # Nobody writes to it: it ends when this process does, and that is what workers read from it.
    ours, theirs = _processes.Pipe(duplex=False)
    crew = _Crew(settings, listening, serve, ours)
    for asked_to_stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked_to_stop, crew.stop)
    with theirs:
        crew.look_after()


class _Crew:
    def __init__(self, settings: Settings, listening: socket.socket, serve: Serve, alive: Connection) -> None:
        self._settings = settings
        self._listening = listening
        self._serve = serve
        self._alive = alive
        self._workers: dict[SpawnProcess, float] = {}
        self._failures = 0
        self._stopping = False
        self._patient_until = float("inf")

    def look_after(self) -> None:
        for _ in range(self._settings.workers):
            self._start_one()
        while self._workers:
            ended = wait([worker.sentinel for worker in self._workers], timeout=1)
            for worker in [each for each in self._workers if each.sentinel in ended]:
                self._replace(worker)
            if time.monotonic() > self._patient_until:
                for worker in self._workers:
                    worker.kill()
        sys.exit(1 if self._failures >= FAILURES_MAX else 0)

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stop_all()

    def _stop_all(self) -> None:
        self._stopping = True
        self._patient_until = time.monotonic() + self._settings.shutdown_seconds_max + PATIENCE_SECONDS
        for worker in self._workers:
            worker.terminate()

    def _start_one(self) -> None:
        worker = _processes.Process(target=_work, args=(self._settings, self._listening, self._serve, self._alive))
        worker.start()
        self._workers[worker] = time.monotonic()
        if self._stopping:
            worker.terminate()

    def _replace(self, worker: SpawnProcess) -> None:
        started = self._workers.pop(worker)
        worker.join()
        if self._stopping:
            return
        log.error("worker %s ended with exit code %s", worker.pid, worker.exitcode)
        self._failures = self._failures + 1 if time.monotonic() - started < SOON_SECONDS else 0
        if self._failures < FAILURES_MAX:
            self._start_one()
        else:
            log.error("%d workers in a row ended right after their start; giving up", FAILURES_MAX)
            self._stop_all()


def _work(settings: Settings, listening: socket.socket, serve: Serve, alive: Connection) -> None:
    os.setsid()  # Ctrl-C reaches the first process alone, which then stops its workers in order
    threading.Thread(target=_stop_with_parent, args=(alive,), daemon=True).start()
    serve(settings, listening)


def _stop_with_parent(alive: Connection) -> None:
    wait([alive])
    os.kill(os.getpid(), signal.SIGTERM)
