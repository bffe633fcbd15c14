"""Metadata cleanup: which files of a log nobody needs any more, by the rules of the Delta protocol.

The cut-off is the moment up to which history must be kept. The newest checkpoint that is not newer than it stays, and
everything after it; what is before goes. Without such a checkpoint nothing goes.

    now - 30 days lies between 14 and 15; checkpoints 5, 10, 20
    10 is the cut-off checkpoint: 0 .. 9 go, with checkpoint 5; 10 and later stay, so that 11 .. 19 can be read too

The plan is made of what was found. A file that was not found is not relied upon: where a published commit after the
checkpoint is missing, nothing goes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from tidegate.domain.files import FoundFile
from tidegate.domain.frozen import frozen
from tidegate.domain.log_files import CHECKPOINTS, LogFile, LogFileKind, checksum_beside, parse_log_file
from tidegate.domain.names import Version

DAY_MS = 86_400_000


@frozen
class Cleanup:
    checkpoint: Version
    """It stays, and so does everything after it."""
    paths: Sequence[str]
    """What goes, oldest version first: whatever a crash leaves is a log without its beginning."""


def plan_cleanup(
    files: Iterable[FoundFile], *, published: Version, times: Mapping[Version, int], cut_off: int
) -> Cleanup | None:
    """`times` are in-commit timestamps where they are known; elsewhere the store says when a version was published."""
    found = list(files)
    log = [parsed for file in found if (parsed := parse_log_file(file)) is not None]
    checkpoint = cut_off_checkpoint(log, published=published, times=times, cut_off=cut_off)
    if checkpoint is None or not _complete_after(log, checkpoint, published):
        return None
    going = sorted((file.version, file.path) for file in log if _goes(file, checkpoint, cut_off))
    paths = [path for _, path in going]
    there = {file.path for file in found}
    beside = [checksum for path in paths if (checksum := checksum_beside(path)) in there]
    return Cleanup(checkpoint, [*paths, *beside])


def complete_checkpoints(log: Iterable[LogFile]) -> set[Version]:
    """A checkpoint in parts counts when all of them are there."""
    whole: set[Version] = set()
    parts: dict[tuple[Version, int], set[int]] = defaultdict(set)
    for file in log:
        if file.file.size == 0:
            continue  # torn
        if file.kind in {LogFileKind.CHECKPOINT, LogFileKind.CHECKPOINT_V2}:
            whole.add(file.version)
        elif file.kind is LogFileKind.CHECKPOINT_PART and 1 <= file.part <= file.parts:
            parts[file.version, file.parts].add(file.part)
    return whole | {version for (version, of), there in parts.items() if len(there) == of}


def checkpoint_versions(files: Iterable[FoundFile]) -> set[Version]:
    return complete_checkpoints(parsed for file in files if (parsed := parse_log_file(file)) is not None)


def cut_off_checkpoint(
    log: Sequence[LogFile], *, published: Version, times: Mapping[Version, int], cut_off: int
) -> Version | None:
    stored = _times_by_store(log)
    candidates = sorted((version for version in complete_checkpoints(log) if version <= published), reverse=True)
    for version in candidates:
        time = times.get(version, stored.get(version))
        if time is not None and time <= cut_off:
            return version
    return None


def _times_by_store(log: Iterable[LogFile]) -> dict[Version, int]:
    """A commit is never older than the one before it, whatever the store says."""
    times: dict[Version, int] = {}
    newest = 0
    for file in sorted((file for file in log if file.kind is LogFileKind.PUBLISHED), key=lambda file: file.version):
        newest = max(newest, file.file.modified_at)
        times[file.version] = newest
    return times


def _complete_after(log: Iterable[LogFile], checkpoint: Version, published: Version) -> bool:
    there = {file.version for file in log if file.kind is LogFileKind.PUBLISHED}
    return all(version in there for version in range(checkpoint + 1, published + 1))


def _goes(file: LogFile, checkpoint: Version, cut_off: int) -> bool:
    match file.kind:
        case LogFileKind.COMPACTION:
            return file.version <= checkpoint
        case LogFileKind.STAGED:
            # Not one of a writer that has just come back and does not know yet how far behind it is.
            return file.version <= checkpoint and file.file.modified_at <= cut_off
        case LogFileKind.COPY:
            return False
        case _:
            return file.version < checkpoint


# Sidecars


def sidecars_to_remove(sidecars: Iterable[FoundFile], *, referenced: frozenset[str], now: int) -> list[str]:
    """Sidecars that no checkpoint refers to. One of the last day may belong to a checkpoint that is being written."""
    day_began = now - now % DAY_MS - DAY_MS
    return sorted(
        file.path
        for file in sidecars
        if file.modified_at < day_began
        and file.path.endswith(".parquet")
        and file.path.rpartition("/")[2] not in referenced
    )


def checkpoints_to_read(files: Iterable[FoundFile]) -> list[str] | None:
    """The files that say which sidecars are referred to; None if one of them cannot be read here.

    Checkpoints in parts have no sidecars. Those in Parquet may have, and take an engine to read.
    """
    wanted: list[str] = []
    for file in files:
        parsed = parse_log_file(file)
        if parsed is None or parsed.kind not in CHECKPOINTS or parsed.kind is LogFileKind.CHECKPOINT_PART:
            continue
        if not parsed.path.endswith(".json"):
            return None
        wanted.append(parsed.path)
    return wanted


def sidecars_in(checkpoint: bytes) -> frozenset[str] | None:
    """The names of the sidecars that a checkpoint in JSON refers to; None if it cannot be read."""
    names: set[str] = set()
    try:
        for line in checkpoint.splitlines():
            action: Any = json.loads(line) if line.strip() else {}
            if not isinstance(action, dict):
                return None
            sidecar: Any = cast("dict[str, Any]", action).get("sidecar")
            if sidecar is not None:
                names.add(str(sidecar["path"]).rpartition("/")[2])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return frozenset(names)
