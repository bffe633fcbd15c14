"""Several workers behind one address: one catalog, looked after."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lake import Lake, LakeTable, add_commit
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tests.test_cli import tidegate

WORKERS = 2
SECONDS_MAX = 60


@pytest.fixture
def crew(postgres: PostgresServer, tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "home", postgres.create_database(), settings={"workers": str(WORKERS)}).start()
    yield server
    if server.process is not None and server.process.poll() is None:
        server.kill()


def workers_of(crew: ServerProcess) -> set[int]:
    """The processes that the first one has started and that serve: not the helper of Python's multiprocessing."""
    assert crew.process is not None
    children = Path(f"/proc/{crew.process.pid}/task/{crew.process.pid}/children").read_text().split()
    return {int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def commit_some(lake: Lake, table: LakeTable, wins: int) -> None:
    for _ in range(wins):
        while True:
            latest = lake.load(table.name).json()["latest-table-version"]
            mine = LakeTable(lake, table.name, table.id, table.location, timestamp=int(time.time() * 1000) + latest)
            answer = lake.update(table.name, mine.request(add_commit(mine.stage_commit(latest + 1))))
            if answer.status_code == 200:
                break
            assert answer.status_code == 409, answer.text


def test_writers_on_all_workers_share_one_history(crew: ServerProcess) -> None:
    with crew.lake() as lake:
        table = lake.new_table("t")

    def write(_: int) -> None:
        with crew.lake() as mine:
            commit_some(mine, table, 5)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    with crew.lake() as lake:
        assert [commit["version"] for commit in lake.load("t").json()["commits"]] == [*range(40, 0, -1)]
    assert len(workers_of(crew)) == WORKERS
    assert crew.stop() == 0, "".join(crew.log[-50:])


@pytest.mark.parametrize("asked_by", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_all_of_them_end_well(crew: ServerProcess, asked_by: signal.Signals) -> None:
    workers = workers_of(crew)
    assert crew.process is not None
    crew.process.send_signal(asked_by)
    assert crew.process.wait(timeout=SECONDS_MAX) == 0, "".join(crew.log[-50:])
    wait_until(lambda: all(is_gone(pid) for pid in workers))
    assert "Traceback" not in "".join(crew.log)


def test_a_worker_that_was_killed_is_replaced(crew: ServerProcess) -> None:
    before = workers_of(crew)
    os.kill(min(before), signal.SIGKILL)
    wait_until(lambda: len(workers_of(crew) - before) == 1 and len(workers_of(crew)) == WORKERS)
    with crew.lake() as lake:
        assert lake.new_table("t").commit(1).status_code == 200
    assert crew.stop() == 0, "".join(crew.log[-50:])


def test_workers_do_not_outlive_the_process_that_started_them(crew: ServerProcess) -> None:
    workers = workers_of(crew)
    crew.kill()
    wait_until(lambda: all(is_gone(pid) for pid in workers))


def test_several_workers_on_sqlite_are_refused_with_the_way_out(tmp_path: Path) -> None:
    ended = tidegate("serve", "--home", str(tmp_path / "home"), "--workers", "2")
    assert ended.returncode == 2
    assert "PostgreSQL" in ended.stderr
    assert not (tmp_path / "home").exists()
