"""The log of one table as it lies in storage: its hint, its listing and its files."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.client.log import names
from tidegate.client.log.actions import parse_actions
from tidegate.client.log.errors import LogDamaged
from tidegate.client.log.names import Compaction, PublishedCommit
from tidegate.client.log.segment import Checkpoint, Hint, Listing, Ratified, RatifiedCommit, sort_listing
from tidegate.client.log.storage import Files, join

PARTS_MAX = 10_000
"""A hint that tells of more parts of a checkpoint is not believed."""


class FileGone(Exception):
    """A file that was told of, or listed, is not there (any more)."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(path)


class LogFolder:
    def __init__(self, ratified: Ratified, files: Files) -> None:
        self.ratified = ratified
        self._files = files

    def hint(self) -> Hint | None:
        """What `_last_checkpoint` says; None when it says nothing that can be used, for it is a help and no more."""
        content = self._files.read(join(self.ratified.location, names.LOG, names.LAST_CHECKPOINT))
        try:
            return None if content is None else _parse_hint(msgspec.json.decode(content))
        except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
            return None

    def listing(self, since: int = 0) -> Listing:
        """All files of the log from version `since` on."""
        folder = join(self.ratified.location, names.LOG)
        return sort_listing(self._files.entries(folder, after=names.first_name(since) if since else ""))

    def read(self, name: str) -> bytes:
        """A file by its name in the log's folder."""
        content = self._files.read(join(self.ratified.location, names.LOG, name))
        if content is None:
            raise FileGone(name)
        return content

    def content(self, change: RatifiedCommit | PublishedCommit | Compaction) -> bytes:
        if not isinstance(change, RatifiedCommit):
            return self.read(change.name)
        content = change.content if change.content is not None else self._staged(change)
        if len(content) != change.size:
            told = f"it has {len(content)} bytes, and the catalog ratified {change.size}"
            raise LogDamaged(change.name, told)
        return content

    def in_commit_timestamp(self, version: int) -> int | None:
        """When a version was committed, by its commit; None when the commit does not tell, or is gone."""
        kept = next((commit for commit in self.ratified.commits if commit.version == version), None)
        if kept is not None:
            return kept.timestamp
        name = names.commit_name(version)
        try:
            content = self.read(name)
        except FileGone:
            return None
        first = next(parse_actions(content.partition(b"\n")[0], name), None)
        return first.commit_info.in_commit_timestamp if first and first.commit_info else None

    def _staged(self, commit: RatifiedCommit) -> bytes:
        """The staged file. When it was published and cleaned away since the catalog told of it, the published one."""
        try:
            return self.read(commit.name)
        except FileGone:
            return self.read(names.commit_name(commit.version))


def _parse_hint(told: Any) -> Hint | None:
    version, parts, v2 = told["version"], told.get("parts"), told.get("v2Checkpoint")
    if not isinstance(version, int) or version < 0:
        return None
    if v2 is not None:
        return Hint(Checkpoint(version, (str(v2["path"]).rpartition("/")[2],)))
    if parts is None:
        return Hint(Checkpoint(version, (names.checkpoint_name(version),)))
    if not isinstance(parts, int) or not 1 <= parts <= PARTS_MAX:
        return None
    numbered = (names.checkpoint_part_name(version, part, parts) for part in range(1, parts + 1))
    return Hint(Checkpoint(version, tuple(numbered)))
