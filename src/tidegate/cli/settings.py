"""`tidegate settings`: every setting, its value and where it came from."""

from __future__ import annotations

import typer

from tidegate.cli import flags
from tidegate.settings import names, shown


def settings(
    home: flags.Home = None,
    config: flags.Config = None,
    host: flags.Host = None,
    port: flags.Port = None,
    database: flags.Database = None,
    storage_root: flags.StorageRoot = None,
    auth: flags.Auth = None,
    log_level: flags.LogLevel = None,
) -> None:
    """Print each setting with its value and where it came from.

    Each can be set as an environment variable (TIDEGATE_ and its name in capitals) and in the TOML file.
    Passwords are not shown.
    """
    loaded = flags.load_or_exit(
        home=home,
        config=config,
        host=host,
        port=port,
        database=database,
        storage_root=storage_root,
        auth=auth,
        log_level=log_level,
    )
    rows = [(name, shown(loaded.settings, name), loaded.sources[name]) for name in names()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, source in [("setting", "value", "from"), *rows]:
        typer.echo(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {source}")
