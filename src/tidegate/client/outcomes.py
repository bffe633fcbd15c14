"""What came of a commit that was proposed, staged or inline: the server's answer, read.

200                      the version is ratified
409                      another commit has it
4xx                      refused
still nothing            nobody knows: it is sent again, now or later
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from tidegate.client.conversations import Answer, Conversation
from tidegate.client.errors import CommitConflict, NotATidegate
from tidegate.client.kept_commits import look_closely
from tidegate.client.known_tables import KnownTable, TableHandle, known_after_conflict
from tidegate.client.refusals import refusal, says_version_taken, told_conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResponse:
    """A ratified commit, and how far this client has seen the log published."""

    version: int
    timestamp: int
    txn_id: str
    path: str | None
    """Of its staged file; None for a commit that went inline, which has none."""
    size: int
    published: int | None


class Verdict(Enum):
    """What an answer says of a commit."""

    RATIFIED = auto()
    LOST = auto()
    REFUSED = auto()
    UNKNOWN = auto()


def verdict(answer: Answer, *, doubtful: bool) -> Verdict:
    """A refusal that does not look at the commit itself, such as of the token, says nothing of an earlier attempt."""
    if answer.status == 200:
        return Verdict.RATIFIED
    if says_version_taken(answer.status, answer.body):
        return Verdict.LOST
    strange = isinstance(refusal(answer.status, answer.body, url=answer.url), NotATidegate)
    if strange or answer.status >= 500 or (doubtful and answer.status != 400):
        return Verdict.UNKNOWN
    return Verdict.REFUSED


def lost(table: TableHandle, version: int | None, answer: Answer) -> Conversation[CommitConflict]:
    """What was ratified since is told with the refusal; by a server that does not tell, it is asked for.

    `version`: None if it was left open.
    """
    told = told_conflict(answer.body)
    if told is None:
        known = yield from look_closely(table)
        return conflict(table.name, known.latest if version is None else version, known)
    table.known = known_after_conflict(table.known, told)
    return CommitConflict(
        table.name,
        version=told.latest_table_version if version is None else version,
        latest=told.latest_table_version,
        commits=told.commits,
        append_stands=told.append_stands,
    )


def conflict(table: str, version: int, known: KnownTable) -> CommitConflict:
    """`known` has just been told."""
    since = [one for one in known.unpublished if one.version >= version]
    return CommitConflict(table, version=version, latest=known.latest, commits=since)
