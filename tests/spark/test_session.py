"""`tidegate.spark.session` and `configure`: connected, careful with the token, honest about what cannot be."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import tidegate.spark
from tests.lake import UNITY
from tests.servers import ServerProcess
from tests.spark.conftest import OLD_FACE
from tests.spark.sessions import SMALL
from tidegate.spark.connection import connection
from tidegate.spark.jars import DELTA_JARS, spark_jars_folder
from tidegate.spark.session import SparkAlreadyRunning
from tidegate.spark.settings import CONNECTOR_JAR, EXTENSION_CLASS, static_settings

SCRIPT_SECONDS_MAX = 300


def run_script(script: str, folder: Path, **arguments: object) -> str:
    """What a Python process of its own prints: it starts a Spark that is not the one that the tests share."""
    text = f"import json, sys\narguments = json.loads(sys.argv[1])\n{script}"
    command = [sys.executable, "-c", text, json.dumps({**arguments, "small": SMALL})]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SCRIPT_SECONDS_MAX)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"uri": ""}, "No catalog server is given"),
        ({"uri": "127.0.0.1:8080"}, "must look like http://host:port"),
        ({"uri": "ftp://127.0.0.1"}, "must look like http://host:port"),
        ({"uri": "http://"}, "must look like http://host:port"),
        ({"uri": "http://host:eighty"}, "cannot be read"),
        ({"uri": "http://host/?x=1"}, "must look like http://host:port"),
        ({"uri": "http://me:secret@host"}, "holds a user or a password"),
        ({"token": ""}, "No token is given"),
        ({"token": "  "}, "No token is given"),
        ({"token": "two words"}, "holds blanks"),
        ({"catalogs": []}, "No catalog is given"),
        ({"catalogs": ["main", ""]}, "cannot be the name of a catalog"),
        ({"catalogs": ["main.default"]}, "cannot be the name of a catalog"),
        ({"catalogs": ["Spark_Catalog"]}, "is Spark's own catalog"),
        ({"spark.remote": "sc://localhost"}, "Spark Connect"),
    ],
)
def test_bad_input_is_one_clear_sentence_before_anything_starts(
    wrong: dict[str, object], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEGATE_URI", raising=False)
    monkeypatch.delenv("TIDEGATE_TOKEN", raising=False)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(ValueError, match=told) as refused:
        tidegate.spark.session(**{"uri": "http://127.0.0.1:1", "token": "t", **wrong})  # type: ignore[arg-type]
    assert len(str(refused.value).splitlines()) == 1
    assert "secret" not in str(refused.value)


def test_server_and_token_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_URI", "https://catalog.example/")
    monkeypatch.setenv("TIDEGATE_TOKEN", "from-a-file\n")
    found = connection(uri=None, token=None, catalogs="main")
    assert (found.uri, found.token, found.catalogs) == ("https://catalog.example", "from-a-file", ("main",))
    assert "from-a-file" not in repr(found)


def test_what_the_user_has_set_is_added_to_and_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# mine\nspark.sql.extensions  com.example.Mine\nspark.redaction.regex=(?i)hush\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    made = static_settings({"spark.jars": "/my/own.jar, /my/other.jar", "spark.jars.packages": "com.example:mine:1"})
    jars = made["spark.jars"].split(",")
    assert jars[:3] == ["/my/own.jar", "/my/other.jar", str(CONNECTOR_JAR)]
    assert len(jars) == 3 + len(DELTA_JARS)
    assert made["spark.sql.extensions"] == f"com.example.Mine,{EXTENSION_CLASS}"
    assert re.search(made["spark.redaction.regex"].replace("(?i)", ""), "spark.sql.catalog.main.token")
    assert made["spark.redaction.regex"].endswith("|(?i)hush")
    assert "spark.jars.packages" not in made
    assert made["spark.sql.sources.default"] == "delta"
    assert static_settings({"spark.sql.sources.default": "orc"})["spark.sql.sources.default"] == "orc"


@pytest.mark.parametrize(
    ("given", "missing", "there"),
    [
        ({"spark.jars": "/x/unitycatalog-spark_4.1_2.13-0.6.0.jar"}, CONNECTOR_JAR.name, "delta-spark_4.1_2.13"),
        ({"spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0"}, "delta-spark_4.1_2.13", CONNECTOR_JAR.name),
    ],
    ids=["connector", "Delta"],
)
def test_a_connector_or_a_delta_that_the_user_brings_along_is_not_doubled(
    given: dict[str, str], missing: str, there: str
) -> None:
    made = static_settings(given)["spark.jars"]
    assert missing not in made
    assert there in made


def test_the_token_is_not_shown_by_spark_nor_on_a_command_line(
    spark: SparkSession, catalog_server: ServerProcess
) -> None:
    settings = {row.key: row.value for row in spark.sql("SET").collect()}
    assert "redacted" in settings["spark.sql.catalog.main.token"]
    plan = spark.sql("EXPLAIN EXTENDED SHOW TABLES IN main.default").first()
    assert plan is not None
    processes = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert "spark.sql.catalog.spark_catalog" in processes
    assert not [text for text in [*settings.values(), plan[0], processes] if catalog_server.token in text]


def test_functions_run_on_the_python_that_asked_for_the_session(spark: SparkSession) -> None:
    python = udf(lambda _: sys.executable)
    assert {row[0] for row in spark.range(2).select(python("id")).collect()} == {sys.executable}


def test_a_running_session_is_given_further_catalogs(
    spark: SparkSession, catalog_server: ServerProcess, unique: str
) -> None:
    with catalog_server.http() as http:
        made = http.post(
            f"{UNITY}/catalogs", json={"name": unique, "storage_root": f"file://{catalog_server.home}/more"}
        )
        assert made.status_code == 200, made.text
        assert http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": unique}).status_code == 200
        known = {"uri": catalog_server.url, "token": catalog_server.token, "master": "local[2]", **SMALL}
        assert tidegate.spark.session(catalogs=["main", unique], **known) is spark  # type: ignore[arg-type]
        spark.sql(f"CREATE TABLE {unique}.s.t AS SELECT 1 AS id")
        assert spark.table(f"{unique}.s.t").collect() == [(1,)]
        assert http.delete(f"{UNITY}/catalogs/{unique}?force=true").status_code == 200


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"uri": "http://127.0.0.1:1"}, "has another value for spark.sql.catalog.main.uri"),
        ({"token": "another"}, "has another value for spark.sql.catalog.main.token"),
        (OLD_FACE, "has another value for spark.sql.catalog.main.deltaRestApi.enabled"),
        ({"master": "local[1]"}, "spark.master cannot be changed"),
        ({"spark.driver.memory": "3g"}, "spark.driver.memory cannot be changed"),
    ],
)
def test_what_a_running_session_cannot_take_any_more_is_refused_and_changes_nothing(
    spark: SparkSession, catalog_server: ServerProcess, change: dict[str, str], told: str
) -> None:
    asked = {"uri": catalog_server.url, "token": catalog_server.token, "spark.sql.shuffle.partitions": "9", **change}
    with pytest.raises(SparkAlreadyRunning, match=told) as refused:
        tidegate.spark.session(**asked)  # type: ignore[arg-type]
    assert catalog_server.token not in str(refused.value)
    assert spark.conf.get("spark.sql.shuffle.partitions") == SMALL["spark.sql.shuffle.partitions"]


FOREIGN_SESSION = """
from pyspark.sql import SparkSession
from tidegate.spark import session
spark = SparkSession.builder.master("local[1]").config(map=arguments["small"]).getOrCreate()
for _ in range(2):
    try:
        session(uri="http://127.0.0.1:1", token="t")
    except RuntimeError as error:
        print(error)
    spark.stop()
