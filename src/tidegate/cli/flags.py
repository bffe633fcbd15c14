"""The flags of the settings, the same for every command that reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from tidegate.domain.errors import TidegateError
from tidegate.settings import Loaded, help_of, load_settings

Home = Annotated[Path | None, typer.Option(help=help_of("home"), show_default="~/.tidegate")]
Config = Annotated[Path | None, typer.Option(help=help_of("config"))]
Host = Annotated[str | None, typer.Option(help=help_of("host"), show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(help=help_of("port"), show_default="8080")]
Database = Annotated[str | None, typer.Option(help=help_of("database"))]
StorageRoot = Annotated[str | None, typer.Option(help=help_of("storage_root"))]
Auth = Annotated[str | None, typer.Option(help=help_of("auth"), show_default="token")]
TlsCertificate = Annotated[str | None, typer.Option(help=help_of("tls_certificate"))]
TlsKey = Annotated[str | None, typer.Option(help=help_of("tls_key"))]
Workers = Annotated[int | None, typer.Option(help=help_of("workers"), show_default="1")]
LogLevel = Annotated[str | None, typer.Option(help=help_of("log_level"), show_default="info")]


def load_or_exit(**flags: Any) -> Loaded:
    try:
        return load_settings(flags, os.environ)
    except TidegateError as error:
        fail(error)


def fail(error: TidegateError) -> NoReturn:
    """One line for a person, and an exit code for a script."""
    typer.secho(f"tidegate: {error.message}", err=True, fg=typer.colors.RED)
    raise typer.Exit(2)
