"""`tidegate shell`: Python with a connected Spark session."""

from __future__ import annotations

import code
import contextlib
import importlib
import importlib.util
from typing import Any

import typer

from tidegate import __version__
from tidegate.cli import flags
from tidegate.cli.connected import Catalogs, Conf, Connected, Master, Token, Uri, connected


def shell(
    uri: Uri = None,
    token: Token = None,
    catalog: Catalogs = None,
    home: flags.Home = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Start a PySpark shell that is connected to the catalog.

    Without --uri, a catalog server is started on --home, and stopped when the shell ends. IPython is used if it is
    installed.
    """
    with connected(
        uri=uri, token=token, catalogs=catalog, home=home, master=master, conf=conf, own_conf={"spark.ui.port": "0"}
    ) as found:
        spark: Any = found.spark
        names = {"spark": spark, "sc": spark.sparkContext, "sql": spark.sql}
        typer.echo(_welcome(found))
        _interact(names)


def _welcome(found: Connected) -> str:
    table = f"{found.catalogs[0]}.default.tides"
    return f"""\
Tidegate {__version__}, Spark {found.spark.version}
  catalogs  {", ".join(found.catalogs)} at {found.where}
  Spark UI  {found.spark.sparkContext.uiWebUrl or "off"}
  ready     spark, sc, and sql, which is spark.sql

  sql("CREATE TABLE {table} (station STRING, height DOUBLE)")
  sql("INSERT INTO {table} VALUES ('Husum', 3.14)")
  sql("SELECT * FROM {table}").show()
"""  # noqa: S608


def _interact(names: dict[str, Any]) -> None:
    if importlib.util.find_spec("IPython") is not None:
        importlib.import_module("IPython").start_ipython(argv=["--no-banner"], user_ns=names)
        return
    _complete_by_tab(names)
    with contextlib.suppress(SystemExit):  # exit() leaves the shell; what was started for it is stopped then
        code.interact(banner="", exitmsg="", local=names)


def _complete_by_tab(names: dict[str, Any]) -> None:
    try:
        import readline
        import rlcompleter
    except ImportError:  # no readline on this system: the shell works without
        return
    readline.set_completer(rlcompleter.Completer(names).complete)
    readline.parse_and_bind("tab: complete")
