"""`tidegate sql` and `tidegate shell`: connected, quiet, and nothing left behind."""

from __future__ import annotations

import datetime
import decimal
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import Row

from tests.servers import ServerProcess
from tidegate.cli.results import print_csv, print_json, print_table

RUN_SECONDS_MAX = 300
SMALL = ["--master", "local[2]", "--conf", "spark.driver.memory=1g"]
COLUMNS = ["n", "price", "day", "word", "flag", "raw", "nested", "by_key"]
ROW = Row(*COLUMNS)(
    7,
    decimal.Decimal("1.50"),
    datetime.date(2026, 1, 2),
    'a "b"',
    True,
    bytearray(b"\0\xff"),
    [Row(x=1, y=None)],
    {datetime.date(2026, 1, 2): 1.5},
)


def tidegate(
    *arguments: str, folder: Path, given: str = "", seconds_max: int = RUN_SECONDS_MAX, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own, in an empty folder."""
    (folder / "here").mkdir()
    environ = {k: v for k, v in os.environ.items() if k not in {"TIDEGATE_URI", "TIDEGATE_TOKEN"}}
    return subprocess.run(
        [sys.executable, "-m", "tidegate", *arguments],
        cwd=folder / "here",
        env={**environ, **variables},
        input=given,
        capture_output=True,
        text=True,
        timeout=seconds_max,
    )


def processes_with(text: str) -> list[str]:
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if text in line]


STORY = """
CREATE TABLE default.tides (station STRING, height DOUBLE); -- no catalog is named: the first one is meant;
INSERT INTO main.default.tides VALUES ('Husum; Nordsee', 3.14), (NULL, 1);
SELECT * FROM default.tides ORDER BY height DESC;
"""


def test_statements_run_on_a_catalog_of_their_own_that_is_gone_afterwards(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    ran = tidegate("sql", "--format", "json", "--home", home, *SMALL, folder=tmp_path, given=STORY)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ['{"station":"Husum; Nordsee","height":3.14}', '{"station":null,"height":1.0}']
    assert list((tmp_path / "here").iterdir()) == []
    assert processes_with(home) == []


def test_the_first_statement_that_fails_is_told_in_one_line_and_ends_the_run(
    catalog_server: ServerProcess, table: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.sql"
    file.write_text(f"CREATE TABLE {table} AS SELECT 1 AS one; SELECT 1 / (id - id) FROM range(9); DROP TABLE {table}")
    server = {"TIDEGATE_URI": catalog_server.url, "TIDEGATE_TOKEN": catalog_server.token}
    ran = tidegate("sql", "--file", str(file), *SMALL, folder=tmp_path, **server)
    assert ran.returncode == 1
    assert ran.stderr.startswith("tidegate: statement 2: [DIVIDE_BY_ZERO]")
    assert len(ran.stderr.splitlines()) == 1
    with catalog_server.http() as http:
        assert http.get(f"/api/2.1/unity-catalog/tables/{table}").status_code == 200


def test_a_run_that_is_interrupted_leaves_nothing_running(tmp_path: Path) -> None:
    endless = "SELECT 'ready'; SELECT sum(id % 7) FROM range(1000000000000)"
    home = str(tmp_path / "home")
    running = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "sql", endless, "--format", "csv", "--home", home, *SMALL],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert [running.stdout.readline() for _ in range(2)] == ["ready\n", "ready\n"]
    assert processes_with(home) != []
    os.killpg(running.pid, signal.SIGINT)  # Ctrl-C: a terminal tells everything that runs in it
    _, told = running.communicate(timeout=120)
    assert running.returncode != 0
    assert "Traceback" not in told
    assert processes_with(home) == []


INTERRUPTED_AFTER_JAVA = """
import socket
from py4j.java_gateway import GatewayParameters, JavaGateway
from tidegate.cli.connected import _even_if_java_is_gone, _silence_pyspark
_silence_pyspark()
with socket.create_server(("127.0.0.1", 0)) as java:
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=java.getsockname()[1]))
_even_if_java_is_gone(lambda: gateway.jvm.System.nanoTime())
print("went on")
"""


def test_a_java_that_ended_before_it_was_told_to_is_not_complained_about(tmp_path: Path) -> None:
    """Ctrl-C reaches both at once, and either may be the first to end."""
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED_AFTER_JAVA], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.stdout, ran.stderr) == ("went on\n", "")


def test_the_shell_has_a_connected_session_on_a_home_that_is_being_served(
    catalog_server: ServerProcess, table: str, tmp_path: Path
) -> None:
    typed = f"""
