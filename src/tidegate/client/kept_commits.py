"""What the catalog says of a table, for those who read or write it: where it is, its latest version, and the ratified
commits that the log does not have yet, inline ones with their content. One question, as a rule:

    GET .../tables/main.default.t/commits                      latest 9; commits 5, 6, 7
    GET .../tables/main.default.t/commits?start_version=8      commits 8, 9

Commits that are published between two pages are missing in the second one: they are in the log by then. A server that
does not know the call is asked in the words of Delta REST v1.0, and puts all commits into files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import structs

from tidegate.client.address import TIDEGATE, segment, split_table
from tidegate.client.conversations import Answer, Conversation, decoded, exchange
from tidegate.client.errors import NotATidegate, RequirementConflict
from tidegate.client.known_tables import KnownTable, TableHandle, external
from tidegate.client.log.segment import Ratified, RatifiedCommit
from tidegate.client.refusals import refusal, says_no_such_call
from tidegate.client.tables import load
from tidegate.client.wire import Commit, KeptCommitPage, LoadedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One state of the table; what was published since it was told may be among the commits, or missing."""

    id: str
    location: str
    metadata_version: int
    latest: int | None
    """None: the table is external, and nobody ratifies its commits."""
    commits: Sequence[Commit]
    """Ratified and not published, oldest first."""

    @property
    def ratified(self) -> Ratified:
        """For those who read the log."""
        return Ratified(self.latest, self.location, ratified_commits(self.commits))

    def known(self, name: str) -> KnownTable:
        """What is worth remembering. Refuses an external table: nobody ratifies its commits."""
        if self.latest is None:
            raise external(name)
        newest = self.commits[-1] if self.commits else None
        # A newest commit that is not the latest: the rest was published while the pages were read.
        told = newest is not None and newest.version == self.latest
        return KnownTable(
            id=self.id,
            location=self.location,
            metadata_version=self.metadata_version,
            latest=self.latest,
            latest_timestamp=newest.timestamp if newest is not None and told else None,
            unpublished=tuple(structs.replace(one, content=None) for one in self.commits),
        )


def look(table: TableHandle) -> Conversation[Kept]:
    """What is told is remembered, but for contents."""
    kept = yield from _asked(table)
    if kept is None:
        return _from_load((yield from load(table)))
    table.known = None if kept.latest is None else kept.known(table.name)
    return kept


def look_closely(table: TableHandle) -> Conversation[KnownTable]:
    """As `look`, for a managed table."""
    return (yield from look(table)).known(table.name)


def ratified_commits(commits: Iterable[Commit]) -> list[RatifiedCommit]:
    return [RatifiedCommit(one.version, one.file_name, one.file_size, one.timestamp, one.content) for one in commits]


def commits_path(full_name: str) -> str:
    split_table(full_name)
    return f"{TIDEGATE}/tables/{segment(full_name)}/commits"


def _asked(table: TableHandle) -> Conversation[Kept | None]:
    """None: the server does not know the call."""
    if not table.inline.is_served:
        return None
    path = commits_path(table.name)
    answer = yield from exchange("GET", path)
    if says_no_such_call(answer.status, answer.body):
        table.inline.learn_not_served()
        return None
    first = _page(answer)
    commits = [one.commit() for one in first.commits]
    while commits and first.latest_version is not None and commits[-1].version < first.latest_version:
        query = {"start_version": commits[-1].version + 1, "end_version": first.latest_version}
        answer = yield from exchange("GET", path, query=query)
        page = _page(answer)
        if page.table_id != first.table_id:
            raise RequirementConflict(f"{table.name} is another table since a moment ago. Ask again.")
        if not page.commits:
            break
        if page.commits[0].version <= commits[-1].version:
            raise NotATidegate(answer.url, "it tells of the same commits again and again")
        commits += [one.commit() for one in page.commits]
    return Kept(
        id=first.table_id,
        location=first.location,
        metadata_version=first.metadata_version,
        latest=first.latest_version,
        commits=commits,
    )


def _page(answer: Answer) -> KeptCommitPage:
    if answer.status != 200:
        raise refusal(answer.status, answer.body, url=answer.url)
    return decoded(answer, KeptCommitPage)


def _from_load(loaded: LoadedTable) -> Kept:
    return Kept(
        id=loaded.metadata.table_uuid,
        location=loaded.metadata.location,
        metadata_version=loaded.metadata.last_commit_version,
        latest=loaded.latest_table_version,
        commits=sorted(loaded.commits, key=lambda one: one.version),
    )
