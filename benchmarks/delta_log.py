"""The log of a table on a local disk, as a writer treats it: commits staged under names of their own, then published.

    _delta_log/_staged_commits/00000000000000000007.<uuid>.json    staged, about 2 KB: four files were added
    _delta_log/00000000000000000007.json                           published

Publishing is a hard link: the file is there with all its bytes or not at all, and one that is there is never replaced.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ADDED_FILES = 4


@dataclass(frozen=True, slots=True)
class StagedCommit:
    version: int
    timestamp: int
    file_name: str
    size: int
    modified_at: int

    def described(self) -> dict[str, Any]:
        """As a proposal names it."""
        return {
            "version": self.version,
            "timestamp": self.timestamp,
            "file-name": self.file_name,
            "file-size": self.size,
            "file-modification-timestamp": self.modified_at,
        }


class DeltaLog:
    def __init__(self, location: str) -> None:
        if not location.startswith("file:"):
            raise ValueError(
                f"The benchmark writes and publishes files itself, on local disks only, not at {location}."
            )
        self.location = location
        self._folder = f"{location.removeprefix('file://').removeprefix('file:')}/_delta_log"
        self._staged = f"{self._folder}/_staged_commits"

    def make(self) -> None:
        Path(self._staged).mkdir(parents=True, exist_ok=True)

    def write_first(self, actions: list[dict[str, Any]]) -> None:
        """Version 0, which a writer puts in place itself."""
        self.make()
        content = "".join(json.dumps(action) + "\n" for action in actions)
        Path(self._published(0)).write_text(content)

    def stage(self, version: int, timestamp: int) -> StagedCommit:
        content = commit_content(timestamp)
        name = f"{version:020}.{uuid.uuid4()}.json"
        descriptor = os.open(f"{self._staged}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)
        return StagedCommit(version, timestamp, name, len(content), time.time_ns() // 1_000_000)

    def publish(self, version: int, file_name: str) -> None:
        with suppress(FileExistsError):  # a server that publishes by itself was faster
            os.link(f"{self._staged}/{file_name}", self._published(version))

    def discard(self, staged: StagedCommit) -> None:
        """Takes back a file that was never proposed."""
        os.unlink(f"{self._staged}/{staged.file_name}")

    def timestamp_of(self, version: int) -> int:
        """The in-commit timestamp of a published version."""
        with Path(self._published(version)).open() as file:
            return int(json.loads(file.readline())["commitInfo"]["inCommitTimestamp"])

    def _published(self, version: int) -> str:
        return f"{self._folder}/{version:020}.json"


def commit_content(timestamp: int) -> bytes:
    return _CONTENT % (timestamp, timestamp, str(uuid.uuid4()).encode())


def _template() -> bytes:
    """What a small append writes, as a format for its timestamp (twice) and its transaction's id."""
    info = {
        "inCommitTimestamp": 0,
        "timestamp": 0,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": str(_ADDED_FILES), "numOutputRows": "4000", "numOutputBytes": "262144"},
        "engineInfo": "Tidegate-Benchmark",
        "txnId": "?",
    }
    lines = [json.dumps({"commitInfo": info}, separators=(",", ":"))]
    for number in range(_ADDED_FILES):
        stats = {
            "numRecords": 1000,
            "tightBounds": True,
            "minValues": {"id": 1000 * number, "name": "Amrum"},
            "maxValues": {"id": 1000 * number + 999, "name": "Wyk"},
            "nullCount": {"id": 0, "name": 0},
        }
        add = {
            "path": f"part-{number:05}-{uuid.UUID(int=number)}-c000.snappy.parquet",
            "partitionValues": {},
            "size": 65536,
            "modificationTime": 1_760_000_000_000,
            "dataChange": True,
            "stats": json.dumps(stats, separators=(",", ":")),
        }
        lines.append(json.dumps({"add": add}, separators=(",", ":")))
    text = "\n".join(lines) + "\n"
    text = text.replace('"inCommitTimestamp":0,"timestamp":0', '"inCommitTimestamp":%d,"timestamp":%d')
    return text.replace('"txnId":"?"', '"txnId":"%b"').encode()


_CONTENT = _template()
