"""Subscriptions: whom the catalog tells of events by itself, and how far it has come with each.

    events    1  2  3  4  5  6
    cursor          ^              2 and what was before it is delivered, or of no interest, or a dead letter
                       3 is sent, again and again, with growing pauses; then it is a dead letter, and 4 is next

At least once: what was sent, and not recorded before a crash, is sent again. In order: nothing is sent before what came
before it is done with.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import field
from urllib.parse import urlsplit

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.event_filters import EventFilter
from tidegate.domain.events import NumberedEvent, Sequence
from tidegate.domain.frozen import frozen

URL_LENGTH_MAX = 2000
SECRET_PREFIX = "whsec_"  # noqa: S105
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64
BACKOFF_MS_MAX = 5 * 60 * 1000


@frozen
class Webhook:
    url: str
    secret: str = field(repr=False)


@frozen
class Function:
    """One of those that the server was started with."""

    name: str


Target = Webhook | Function


@frozen
class Subscription:
    id: str
    name: str
    wanted: EventFilter
    target: Target
    cursor: Sequence
    created_at: int
    created_by: str
    attempts: int = 0
    """That failed, of the event that is next."""
    next_attempt_at: int = 0
    paused: bool = False
    note: str | None = None
    """What went wrong last, for a person."""
    dead_letters: int = 0
    resends: int = 0
    """Dead letters that are to be sent again."""


@frozen
class DeadLetter:
    """An event that could not be delivered. It holds the event itself, which may be forgotten meanwhile."""

    numbered: NumberedEvent
    attempts: int
    error: str
    failed_at: int
    resend: bool = False


class DeliveryFailed(Exception):
    """The message is for a person, and holds nothing that only the receiver should know."""


def is_due(subscription: Subscription, *, last: Sequence, now: int) -> bool:
    if subscription.paused or not (subscription.cursor < last or subscription.resends):
        return False
    # A moment further ahead than any pause was written by a clock that was wrong.
    return not now < subscription.next_attempt_at <= now + 2 * BACKOFF_MS_MAX


def pause_ms(attempts: int, *, first_ms: int, jitter: float) -> int:
    """After so many failed attempts; `jitter` is about 1."""
    return int(min(first_ms * 2 ** min(attempts - 1, 30), BACKOFF_MS_MAX) * jitter)


def check_url(url: str) -> str:
    if len(url) > URL_LENGTH_MAX or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidRequest(f"A webhook's URL has at most {URL_LENGTH_MAX} characters, without spaces. Encode others.")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    else:
        if parts.username is not None or parts.password is not None:
            raise InvalidRequest("A webhook's URL holds no user and password. Receivers check the signature instead.")
    if not usable:
        raise InvalidRequest("A webhook's URL is a whole one: http://host:port/path or https://host/path.")
    return url


def make_secret(random_bytes: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(random_bytes).decode()


def check_secret(secret: str) -> str:
    try:
        size = len(_key(secret))
    except (binascii.Error, ValueError):
        size = 0
    if not secret.startswith(SECRET_PREFIX) or not SECRET_BYTES_MIN <= size <= SECRET_BYTES_MAX:
        raise InvalidRequest(
            f"A webhook's secret is {SECRET_PREFIX} and {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} random bytes in "
            "base64. Leave it out, and one is made."
        )
    return secret


def sign(secret: str, *, id: str, timestamp: int, body: bytes) -> str:
    """By the scheme of Standard Webhooks; `timestamp` is in seconds."""
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
