"""Everything that can go wrong, as facts. Status codes belong to the faces, not here.

TidegateError
├── MalformedRequest            the request cannot be read
├── InvalidRequest              it can be read, and a rule says no
│   ├── UnsupportedTableFormat
│   ├── NotEmpty
│   ├── InlineTooLarge          a commit's content is too large to be sent with the request
│   ├── EventsForgotten         older events were asked for than are kept
│   └── UnsupportedGrant        a token was asked for in a way that is not offered
├── NotAuthenticated
├── PermissionDenied
│   └── CommitNotAllowed        the commit is one that its writer may not make: no retry helps
├── NotFound
│   ├── NoSuchCatalog
│   ├── NoSuchSchema
│   ├── NoSuchTable
│   ├── NoSuchStagingTable
│   ├── NoSuchSubscription
│   ├── NoSuchIdentity
│   └── NoSuchToken
├── AlreadyExists
│   ├── CatalogAlreadyExists
│   ├── SchemaAlreadyExists
│   ├── TableAlreadyExists
│   ├── SubscriptionAlreadyExists
│   └── IdentityAlreadyExists
├── CommitVersionConflict       another commit won this version: rebase and retry
│   └── CommitVersionGap        the version before it does not exist yet
├── RequirementConflict         the table is not what the caller asserted: reload and retry
├── BacklogFull                 a bounded backlog is at its bound
├── TooManyRequests             the server is at its bound
├── OutcomeUnknown              it may or may not have happened: re-send the same request
├── Unavailable                 the database or the object store does not answer
└── InternalFailure             a defect of ours; nothing was stored
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.domain.commits import Commit

MESSAGE_LENGTH_MAX = 1000


class TidegateError(Exception):
    """Carries one message, written for the person who has to act on it.

    It may quote what somebody sent, so it is cut where it would not end, and can always be written as UTF-8.
    """

    def __init__(self, message: str) -> None:
        short = message if len(message) <= MESSAGE_LENGTH_MAX else message[:MESSAGE_LENGTH_MAX] + "..."
        self.message = short.encode("utf-8", "backslashreplace").decode()
        super().__init__(self.message)


class MalformedRequest(TidegateError):
    pass


class InvalidRequest(TidegateError):
    pass


class UnsupportedTableFormat(InvalidRequest):
    def __init__(self, table: object, format: str) -> None:
        super().__init__(f"{table} is a {format} table. This call serves Delta tables only.")


class NotEmpty(InvalidRequest):
    def __init__(self, kind: str, name: object, holds: str) -> None:
        super().__init__(f"{kind} {name} still holds {holds}. Drop them first, or delete with force=true.")


class EventsForgotten(InvalidRequest):
    def __init__(self, *, after: int, forgotten: int) -> None:
        super().__init__(
            f"Events after {after} were asked for, and those up to {forgotten} are no longer kept. Look at the tables "
            f"themselves for what you have missed, then go on with after={forgotten}."
        )


class InlineTooLarge(InvalidRequest):
    def __init__(self, *, size: int, bytes_max: int) -> None:
        super().__init__(
            f"The content has {size} bytes; this server takes at most {bytes_max} with a request (the setting "
            "inline_bytes_max). Stage it as a file and propose that."
        )


class UnsupportedGrant(InvalidRequest):
    def __init__(self, grant: str) -> None:
        super().__init__(f"The grant_type {grant[:100]!r} is not offered. Use client_credentials.")


class NotAuthenticated(TidegateError):
    pass


class PermissionDenied(TidegateError):
    pass


class CommitNotAllowed(PermissionDenied):
    pass


class NotFound(TidegateError):
    pass


class NoSuchCatalog(NotFound):
    def __init__(self, name: object) -> None:
        super().__init__(f"There is no catalog {name}.")


class NoSuchSchema(NotFound):
    def __init__(self, name: object) -> None:
        super().__init__(f"There is no schema {name}.")


class NoSuchTable(NotFound):
    above: NotFound | None = None
    """What is missing already, of that in which the table would be, if that is known."""

    def __init__(self, name: object, hint: str = "") -> None:
        super().__init__(f"There is no table {name}." + (f" {hint}" if hint else ""))


class NoSuchStagingTable(NotFound):
    pass


def no_such_staging_table(id: object) -> NoSuchStagingTable:
    return NoSuchStagingTable(f"There is no staging table with id {id}. It may be finished already.")


class NoSuchSubscription(NotFound):
    def __init__(self, name: object) -> None:
        super().__init__(f"There is no subscription {name}.")


class NoSuchIdentity(NotFound):
    def __init__(self, name: object) -> None:
        super().__init__(f"There is no user, service account or group {name}.")


class NoSuchToken(NotFound):
    def __init__(self, id: object) -> None:
        super().__init__(f"There is no token with id {id}.")


class AlreadyExists(TidegateError):
    kind = "object"

    def __init__(self, name: object) -> None:
        super().__init__(f"A {self.kind} named {name} already exists. Choose another name.")


class CatalogAlreadyExists(AlreadyExists):
    kind = "catalog"


class SchemaAlreadyExists(AlreadyExists):
    kind = "schema"


class TableAlreadyExists(AlreadyExists):
    kind = "table"


class SubscriptionAlreadyExists(AlreadyExists):
    kind = "subscription"


class IdentityAlreadyExists(AlreadyExists):
    kind = "user, service account or group"


class CommitVersionConflict(TidegateError):
    """`winners` are the commits since the proposed version, the proposed one included, as far as they are not published
    yet: the others can be read in the log. `append_stands` says that none of all these changed what a blind append
    relies on, so that it can be proposed again as it is.
    """

    def __init__(
        self,
        *,
        table: object,
        proposed: int,
        latest: int,
        winners: Sequence[Commit] = (),
        append_stands: bool = False,
    ) -> None:
        super().__init__(
            f"Version {proposed} of {table} {self._why}: the latest version is {latest}. "
            f"Rebase and propose version {latest + 1}."
        )
        self.proposed = proposed
        self.latest = latest
        self.winners = winners
        self.append_stands = append_stands

    _why = "is already taken"


class CommitVersionGap(CommitVersionConflict):
    _why = "would leave a gap"


class RequirementConflict(TidegateError):
    pass


class BacklogFull(TidegateError):
    pass


class TooManyRequests(TidegateError):
    pass


class OutcomeUnknown(TidegateError):
    pass


class Unavailable(TidegateError):
    pass


class InternalFailure(TidegateError):
    def __init__(self) -> None:
        super().__init__("Something went wrong inside Tidegate; nothing was stored. The server's log has the details.")
