"""`POST /api/tidegate/v1/oauth/token`: OAuth 2's token endpoint, for service accounts.

POST /api/tidegate/v1/oauth/token        Authorization: Basic base64(nightly:tgs_...)
grant_type=client_credentials            ─▶  {"access_token": "tg_...", "expires_in": 3600, "token_type": "Bearer"}
"""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote

from tidegate.domain import errors
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.http.faces import BodyTooLarge, ErrorCode, Face
from tidegate.services.machine_tokens import give_token
from tidegate.wire import oauth as wire

CLIENT_CREDENTIALS = "client_credentials"


def _error_body(code: ErrorCode, error: errors.TidegateError) -> wire.OAuthError:
    return wire.OAuthError(code.code, error.message)


OAUTH = Face(
    name="OAuth",
    root="/api/tidegate/v1/oauth",
    codes={
        **TIDEGATE.codes,
        errors.MalformedRequest: ErrorCode(400, "invalid_request"),
        errors.InvalidRequest: ErrorCode(400, "invalid_request"),
        errors.UnsupportedGrant: ErrorCode(400, "unsupported_grant_type"),
        errors.NotAuthenticated: ErrorCode(401, "invalid_client"),
        errors.NoSuchToken: ErrorCode(401, "invalid_client"),
        errors.BacklogFull: ErrorCode(429, "temporarily_unavailable"),
        BodyTooLarge: ErrorCode(413, "invalid_request"),
    },
    error_body=_error_body,
    error_type=wire.OAuthError,
    challenge=b"Basic",
)


async def token(call: Call) -> wire.TokenAnswer:
    body: wire.TokenRequest = call.body
    if body.grant_type != CLIENT_CREDENTIALS:
        raise errors.UnsupportedGrant(body.grant_type)
    client_id, client_secret = _credentials(call.authorization, body)
    given, seconds = await give_token(call.env, client_id=client_id, client_secret=client_secret)
    return wire.TokenAnswer(given, seconds)


def _credentials(authorization: str | None, body: wire.TokenRequest) -> tuple[str, str]:
    """In one of two places, not in both."""
    if authorization is None:
        if body.client_id is None or body.client_secret is None:
            raise errors.NotAuthenticated("Send client id and secret, as Basic authorization or in the form.")
        return body.client_id, body.client_secret
    if body.client_secret is not None:
        raise errors.InvalidRequest("Client id and secret are sent twice. Send them in the header or in the form.")
    scheme, _, encoded = authorization.partition(" ")
    try:
        pair = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        pair = ""
    id, colon, secret = pair.partition(":")
    if scheme.lower() != "basic" or not colon:
        raise errors.NotAuthenticated("The Authorization header is not Basic authorization of an id and its secret.")
    # The RFC wants both form-encoded, and not every client does that. Neither can hold a percent sign of its own.
    return unquote(id), unquote(secret)


OAUTH_TOKEN = Endpoint(
    OAUTH,
    "POST",
    "/token",
    "giveToken",
    "Give a short token for the client id and secret of a service account.",
    token,
    body=wire.TokenRequest,
    answer=wire.TokenAnswer,
    open=True,
    form=True,
)
