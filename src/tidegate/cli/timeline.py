"""`tidegate timeline`: when the commits of a table were proposed, ratified and published.

    main.default.orders  latest 12, verified up to 10, 3 conflicts and 1 replay since 2026-03-01 09:30:02
     version  when                  ratified after  published after      size
          12  2026-03-01 09:41:07             4 ms          not yet  1.2 kB
          11  2026-03-01 09:41:05             3 ms             8 ms  1.1 kB
          10  2026-03-01 09:40:59             5 ms          12 ms ✓  1.1 kB

`fetch_timeline` and `render_timelines` are for other commands that have a story to tell.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from tidegate.cli import flags
from tidegate.compose import TOKEN_FILE
from tidegate.domain.errors import InvalidRequest, TidegateError, Unavailable
from tidegate.settings import is_loopback

ANSWER_SECONDS_MAX = 30
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))

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


def timeline(
    table: Annotated[str, typer.Argument(help="Full name of the table: catalog.schema.table.")],
    uri: Uri = None,
    token: Token = None,
    home: flags.Home = None,
    limit: Annotated[int, typer.Option(help="How many commits to show, newest first.", min=1)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")] = False,
) -> None:
    """Show when a table's commits were proposed, ratified and published.

    Also the latest version, how far publication is verified (✓), and the conflicts and
    repeated proposals that the server has met since it started.
    """
    try:
        answer = fetch_timeline(_target(uri, token, home), table, limit=limit)
    except TidegateError as error:
        flags.fail(error)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    else:
        Console(highlight=False, soft_wrap=True).print(render_timelines([answer]))


def _target(uri: str | None, token: str | None, home: Path | None) -> Target:
    """The token of the home is for the server of this machine: it is never sent to one that was named."""
    if uri:
        return Target(uri, token or None)
    settings = flags.load_or_exit(home=home).settings
    return Target(f"http://127.0.0.1:{settings.port or 8080}", token or _read_token(settings.home / TOKEN_FILE))


def _read_token(file: Path) -> str | None:
    try:
        return file.read_text().strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        raise InvalidRequest(f"The token in {file} cannot be read. Give --token.") from None


# What the server says


def fetch_timeline(target: Target, table: str, *, limit: int) -> dict[str, Any]:
    """The server's answer, decoded, with at most `limit` commits; asks for as many pages as that takes."""
    answer = _get(target, table, {"max_results": limit})
    while answer["next_page_token"] and len(answer["commits"]) < limit:
        wanted = {"max_results": limit - len(answer["commits"]), "page_token": answer["next_page_token"]}
        page = _get(target, table, wanted)
        # An answer that brings nothing ends it, whatever it says about a next page.
        answer["next_page_token"] = page["next_page_token"] if page["commits"] else None
        answer["commits"] += page["commits"]
    return answer


def _get(target: Target, table: str, query: Mapping[str, object]) -> dict[str, Any]:
    root = target.uri.rstrip("/")
    if urlsplit(root).scheme not in {"http", "https"}:
        raise InvalidRequest(f"{root!r} is not the address of a server. Write http://host:port.")
    address = f"{root}/api/tidegate/v1/tables/{quote(table, safe='')}/timeline?{urlencode(query)}"
    request = urllib.request.Request(address)  # noqa: S310
    if target.token is not None:
        if not (target.token.isascii() and target.token.isprintable()):
            raise InvalidRequest("The token holds characters that no token has. Give the one in admin.token.")
        # Unredirected: whoever sends us elsewhere does not get the token sent along.
        request.add_unredirected_header("Authorization", f"Bearer {target.token}")
    try:
        with _opener(root).open(request, timeout=ANSWER_SECONDS_MAX) as answer:
            return _checked(json.load(answer), root)
    except urllib.error.HTTPError as refused:
        raise _refusal(refused, root) from None
    except (OSError, HTTPException) as error:
        why = getattr(error, "reason", None) or error
        hint = "Start one with `tidegate serve`, or give --uri."
        raise Unavailable(f"No server answers at {root} ({why}). {hint}") from None
    except ValueError:
        raise _stranger(root) from None


def _opener(root: str) -> urllib.request.OpenerDirector:
    """A proxy is for the world outside; the machine itself is reached without one."""
    nearby = is_loopback(urlsplit(root).hostname or "")
    return urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if nearby else []))


def _checked(answer: Any, root: str) -> dict[str, Any]:
    if not isinstance(answer, dict) or "commits" not in answer:
        raise _stranger(root)
    return answer  # pyright: ignore[reportUnknownVariableType]


def _refusal(refused: urllib.error.HTTPError, root: str) -> TidegateError:
    try:
        message = str(json.load(refused)["message"])
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return _stranger(root)
    hint = " Give --token, or set TIDEGATE_TOKEN." if refused.code == 401 else ""
    return InvalidRequest(message + hint)


def _stranger(root: str) -> InvalidRequest:
    return InvalidRequest(f"What answers at {root} is not a Tidegate that knows timelines. Check --uri.")


# What people see


def render_timelines(timelines: Iterable[Mapping[str, Any]]) -> RenderableType:
    """Decoded answers, one table below the other."""
    parts: list[RenderableType] = []
    for one in timelines:
        parts += [_head(one), _table(one) if one["commits"] else Text("  no commits that the catalog decides\n")]
    return Group(*parts)


def _head(timeline: Mapping[str, Any]) -> Text:
    head = Text.assemble((timeline["full_name"], "bold cyan"), "  ")
    if timeline["latest_version"] is None:
        return head.append("external: its commits are decided elsewhere")
    latest, verified = timeline["latest_version"], timeline["verified_version"]
    head.append(f"latest {latest}", "bold")
    head.append(f", verified up to {verified}, ", "green" if latest == verified else "yellow")
    head.append(_count(timeline["conflicts"], "conflict"), "yellow" if timeline["conflicts"] else "")
    head.append(f" and {_count(timeline['replays'], 'replay')} since {_moment(timeline['since'])}")
    return head


def _table(timeline: Mapping[str, Any]) -> Table:
    older = timeline["commits"][-1]["version"]
    hidden = f"{_count(older, 'older version')} not shown" if older else None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=hidden, caption_justify="left")
    for column in ("version", "when", "ratified after", "published after", "size"):
        table.add_column(column, justify="left" if column == "when" else "right", no_wrap=True)
    for commit in timeline["commits"]:
        when = commit["timestamp"] or commit["ratified_at"]
        size = "" if commit["file_size"] is None else decimal(commit["file_size"])
        table.add_row(str(commit["version"]), _moment(when), _ratified(commit), _published(commit), size)
    return table


def _ratified(commit: Mapping[str, Any]) -> str:
    if commit["version"] == 0:
        return "created"
    return _between(commit["proposed_at"], commit["ratified_at"])


def _published(commit: Mapping[str, Any]) -> Text:
    """Version 0 is published before the table is made of it."""
    verified = commit["verified"]
    if commit["published_at"] is None:
        # Published once, and since then removed by the clean-up of old log files, or out of our sight.
        return Text("- ✓", "dim") if verified else Text("not yet", "yellow")
    took = "before" if commit["version"] == 0 else _between(commit["ratified_at"], commit["published_at"])
    return Text(f"{took} ✓", "green") if verified else Text(took)


def _between(start: int | None, end: int | None) -> str:
    """Stores may know whole seconds only, and clocks differ: what seems to come too early came at once."""
    if start is None or end is None:
        return "-"
    took = max(0, end - start)
    for size, unit in _UNITS:
        if took >= size:
            return f"{took / size:.1f} {unit}"
    return f"{took} ms"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
