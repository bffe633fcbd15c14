"""Identity providers whose tokens the server takes, as a TOML file tells them:

    [[issuer]]
    issuer = "https://login.example.org/realms/sea"
    audience = "tidegate"
    name_claim = "email"
    groups_claim = "groups"

A file that cannot be meant so is refused at the start, before anybody is served.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import tomllib
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen

ISSUERS_MAX = 20
JWT_LENGTH_MAX = 16 * 1024
_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
SIGNED_BY_A_KEY_PAIR = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Never a shared secret, and never nothing: who can check such a signature can also make it, or everybody can."""


@frozen
class Issuer:
    issuer: str
    """As its tokens spell it in `iss`."""
    audience: tuple[str, ...]
    """A token must be meant for one of these."""
    name_claim: str = "email"
    groups_claim: str = ""
    """Empty: it tells no groups."""
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    clock_skew_seconds: int = 30
    unknown_users: str = "refused"
    """refused, or welcome: those whom the catalog does not know are known by their name alone."""
    refresh_seconds: int = 10
    """For keys that are not known, it is asked at most this often."""
    ca: str = ""
    """A file with the certificates that its own is checked against, if not those of the system."""


_NUMBERS = {"clock_skew_seconds": (0, 600), "refresh_seconds": (1, 3600)}
_TEXTS = ("issuer", "name_claim", "groups_claim", "unknown_users", "ca")
_LISTS = ("audience", "algorithms")
_FIELDS = (*_TEXTS, *_LISTS, *_NUMBERS)


def read_issuers(file: Path) -> list[Issuer]:
    """Raises InvalidRequest, which says what to change."""
    try:
        content = tomllib.loads(file.read_text())
    except OSError as error:
        raise InvalidRequest(f"The file of identity providers {file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The file of identity providers {file} is not TOML: {error}.") from None
    entries: Any = content.pop("issuer", None)
    if content or not isinstance(entries, list) or not 0 < len(cast("list[Any]", entries)) <= ISSUERS_MAX:
        raise InvalidRequest(f"{file} holds something else than 1 to {ISSUERS_MAX} tables called [[issuer]].")
    issuers = [_issuer(entry, file) for entry in cast("list[Any]", entries)]
    if len({each.issuer for each in issuers}) < len(issuers):
        raise InvalidRequest(f"{file} names an issuer twice. Put all its audiences into one table.")
    return issuers


def is_jwt(text: str) -> bool:
    """Whether it can be one: what cannot be need not be read."""
    return len(text) <= JWT_LENGTH_MAX and _JWT.fullmatch(text) is not None


def is_safe_address(url: str) -> bool:
    """Keys must come from whom they claim to come from: by TLS, or from this very machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(host)))


def is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _issuer(entry: Any, file: Path) -> Issuer:
    if not isinstance(entry, dict):
        raise InvalidRequest(f"{file}: an issuer is a table, [[issuer]].")
    table = cast("dict[str, Any]", entry)
    for name in table:
        if name not in _FIELDS:
            near = difflib.get_close_matches(name, _FIELDS, n=1)
            raise InvalidRequest(f"{file}: an issuer has no {name!r}." + (f" Did you mean {near[0]}?" if near else ""))
    values = {name: _value(name, value, file) for name, value in table.items()}
    if not values.get("issuer") or not values.get("audience"):
        raise InvalidRequest(f"{file}: an issuer needs both issuer and audience.")
    made = Issuer(**values)
    if not is_safe_address(made.issuer):
        raise InvalidRequest(f"{file}: the issuer {made.issuer!r} is not an https:// address, nor one of this machine.")
    if made.unknown_users not in {"refused", "welcome"}:
        raise InvalidRequest(f"{file}: unknown_users is refused or welcome, not {made.unknown_users!r}.")
    wrong = [name for name in made.algorithms if name not in SIGNED_BY_A_KEY_PAIR]
    if wrong or not made.algorithms:
        raise InvalidRequest(f"{file}: algorithms are of {', '.join(sorted(SIGNED_BY_A_KEY_PAIR))}, not {wrong}.")
    if made.ca and not Path(made.ca).is_file():
        raise InvalidRequest(f"{file}: there is no file {made.ca}, the ca of {made.issuer}.")
    return made


def _value(name: str, value: Any, file: Path) -> Any:
    if name in _NUMBERS:
        low, high = _NUMBERS[name]
        if type(value) is not int or not low <= value <= high:
            raise InvalidRequest(f"{file}: {name} is a number from {low} to {high}, not {value!r}.")
        return value
    if name in _LISTS:
        texts: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        if not all(isinstance(text, str) and text for text in texts):
            raise InvalidRequest(f"{file}: {name} is a text, or a list of texts, not {value!r}.")
        return tuple(texts)
    if not isinstance(value, str):
        raise InvalidRequest(f"{file}: {name} is a text, not {value!r}.")
    return value
