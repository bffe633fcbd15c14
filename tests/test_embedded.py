"""A catalog server for as long as a block lasts, however the block ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.lake import UNITY
from tests.servers import ServerProcess
from tidegate.cli.embedded import EmbeddedCatalog, embedded_catalog
from tidegate.domain.errors import InvalidRequest

HOLDER = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background it is ignored
from tidegate.cli.embedded import embedded_catalog
with embedded_catalog(Path(sys.argv[1])) as catalog:
    print(catalog.uri, flush=True)
    while True:
        time.sleep(0.1)  # a pause would sleep on if the signal came just before it
"""


def schemas(catalog: EmbeddedCatalog) -> list[str]:
    headers = {"Authorization": f"Bearer {catalog.token}"}
    answer = httpx.get(f"{catalog.uri}{UNITY}/schemas?catalog_name=main", headers=headers)
    assert answer.status_code == 200, answer.text
    return [schema["name"] for schema in answer.json()["schemas"]]


def is_served(uri: str) -> bool:
    try:
        return httpx.get(f"{uri}/health").status_code == 200
    except httpx.TransportError:
        return False


def test_it_serves_while_the_block_lasts(tmp_path: Path) -> None:
    with embedded_catalog(tmp_path / "home") as catalog:
        assert schemas(catalog) == ["default"]
        assert catalog.home == tmp_path / "home"
    assert not is_served(catalog.uri)
    assert catalog.process.returncode == 0
    assert not catalog.log.exists()


def test_the_home_is_that_of_the_settings_unless_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEGATE_AUTH", "none")
    with embedded_catalog() as catalog:
        assert catalog.home == tmp_path
        assert schemas(catalog) == ["default"]


def test_an_error_in_the_block_stops_it(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), embedded_catalog(tmp_path) as catalog:
        _ = 1 / 0
    assert not is_served(catalog.uri)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_together_with_what_uses_it(number: signal.Signals, tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert holder.stdout is not None
    uri = holder.stdout.readline().strip()
    assert is_served(uri)
    os.killpg(holder.pid, number)  # as a terminal does: to everything that runs in it
    holder.communicate(timeout=60)
    assert holder.returncode != 0
    assert not is_served(uri)


def test_it_can_be_left_running_on_a_port_of_ones_choice(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with embedded_catalog(tmp_path, port=port) as catalog:
        catalog.detach()
    try:
        assert catalog.uri == f"http://127.0.0.1:{port}"
        assert is_served(catalog.uri)
        assert catalog.log.is_file()
    finally:
        catalog.process.terminate()
        assert catalog.process.wait(timeout=60) == 0
        catalog.log.unlink()


def test_a_start_that_cannot_be_is_told_in_the_servers_words(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(InvalidRequest, match=f"did not start. Cannot listen on 127.0.0.1:{port}"),
            embedded_catalog(tmp_path, port=port),
        ):
            raise AssertionError("the block must not be entered")


def test_a_home_that_another_server_serves_is_shared_with_it(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path).start()
    try:
        with server.http() as http, embedded_catalog(tmp_path) as catalog:
            assert http.post(f"{UNITY}/schemas", json={"name": "seen", "catalog_name": "main"}).status_code == 200
            assert schemas(catalog) == ["default", "seen"]
            assert catalog.token == server.token
            assert catalog.uri != server.url
    finally:
        assert server.stop() == 0
