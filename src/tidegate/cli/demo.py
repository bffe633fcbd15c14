"""`tidegate demo`: a catalog of its own, and one table taken through its life.

It speaks to a real server over HTTP, as any client would, and writes real log files: what it shows is what happened.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

START_SECONDS_MAX = 30
DELTA = "/api/2.1/unity-catalog/delta/v1"
SCHEMA = f"{DELTA}/catalogs/main/schemas/default"


def demo(
    home: Annotated[Path | None, typer.Option(help="Keep what the demo makes in this folder.")] = None,
) -> None:
    """Start a catalog, make a table, let two writers race, lose an answer, crash, publish: and show what happened.

    Everything is made in a temporary folder and removed at the end, unless --home is given.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-demo-") as temporary:
        _Story(home or Path(temporary), Console(highlight=False, soft_wrap=True)).tell()


@dataclass
class _Story:
    home: Path
    console: Console
    server: subprocess.Popen[str] | None = None
    url: str = ""
    table: dict[str, Any] = field(default_factory=dict[str, Any])

    def tell(self) -> None:
        try:
            self._start("Starting a catalog server")
            self._make_table()
            self._race()
            self._lose_an_answer()
            self._crash()
            self._publish()
            self._show()
        finally:
            self._stop(signal.SIGTERM)

    def _say(self, what: str) -> None:
        self.console.print(f"[bold cyan]==>[/] {what}")

    def _start(self, what: str) -> None:
        self._say(what)
        command = [sys.executable, "-m", "tidegate", "serve", "--home", str(self.home), "--port", "0"]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603
        assert self.server.stdout is not None  # noqa: S101
        announced = re.search(r"http://\S+", self.server.stdout.readline())
        if announced is None:
            raise typer.BadParameter(f"the server did not start: {self.server.stdout.read()}")
        self.url = announced[0]
        self._wait_until_healthy()
        self.console.print(f"    {self.url}, database and tables in {self.home}")

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).close()  # noqa: S310
                return
            except OSError:
                time.sleep(0.05)
        raise typer.BadParameter(f"the server did not answer within {START_SECONDS_MAX} seconds")

    def _stop(self, number: signal.Signals) -> None:
        if self.server is not None and self.server.poll() is None:
            self.server.send_signal(number)
            self.server.wait(timeout=60)

    def _make_table(self) -> None:
        self._say("Staging a table: the catalog gives it an id and a place")
        staged = self._call("POST", f"{SCHEMA}/staging-tables", {"name": "tides"})[1]
        self.console.print(f"    {staged['location']}")
        self._say("Writing version 0 of its log, and finishing the creation")
        request = _creation(staged)
        _write(Path(staged["location"].removeprefix("file://")) / "_delta_log" / f"{0:020}.json", _version_0(request))
        self.table = self._call("POST", f"{SCHEMA}/tables", request)[1]

    def _race(self) -> None:
        self._say("Two writers propose version 1 at the same moment")
        proposals = [self._proposal(1), self._proposal(1)]
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(self._propose, proposals))
        for (status, answer), proposal in zip(answers, proposals, strict=True):
            name = proposal["updates"][0]["commit"]["file-name"]
            said = "ratified" if status == 200 else answer["error"]["message"]
            self.console.print(f"    {status}  {name[18:40]}...  {said}")

    def _lose_an_answer(self) -> None:
        self._say("A writer ratifies version 2, loses the answer, and sends the same commit again")
        proposal = self._proposal(2)
        first, again = self._propose(proposal), self._propose(proposal)
        self.console.print(f"    {first[0]}, then {again[0]}: latest is still {again[1]['latest-table-version']}")

    def _crash(self) -> None:
        self._say("The server is killed with SIGKILL and started again")
        self._stop(signal.SIGKILL)
        self._start("Starting it again on the same home")
        latest = self._load()["latest-table-version"]
        self.console.print(f"    latest version: {latest}, nothing that was acknowledged is lost")

    def _publish(self) -> None:
        self._say("Claiming that version 2 is published, which is not true yet")
        listed = self._report(2)
        self.console.print(f"    still listed: {listed} (a claim alone deletes nothing)")
        self._say("Publishing versions 1 and 2 to _delta_log, and claiming it again")
        log = Path(self.table["metadata"]["location"].removeprefix("file://")) / "_delta_log"
        for commit in self._load()["commits"]:
            staged = (log / "_staged_commits" / commit["file-name"]).read_bytes()
            _write(log / f"{commit['version']:020}.json", staged)
        self.console.print(f"    still listed: {self._report(2)}")

    def _show(self) -> None:
        loaded = self._load()
        shown = {
            "latest version": loaded["latest-table-version"],
            "unpublished": len(loaded["commits"]),
            "columns": ", ".join(column["name"] for column in loaded["metadata"]["columns"]["fields"]),
            "etag": loaded["metadata"]["etag"],
        }
        self._say("What the catalog says of main.default.tides")
        for what, value in shown.items():
            self.console.print(f"    {what:<16}{value}")
        self.console.print("\nNext: tidegate serve --help, and docs/getting-started.md")

    def _proposal(self, version: int) -> dict[str, Any]:
        """A staged commit, written to the table's log, and the request that proposes it."""
        timestamp = int(time.time() * 1000) + version
        content = _line({"commitInfo": {"inCommitTimestamp": timestamp, "txnId": str(uuid.uuid4())}})
        name = f"{version:020}.{uuid.uuid4()}.json"
        folder = Path(self.table["metadata"]["location"].removeprefix("file://")) / "_delta_log" / "_staged_commits"
        _write(folder / name, content)
        commit = {"version": version, "timestamp": timestamp, "file-name": name, "file-size": len(content)}
        return self._update({"action": "add-commit", "commit": {**commit, "file-modification-timestamp": timestamp}})

    def _update(self, action: dict[str, Any]) -> dict[str, Any]:
        required = {"type": "assert-table-uuid", "uuid": self.table["metadata"]["table-uuid"]}
        return {"requirements": [required], "updates": [action]}

    def _propose(self, proposal: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return self._call("POST", f"{SCHEMA}/tables/tides", proposal)

    def _report(self, version: int) -> list[int]:
        action = {"action": "set-latest-backfilled-version", "latest-published-version": version}
        answer = self._call("POST", f"{SCHEMA}/tables/tides", self._update(action))[1]
        return [commit["version"] for commit in answer["commits"]]

    def _load(self) -> dict[str, Any]:
        return self._call("GET", f"{SCHEMA}/tables/tides")[1]

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        token = (self.home / "admin.token").read_text().strip()
        request = urllib.request.Request(  # noqa: S310
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)


def _creation(staged: dict[str, Any]) -> dict[str, Any]:
    fields = [("station", "string"), ("height", "decimal(6,3)"), ("at", "timestamp")]
    columns: list[dict[str, Any]] = [
        {"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in fields
    ]
    return {
        "name": "tides",
        "location": staged["location"],
        "table-type": "MANAGED",
        "columns": {"type": "struct", "fields": columns},
        "protocol": staged["required-protocol"],
        "properties": staged["required-properties"],
        "last-commit-timestamp-ms": int(time.time() * 1000) - 1000,
    }


def _version_0(request: dict[str, Any]) -> bytes:
    protocol = request["protocol"]
    info = {"inCommitTimestamp": request["last-commit-timestamp-ms"], "txnId": str(uuid.uuid4())}
    features = {
        "minReaderVersion": protocol["min-reader-version"],
        "minWriterVersion": protocol["min-writer-version"],
        "readerFeatures": protocol["reader-features"],
        "writerFeatures": protocol["writer-features"],
    }
    metadata: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(request["columns"]),
        "partitionColumns": [],
        "configuration": request["properties"],
    }
    return _line({"commitInfo": info}) + _line({"protocol": features}) + _line({"metaData": metadata})


def _line(action: dict[str, Any]) -> bytes:
    return json.dumps(action).encode() + b"\n"


def _write(path: Path, content: bytes) -> None:
    """Put-if-absent, as every file of a Delta log is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
        file.write(content)