"""


def test_a_spark_that_was_started_without_the_jars_is_not_returned_as_if_it_were_connected(tmp_path: Path) -> None:
    running, stopped = run_script(FOREIGN_SESSION, tmp_path).splitlines()
    for told in (running, stopped):
        assert "without the jar" in told
        assert "in a new process" in told


OWN_BUILDER = """
from pyspark.sql import SparkSession
from tidegate.spark import configure, session
server = {"uri": arguments["uri"], "token": arguments["token"]}
builder = SparkSession.builder.master("local[2]").config(map=arguments["small"]).config("spark.jars", arguments["jar"])
spark = configure(builder, **server).getOrCreate()
spark.sql(f"CREATE TABLE {arguments['table']} (id INT)")
spark.sql(f"INSERT INTO {arguments['table']} VALUES (1), (2)")
print(spark.table(arguments["table"]).count())
print(spark.newSession().table(arguments["table"]).count())
loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
print(loader.getResource("mine.txt") is not None)
spark.stop()
again = session(**server, master="local[2]", **arguments["small"])
print(again is spark, again.table(arguments["table"]).count())
"""


def test_a_builder_of_ones_own_keeps_its_jars_and_sees_the_catalog_also_after_a_restart(
    catalog_server: ServerProcess, table: str, tmp_path: Path
) -> None:
    jar = tmp_path / "own.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("mine.txt", "mine")
    server = {"uri": catalog_server.url, "token": catalog_server.token}
    assert run_script(OWN_BUILDER, tmp_path, table=table, jar=str(jar), **server).splitlines() == [
        "2",
        "2",
        "True",
        "False 2",
    ]


ON_A_CLUSTER = """
from tidegate.spark import session
spark = session(uri=arguments["uri"], token=arguments["token"], master=arguments["master"], **arguments["small"])
spark.sql(f"CREATE TABLE {arguments['table']} (id BIGINT)")
spark.range(100).repartition(2).writeTo(arguments["table"]).append()
print(spark.sql(f"SELECT count(*), sum(id) FROM {arguments['table']}").first())
spark.stop()
"""


def test_it_works_on_a_cluster_whose_workers_have_no_jar_but_sparks(
    catalog_server: ServerProcess, table: str, tmp_path: Path
) -> None:
    server = {"uri": catalog_server.url, "token": catalog_server.token}
    with cluster(tmp_path / "work") as master:
        printed = run_script(ON_A_CLUSTER, tmp_path, table=table, master=master, **server)
    assert printed.strip() == "Row(count(1)=100, sum(id)=4950)"
    fetched = {path.name for path in (tmp_path / "work").rglob("*.jar")}
    assert fetched >= {CONNECTOR_JAR.name, *(jar.file_name for jar in DELTA_JARS)}


@contextlib.contextmanager
def cluster(work: Path) -> Iterator[str]:
    """A standalone cluster of one master and one worker, as processes of their own. The master's address."""
    with daemon("master.Master", r"Starting Spark master at (spark://\S+)", "--port", "0") as master:
        own = ["--cores", "2", "--memory", "1g", "--work-dir", str(work), master]
        with daemon("worker.Worker", r"Successfully registered with master (\S+)", *own):
            yield master


@contextlib.contextmanager
def daemon(name: str, ready: str, *arguments: str) -> Iterator[str]:
    """A process of Spark's, from the moment when it says that it is ready; what it says then."""
    script = spark_jars_folder().parent / "bin" / "spark-class"
    command = [str(script), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0", *arguments]
    environ = {**os.environ, "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    seen: list[str] = []
    try:
        for line in process.stdout:
            seen.append(line)
            if said := re.search(ready, line):
                break
        else:
            raise RuntimeError("".join(seen))
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield said[1]
    finally:
        process.terminate()
        process.wait(timeout=60)
