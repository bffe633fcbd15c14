"""A server that a command asks: its address, its token, and answers that are either right or an error for a person."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import urlencode, urlsplit

import typer

from tidegate.cli import flags
from tidegate.compose import TOKEN_FILE
from tidegate.domain.errors import InvalidRequest, NotFound, PermissionDenied, TidegateError, Unavailable
from tidegate.settings import is_loopback

ANSWER_SECONDS_MAX = 30
EXTENSIONS = "/api/tidegate/v1"
UNITY = "/api/2.1/unity-catalog"

_GATEWAY = frozenset({502, 503, 504})
_REFUSALS: Mapping[int, type[TidegateError]] = {
    403: PermissionDenied,
    404: NotFound,
    429: Unavailable,
    **dict.fromkeys(_GATEWAY, Unavailable),
}

Uri = Annotated[
    str | None,
    typer.Option(help="Address of the server.", envvar="TIDEGATE_URI", show_default="this machine's, on the port set"),
]
Token = Annotated[
    str | None,
    typer.Option(help="Token for the server.", envvar="TIDEGATE_TOKEN", show_default="without --uri: that of the home"),
]


class Target(NamedTuple):
    uri: str
    token: str | None


def target_of(uri: str | None, token: str | None, home: Path | None) -> Target:
    """The token of the home is for the server of this machine: it is never sent to one that was named."""
    if uri:
        return Target(uri, token or None)
    settings = flags.load_or_exit(home=home).settings
    return Target(f"http://127.0.0.1:{settings.port or 8080}", token or _read_token(settings.home / TOKEN_FILE))


def ask(
    target: Target,
    path: str,
    *,
    method: str = "GET",
    query: Mapping[str, object] | None = None,
    body: Mapping[str, object] | None = None,
    holds: str | None = None,
    seconds_max: float = ANSWER_SECONDS_MAX,
) -> Any:
    """The answer, decoded; None if it has no body. Raises a TidegateError that says what to do.

    An answer without the field `holds` is another program's.
    """
    root = target.uri.rstrip("/")
    request = _request(root, target.token, f"{path}?{urlencode(query)}" if query else path, method, body)
    try:
        with _opener(root).open(request, timeout=seconds_max) as answer:
            content = answer.read()
            decoded: Any = json.loads(content) if content else None
    except urllib.error.HTTPError as refused:
        raise _refusal(refused, root) from None
    except (OSError, HTTPException) as error:
        why = getattr(error, "reason", None) or error
        hint = "Start one with `tidegate serve`, or give --uri."
        raise Unavailable(f"No server answers at {root} ({why}). {hint}") from None
    except ValueError:
        raise _stranger(root) from None
    if holds is not None and not (isinstance(decoded, dict) and holds in decoded):
        raise _stranger(root)
    return cast("Any", decoded)


def _stranger(root: str) -> InvalidRequest:
    return InvalidRequest(f"What answers at {root} is not a Tidegate that knows this. Check --uri.")


def _request(
    root: str, token: str | None, path: str, method: str, body: Mapping[str, object] | None
) -> urllib.request.Request:
    if urlsplit(root).scheme not in {"http", "https"}:
        raise InvalidRequest(f"{root!r} is not the address of a server. Write http://host:port.")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(root + path, data=data, method=method)  # noqa: S310
    if data is not None:
        request.add_header("Content-Type", "application/json")
    if token is not None:
        if not (token.isascii() and token.isprintable()):
            raise InvalidRequest("The token holds characters that no token has. Give the one in admin.token.")
        # Unredirected: whoever sends us elsewhere does not get the token sent along.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


def _opener(root: str) -> urllib.request.OpenerDirector:
    """A proxy is for the world outside; the machine itself is reached without one."""
    nearby = is_loopback(urlsplit(root).hostname or "")
    return urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if nearby else []))


def _refusal(refused: urllib.error.HTTPError, root: str) -> TidegateError:
    """Unavailable is what may be over in a while, such as a database that is away, or a proxy without its server."""
    try:
        message = str(json.load(refused)["message"])
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        if refused.code in _GATEWAY:
            return Unavailable(f"No server answers behind {root} (status {refused.code}).")
        return _stranger(root)
    hint = " Give --token, or set TIDEGATE_TOKEN." if refused.code == 401 else ""
    return _REFUSALS.get(refused.code, InvalidRequest)(message + hint)


def _read_token(file: Path) -> str | None:
    try:
        return file.read_text().strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        raise InvalidRequest(f"The token in {file} cannot be read. Give --token.") from None
