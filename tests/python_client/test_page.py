"""docs/client.md: its examples run, from the first to the last, and its table of errors is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.python_client.test_faces import error_classes
from tests.servers import ServerProcess
from tidegate.client import connect

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()


def test_the_examples_run(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEGATE_URI", server.url)
    monkeypatch.setenv("TIDEGATE_TOKEN", server.token)
    with connect() as lake:
        lake.create_table("main.default.events", {"id": "long", "name": "string"})
    connected = PAGE.replace('connect("http://127.0.0.1:8080", token="...")', "connect()")
    names: dict[str, object] = {"__name__": "example"}
    for example in re.findall(r"```python\n(.*?)```", connected, re.DOTALL):
        exec(example, names)
    printed = capsys.readouterr().out.splitlines()
    assert "One row for each ship False" in printed
    assert printed[-1] == "main.harbour.vessels 1"


def test_every_error_is_in_the_table() -> None:
    told = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("## When something") :]))
    assert {kind.__name__ for kind in error_classes()} - told <= {"TidegateError", "NotFound"}
