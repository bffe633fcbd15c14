"""`tidegate`: the commands, each in a module of its own name."""

from __future__ import annotations

import typer

from tidegate import __version__
from tidegate.cli.demo import demo
from tidegate.cli.jars import jars
from tidegate.cli.serve import serve
from tidegate.cli.settings import settings
from tidegate.cli.shell import shell
from tidegate.cli.sql import sql
from tidegate.cli.timeline import timeline

app = typer.Typer(
    name="tidegate",
    help="A managing catalog for catalog-managed Delta tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command()(settings)
app.command()(timeline)
app.command()(sql)
app.command()(shell)
app.command()(jars)
app.command()(demo)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
