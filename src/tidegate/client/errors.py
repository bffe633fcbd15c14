"""Everything that can go wrong between a program and its catalog. Each message says what to do; facts are attributes.

TidegateError
├── Unreachable                 nobody answers, or answers break off; nothing was changed
├── NotATidegate                something answers that is no Tidegate server, or one that does not know the call
├── NotAuthenticated            the token is missing or wrong
├── PermissionDenied
├── InvalidRequest              a rule says no, here or on the server
│   ├── InvalidCommit           actions that cannot be a commit; nothing was written
│   └── InvalidRows             rows that do not fit the table's columns; nothing was written
├── NotFound
│   ├── NoSuchCatalog
│   ├── NoSuchSchema
│   └── NoSuchTable
├── AlreadyExists               the name is taken
├── NotEmpty                    it still holds something
├── CommitConflict              another commit has this version: rebase and commit the next one
├── ConcurrentChange            another commit changed what a write was made for: look, and write again
│   ├── ProtocolChanged         features came or went that this commit cannot do without, or beside
│   ├── MetadataChanged         columns, partitions or properties are others now
│   ├── DomainMetadataChanged   a metadata domain that this commit writes or has read was written
│   ├── ConcurrentTransaction   an application that this commit writes or has read has moved on
│   ├── ConcurrentAppend        files came that this commit should have read
│   ├── ConcurrentDeleteRead    files went that this commit has read
│   └── ConcurrentDeleteDelete  a file that this commit removes is removed already
├── RequirementConflict         the table is no longer what the caller knew: load it again
├── EventsForgotten             older events were asked for than are kept
├── TooBusy                     the server, or a backlog, is at its bound
├── OutcomeUnknown              the request was sent and no answer came: it may have happened
│   └── CommitOutcomeUnknown    a commit of which nobody could tell yet whether it happened: send it again
├── ServerFailure               a defect of the server; its log has the details
├── StorageFailure              a file of the table could not be read or written
└── LogError                    a table's log, or what is asked of it: see log/errors.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.client.proposals import InlineProposal, Proposal
    from tidegate.client.wire import Commit


class TidegateError(Exception):
    """Carries one message, written for the person who has to act on it."""

    doubtful: bool = False
    """A refusal of a commit that was sent before without an answer: files that it names are not safe to remove."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors travel between processes whole, whatever they were made from."""
        return _remade, (type(self), self.message, self.__dict__)


def _remade(kind: type[TidegateError], message: str, facts: dict[str, Any]) -> TidegateError:
    error = kind.__new__(kind, message)
    error.__dict__.update(facts)
    return error


class Unreachable(TidegateError):
    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"No server answers at {url} ({why}). Check the address, and that `tidegate serve` runs.")
        self.url = url
        self.why = why


class NotATidegate(TidegateError):
    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"What answers at {url} is not a Tidegate server that knows this call ({why}). Check the URL.")
        self.url = url
        self.why = why


class NotAuthenticated(TidegateError):
    def __init__(self, message: str) -> None:
        super().__init__(f"{message} Pass it as token=, or set TIDEGATE_TOKEN.")


class PermissionDenied(TidegateError):
    pass


class InvalidRequest(TidegateError):
    pass


class InvalidCommit(InvalidRequest):
    pass


