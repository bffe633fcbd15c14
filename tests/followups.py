"""Functions that servers of the tests are started with: they leave a trace in the folder that the environment names."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any


def note(event: dict[str, Any]) -> None:
    with (Path(os.environ["TIDEGATE_TEST_TRACES"]) / "noted").open("a") as file:
        file.write(f"{event['sequence']} {event['type']} {event['data'].get('version')}\n")


def fail(event: dict[str, Any]) -> None:
    note(event)
    raise RuntimeError("no")


def hang(event: dict[str, Any]) -> None:
    note(event)
    threading.Event().wait()


async def later(event: dict[str, Any]) -> None:
    note(event)
