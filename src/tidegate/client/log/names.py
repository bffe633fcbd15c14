"""The names of the files in `_delta_log`, read and made.

00000000000000000007.json                                           the published commit of version 7
00000000000000000003.00000000000000000005.compacted.json            versions 3 to 5 in one file
00000000000000000010.checkpoint.parquet                             a classic checkpoint of version 10
00000000000000000010.checkpoint.0000000001.0000000003.parquet       the first of its three parts
00000000000000000010.checkpoint.<uuid>.json (or .parquet)           a V2 checkpoint
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LOG = "_delta_log"
STAGED = "_staged_commits"
SIDECARS = "_sidecars"
LAST_CHECKPOINT = "_last_checkpoint"

_COMMIT = re.compile(r"([0-9]{20})\.json")
_COMPACTION = re.compile(r"([0-9]{20})\.([0-9]{20})\.compacted\.json")
_CLASSIC = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PART = re.compile(r"([0-9]{20})\.checkpoint\.([0-9]{10})\.([0-9]{10})\.parquet")
_V2 = re.compile(r"([0-9]{20})\.checkpoint\.([0-9A-Za-z-]+)\.(?:json|parquet)")


@dataclass(frozen=True, slots=True)
class PublishedCommit:
    version: int
    name: str


@dataclass(frozen=True, slots=True)
class Compaction:
    """What the commits of versions `start` to `end` amount to."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class CheckpointPart:
    """A file of a checkpoint: number `part` of `parts`; a checkpoint in one file is part 1 of 1."""

    version: int
    name: str
    part: int = 1
    parts: int = 1
    is_v2: bool = False


LogName = PublishedCommit | Compaction | CheckpointPart


def parse_name(name: str) -> LogName | None:
    """What a file of the log is by its name; None for all that is no part of reading a table."""
    if found := _COMMIT.fullmatch(name):
        return PublishedCommit(int(found[1]), name)
    if found := _COMPACTION.fullmatch(name):
        start, end = int(found[1]), int(found[2])
        return Compaction(start, end, name) if start < end else None
    if found := _CLASSIC.fullmatch(name):
        return CheckpointPart(int(found[1]), name)
    if found := _PART.fullmatch(name):
        part, parts = int(found[2]), int(found[3])
        return CheckpointPart(int(found[1]), name, part, parts) if 1 <= part <= parts else None
    if found := _V2.fullmatch(name):
        return CheckpointPart(int(found[1]), name, is_v2=True)
    return None


def commit_name(version: int) -> str:
    return f"{version:020}.json"


def compaction_name(start: int, end: int) -> str:
    return f"{start:020}.{end:020}.compacted.json"


def checkpoint_name(version: int) -> str:
    return f"{version:020}.checkpoint.parquet"


def checkpoint_part_name(version: int, part: int, parts: int) -> str:
    return f"{version:020}.checkpoint.{part:010}.{parts:010}.parquet"


def first_name(version: int) -> str:
    """Comes before the name of every file of this version and after those of all earlier ones."""
    return f"{version:020}"
