"""Spark processes that write when told to, so that writers race who share nothing but the catalog.

`WriterProcess` is a child with a Spark of its own. It reads tasks from its standard input, and answers each:

    {"work": "append", "table": "main.s.t", "who": "sea", "times": 3}   ->   {"done": 3, "conflicts": 0}
    {"sql": "SELECT * FROM main.s.t"}                                   ->   {"rows": [["sea", 0]]}
    {"sql": "SELECT * FROM main.s.missing"}                             ->   {"refused": "[TABLE_OR_VIEW_NOT_..."}
    {"own": "http://127.0.0.1:8080"}                                    ->   {"rows": []}, and it knows a commit owner
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import tidegate.spark
from tests.servers import ServerProcess
from tests.spark import sessions

TRIES_MAX = 60


@dataclass(frozen=True)
class Task:
    work: str
    table: str
    who: str
    times: int


@dataclass(frozen=True)
class Outcome:
    done: int
    conflicts: int
    """How often Delta gave up against a concurrent change, and the statement was run anew."""


def perform(spark: SparkSession, task: Task) -> Outcome:
    work = WORK[task.work]
    done = conflicts = 0
    for number in range(task.times):
        for _ in range(TRIES_MAX):
            try:
                done += work(spark, task, number)
                break
            except Exception as error:
                if "DELTA_CONCURRENT" not in str(error):
                    raise
                conflicts += 1
        else:
            raise TimeoutError(f"{task.who} lost against others {TRIES_MAX} times")
    return Outcome(done, conflicts)


def _append(spark: SparkSession, task: Task, number: int) -> int:
    spark.sql(f"INSERT INTO {task.table} VALUES ('{task.who}', {number})")
    return 1


def _count_up(spark: SparkSession, task: Task, number: int) -> int:
    spark.sql(f"UPDATE {task.table} SET n = n + 1")
    return 1


def _merge(spark: SparkSession, task: Task, number: int) -> int:
    """Everybody upserts the same keys: each adds one to a key's sum, whoever came before."""
    spark.sql(f"""MERGE INTO {task.table} t USING (SELECT {number} AS key, 1 AS n) s ON t.key = s.key
        WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *""")
    return 1


def _create(spark: SparkSession, task: Task, number: int) -> int:
    """Whether the creation of this name was ours."""
    try:
        spark.sql(f"CREATE TABLE {task.table}_{number} AS SELECT '{task.who}' AS who")
    except Exception as error:
        if "TABLE_OR_VIEW_ALREADY_EXISTS" in str(error):
            return 0
        raise
    return 1


WORK: dict[str, Callable[[SparkSession, Task, int], int]] = {
    "append": _append,
    "count up": _count_up,
    "merge": _merge,
    "create": _create,
}


class StatementRefused(Exception):
    """A statement failed in the other process; the message is Spark's."""


class WriterProcess:
    def __init__(self, server: ServerProcess, folder: Path, *, uri: str | None = None, **conf: str) -> None:
        """`uri` is another way to the server, `conf` are settings of Spark besides."""
        environment = {**os.environ, "TIDEGATE_URI": uri or server.url, "TIDEGATE_TOKEN": server.token}
        command = [sys.executable, "-m", "tests.spark.writers", str(folder), json.dumps(conf)]
        self._errors = (folder / "stderr").open("w+")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def wait_until_ready(self) -> None:
        assert self._answer() == "ready"

    def perform(self, task: Task) -> Outcome:
        return Outcome(**self._ask(asdict(task)))

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        answer = self._ask({"sql": statement})
        if "refused" in answer:
            raise StatementRefused(answer["refused"])
        return [tuple(row) for row in answer["rows"]]

    def know_owner(self, uri: str) -> None:
        assert self._ask({"own": uri}) == {"rows": []}

    def begin(self, statement: str) -> None:
        """Runs it, and nobody waits for an answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"sql": statement}) + "\n")
        self._process.stdin.flush()

    def finish(self, times: int) -> None:
        """So many statements that were begun have succeeded."""
        for _ in range(times):
            answer = self._answer()
            assert "rows" in answer, answer

    def kill(self) -> None:
        """With its Java, in the middle of whatever they do."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=60)
        self._errors.close()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._errors.close()

    def _ask(self, task: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait(timeout=60)
            self._errors.seek(0)
            raise RuntimeError(f"the writer ended:\n{self._errors.read()[-5000:]}")
        return json.loads(line)


def main(folder: str, conf: str) -> None:
    uri, token = os.environ["TIDEGATE_URI"], os.environ["TIDEGATE_TOKEN"]
    spark = sessions.connect(uri=uri, token=token, folder=Path(folder), **json.loads(conf))
    spark.range(1).collect()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        if "own" in task:
            tidegate.spark.commit_owner(spark, task["own"], token)
            answer: dict[str, Any] = {"rows": []}
        else:
            answer = _rows(spark, task["sql"]) if "sql" in task else asdict(perform(spark, Task(**task)))
        print(json.dumps(answer, default=str), flush=True)
    spark.stop()


def _rows(spark: SparkSession, statement: str) -> dict[str, Any]:
    try:
        return {"rows": spark.sql(statement).collect()}
    except Exception as error:
        return {"refused": str(error)}


if __name__ == "__main__":
    main(*sys.argv[1:])
