"""`tidegate jars`: the jars that Spark needs, for those who start Spark themselves."""

from __future__ import annotations

import typer

from tidegate.cli.connected import exit_on_refusal
from tidegate.spark import jar_files


def jars() -> None:
    """Print the jars of the connector and of Delta, fetched if need be, as spark-submit --jars takes them.

    Run it once where there is network, and everything that needs Spark works without from then on.
    """
    with exit_on_refusal():
        typer.echo(",".join(str(jar) for jar in jar_files()))
