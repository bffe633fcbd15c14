"""Spark as a user of Tidegate gets it, small enough for two cores.

What a catalog can do wrong shows in any Java and in any way in which Spark evaluates rows, so both are the ones that
start fastest. `tidegate sql` and the demo are tested with code that Spark generates, as their users run them.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import tidegate.spark

# For every Java that tests start through Spark's own scripts: they add this variable to the options, and say nothing.
JAVA_VARIABLE = "SPARK_SUBMIT_OPTS"
JAVA_OPTIONS = " ".join(
    [
        # A short run is over before the second compiler has paid off, and it would take a core until then.
        "-XX:TieredStopAtLevel=1",
        # With one compiler Java keeps 48 MB of code, less than a session that all tests share has: it would throw away
        # what it has compiled and compile it again.
        "-XX:ReservedCodeCacheSize=240m",
        "-XX:+UseSerialGC",
        # Spark loads 30,000 classes; from the default of 21 MB on, each further step is a collection of everything.
        "-XX:MetaspaceSize=256m",
    ]
)

SMALL = {
    "spark.driver.memory": "1g",
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