sql("CREATE TABLE {table} AS SELECT id FROM range(3)")
print("rows:", spark.table("{table}").count(), sc.version == spark.version)
"""
    ran = tidegate("shell", "--home", str(catalog_server.home), *SMALL, folder=tmp_path, given=typed)
    assert ran.returncode == 0, ran.stderr
    assert "catalogs  main at http://127.0.0.1:" in ran.stdout
    assert "rows: 3 True" in ran.stdout
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["sql"], "There is nothing to run"),
        (["sql", "/* nothing */ ;"], "There is nothing to run"),
        (["sql", "SELECT 1", "--file", "x.sql"], "not both"),
        (["sql", "--file", "/nowhere/x.sql"], "cannot be read"),
        (["sql", "SELECT 1", "--uri", "nonsense", "--token", "t"], "must look like http://host:port"),
        (["sql", "SELECT 1", "--uri", "http://127.0.0.1:1"], "No token is given"),
        (["sql", "SELECT 1", "--uri", "http://127.0.0.1:1", "--token", "t", "--home", "x"], "not both"),
        (["sql", "SELECT 1", "--conf", "nonsense"], "name=value"),
        (["shell", "--catalog", "a.b"], "cannot be the name of a catalog"),
        (["shell", "--home", "/dev/null/home"], "cannot be made"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_before_spark_starts(
    arguments: list[str], told: str, tmp_path: Path
) -> None:
    ran = tidegate(*arguments, folder=tmp_path, seconds_max=60)
    assert ran.returncode == 2
    assert told in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", [["sql", "SELECT 1"], ["shell"], ["jars"]], ids=lambda command: command[0])
def test_without_pyspark_it_says_how_to_get_it(command: list[str], tmp_path: Path) -> None:
    script = "import sys; sys.modules['pyspark'] = None; from tidegate.cli.main import app; app(sys.argv[1:])"
    variables = {**os.environ, "TIDEGATE_JARS": str(tmp_path / "jars"), "TIDEGATE_HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", script, *command], env=variables, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr == 'tidegate: PySpark is not installed: pip install "tidegate[spark]".\n'


def test_the_jars_are_printed_as_spark_submit_takes_them(tmp_path: Path) -> None:
    printed = tidegate("jars", folder=tmp_path).stdout.strip().split(",")
    assert len(printed) == 8
    assert all(Path(jar).is_file() for jar in printed)


def test_rows_for_people_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, [ROW, ROW, Row(*COLUMNS)(*[None] * len(COLUMNS))], rows_max=2)
    printed = capsys.readouterr()
    cells = [cell.strip() for cell in printed.out.splitlines()[3].strip("│").split("│")]
    expected = ["7", "1.50", "2026-01-02", 'a "b"', "true", "AP8=", '[{"x":1,"y":null}]', '{"2026-01-02":1.5}']
    assert cells == expected
    assert len(printed.out.splitlines()) == 6
    assert "--rows" in printed.err


def test_rows_for_programs_are_csv_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(COLUMNS, [ROW, Row(*COLUMNS)(*[None] * len(COLUMNS))])
    assert capsys.readouterr().out.splitlines() == [
        ",".join(COLUMNS),
        '7,1.50,2026-01-02,"a ""b""",true,AP8=,"[{""x"":1,""y"":null}]","{""2026-01-02"":1.5}"',
        ",,,,,,,",
    ]
    print_json(COLUMNS, [ROW])
    assert capsys.readouterr().out == (
        '{"n":7,"price":1.50,"day":"2026-01-02","word":"a \\"b\\"","flag":true,"raw":"AP8=",'
        '"nested":[{"x":1,"y":null}],"by_key":{"2026-01-02":1.5}}\n'
    )
