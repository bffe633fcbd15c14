"""Spark as a user of Tidegate gets it, small enough for two cores."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import tidegate.spark

SMALL = {
    "spark.driver.memory": "1g",
    # A short run is over before the second compiler has paid off, and it would take a core until then.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def connect(*, uri: str, token: str, folder: Path, **conf: str) -> SparkSession:
    """A session whose catalog `main` is the server's; `folder` takes its scratch files."""
    places = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "local")}
    session = tidegate.spark.session(
        uri=uri, token=token, catalogs=["main"], master="local[2]", **{**SMALL, **places, **conf}
    )
    session.sparkContext.setLogLevel("OFF")
    return session
