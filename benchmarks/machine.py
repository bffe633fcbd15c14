"""What was measured on: facts without which the numbers mean little."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import time
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

_SYNCS = 50


def machine_facts(folder: Path) -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "sync_ms": sync_ms(folder),
    }


def sync_ms(folder: Path) -> float:
    """How long the disk takes to sync 4 KiB: the median, overwriting in place as a write-ahead log does."""
    path, took = folder / "sync", list[float]()
    path.write_bytes(bytes(4096 * _SYNCS))
    with path.open("r+b", buffering=0) as file:
        os.fsync(file.fileno())
        for number in range(_SYNCS):
            started = time.perf_counter()
            os.pwrite(file.fileno(), b"x" * 4096, 4096 * number)
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - started)
    path.unlink()
    return round(1000 * statistics.median(took), 3)


def postgres_version(url: str) -> str:
    with psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string()) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    return row[0] if row else "unknown"


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
