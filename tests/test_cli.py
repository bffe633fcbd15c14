"""The command line: help that helps, one-line refusals, the first start."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.servers import ServerProcess
from tidegate.cli.main import COMMANDS


def tidegate(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "COLUMNS": "120", **variables}
    command = [sys.executable, "-m", "tidegate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_starts_with_what_it_does(command: str) -> None:
    listed, own = tidegate("--help"), tidegate(command, "--help")
    assert command in listed.stdout
    assert own.returncode == 0
    assert len(own.stdout.splitlines()) > 3


def test_settings_prints_each_with_its_value_and_source(tmp_path: Path) -> None:
    printed = tidegate("settings", "--home", str(tmp_path), "--port", "9", TIDEGATE_GROUP_MAX="7").stdout
    rows = {line.split()[0]: line for line in printed.splitlines()[1:]}
    assert rows["port"].split(maxsplit=2)[1:] == ["9", "flag --port"]
    assert rows["group_max"].split(maxsplit=2)[1:] == ["7", "environment variable TIDEGATE_GROUP_MAX"]
    assert rows["host"].split() == ["host", "127.0.0.1", "default"]
    assert f"sqlite:///{tmp_path}/catalog.db" in rows["database"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--auth", "none", "--host", "0.0.0.0"], "loopback"),
        (["--database", "mysql://x/y"], "sqlite or postgresql"),
        (["--database", "sqlite://"], "in-memory"),
        (["--database", "postgresql://nobody@127.0.0.1:1/none"], "cannot be used"),
        (["--database", "certainly not a URL"], "cannot be read"),
        (["--home", "/dev/null/home"], "cannot be made"),
        (["--host", "203.0.113.1"], "Cannot listen"),
    ],
)
def test_a_start_that_cannot_be_says_why_in_one_line(arguments: list[str], told: str, tmp_path: Path) -> None:
    ended = tidegate("serve", "--home", str(tmp_path), "--port", "0", *arguments)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = tidegate("serve", "--home", str(tmp_path), "--port", port)
    assert ended.returncode == 2
    assert port in ended.stderr


def test_the_first_start_makes_everything_and_the_second_finds_it(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "new" / "home").start()
    token = server.token
    assert stat.S_IMODE((server.home / "admin.token").stat().st_mode) == 0o600
    assert (server.home / "catalog.db").is_file()
    assert (server.home / "tables").is_dir()
    with server.http() as http:
        catalogs = http.get("/api/2.1/unity-catalog/catalogs").json()["catalogs"]
        assert [catalog["name"] for catalog in catalogs] == ["main"]
        assert http.get("/api/2.1/unity-catalog/schemas/main.default").status_code == 200
        first = http.get("/api/2.1/unity-catalog/metastore_summary").json()
        assert http.delete("/api/2.1/unity-catalog/catalogs/main?force=true").status_code == 200
    assert server.stop() == 0
    server.start()
    assert server.token == token
    with server.http() as http:
        assert http.get("/api/2.1/unity-catalog/metastore_summary").json() == first
        # What was deleted on purpose does not come back.
        assert http.get("/api/2.1/unity-catalog/catalogs").json()["catalogs"] == []
    assert server.stop() == 0


def test_without_authentication_no_token_is_asked_for_and_none_is_made(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, settings={"auth": "none"}).start()
    try:
        assert httpx.get(f"{server.url}/api/2.1/unity-catalog/catalogs").status_code == 200
        assert not (tmp_path / "admin.token").exists()
    finally:
        assert server.stop() == 0
