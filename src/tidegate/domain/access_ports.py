"""What the rules of access need from the outside world."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tidegate.domain.grants import Grant, SecurableType
from tidegate.domain.identities import AccessToken, Identity, IdentityKind
from tidegate.domain.names import SchemaName, TableId, TableName
from tidegate.domain.privileges import Principal, Question
from tidegate.domain.rights import Allowed, Names, Path


class Identities(Protocol):
    def add(self, identity: Identity) -> None: ...
    def get(self, name: str) -> Identity: ...
    def kind_of(self, name: str) -> IdentityKind | None:
        """None: nobody is called so."""
        ...

    def count(self) -> int: ...
    def page(self, *, kind: IdentityKind | None, after: str, limit: int) -> Sequence[Identity]: ...
    def remove(self, name: str) -> None:
        """With its tokens, its memberships or members, and what was granted to it; what it owned is the admin's."""
        ...

    def members(self, group: str) -> Sequence[str]: ...
    def groups_of(self, member: str) -> Sequence[str]: ...
    def groups_among(self, names: Collection[str]) -> Sequence[str]:
        """Those of the names that groups have."""
        ...

    def join(self, group: str, member: str) -> None:
        """Who is in the group already stays in it."""
        ...

    def leave(self, group: str, member: str) -> bool:
        """False if it was not in the group."""
        ...


class AccessTokens(Protocol):
    def add(self, token: AccessToken, digest: str) -> None: ...
    def find(self, digests: Collection[str]) -> Mapping[str, AccessToken]:
        """By digest; of those that nobody knows there is nothing."""
        ...

    def get(self, id: str) -> AccessToken: ...
    def of(self, principal: str) -> Sequence[AccessToken]:
        """The oldest first, without those of machines."""
        ...

    def count_for_machines(self, principal: str) -> int: ...
    def remove(self, id: str) -> None:
        """With the tokens that were given for it."""
        ...

    def remove_expired(self, principal: str, *, now: int) -> None: ...


class Grants(Protocol):
    def of(self, securable_id: str) -> Sequence[Grant]:
        """By principal and privilege, in order."""
        ...

    def add(self, securable_id: str, given: Sequence[Grant]) -> None:
        """What is granted already stays granted."""
        ...

    def remove(self, securable_id: str, taken: Sequence[Grant]) -> None: ...


class Rights(Protocol):
    """What the rules of `rights.py` are applied to."""

    def names(self, principal: Principal) -> Names | None:
        """The principal's own, those of its groups in the catalog, and those that an identity provider told of groups
        which the catalog knows. None: nobody here knows the principal, or has given it anything.
        """
        ...

    def path(self, to: str | SchemaName | TableName | None, names: Names) -> Path:
        """To a catalog, a schema, a live table, or None: the metastore. Of what was granted, that to the names."""
        ...

    def paths(self, ids: Sequence[TableId], names: Names) -> Mapping[TableId, Path]:
        """To tables, live or dropped, as far as they exist."""
        ...

    def give(self, securable_id: str, type: SecurableType, *, owner: str, by: Principal, now: int) -> None:
        """It belongs to somebody else from now on."""
        ...

    def guard(self, id: TableId, *, guarded: bool) -> None: ...


class Authorizer(Protocol):
    async def require(self, principal: Principal, question: Question) -> Allowed:
        """Raises PermissionDenied unless the answer is yes, or NotFound if there is no such thing for the principal."""
        ...


class Authenticator(Protocol):
    async def authenticate(self, authorization: str | None) -> Principal:
        """Who sent this Authorization header; raises NotAuthenticated."""
        ...
