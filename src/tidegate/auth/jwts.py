"""Tokens of identity providers: JWTs that a configured issuer has signed, for us, and not too long ago.

What a token says of itself chooses only by whom it is checked. The algorithm must be one of those that are configured
for that issuer, which all take a key pair, and the key must be one of the issuer's, made for that algorithm: a token
without a signature, or signed with the public key as if it were a secret, is no token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jwt

from tidegate.auth.issuer_keys import IssuerKeys
from tidegate.auth.issuers import Issuer
from tidegate.domain.errors import NotAuthenticated
from tidegate.domain.frozen import frozen
from tidegate.domain.identities import RESERVED, is_identity_name

KEY_ID_LENGTH_MAX = 512
GROUPS_MAX = 1000


@frozen
class Told:
    """What an identity provider tells of whom it gave the token to."""

    name: str
    groups: frozenset[str]
    expires_at: int
    """In milliseconds, the clock skew included."""
    must_be_known: bool
    """Whether the catalog has to have a user of that name."""


class Providers:
    def __init__(self, issuers: Sequence[Issuer]) -> None:
        self._issuers = {issuer.issuer: (issuer, IssuerKeys(issuer)) for issuer in issuers}

    async def verify(self, token: str) -> Told:
        """Raises NotAuthenticated, or Unavailable if nobody can tell at the moment."""
        header, claims = _unverified(token)
        name = claims.get("iss")
        issuer, keys = self._issuers.get(name, (None, None)) if isinstance(name, str) else (None, None)
        if issuer is None or keys is None:
            raise NotAuthenticated("The token is from an issuer that this server does not trust.")
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in issuer.algorithms:
            raise NotAuthenticated("The token is not signed in a way that this server takes from its issuer.")
        if not (kid is None or (isinstance(kid, str) and len(kid) <= KEY_ID_LENGTH_MAX)):
            raise NotAuthenticated("The token names no key that can be looked for.")
        claims = _verified(token, await keys.find(kid, algorithm), algorithm, issuer)
        if claims is None and kid is None:
            # It may be signed with a key that is new: without a name for it, that looks like a wrong signature.
            claims = _verified(token, await keys.find_anew(kid, algorithm), algorithm, issuer)
        if claims is None:
            raise NotAuthenticated("The token is not signed with a key of its issuer.")
        return _told(issuer, claims)

    async def close(self) -> None:
        for _, keys in self._issuers.values():
            await keys.close()


def _unverified(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    try:
        parts = cast("Any", jwt).decode_complete(token, options={"verify_signature": False})
        return parts["header"], parts["payload"]
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise NotAuthenticated("The token cannot be read.") from None


def _verified(token: str, keys: Sequence[jwt.PyJWK], algorithm: str, issuer: Issuer) -> Mapping[str, Any] | None:
    """What the token claims; None if none of the keys has signed it."""
    for key in keys:
        with contextlib.suppress(jwt.InvalidSignatureError):
            return _decoded(token, key, algorithm, issuer)
    return None


def _decoded(token: str, key: jwt.PyJWK, algorithm: str, issuer: Issuer) -> Mapping[str, Any]:
    try:
        return jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=issuer.audience,
            issuer=issuer.issuer,
            leeway=issuer.clock_skew_seconds,
            options={"require": ["exp", "iss", "aud"]},
        )
    except jwt.InvalidSignatureError:
        raise
    except jwt.ExpiredSignatureError:
        raise NotAuthenticated("The token has expired. Get another one from its issuer.") from None
    except (jwt.ImmatureSignatureError, jwt.InvalidIssuedAtError):
        raise NotAuthenticated("The token is not valid yet. Check the clocks.") from None
    except jwt.InvalidAudienceError:
        raise NotAuthenticated("The token is meant for another audience than this server.") from None
    except jwt.MissingRequiredClaimError as error:
        raise NotAuthenticated(f"The token lacks the claim {error.claim}.") from None
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
        raise NotAuthenticated("The token is not valid: its claims are wrong.") from None


def _told(issuer: Issuer, claims: Mapping[str, Any]) -> Told:
    name = claims.get(issuer.name_claim)
    if not isinstance(name, str) or not is_identity_name(name) or name in RESERVED:
        raise NotAuthenticated(f"The token's claim {issuer.name_claim} holds no name that a user can have.")
    if issuer.name_claim == "email" and claims.get("email_verified", True) not in {True, "true"}:
        raise NotAuthenticated("The token's issuer has not verified its email.")
    expires_at = (int(claims["exp"]) + issuer.clock_skew_seconds) * 1000
    groups = _groups(claims.get(issuer.groups_claim)) if issuer.groups_claim else frozenset[str]()
    return Told(name, groups, expires_at, issuer.unknown_users == "refused")


def _groups(claim: Any) -> frozenset[str]:
    """A claim may hold one group, or many; what cannot be the name of a group of ours is passed over."""
    told: list[Any] = cast("list[Any]", claim) if isinstance(claim, list) else [claim]
    if len(told) > GROUPS_MAX:
        raise NotAuthenticated(f"The token tells more than {GROUPS_MAX} groups.")
    return frozenset(group for group in told if isinstance(group, str) and is_identity_name(group))
