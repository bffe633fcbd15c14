"""Two streams in a Spark process of their own, to be killed in mid-batch.

Both read one catalog-managed table, a file per batch: one appends to a table, the other merges into one. They end by
themselves when everything is read. `Streams` is that process, seen from the test.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.servers import ServerProcess
from tests.spark import sessions

SECONDS_MAX = 300


class Streams:
    def __init__(self, server: ServerProcess, *, source: str, appended: str, merged: str, folder: Path) -> None:
        environment = {**os.environ, "TIDEGATE_URI": server.url, "TIDEGATE_TOKEN": server.token}
        command = [sys.executable, "-m", "tests.spark.streams", source, appended, merged, str(folder)]
        self._folder = folder
        self._errors = (folder / "stderr").open("w+")
        # A session of its own: Java is its child, and is killed together with it.
        self._process = subprocess.Popen(
            command, stdout=self._errors, stderr=self._errors, env=environment, start_new_session=True
        )

    def kill_in_mid_batch(self, query: str, moment: Callable[[], bool]) -> None:
        """Kills at the first `moment` at which a batch of the query has begun and is not committed.

        Everything is stopped before it is looked at: what is seen is how it will be found after the kill.
        """
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            if moment():
                os.killpg(self._process.pid, signal.SIGSTOP)
                if self._is_in_mid_batch(query):
                    self.kill()
                    return
                os.killpg(self._process.pid, signal.SIGCONT)
            assert self._process.poll() is None, f"the streams ended before a kill:\n{self._log()}"
            time.sleep(0.002)
        self.kill()
        raise TimeoutError(f"there was no batch to be killed in:\n{self._log()}")

    def wait(self) -> None:
        code = self._process.wait(timeout=SECONDS_MAX)
        assert code == 0, self._log()

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=60)

    def _is_in_mid_batch(self, query: str) -> bool:
        begun, committed = (
            {file.name for file in (self._folder / query / kind).glob("[0-9]*")} for kind in ("offsets", "commits")
        )
        return bool(begun - committed)

    def _log(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-5000:]


def append(spark: SparkSession, source: str, target: str, checkpoint: Path) -> StreamingQuery:
    rows = spark.readStream.option("maxFilesPerTrigger", 1).table(source)
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).toTable(target)


def merge(spark: SparkSession, source: str, target: str, checkpoint: Path) -> StreamingQuery:
    def upsert(batch: DataFrame, batch_id: int) -> None:
        batch.groupBy("key").agg({"value": "max"}).toDF("key", "value").createOrReplaceTempView("batch")
        batch.sparkSession.sql(f"""MERGE INTO {target} t USING batch s ON t.key = s.key
            WHEN MATCHED AND s.value > t.value THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""")

    rows = spark.readStream.option("maxFilesPerTrigger", 1).table(source).selectExpr("id % 40 AS key", "id AS value")
    writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return writer.foreachBatch(upsert).start()


def main(source: str, appended: str, merged: str, folder: str) -> None:
    uri, token = os.environ["TIDEGATE_URI"], os.environ["TIDEGATE_TOKEN"]
    spark = sessions.connect(uri=uri, token=token, folder=Path(folder) / "spark")
    queries = [
        append(spark, source, appended, Path(folder) / "append"),
        merge(spark, source, merged, Path(folder) / "merge"),
    ]
    for query in queries:
        query.awaitTermination(SECONDS_MAX)
        assert not query.isActive
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
