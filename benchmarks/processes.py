"""What processes cost: CPU seconds and memory of a process and its children, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_seconds: float
    rss_bytes: int


def cost(roots: Iterable[int]) -> Cost:
    """Of these processes and all that descend from them; children that have ended count as their parent's CPU."""
    seconds, rss = 0.0, 0
    for pid in family(roots):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = _stat(pid)
            ended_children = sum(int(ticks) for ticks in fields[13:15])
            seconds += (sum(int(ticks) for ticks in fields[11:13]) + ended_children) / _TICKS
            rss += _rss_bytes(pid)
    return Cost(seconds, rss)


def family(roots: Iterable[int]) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                parents[int(entry.name)] = int(_stat(int(entry.name))[1])
    found = set(roots) & set(parents)
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold blanks and brackets itself: state, parent, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _rss_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
