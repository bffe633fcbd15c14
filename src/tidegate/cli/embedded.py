"""A catalog server of one's own, for as long as it is needed.

    with embedded_catalog(home) as catalog:
        session(uri=catalog.uri, token=catalog.token)

It is `tidegate serve` as a process, on a free port of the loopback address. It is stopped when the block ends, however
it ends: Ctrl-C, SIGTERM and errors included. The home may be one that another server serves at the same time.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tidegate.compose import TOKEN_FILE
from tidegate.domain.errors import InvalidRequest
from tidegate.settings import Settings, load_settings

START_SECONDS_MAX = 60
STOP_SECONDS_EXTRA = 10
POLL_SECONDS = 0.05
LINES_SHOWN_MAX = 20
HOST = "127.0.0.1"


@dataclass(slots=True)
class EmbeddedCatalog:
    uri: str
    token: str
    home: Path
    log: Path
    process: subprocess.Popen[bytes]
    detached: bool = False

    def detach(self) -> None:
        """Leave the server running when the block ends. `process.pid` is what stops it then."""
        self.detached = True


@contextlib.contextmanager
def embedded_catalog(home: Path | None = None, *, port: int = 0) -> Generator[EmbeddedCatalog]:
    """A running server on `home` (default: the setting home). Raises InvalidRequest when it cannot start."""
    settings = load_settings({"home": home, "host": HOST, "port": port}, os.environ).settings
    handle, log = tempfile.mkstemp(prefix="tidegate-", suffix=".log")
    with _stopping_by_signal(), os.fdopen(handle, "wb") as output:
        process = _launch(settings, output.fileno())
        catalog: EmbeddedCatalog | None = None
        try:
            uri = _wait_until_served(process, Path(log))
            catalog = EmbeddedCatalog(uri, _token(settings), settings.home, Path(log), process)
            yield catalog
        finally:
            if catalog is None or not catalog.detached:
                try:
                    _stop(process, seconds_max=settings.shutdown_seconds_max + STOP_SECONDS_EXTRA)
                finally:
                    os.unlink(log)


def _launch(settings: Settings, output: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "tidegate", "serve", "--home", str(settings.home)]
    command += ["--host", settings.host, "--port", str(settings.port)]
    # In a session of its own, so that Ctrl-C reaches us alone: the server is stopped when nobody needs it any more.
    return subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )


def _wait_until_served(process: subprocess.Popen[bytes], log: Path) -> str:
    """The server's address, once it answers there."""
    deadline = time.monotonic() + START_SECONDS_MAX
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline and process.poll() is None:
        announced = re.search(r"^Tidegate serves (http://\S+)\n", log.read_text(), re.MULTILINE)
        if announced is not None:
            with contextlib.suppress(OSError), direct.open(f"{announced[1]}/health", timeout=START_SECONDS_MAX):
                return announced[1]
        time.sleep(POLL_SECONDS)
    said = "\n".join(log.read_text().strip().splitlines()[-LINES_SHOWN_MAX:]).removeprefix("tidegate: ")
    raise InvalidRequest(f"The embedded catalog did not start. {said or 'It says nothing.'}")


def _token(settings: Settings) -> str:
    """Clients want a token in any case; a server without authentication does not look at it."""
    return "none" if settings.auth == "none" else (settings.home / TOKEN_FILE).read_text().strip()


def _stop(process: subprocess.Popen[bytes], *, seconds_max: int) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(seconds_max)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _stopping_by_signal() -> Generator[None]:
    """SIGTERM and SIGHUP end the block as an exception does, instead of ending this process and leaving the server."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, _exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
