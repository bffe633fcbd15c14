"""Personal tokens: made, listed, revoked. Everybody has their own; those of others are for an administrator.

Client secrets of service accounts are made, listed and revoked the same way, but made by an administrator alone: with
a token that was given for an hour, nobody shall get a secret that gives such tokens for ever.

The token is told to whoever makes it, and to nobody afterwards: the catalog keeps its hash.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from tidegate.domain.errors import BacklogFull, InvalidRequest, NoSuchToken, PermissionDenied
from tidegate.domain.identities import (
    RESERVED,
    SECRET_PREFIX,
    TOKEN_PREFIX,
    AccessToken,
    IdentityKind,
    TokenKind,
    check_comment,
    digest_of,
    expiry_of,
)
from tidegate.domain.ports import UnitOfWork
from tidegate.domain.privileges import Operation, Principal
from tidegate.services.environment import Environment
from tidegate.services.identities import known_identity


async def create_token(
    env: Environment,
    caller: Principal,
    principal: str | None,
    *,
    comment: str,
    lifetime_seconds: int,
    kind: TokenKind = TokenKind.PERSONAL,
) -> tuple[str, AccessToken]:
    whose = principal or caller.name
    if kind is TokenKind.PERSONAL:
        await _authorize(env, caller, whose)
    else:
        await env.authorize(caller, Operation.MANAGE_METASTORE, "metastore")
    now = env.clock()
    expires_at = expiry_of(now=now, lifetime_seconds=lifetime_seconds, hours_max=env.access.token_hours_max)
    made = AccessToken(env.new_id(), whose, check_comment(comment), now, caller.name, expires_at, kind)
    token = (TOKEN_PREFIX if kind is TokenKind.PERSONAL else SECRET_PREFIX) + secrets.token_urlsafe(32)

    def work(uow: UnitOfWork) -> None:
        known_identity(uow, caller)
        _check_holder(uow, whose, kind)
        uow.access_tokens.remove_expired(whose, now=now)
        if len(uow.access_tokens.of(whose)) >= env.access.tokens_max:
            raise BacklogFull(
                f"{whose} has {env.access.tokens_max} tokens already, the setting tokens_max. Revoke some, or raise it."
            )
        uow.access_tokens.add(made, digest_of(token))

    await env.database.write(work)
    return token, made


async def list_tokens(env: Environment, caller: Principal, principal: str | None) -> Sequence[AccessToken]:
    whose = principal or caller.name
    await _authorize(env, caller, whose)

    def work(uow: UnitOfWork) -> Sequence[AccessToken]:
        known_identity(uow, caller)
        if whose not in RESERVED:
            uow.identities.get(whose)
        return uow.access_tokens.of(whose)

    return await env.database.read(work)


async def revoke_token(env: Environment, caller: Principal, id: str) -> None:
    """Effective at once on this server, and on others when what they remember is too old."""

    def find(uow: UnitOfWork) -> AccessToken:
        known_identity(uow, caller)
        return uow.access_tokens.get(id)

    token = await env.database.read(find)
    try:
        await _authorize(env, caller, token.principal)
    except PermissionDenied:
        raise NoSuchToken(id) from None  # what belongs to others is as good as not there
    await env.database.write(lambda uow: uow.access_tokens.remove(token.id))
    env.access.epoch.advance()


async def _authorize(env: Environment, caller: Principal, whose: str) -> None:
    own = whose == caller.name
    await env.authorize(caller, Operation.BE_KNOWN if own else Operation.MANAGE_METASTORE, "metastore")


def _check_holder(uow: UnitOfWork, name: str, kind: TokenKind) -> None:
    if name in RESERVED:
        raise InvalidRequest(f"{name} has no tokens of this kind. Name a user or a service account.")
    holder = uow.identities.get(name).kind
    if kind is TokenKind.CLIENT_SECRET and holder is not IdentityKind.SERVICE_ACCOUNT:
        raise InvalidRequest(f"{name} is a {holder.value}. Client secrets are for service accounts.")
    if holder is IdentityKind.GROUP:
        raise InvalidRequest(f"{name} is a group, and groups have no tokens. Name a user or a service account.")
