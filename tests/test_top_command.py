"""`tidegate top`: what people see of a catalog at work, and one clear line when there is nothing to see."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from rich.console import Console
from typer.testing import CliRunner

from tests.servers import ServerProcess
from tests.test_publishing import wait_until
from tidegate.cli.main import app
from tidegate.cli.server import Target
from tidegate.cli.top import render_status


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "home", settings={"publishing": "off"}).start()
    yield server
    if server.process is not None and server.process.poll() is None:
        assert server.stop() == 0


def run(*arguments: str, **variables: str) -> Result:
    return CliRunner().invoke(app, ["top", *arguments], env={"COLUMNS": "80", **variables})


# The command


def test_once_prints_the_servers_and_what_waits(watched: ServerProcess) -> None:
    with watched.lake() as lake:
        table = lake.new_table("t")
        table.commit(1)
        table.commit(2)
    shown = run("--once", "--uri", watched.url, "--token", watched.token)
    assert shown.exit_code == 0, shown.output
    assert "1 server" in shown.stdout
    assert watched.url in shown.stdout
    assert watched.url.removeprefix("http://") in shown.stdout
    assert "2 commits of 1 table wait" in shown.stdout
    assert "alarms  none" in shown.stdout


def test_json_is_what_the_server_says(watched: ServerProcess) -> None:
    shown = run("--json", TIDEGATE_URI=watched.url, TIDEGATE_TOKEN=watched.token)
    assert shown.exit_code == 0, shown.output
    assert [server["url"] for server in json.loads(shown.stdout)["servers"]] == [watched.url]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--uri", "http://127.0.0.1:9"], "No server answers at http://127.0.0.1:9"),
        (["--uri", "ftp://x"], "is not the address of a server"),
    ],
)
def test_nobody_there_is_one_clear_line(arguments: list[str], told: str) -> None:
    shown = run("--once", *arguments)
    assert shown.exit_code == 2
    assert told in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("how", [["--once"], []])
def test_a_wrong_token_ends_it_with_the_way_out(watched: ServerProcess, how: list[str]) -> None:
    shown = run(*how, "--uri", watched.url, "--token", "wrong")
    assert shown.exit_code == 2
    assert "Give --token" in shown.stderr


def test_it_goes_on_while_the_server_is_away_and_says_so(watched: ServerProcess) -> None:
    command = [sys.executable, "-m", "tidegate", "top", "--uri", watched.url, "--token", watched.token]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb"}
    process = subprocess.Popen(
        [*command, "--interval", "0.2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    seen: list[str] = []
    assert process.stdout is not None
    threading.Thread(target=seen.extend, args=(iter(process.stdout.readline, ""),), daemon=True).start()

    def shown() -> str:
        return " ".join("".join(seen).split())

    try:
        wait_until(lambda: "1 server" in shown(), "the server is seen")
        port = int(watched.url.rpartition(":")[2])
        assert watched.stop() == 0
        wait_until(lambda: "Trying again" in shown(), "it is said that the server is away")
        before = len(shown())
        watched.port = port
        watched.start()
        wait_until(lambda: "alarms none" in shown()[before + 500 :], "the server is seen again")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()


# What people see


def answer(**changes: Any) -> dict[str, Any]:
    server = {
        "id": "1",
        "host": "h",
        "pid": 4_194_304,
        "url": "http://catalog-17.example.internal:8080",
        "version": "10.11.12",
        "started_at": 0,
        "seen_at": 7_200_000,
        "silent": False,
        "requests_per_second": 12345.67,
        "commits_per_second": 2.25,
        "conflicts_per_second": 0.0,
    }
    return {
        "at": 7_200_000,
        "servers": [server, {**server, "silent": True, "seen_at": 7_170_000, "url": ""}],
        "requests_per_second": 12345.67,
        "commits_per_second": 2.25,
        "conflicts_per_second": 1.0,
        "unpublished": {"tables": 3, "commits": 12, "largest": 9, "seconds": 95.0},
        "hottest_tables": [
            {"full_name": f"{'catalog' * 9}.schema.{'orders' * 9}", "commits_per_second": 2.0, "loads_per_second": 40.0}
        ],
        "alarms": 1,
        "newest_alarms": [
            {
                "full_name": "a.b.c",
                "version": 7,
                "reason": "other_bytes",
                "message": "Other bytes. " * 9,
                "raised_at": 0,
            }
        ],
        **changes,
    }


def rendered(status: dict[str, Any], width: int = 80) -> str:
    written = io.StringIO()
    Console(file=written, width=width, highlight=False).print(render_status(Target("http://here:1", None), status))
    return written.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_the_terminal(width: int) -> None:
    lines = rendered(answer(), width).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    head = next(line for line in lines if "requests/s" in line and "server " in line and "pid" in line)
    for column in ("pid", "up for", "commits/s", "conflicts/s"):
        assert column in head


def test_what_is_wrong_is_told() -> None:
    text = " ".join(rendered(answer()).split())
    assert "Tidegate 10.11.12 at http://here:1 2 servers (1 silent)" in text
    assert "12346 requests/s, 2.2 commits/s, 1 conflicts/s" in text
    assert "12 commits of 3 tables wait, the oldest for 95 s, at most 9 of one table" in text
    assert "silent 30 s" in text
    assert "alarms 1 a.b.c version 7 Other bytes." in text


def test_a_quiet_catalog_is_told_in_a_few_lines() -> None:
    quiet = {"tables": 0, "commits": 0, "largest": 0, "seconds": 0.0}
    text = rendered(answer(unpublished=quiet, hottest_tables=[], alarms=0, newest_alarms=[]))
    assert "publishing  nothing waits" in text
    assert "no table was read or written" in text
    assert "alarms  none" in text
