"""Writes the reference pages in docs/reference from the program itself; with --check, says whether they are right."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import typer.main

from tidegate.cli.main import app
from tidegate.compose import ENDPOINTS, FACES
from tidegate.domain.errors import TidegateError
from tidegate.http.endpoints import Endpoint
from tidegate.services.shared_gauges import shared_families
from tidegate.settings import Settings, flag_of, help_of, names, variable_of
from tidegate.telemetry.server import ServerMeasures

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
NOTE = "<!-- Written by `make docs` from the program. Do not edit. -->\n\n"


def main() -> int:
    pages = {"settings.md": settings(), "endpoints.md": endpoints(), "errors.md": errors(), "cli.md": commands()}
    pages["metrics.md"] = metrics()
    if "--check" not in sys.argv[1:]:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (FOLDER / name).write_text(text)
        return 0
    stale = [n for n, text in pages.items() if not (FOLDER / n).is_file() or (FOLDER / n).read_text() != text]
    for name in stale:
        print(f"docs/reference/{name} is out of date. Run `make docs`.", file=sys.stderr)
    return 1 if stale else 0


def settings() -> str:
    lines = [
        NOTE + "# Settings\n",
        "A value comes from the first of these that has one: a flag of `tidegate serve`, an environment variable,",
        "the TOML file, the default. `tidegate settings` prints each with its value and where it came from.\n",
        "| setting | default | what it is for | environment variable |",
        "|---|---|---|---|",
    ]
    flags = {option for command in _commands().values() for p in command.params for option in p.opts}
    for name in names():
        default = str(getattr(Settings(), name))
        shown = f"`{default}`" if default not in {"", "."} else ""
        flag = f"`{flag_of(name)}`<br>" if flag_of(name) in flags else ""
        lines.append(f"| {flag}`{name}` | {shown} | {help_of(name)} | `{variable_of(name)}` |")
    return "\n".join(lines) + "\n"


def endpoints() -> str:
    lines = [NOTE + "# Endpoints\n", "The same as a document for programs: `GET /openapi.json`.\n"]
    for face in [face for face in FACES if face.root]:
        lines += [f"## {face.name}\n", f"Root: `{face.root}`\n", "| call | what it does | errors |", "|---|---|---|"]
        lines += [_endpoint(endpoint) for endpoint in ENDPOINTS if endpoint.face is face]
        lines.append("")
    lines += [
        "## Besides\n",
        "`GET /health` answers 200 when the server serves; it needs no token.",
        "`GET /metrics` tells the [numbers](metrics.md) of the server in the text format of Prometheus.\n",
    ]
    return "\n".join(lines)


def _endpoint(endpoint: Endpoint) -> str:
    codes: dict[int, list[str]] = defaultdict(list)
    for error in endpoint.errors:
        code = endpoint.face.code_of(error)
        if code.code not in codes[code.status]:
            codes[code.status].append(code.code)
    told = "<br>".join(f"{status} {', '.join(found)}" for status, found in sorted(codes.items()))
    return f"| `{endpoint.method} {endpoint.path}` | {endpoint.summary} | {told} |"


def errors() -> str:
    # Faces of the same spelling share a column.
    spellings = [face for at, face in enumerate(FACES) if face.codes not in [other.codes for other in FACES[:at]]]
    lines = [
        NOTE + "# Errors\n",
        "Every answer that is not a success says what to change. The faces spell errors differently; an endpoint's",
        "own errors are in [endpoints](endpoints.md); any call may get those for authentication, rights and load.\n",
        f"| what happened | {' | '.join(face.name for face in spellings)} |",
        "|---|" + "---|" * len(spellings),
    ]
    for error in _leaves(TidegateError):
        codes = [face.code_of(error) for face in spellings]
        lines.append(f"| {error.__name__} | " + " | ".join(f"{code.status} `{code.code}`" for code in codes) + " |")
    return "\n".join(lines) + "\n"


def _leaves(error: type[TidegateError]) -> list[type[TidegateError]]:
    below = [leaf for child in error.__subclasses__() for leaf in _leaves(child)]
    return ([] if error is TidegateError else [error]) + below


def metrics() -> str:
    lines = [
        NOTE + "# Metrics\n",
        "What `GET /metrics` tells; [observability](../observability.md) says how to use it.\n",
        "| metric | kind | labels | what it tells |",
        "|---|---|---|---|",
    ]
    measures = ServerMeasures().all
    for family in measures.families():
        labels = ", ".join(f"`{label}`" for label in measures.labels_of(family.name))
        lines.append(f"| `{family.name}` | {family.kind} | {labels} | {family.help} |")
    lines += ["\nThe same on all servers of one database:\n", "| metric | kind | what it tells |", "|---|---|---|"]
    lines += [f"| `{family.name}` | {family.kind} | {family.help} |" for family in shared_families(None)]
    return "\n".join(lines) + "\n"


def commands() -> str:
    lines = [NOTE + "# Commands\n"]
    for name, command in sorted(_commands().items()):
        lines += [f"## tidegate {name}\n", _paragraphs(command.help or ""), ""]
        for parameter in command.params:
            if isinstance(parameter, click.Option) or parameter.param_type_name == "option":
                lines.append(f"- `{', '.join(parameter.opts)}`: {getattr(parameter, 'help', '')}")
        lines.append("")
    return "\n".join(lines)


def _commands() -> dict[str, click.Command]:
    group = typer.main.get_command(app)
    return dict(_below(group, ""))


def _below(group: click.Command, prefix: str) -> Iterator[tuple[str, click.Command]]:
    """Commands, and those of groups under both names."""
    context = click.Context(group)
    for name in group.list_commands(context):  # type: ignore[attr-defined]
        command = group.get_command(context, name)  # type: ignore[attr-defined]
        if hasattr(command, "list_commands"):
            yield from _below(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


if __name__ == "__main__":
    raise SystemExit(main())
