"""A SparkSession that sees the catalogs of a Tidegate server.

    spark = session(uri="http://127.0.0.1:8080", token=token)
    spark.sql("CREATE TABLE main.default.tides (station STRING, height DOUBLE)")

`configure` does the same for a builder of the user's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from tidegate.spark.connection import Connection, connection
from tidegate.spark.jars import SparkMissing
from tidegate.spark.java import find_java
from tidegate.spark.settings import CATALOG_CLASS, EXTENSION_CLASS, catalog_settings, static_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_VERSION = "4.1"


class SparkAlreadyRunning(RuntimeError):
    """Spark runs in this process without what the catalogs need, and cannot be given it any more."""


def session(
    *,
    uri: str | None = None,
    token: str | None = None,
    client_id: str | None = None,
    client_secret: str | None = None,
    catalogs: str | Iterable[str] = ("main",),
    master: str | None = None,
    app_name: str = "tidegate",
    **spark_conf: object,
) -> SparkSession:
    """A SparkSession that is connected to the catalogs of the server at `uri`.

    `uri` and `token` default to TIDEGATE_URI and TIDEGATE_TOKEN; a service account gives `client_id` and
    `client_secret` (TIDEGATE_CLIENT_ID, TIDEGATE_CLIENT_SECRET) instead of a token. `master` defaults to what Spark is
    configured with, else to local[*]. Settings of Spark are passed on: session(..., **{"spark.driver.memory": "2g"}).
    A session that is running already gets the catalogs added if it has Delta's extension and the jars; if not, an
    error says so.
    """
    wanted = connection(uri=uri, token=token, catalogs=catalogs, client_id=client_id, client_secret=client_secret)
    settings = {name: _text(value) for name, value in spark_conf.items()}
    if master is not None:
        settings["spark.master"] = master
    _require_pyspark(settings)
    running = _running_session()
    if running is not None:
        return _extended(running, wanted, settings)
    return _started(wanted, {"spark.app.name": app_name, **settings})


def configure(
    builder: SparkSession.Builder,
    *,
    uri: str | None = None,
    token: str | None = None,
    client_id: str | None = None,
    client_secret: str | None = None,
    catalogs: str | Iterable[str] = ("main",),
) -> SparkSession.Builder:
    """The builder, set up for the catalogs of the server at `uri`. Jars that are missing are fetched now.

    A builder hands all its settings to Spark on a command line, the token among them: where others can list the
    processes of the machine, `session` is the better choice.
    """
    wanted = connection(uri=uri, token=token, catalogs=catalogs, client_id=client_id, client_secret=client_secret)
    given = cast("Mapping[str, Any]", getattr(builder, "_options", {}))
    _require_pyspark(given)
    for name, value in {**static_settings(given), **catalog_settings(wanted)}.items():
        builder.config(name, value)
    return builder


def _started(wanted: Connection, given: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    find_java()
    settings = {**given, **static_settings(given)}
    _use_this_python(settings.get("spark.master", "local[*]"))
    # Java is launched first, and gets the token afterwards: what it is launched with can be read by everybody on the
    # machine who lists processes.
    launched_with = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    cast("Any", SparkContext)._ensure_initialized(conf=launched_with)
    _require_classes()
    # Given to the context and not to the builder: the options of a builder are logged, at DEBUG and unredacted.
    SparkContext.getOrCreate(SparkConf().setAll([*settings.items(), *catalog_settings(wanted).items()]))
    return SparkSession.builder.getOrCreate()


def _extended(running: SparkSession, wanted: Connection, settings: Mapping[str, str]) -> SparkSession:
    """The running session with the catalogs added. Nothing is changed unless everything can be."""
    _require_classes()
    if not _has(running, "spark.sql.extensions", EXTENSION_CLASS):
        raise SparkAlreadyRunning(
            "A Spark session is running without Delta's extension, which cannot be added later: stop it first "
            "(spark.stop()), or set up its builder with tidegate.spark.configure."
        )
    asked = {**settings, **catalog_settings(wanted)}
    changes = {name: value for name, value in asked.items() if not _has(running, name, value)}
    for name in changes:
        _require_changeable(running, name)
    for name, value in changes.items():
        running.conf.set(name, value)
    return running


def _has(running: SparkSession, name: str, value: str) -> bool:
    """Lists (of jars, packages, extensions) are there when all their entries are."""
    current = running.conf.get(name, None)
    if current is not None and name.endswith("extraJavaOptions"):
        return value in current  # Spark adds options of its own
    if current is None or name not in {"spark.jars", "spark.jars.packages", "spark.sql.extensions"}:
        return current == value
    return set(value.split(",")) <= set(current.split(","))


def _require_changeable(running: SparkSession, name: str) -> None:
    is_catalog = name.startswith("spark.sql.catalog.")
    # A catalog takes its settings when it is first used, Delta looks them up with each commit: both must see the same.
    if is_catalog and running.conf.get(".".join(name.split(".")[:4]), None) is not None:
        raise SparkAlreadyRunning(
            f"The running Spark session has another value for {name}, and may be using it: stop the session first "
            "(spark.stop())."
        )
    if not is_catalog and not running.conf.isModifiable(name):
        raise SparkAlreadyRunning(
            f"{name} cannot be changed while a Spark session is running: stop it first (spark.stop())."
        )


def _running_session() -> SparkSession | None:
    from pyspark.sql import SparkSession

    found = getattr(SparkSession, "_instantiatedSession", None)
    return found if found is not None and found.sparkContext._jsc is not None else None


def _require_pyspark(given: Mapping[str, Any]) -> None:
    try:
        from pyspark.version import __version__ as installed
    except ImportError:
        raise SparkMissing('PySpark is not installed: pip install "tidegate[spark]".') from None
    if not installed.startswith(f"{SPARK_VERSION}."):
        raise SparkMissing(
            f"PySpark {installed} is installed, and the connector is made for {SPARK_VERSION}: "
            'pip install "tidegate[spark]".'
        )
    if "SPARK_REMOTE" in os.environ or "spark.remote" in given:
        raise ValueError(
            "With Spark Connect the catalogs are configured where the Connect server runs: unset SPARK_REMOTE and "
            "spark.remote to start Spark here."
        )


def _require_classes() -> None:
    from pyspark import SparkContext

    jvm = cast("Any", SparkContext)._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in (EXTENSION_CLASS, CATALOG_CLASS):
        if loader.getResource(f"{name.replace('.', '/')}.class") is None:
            raise SparkAlreadyRunning(
                f"Java was started in this process without the jar that has {name}, and jars cannot be added later. "
                "Let tidegate.spark.session or tidegate.spark.configure be the first to start Spark, in a new process; "
                'with spark-submit or PYSPARK_SUBMIT_ARGS give --jars "$(tidegate jars)".'
            )


def _use_this_python(master: str) -> None:
    """On this machine, functions in Python run on the Python that asks for the session, not on any python3."""
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _text(value: object) -> str:
    """As Spark writes it: true and false in small letters."""
    return str(value).lower() if isinstance(value, bool) else str(value)
