"""What the names of files in a table's log say. A name that says nothing is nobody's to judge: it stays.

00000000000000000007.json                                         published commit
00000000000000000007.crc                                          version checksum
00000000000000000007.checkpoint.parquet                           checkpoint
00000000000000000007.checkpoint.0000000001.0000000003.parquet     checkpoint in parts
00000000000000000007.checkpoint.<uuid>.json, .parquet             checkpoint that may have sidecars
00000000000000000004.00000000000000000007.compacted.json          log compaction
_staged_commits/00000000000000000008.<uuid>.json                  staged commit
_sidecars/<name>.parquet                                          part of a checkpoint
.00000000000000000007.json.<hex>.tidegate-copy                    left behind by a publisher that died
_staged_commits/.00000000000000000008.<uuid>.json.<hex>.tidegate-copy   left behind by a writer that died
"""

from __future__ import annotations

import re
from enum import Enum, auto

from tidegate.domain.files import FoundFile
from tidegate.domain.frozen import frozen
from tidegate.domain.names import Version

LOG = "_delta_log"
STAGED = f"{LOG}/_staged_commits"
SIDECARS = f"{LOG}/_sidecars"
COPY_SUFFIX = ".tidegate-copy"

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_V = r"(?P<version>[0-9]{20})"


class LogFileKind(Enum):
    PUBLISHED = auto()
    CHECKSUM = auto()
    CHECKPOINT = auto()
    CHECKPOINT_PART = auto()
    CHECKPOINT_V2 = auto()
    COMPACTION = auto()
    STAGED = auto()
    COPY = auto()


_NAMES = [
    (LogFileKind.PUBLISHED, re.compile(rf"{LOG}/{_V}\.json")),
    (LogFileKind.CHECKSUM, re.compile(rf"{LOG}/{_V}\.crc")),
    (LogFileKind.CHECKPOINT, re.compile(rf"{LOG}/{_V}\.checkpoint\.parquet")),
    (
        LogFileKind.CHECKPOINT_PART,
        re.compile(rf"{LOG}/{_V}\.checkpoint\.(?P<part>[0-9]{{10}})\.(?P<of>[0-9]{{10}})\.parquet"),
    ),
    (LogFileKind.CHECKPOINT_V2, re.compile(rf"{LOG}/{_V}\.checkpoint\.{_UUID}\.(?:json|parquet)")),
    (LogFileKind.COMPACTION, re.compile(rf"{LOG}/{_V}\.(?P<end>[0-9]{{20}})\.compacted\.json")),
    (LogFileKind.STAGED, re.compile(rf"{STAGED}/{_V}\.{_UUID}\.json")),
    (
        LogFileKind.COPY,
        re.compile(rf"(?:{LOG}|{STAGED})/\.{_V}(?:\.{_UUID})?\.json\.[0-9a-f]{{32}}{re.escape(COPY_SUFFIX)}"),
    ),
]
CHECKPOINTS = frozenset({LogFileKind.CHECKPOINT, LogFileKind.CHECKPOINT_PART, LogFileKind.CHECKPOINT_V2})


@frozen
class LogFile:
    file: FoundFile
    kind: LogFileKind
    version: Version
    """Of a log compaction: the first."""
    part: int = 0
    parts: int = 0

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def parse_log_file(file: FoundFile) -> LogFile | None:
    for kind, pattern in _NAMES:
        match = pattern.fullmatch(file.path)
        if match is not None:
            version, found = Version(int(match["version"])), match.groupdict()
            return LogFile(file, kind, version, int(found.get("part") or 0), int(found.get("of") or 0))
    return None


def checksum_beside(path: str) -> str:
    """Where Hadoop's clients put the checksum of a file on local file systems."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.crc"
