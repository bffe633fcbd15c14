"""OAuth 2, as far as machines need it: RFC 6749, sections 4.4 and 5."""

from __future__ import annotations

from msgspec import Struct


class TokenRequest(Struct, frozen=True):
    """Sent as a form. The client may name itself here, or in a Basic Authorization header. `scope` changes nothing."""

    grant_type: str
    client_id: str | None = None
    client_secret: str | None = None
    scope: str = ""


class TokenAnswer(Struct, frozen=True):
    access_token: str
    expires_in: int
    token_type: str = "Bearer"  # noqa: S105


class OAuthError(Struct, frozen=True):
    error: str
    error_description: str