class InvalidRows(InvalidRequest):
    """`column`: the one that does not fit, nested ones with dots; None if it is no single one."""

    def __init__(self, message: str, *, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


class NotFound(TidegateError):
    pass


class NoSuchCatalog(NotFound):
    pass


class NoSuchSchema(NotFound):
    pass


class NoSuchTable(NotFound):
    pass


class AlreadyExists(TidegateError):
    pass


class NotEmpty(TidegateError):
    pass


class CommitConflict(TidegateError):
    """`commits`: the ratified commits from the lost version on that are not published; the earlier are in the log.
    `append_stands`: whether a commit that does nothing but add files can be committed again as it is; None if the
    server has not said so.
    """

    def __init__(
        self, table: str, *, version: int, latest: int, commits: Sequence[Commit], append_stands: bool | None = None
    ) -> None:
        why = "is taken" if version <= latest else "would leave a gap"
        super().__init__(
            f"Version {version} of {table} {why}: the latest is {latest}. Look at what was committed since, "
            f"and commit version {latest + 1}."
        )
        self.version = version
        self.latest = latest
        self.commits = tuple(commits)
        self.append_stands = append_stands


class ConcurrentChange(TidegateError):
    """`version`: that of the other commit, or a later one. Nothing of the write is in the table."""

    def __init__(
        self, table: str, *, version: int, what: str, advice: str = "Look at the table, and write again."
    ) -> None:
        super().__init__(f"Version {version} of {table}, committed meanwhile, {what}. {advice}")
        self.version = version


class ProtocolChanged(ConcurrentChange):
    """`features`: the ones in question, none if both commits state the protocol."""

    def __init__(self, table: str, *, version: int, what: str, features: Iterable[str] = ()) -> None:
        super().__init__(table, version=version, what=what, advice="Take a new snapshot, and decide again.")
        self.features = tuple(features)


class MetadataChanged(ConcurrentChange):
    """`changed`: what of the metadata is another now, such as `columns` or `properties`; none if both state it."""

    def __init__(self, table: str, *, version: int, changed: Iterable[str] = ()) -> None:
        self.changed = tuple(changed)
        why = f"({', '.join(self.changed)})" if self.changed else "as this commit does"
        what = f"changed the table's metadata {why}"
        super().__init__(table, version=version, what=what, advice="Take a new snapshot, and write again for it.")


class DomainMetadataChanged(ConcurrentChange):
    def __init__(self, table: str, *, version: int, domain: str) -> None:
        what = f"wrote the metadata domain {domain}, on which this commit depends"
        super().__init__(table, version=version, what=what, advice="Read the domain anew, and write again.")
        self.domain = domain


class ConcurrentTransaction(ConcurrentChange):
    """`recorded`: how far the application is by the other commit."""

    def __init__(self, table: str, *, version: int, app_id: str, recorded: int) -> None:
        what = f"recorded version {recorded} of the application {app_id}, on which this commit depends"
        advice = "Look whether your work is done already: the application may run twice."
        super().__init__(table, version=version, what=what, advice=advice)
        self.app_id = app_id
        self.recorded = recorded


class ConcurrentAppend(ConcurrentChange):
    """`path`: one of the files that came."""

    def __init__(self, table: str, *, version: int, path: str, partition_values: Mapping[str, str | None]) -> None:
        place = f" to the partition {_partition(partition_values)}" if partition_values else ""
        what = f"added files{place} that this commit should have read, such as {path}"
        super().__init__(table, version=version, what=what, advice="Read the table anew, and write again.")
        self.path = path
        self.partition_values = dict(partition_values)


class ConcurrentDeleteRead(ConcurrentChange):
    """`path`: one of the files that went."""

    def __init__(self, table: str, *, version: int, path: str) -> None:
        what = f"removed files that this commit has read, such as {path}, or marked rows of them as deleted"
        super().__init__(table, version=version, what=what, advice="Read the table anew, and write again.")
        self.path = path


class ConcurrentDeleteDelete(ConcurrentChange):
    """`path`: one of the files that both remove."""

    def __init__(self, table: str, *, version: int, path: str) -> None:
        what = f"removed files that this commit removes, such as {path}, or marked rows of them as deleted"
        super().__init__(table, version=version, what=what, advice="Read the table anew, and write again.")
        self.path = path


class RequirementConflict(TidegateError):
    pass


class EventsForgotten(TidegateError):
    pass


class TooBusy(TidegateError):
    pass


class OutcomeUnknown(TidegateError):
    def __init__(self, request: str, why: str) -> None:
        super().__init__(
            f"{request} was sent, but no answer came ({why}): it may have happened. Look before you send it again."
        )
        self.why = why


class CommitOutcomeUnknown(OutcomeUnknown):
    """A staged file is kept. `table.resend(error)` sends the very same commit again: that never doubles it.

    `version`: None if it was left open.
    """

    def __init__(self, proposal: Proposal | InlineProposal, why: str) -> None:
        super().__init__("the commit", why)
        what = "An append to" if proposal.version is None else f"Version {proposal.version} of"
        self.message = (
            f"{what} {proposal.table} was proposed, and nobody could tell yet whether it is "
            f"ratified ({why}). Call table.resend(error): the same commit is sent again, and never counts twice."
        )
        self.args = (self.message,)
        self.proposal = proposal
        self.version = proposal.version
        self.txn_id = proposal.txn_id


class ServerFailure(TidegateError):
    pass


class StorageFailure(TidegateError):
    pass


def _partition(values: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={'null' if value is None else value}" for name, value in values.items())
