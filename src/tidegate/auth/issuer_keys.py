"""The public keys of one identity provider, found by discovery, and found again when it has changed them.

    token signed by key 7, which is not known  ─▶  GET /.well-known/openid-configuration  ─▶  GET jwks_uri  ─▶  7, 8

Whoever invents key ids makes the provider be asked once in `refresh_seconds`, however many wait for the answer. A
provider that does not answer takes nothing away: keys that are known stay so, until it answers with others.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
from collections.abc import Mapping
from time import monotonic
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import jwt

from tidegate.auth.issuers import Issuer, is_safe_address, is_this_machine
from tidegate.domain.errors import Unavailable

ANSWER_SECONDS_MAX = 5.0
"""For both questions together."""
ANSWER_BYTES_MAX = 1024 * 1024
KEYS_MAX = 100
TRIED_MAX = 5
"""Keys that are tried on a token that does not say which one it was signed with."""
KEYS_SECONDS_MAX = 600.0
"""After this they are asked for again, in the background: a key that was withdrawn must go."""
RSA_BITS_MIN = 2048

log = logging.getLogger(__name__)


class NotUnderstood(Exception):
    """What the provider answered is not what OpenID Connect Discovery says."""


class IssuerKeys:
    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._keys: dict[str, Mapping[str, Any]] | None = None
        self._ready: dict[tuple[str, str], jwt.PyJWK | None] = {}
        self._fetching: asyncio.Task[None] | None = None
        self._may_fetch_at = 0.0
        self._old_at = 0.0

    async def find(self, kid: str | None, algorithm: str) -> list[jwt.PyJWK]:
        """The key of that id or, for a token that names none, those that may have signed it. None: the provider has no
        such key. Raises Unavailable as long as it has never told its keys.
        """
        if self._keys is not None and monotonic() > self._old_at:
            self._fetch()
        return self._known(kid, algorithm) or await self.find_anew(kid, algorithm)

    async def find_anew(self, kid: str | None, algorithm: str) -> list[jwt.PyJWK]:
        """After asking the provider, if that was not done a moment ago."""
        fetching = self._fetch()
        if fetching is not None:
            # Who waits may go away; the answer is for the others too.
            await asyncio.shield(fetching)
        if self._keys is None:
            raise Unavailable(f"The keys of {self._issuer.issuer} cannot be had at the moment. Try again in a while.")
        return self._known(kid, algorithm)

    async def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._fetching

    def _known(self, kid: str | None, algorithm: str) -> list[jwt.PyJWK]:
        keys = self._keys or {}
        ids = list(keys)[:TRIED_MAX] if kid is None else [kid] if kid in keys else []
        found = [self._usable(id, keys[id], algorithm) for id in ids]
        return [key for key in found if key is not None]

    def _usable(self, id: str, key: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
        if (id, algorithm) not in self._ready:
            self._ready[id, algorithm] = _usable(key, algorithm)
        return self._ready[id, algorithm]

    def _fetch(self) -> asyncio.Task[None] | None:
        """The look that is under way, or a new one; None if the last one was a moment ago."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        if monotonic() < self._may_fetch_at:
            return None
        self._may_fetch_at = monotonic() + self._issuer.refresh_seconds
        self._fetching = asyncio.create_task(self._renew())
        return self._fetching

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                keys = await _read_keys(self._issuer)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError, NotUnderstood) as error:
            log.warning("%s did not tell its keys: %s", self._issuer.issuer, str(error) or type(error).__name__)
            return
        self._keys, self._ready = keys, {}
        self._old_at = monotonic() + KEYS_SECONDS_MAX


async def _read_keys(issuer: Issuer) -> dict[str, Mapping[str, Any]]:
    nearby = is_this_machine(urlsplit(issuer.issuer).hostname or "")
    verify = ssl.create_default_context(cafile=issuer.ca) if issuer.ca else True
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX, trust_env=not nearby, verify=verify) as http:
        about = await _get(http, f"{issuer.issuer.rstrip('/')}/.well-known/openid-configuration")
        if about.get("issuer") != issuer.issuer:
            raise NotUnderstood("it calls itself otherwise, in the field issuer")
        address = about.get("jwks_uri")
        if not isinstance(address, str) or not is_safe_address(address):
            raise NotUnderstood("its jwks_uri is no https:// address")
        return _by_id((await _get(http, address)).get("keys"))


async def _get(http: httpx.AsyncClient, url: str) -> dict[str, Any]:
    body = bytearray()
    async with http.stream("GET", url) as answer:
        if answer.status_code != 200:
            raise NotUnderstood(f"it answered {answer.status_code}")
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > ANSWER_BYTES_MAX:
                raise NotUnderstood(f"its answer has more than {ANSWER_BYTES_MAX} bytes")
    try:
        told: Any = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise NotUnderstood("its answer is no JSON object")
    return cast("dict[str, Any]", told)


def _by_id(keys: Any) -> dict[str, Mapping[str, Any]]:
    if not isinstance(keys, list):
        raise NotUnderstood("its key set holds no keys")
    told = [cast("dict[str, Any]", key) for key in cast("list[Any]", keys)[:KEYS_MAX] if isinstance(key, dict)]
    return {str(key.get("kid", "")): key for key in told if key.get("use", "sig") == "sig" and key.get("kty") != "oct"}


def _usable(key: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
    """For this algorithm alone: a key says what it is for, or is asked what it can do."""
    if key.get("alg", algorithm) != algorithm:
        return None
    try:
        made = jwt.PyJWK(dict(key), algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    bits = getattr(cast("Any", made).key, "key_size", RSA_BITS_MIN) if key.get("kty") == "RSA" else RSA_BITS_MIN
    return made if bits >= RSA_BITS_MIN else None
