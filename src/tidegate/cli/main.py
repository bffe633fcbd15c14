"""`tidegate`: the commands, each in a module of its own name.

A module is imported when its command is asked for: `serve` needs nothing of Spark's, and starts the sooner.
"""

from __future__ import annotations

import gc
import importlib
from typing import Any, cast

import typer
from typer.core import TyperGroup

from tidegate import __version__

COMMANDS = (
    "serve",
    "settings",
    "timeline",
    "events",
    "subscriptions",
    "drop",
    "dropped",
    "restore",
    "adopt",
    "release",
    "adoptable",
    "policies",
    "constraints",
    "doctor",
    "verify",
    "audit",
    "users",
    "groups",
    "tokens",
    "whoami",
    "grant",
    "revoke",
    "can",
    "give",
    "guard",
    "top",
    "sql",
    "shell",
    "jars",
    "demo",
    "version",
)
_MODULES: dict[str, str] = dict.fromkeys(("grant", "revoke", "can", "give", "guard"), "rights")
"""Of commands that share one."""
_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class _Commands(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # The names alone, from which the nearest is suggested for one that is mistyped.
        self.commands = dict.fromkeys(COMMANDS, cast("Any", None))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        run = version if cmd_name == "version" else getattr(_module(cmd_name), cmd_name)
        if isinstance(run, typer.Typer):
            group = typer.main.get_group(run)
            group.name = cmd_name
            return group
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=_SETTINGS)
        alone.command(cmd_name)(run)
        return typer.main.get_command(alone)


def _module(command: str) -> Any:
    gc.disable()  # nothing of what is made now is garbage, and looking for it takes a tenth of the time
    try:
        return importlib.import_module(f"tidegate.cli.{_MODULES.get(command, command)}")
    finally:
        gc.enable()


app = typer.Typer(
    name="tidegate",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)


@app.callback()
def tidegate() -> None:
    """A managing catalog for catalog-managed Delta tables."""


def version() -> None:
    """Print the version."""
    typer.echo(__version__)
