"""The token is nowhere but where it belongs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.servers import ServerProcess


def test_token_is_neither_logged_nor_shown_nor_stored(catalog_server: ServerProcess, tmp_path: Path) -> None:
    token = catalog_server.token
    environment = {**os.environ, "TIDEGATE_URI": catalog_server.url, "TIDEGATE_TOKEN": token}
    command = [sys.executable, "-m", "tests.spark.talk", str(tmp_path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=True)
    log = (tmp_path / "driver.log").read_text()
    events = "".join(file.read_text() for file in (tmp_path / "events").rglob("*") if file.is_file())
    # All of it is there, or there would be nothing to find the token in.
    assert "DEBUG org.apache.spark.sql" in log
    assert "Spark configuration:" in log
    assert "spark.sql.catalog.main.uri" in log
    assert catalog_server.url in run.stdout
    assert "SparkListenerSQLExecutionStart" in events
    assert run.stdout.count("redacted") > 0
    assert run.stdout.count("refused:") == 4
    assert not [line[:300] for line in log.splitlines() if token in line]
    assert not [line[:300] for line in run.stdout.splitlines() if token in line]
    assert token not in run.stderr
    assert token not in events
    assert not files_with(token, catalog_server.home / "tables")
    assert not files_with(token, tmp_path)


def files_with(secret: str, folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]
