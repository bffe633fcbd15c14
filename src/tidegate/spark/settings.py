"""What Spark has to be told so that it sees the catalogs: added to what the user has set, replacing none of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegate.spark.connection import Connection
from tidegate.spark.jars import SparkMissing, delta_jars

CONNECTOR_JAR = Path(__file__).with_name("tidegate-connector.jar")
CATALOG_CLASS = "io.unitycatalog.spark.UCSingleCatalog"
EXTENSION_CLASS = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG_CLASS = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
TOKEN_PATTERN = r"[.]token$|clientSecret"  # noqa: S105
TOKEN_ENDPOINT = "/api/tidegate/v1/oauth/token"  # noqa: S105


def static_settings(given: Mapping[str, Any]) -> dict[str, str]:
    """What has to be there before Spark starts. `given` is what the user has set in code."""
    known = {**_defaults_file(), **{name: str(value) for name, value in given.items()}}
    settings = {
        "spark.jars": _joined(known.get("spark.jars"), *map(str, jar_files(known))),
        "spark.sql.extensions": _joined(known.get("spark.sql.extensions"), EXTENSION_CLASS),
        "spark.sql.catalog.spark_catalog": known.get("spark.sql.catalog.spark_catalog", DELTA_CATALOG_CLASS),
        # A writer without a format asks for this one by name: the catalog could not tell it from a wish for Parquet.
        "spark.sql.sources.default": known.get("spark.sql.sources.default", "delta"),
    }
    if "spark.redaction.regex" in known:
        # Spark's own pattern covers the token. One that replaces it has to cover it as well.
        settings["spark.redaction.regex"] = _redacting_tokens(known["spark.redaction.regex"])
    return settings


def catalog_settings(wanted: Connection) -> dict[str, str]:
    """What may be set at any time until a catalog is first used."""
    settings: dict[str, str] = {}
    for name in wanted.catalogs:
        settings[f"spark.sql.catalog.{name}"] = CATALOG_CLASS
        settings[f"spark.sql.catalog.{name}.uri"] = wanted.uri
        for option, value in _credentials(wanted).items():
            settings[f"spark.sql.catalog.{name}.{option}"] = value
    return settings


def _credentials(wanted: Connection) -> dict[str, str]:
    """As the stock client reads them; with a client secret it gets tokens by itself, and new ones in time."""
    if not wanted.client_id:
        return {"token": wanted.token}
    return {
        "auth.type": "oauth",
        "auth.oauth.uri": wanted.uri + TOKEN_ENDPOINT,
        "auth.oauth.clientId": wanted.client_id,
        "auth.oauth.clientSecret": wanted.client_secret,
    }


def jar_files(given: Mapping[str, Any] | None = None) -> list[Path]:
    """The jars to give to Spark: the connector and Delta's, but not what the user's own settings bring along."""
    own = _own_artifacts(given or {})
    jars = [] if any(name.startswith("unitycatalog-spark_") for name in own) else [_connector()]
    if not any(name.startswith("delta-spark_") for name in own):
        jars += delta_jars()
    return jars


def _connector() -> Path:
    if not CONNECTOR_JAR.is_file():
        raise SparkMissing(f"{CONNECTOR_JAR} is missing: run `python hatch_build.py` in the checkout.")
    return CONNECTOR_JAR


def _own_artifacts(given: Mapping[str, Any]) -> list[str]:
    """The names of the artifacts that the user brings along, by file or by coordinates."""
    files = [Path(jar.strip()).name for jar in str(given.get("spark.jars") or "").split(",")]
    packages = [coordinates.split(":") for coordinates in str(given.get("spark.jars.packages") or "").split(",")]
    return files + [parts[1] for parts in packages if len(parts) > 1]


def _joined(first: str | None, *more: str) -> str:
    """A list of Spark's: separated by commas, each entry once, the user's own first."""
    entries = [entry.strip() for entry in (first or "").split(",")]
    return ",".join(dict.fromkeys(entry for entry in [*entries, *more] if entry))


def _redacting_tokens(pattern: str) -> str:
    """Ours comes first: flags inside a pattern hold for what follows them."""
    return pattern if pattern.startswith(TOKEN_PATTERN) else f"{TOKEN_PATTERN}|{pattern}"


def _defaults_file() -> dict[str, str]:
    """What spark-defaults.conf says: a setting made in code would replace what is there."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    file = Path(folder) / "spark-defaults.conf" if folder else None
    if file is None or not file.is_file():
        return {}
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    pairs = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
