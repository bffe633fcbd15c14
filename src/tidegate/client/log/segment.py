"""Which files make up a version of a table: pure rules.

For a version v that is not beyond the latest ratified one:

    the newest complete checkpoint of a version c <= v, then
    what happened in versions c + 1 to v: the catalog's commits where the catalog has them, published ones elsewhere,
    and compaction files in place of published commits where there are any.

For example, with a checkpoint of version 2, published commits up to 7 and the catalog's commits of 7 and 8:

    checkpoint 2 | compacted 3-5 | published 6 | ratified 7 | ratified 8

Files of later versions may lie there: they are no part of the table until the catalog says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidegate.client.log import names
from tidegate.client.log.errors import VersionMissing, VersionNotFound
from tidegate.client.log.names import CheckpointPart, Compaction, PublishedCommit
from tidegate.client.log.storage import Entry

UNLISTED_COMMITS_MAX = 10
"""So many published commits are read by their names before it is cheaper to list them: by then a checkpoint is due."""


@dataclass(frozen=True, slots=True)
class RatifiedCommit:
    """A commit that the catalog keeps: in a staged file, or (inline) with its content."""

    version: int
    file_name: str
    size: int
    timestamp: int
    content: bytes | None = None

    @property
    def name(self) -> str:
        """In the log's folder."""
        return f"{names.STAGED}/{self.file_name}"


@dataclass(frozen=True, slots=True)
class Ratified:
    """The catalog's word about a table, from one state of the catalog; its commits in any order.

    Without a `latest_version` no catalog ratifies the table's commits (an external table): its files tell.
    """

    latest_version: int | None
    location: str
    commits: Sequence[RatifiedCommit] = ()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    version: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """The files that make up a version, oldest first."""

    version: int
    checkpoint: Checkpoint | None
    changes: tuple[RatifiedCommit | PublishedCommit | Compaction, ...]


@dataclass(frozen=True, slots=True)
class Hint:
    """What `_last_checkpoint` says: a checkpoint that was there when it was written."""

    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class Listing:
    """The log's folder, sorted into what it holds. A listing `since` a version knows nothing of earlier ones."""

    commits: Mapping[int, PublishedCommit]
    modified_ms: Mapping[int, int]
    checkpoints: Sequence[Checkpoint]
    compactions: Sequence[Compaction]

    @property
    def latest(self) -> int | None:
        return max(self.commits, default=None)

    @property
    def earliest(self) -> int | None:
        """The first version that can be made from these files alone."""
        return 0 if 0 in self.commits else min((checkpoint.version for checkpoint in self.checkpoints), default=None)


def sort_listing(entries: Iterable[Entry]) -> Listing:
    commits: dict[int, PublishedCommit] = {}
    modified_ms: dict[int, int] = {}
    parts: list[CheckpointPart] = []
    compactions: list[Compaction] = []
    for entry in entries:
        match names.parse_name(entry.name):
            case PublishedCommit() as commit:
                commits[commit.version] = commit
                modified_ms[commit.version] = entry.modified_ms
            case CheckpointPart() as part if entry.size > 0:
                parts.append(part)
            case Compaction() as compaction:
                compactions.append(compaction)
            case _:
                pass
    return Listing(commits, modified_ms, complete_checkpoints(parts), compactions)


def complete_checkpoints(parts: Iterable[CheckpointPart]) -> list[Checkpoint]:
    """Oldest first; of several of one version the last is the best: in one file rather than in parts.

    Parts are not written at once, so a checkpoint of which one is missing is none.
    """
    groups: dict[tuple[int, int, str], dict[int, str]] = {}
    for part in parts:
        alone = part.name if part.parts == 1 else ""
        groups.setdefault((part.version, part.parts, alone), {})[part.part] = part.name
    complete = [key for key, files in groups.items() if len(files) == key[1]]
    best_last = sorted(complete, key=lambda key: (key[0], key[1] == 1, -key[1], key[2]))
    return [Checkpoint(key[0], tuple(groups[key][part] for part in sorted(groups[key]))) for key in best_last]


def segment_without_listing(version: int, hint: Hint | None, commits: Sequence[RatifiedCommit]) -> Segment | None:
    """The segment as far as it is known by name: from the hint's checkpoint, or version 0, to the catalog's commits.

    A guess in one respect: the published commits in between, and the checkpoint, may be gone. None where listing is
    the better way.
    """
    checkpoint = hint.checkpoint if hint is not None and hint.checkpoint.version <= version else None
    if hint is not None and checkpoint is None:
        return None
    start = checkpoint.version + 1 if checkpoint else 0
    ratified = {commit.version: commit for commit in commits}
    wanted = range(start, version + 1)
    if sum(each not in ratified for each in wanted) > UNLISTED_COMMITS_MAX:
        return None
    changes = (ratified.get(each) or PublishedCommit(each, names.commit_name(each)) for each in wanted)
    return Segment(version, checkpoint, tuple(changes))


def segment_of_listing(version: int, listing: Listing, ratified: Ratified) -> Segment:
    """The segment by what lies there and what the catalog keeps; an error names the version that is missing."""
    usable = [checkpoint for checkpoint in listing.checkpoints if checkpoint.version <= version]
    checkpoint = usable[-1] if usable else None
    kept = {commit.version: commit for commit in ratified.commits}
    at = checkpoint.version + 1 if checkpoint else 0
    changes: list[RatifiedCommit | PublishedCommit | Compaction] = []
    compactions = _longest_by_start(listing.compactions, version, kept)
    while at <= version:
        change = kept.get(at) or compactions.get(at) or listing.commits.get(at)
        if change is None:
            raise _missing(at, checkpoint, listing, ratified, version)
        changes.append(change)
        at = change.end + 1 if isinstance(change, Compaction) else at + 1
    return Segment(version, checkpoint, tuple(changes))


def _longest_by_start(
    compactions: Iterable[Compaction], version: int, kept: Mapping[int, RatifiedCommit]
) -> dict[int, Compaction]:
    """The compactions that may be used. One that spans a commit of the catalog's may not: the catalog's word wins."""
    first_kept = min(kept, default=version + 1)
    longest: dict[int, Compaction] = {}
    for compaction in compactions:
        before = longest.get(compaction.start)
        if compaction.end < first_kept and compaction.end <= version and (not before or before.end < compaction.end):
            longest[compaction.start] = compaction
    return longest


def _missing(
    at: int, checkpoint: Checkpoint | None, listing: Listing, ratified: Ratified, version: int
) -> VersionMissing | VersionNotFound:
    """A version from before the log was cleaned is gone for good; any other gap is damage."""
    if checkpoint is None and at == 0 and listing.earliest is not None and listing.earliest > version:
        return VersionNotFound(version, earliest=listing.earliest)
    return VersionMissing(at, ratified.location)
