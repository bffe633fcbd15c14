"""Personal tokens, through Tidegate's own API."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.identities import AccessToken, TokenKind
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.access_tokens import create_token, list_tokens, revoke_token
from tidegate.wire import identities as wire


async def create(call: Call) -> wire.NewToken:
    body: wire.CreateToken = call.body
    token, made = await create_token(
        call.env,
        call.caller,
        body.principal,
        comment=body.comment,
        lifetime_seconds=body.lifetime_seconds,
        kind=TokenKind(body.kind),
    )
    return wire.NewToken(token, _from_token(made))


async def list_all(call: Call) -> wire.TokenList:
    found = await list_tokens(call.env, call.caller, call.query.principal)
    return wire.TokenList([_from_token(token) for token in found])


async def revoke(call: Call) -> None:
    await revoke_token(call.env, call.caller, call.path["id"])


def _from_token(token: AccessToken) -> wire.TokenInfo:
    return wire.TokenInfo(
        id=token.id,
        principal=token.principal,
        comment=token.comment,
        created_at=token.created_at,
        created_by=token.created_by,
        expires_at=token.expires_at,
        kind="client secret" if token.kind is TokenKind.CLIENT_SECRET else "personal",
    )


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        TIDEGATE,
        "POST",
        "/tokens",
        "createToken",
        "Make a token for oneself or, as an administrator, for somebody else. It is shown this once.",
        create,
        body=wire.CreateToken,
        answer=wire.NewToken,
        errors=(errors.InvalidRequest, errors.NoSuchIdentity, errors.BacklogFull),
    ),
    Endpoint(
        TIDEGATE,
        "GET",
        "/tokens",
        "listTokens",
        "List one's tokens or, as an administrator, somebody else's: all of them but the secrets.",
        list_all,
        query=wire.TokensQuery,
        answer=wire.TokenList,
        errors=(errors.NoSuchIdentity,),
    ),
    Endpoint(
        TIDEGATE,
        "DELETE",
        "/tokens/{id}",
        "revokeToken",
        "Revoke a token: at once on this server, after access_cache_ms at the latest on others.",
        revoke,
        status=204,
        errors=(errors.NoSuchToken,),
    ),
]
