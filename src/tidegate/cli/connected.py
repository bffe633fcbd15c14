"""A Spark session for a command: on the server that was given, else on an embedded one, without Spark's chatter."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from tidegate.cli import flags
from tidegate.cli.embedded import embedded_catalog
from tidegate.domain.errors import TidegateError
from tidegate.spark import session
from tidegate.spark.connection import checked_catalogs, connection
from tidegate.spark.jars import JarsMissing, SparkMissing, delta_jars, spark_jars_folder
from tidegate.spark.java import JavaMissing, find_java
from tidegate.spark.session import SparkAlreadyRunning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET_LOGS = Path(__file__).with_name("log4j2.properties")
CANCEL_SECONDS_MAX = 10
QUIET_SECONDS = 5.0
_quiet = threading.Event()
"""Set for a while after Ctrl-C: Java complains at length about work that was cancelled."""
PY4J_MODULES = {"java_gateway", "clientserver"}
PY4J_LOGGERS = ("py4j", *(f"py4j.{module}" for module in PY4J_MODULES))
_thread = threading.local()
"""`java_may_be_gone` while this thread asks what a Java that has ended cannot answer: Py4J logs that, and raises it."""
NOISE = b"WARNING: Using incubator modules: jdk.incubator.vector\n"

Uri = Annotated[
    str | None,
    typer.Option(envvar="TIDEGATE_URI", help="Address of the catalog server. Without it, one is started."),
]
Token = Annotated[str | None, typer.Option(envvar="TIDEGATE_TOKEN", help="Token for the server at --uri.")]
Catalogs = Annotated[
    list[str] | None,
    typer.Option("--catalog", help="Catalog to see; may be repeated. The first is the default.", show_default="main"),
]
Master = Annotated[str | None, typer.Option(help="Spark master.", show_default="local[*]")]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="Setting of Spark, name=value; may be repeated.")]


@dataclass(frozen=True, slots=True)
class Connected:
    spark: SparkSession
    catalogs: tuple[str, ...]
    where: str
    """The server, in words for a person."""


@contextlib.contextmanager
def connected(
    *,
    uri: str | None,
    token: str | None,
    catalogs: list[str] | None,
    home: Path | None,
    master: str | None,
    conf: list[str] | None,
    own_conf: dict[str, str],
) -> Generator[Connected]:
    """`own_conf` is what the command wants of Spark; what the user says in `conf` comes first."""
    names = tuple(catalogs or ["main"])
    settings = {**_usual_conf(master, names), **own_conf, **_parsed(conf or [])}
    quiet = f"-Dlog4j2.configurationFile={QUIET_LOGS.as_uri()}"
    options = settings.get("spark.driver.extraJavaOptions", "")
    # Spark formats the code that it generates by recursion, for which Java's own stack can be too small.
    settings["spark.driver.extraJavaOptions"] = f"-Xss4m {options} {quiet}"
    with contextlib.ExitStack() as stack:
        with exit_on_refusal():
            checked_catalogs(names)
            _check_machine()
            if uri is not None and home is not None:
                raise ValueError("Give --uri for a server that runs, or --home for one to be started, not both.")
            if uri is None:
                catalog = stack.enter_context(embedded_catalog(home))
                uri, token, where = catalog.uri, catalog.token, f"{catalog.uri}, embedded, on {catalog.home}"
            else:
                where = connection(uri=uri, token=token, catalogs=names).uri
            # Spark makes a folder for tables of its own, and would make it where the user happens to be.
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-spark-"))
            settings.setdefault("spark.sql.warehouse.dir", scratch)
            with _without_noise():
                spark = session(uri=uri, token=token, catalogs=names, master=master, **settings)
        stack.callback(_even_if_java_is_gone, spark.stop)
        _silence_pyspark()
        stack.enter_context(_interruptible(spark))
        yield Connected(spark, names, where)


@contextlib.contextmanager
def exit_on_refusal() -> Generator[None]:
    """What Spark's side refuses, or misses on this machine, as one line for a person and an exit code for a script."""
    try:
        yield
    except (ValueError, SparkMissing, JavaMissing, JarsMissing, SparkAlreadyRunning) as error:
        _fail(str(error))
    except TidegateError as error:
        flags.fail(error)


def _check_machine() -> None:
    """Everything that can be missing is looked for before a server is started."""
    spark_jars_folder()
    find_java()
    delta_jars()


def _silence_pyspark() -> None:
    """PySpark and Py4J write the stack trace of a failure, and of Ctrl-C, to the error output, on top of raising it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    for name in (None, *PY4J_LOGGERS):  # A filter is asked by the logger that is called only.
        logging.getLogger(name).addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    if record.module not in PY4J_MODULES:
        return True
    expected = _quiet.is_set() or getattr(_thread, "java_may_be_gone", False)
    return not expected and record.msg != "KeyboardInterrupt while sending command."


@contextlib.contextmanager
def _interruptible(spark: SparkSession) -> Generator[None]:
    """Ctrl-C cancels what runs. PySpark's own handler tries that on the connection that waits for the answer."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        _quiet.set()
        heard_again = threading.Timer(QUIET_SECONDS, _quiet.clear)
        heard_again.daemon = True
        heard_again.start()
        cancel = (spark.sparkContext.cancelAllJobs,)
        cancelling = threading.Thread(target=_even_if_java_is_gone, args=cancel, daemon=True)
        cancelling.start()
        cancelling.join(CANCEL_SECONDS_MAX)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _even_if_java_is_gone(work: Callable[[], object]) -> None:
    """Ctrl-C reaches Java as well, which may end before we do: then there is nothing left to cancel or to stop."""
    _thread.java_may_be_gone = True
    try:
        with contextlib.suppress(Exception):
            work()
    finally:
        _thread.java_may_be_gone = False


def _usual_conf(master: str | None, catalogs: tuple[str, ...]) -> dict[str, str]:
    conf = {"spark.sql.defaultCatalog": catalogs[0]}
    if master is None or master.startswith("local"):
        # Spark's and Delta's own numbers are for clusters: on one machine a small statement would wait for 50 tasks.
        cores = str(max(2, os.cpu_count() or 2))
        conf |= {"spark.sql.shuffle.partitions": cores, "spark.databricks.delta.snapshotPartitions": cores}
    return conf


def _parsed(conf: list[str]) -> dict[str, str]:
    for setting in conf:
        if not setting.partition("=")[0].strip() or "=" not in setting:
            _fail(f"--conf takes name=value, not {setting!r}.")
    pairs = (setting.partition("=") for setting in conf)
    return {name.strip(): value for name, _, value in pairs}


def _fail(message: str) -> NoReturn:
    typer.secho(f"tidegate: {message}", err=True, fg=typer.colors.RED)
    raise typer.Exit(2)


@contextlib.contextmanager
def _without_noise() -> Generator[None]:
    """The error output of Java that is started in this block passes through us, but for a line that says nothing."""
    sys.stderr.flush()
    terminal = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=_pass_on, args=(reading, os.dup(terminal)), daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)
        os.close(terminal)


def _pass_on(reading: int, terminal: int) -> None:
    with os.fdopen(reading, "rb", buffering=0) as source, os.fdopen(terminal, "wb", buffering=0) as target:
        while chunk := source.read(65536):
            if not _quiet.is_set():
                target.write(chunk.replace(NOISE, b""))
