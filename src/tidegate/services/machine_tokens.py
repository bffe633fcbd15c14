"""Short tokens for machines: a service account brings its client secret, and gets a token for an hour or so.

That is OAuth 2's client credentials grant, which Spark's stock client speaks. The secret is the right to it: no other
question is asked. When the secret is revoked, or its account removed, the tokens that were given for it are gone too.
"""

from __future__ import annotations

import secrets

from tidegate.domain.errors import BacklogFull, NotAuthenticated
from tidegate.domain.identities import (
    TOKEN_PREFIX,
    AccessToken,
    TokenKind,
    digest_of,
    is_client_secret,
)
from tidegate.domain.ports import UnitOfWork
from tidegate.services.environment import Environment


async def give_token(env: Environment, *, client_id: str, client_secret: str) -> tuple[str, int]:
    """The token, and for how many seconds it is good."""
    secret = await _find(env, client_id, client_secret)
    now, seconds = env.clock(), env.access.machine_token_seconds
    expires_at = min(now + seconds * 1000, secret.expires_at)
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    given = AccessToken(
        env.new_id(), secret.principal, "", now, secret.principal, expires_at, TokenKind.MACHINE, given_for=secret.id
    )

    def work(uow: UnitOfWork) -> None:
        uow.access_tokens.get(secret.id)  # it may have been revoked meanwhile
        uow.access_tokens.remove_expired(secret.principal, now=now)
        if uow.access_tokens.count_for_machines(secret.principal) >= env.access.machine_tokens_max:
            raise BacklogFull(
                f"{secret.principal} has {env.access.machine_tokens_max} tokens that are still good, the setting "
                "machine_tokens_max. Wait until some have expired, or raise it."
            )
        uow.access_tokens.add(given, digest_of(token))

    await env.database.write(work)
    return token, (expires_at - now) // 1000


async def _find(env: Environment, client_id: str, client_secret: str) -> AccessToken:
    """What cannot be a secret is told by its form, without a look into the database."""
    if not is_client_secret(client_secret):
        raise _refusal()
    digest = digest_of(client_secret)
    found = (await env.database.read(lambda uow: uow.access_tokens.find([digest]))).get(digest)
    if found is None or found.kind is not TokenKind.CLIENT_SECRET or found.principal != client_id:
        raise _refusal()
    if found.expires_at <= env.clock():
        raise NotAuthenticated("The client secret has expired. Ask an administrator for another one.")
    return found


def _refusal() -> NotAuthenticated:
    return NotAuthenticated("The client id and its secret do not fit. Check both, or ask an administrator for others.")
