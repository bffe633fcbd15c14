"""Log lines: JSON that says which request, table and version they belong to, and never a secret."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import DATABASES
from tests.lake import DELTA, Lake, error_of
from tests.servers import ServerProcess
from tests.test_endpoint_errors import Defective, app_of, serving
from tests.test_numbers import block
from tests.test_publishing import wait_until
from tidegate.compose import build_server, prepare
from tidegate.http.watch import LINES_PER_SECOND_MAX
from tidegate.settings import Settings
from tidegate.telemetry.current import CURRENT, JobAtWork, RequestAtWork
from tidegate.telemetry.logs import JsonLines, TextLines, about

OURS = re.compile(r"[0-9a-f]{8}-[0-9a-f]+")


def lines(server: ServerProcess) -> list[dict[str, Any]]:
    """Every line but those that tell where the server is."""
    return [json.loads(line) for line in list(server.log) if not line.startswith(("Tidegate ", "The admin token "))]


def line_of(server: ServerProcess, request_id: str) -> dict[str, Any]:
    """The line about the answer of this request."""

    def found() -> list[dict[str, Any]]:
        return [line for line in lines(server) if line.get("request_id") == request_id and "status" in line]

    wait_until(lambda: len(found()) > 0, f"a line tells of {request_id}")
    [line] = found()
    return line


@pytest.fixture(scope="module", params=DATABASES)
def talkative(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    settings = {"log_format": "json", "log_requests": "all", "publish_after_ms": "20"}
    process = ServerProcess(tmp_path_factory.mktemp("home"), database, settings=settings).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])
    assert process.token not in "".join(process.log)
    lines(process)


@pytest.fixture
def told(talkative: ServerProcess) -> Iterator[Lake]:
    with talkative.lake() as lake:
        yield lake


# Requests


def test_a_commit_is_told_with_who_made_it_on_what_and_how_long_it_took(
    talkative: ServerProcess, told: Lake, unique: str
) -> None:
    table = told.new_table(unique)
    told.http.headers["X-Request-Id"] = f"commit-of-{unique}"
    answer = table.commit(1)
    assert answer.headers["x-request-id"] == f"commit-of-{unique}"
    line = line_of(talkative, f"commit-of-{unique}")
    assert line["ms"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    known = ("level", "logger", "method", "path", "status", "principal", "table", "version")
    assert {name: line[name] for name in known} == {
        "level": "info",
        "logger": "tidegate.requests",
        "method": "POST",
        "path": f"{DELTA}/catalogs/{{catalog}}/schemas/{{schema}}/tables/{{table}}",
        "status": 200,
        "principal": "admin",
        "table": f"main.default.{unique}",
        "version": 1,
    }


def test_a_refusal_is_told_with_its_kind(talkative: ServerProcess, told: Lake, unique: str) -> None:
    answer = told.load(f"{unique}_absent")
    line = line_of(talkative, answer.headers["x-request-id"])
    assert (line["status"], line["error"], line["table"]) == (404, "NoSuchTable", f"main.default.{unique}_absent")
    assert "version" not in line


@pytest.mark.parametrize("id", ["a", "x" * 128, "req/1:2,3;{4}", '"quoted\\"'])
def test_the_id_of_a_client_is_kept(told: Lake, id: str) -> None:
    assert told.http.get("/metrics", headers={"X-Request-Id": id}).headers["x-request-id"] == id


@pytest.mark.parametrize("id", [b"", b"x" * 129, b"two words", b"caf\xc3\xa9", b"tab\there"])
def test_an_id_that_is_not_sane_is_replaced_by_one_of_ours(told: Lake, id: bytes) -> None:
    answer = told.http.get("/metrics", headers={b"X-Request-Id": id})
    assert OURS.fullmatch(answer.headers["x-request-id"])


def test_every_answer_has_an_id_of_its_own(told: Lake) -> None:
    answers = [told.http.get(path) for path in ("/metrics", "/nowhere", "/openapi.json", f"{DELTA}/config")]
    answers.append(told.http.get("/metrics", headers={"Authorization": "Bearer wrong"}))
    assert len({answer.headers["x-request-id"] for answer in answers}) == 5


def test_neither_a_query_nor_a_token_gets_into_the_log(talkative: ServerProcess, told: Lake) -> None:
    wrong = told.http.get(f"{DELTA}/config?password=hunter2", headers={"Authorization": "Bearer not-the-token"})
    assert error_of(wrong)[0] == 401
    line_of(talkative, wrong.headers["x-request-id"])
    text = "".join(talkative.log)
    assert "hunter2" not in text
    assert "not-the-token" not in text


# Background work


def test_the_publisher_tells_of_table_and_version(talkative: ServerProcess, told: Lake, unique: str) -> None:
    table = told.new_table(unique)
    block(table, 1)

    def alarms() -> list[dict[str, Any]]:
        return [line for line in lines(talkative) if line.get("table") == f"main.default.{unique}" and "job" in line]

    wait_until(lambda: len(alarms()) > 0, "an alarm is told")
    alarm = alarms()[0]
    assert (alarm["level"], alarm["version"], alarm["job"]) == ("error", 1, "publishing")


# What is told by default


def test_by_default_only_failures_are_told_and_everyday_answers_are_not(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={"publishing": "off"}).start()
    with server.lake() as lake:
        table = lake.new_table("t")
        table.commit(1)
        assert table.commit(1).status_code == 409
        assert lake.load("absent").status_code == 404
        quiet = len([line for line in server.log if "tidegate.requests" in line])
        id = lake.update("t", {"updates": []}).headers["x-request-id"]
        wait_until(lambda: any(id in line for line in server.log), "the failure is told")
    assert quiet == 0
    [line] = [line for line in server.log if id in line]
    assert "WARNING tidegate.requests POST /api/" in line
    assert line.rstrip().endswith(f"[request_id={id} table=main.default.t]")
    assert server.stop() == 0


def test_a_flood_of_failures_does_not_become_a_flood_of_lines(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home").start()
    asked = 20 * LINES_PER_SECOND_MAX
    with server.http() as http:
        for _ in range(asked):
            assert http.post(f"{DELTA}/config").status_code == 405
    assert server.stop() == 0
    told = [line for line in server.log if "tidegate.requests" in line]
    assert LINES_PER_SECOND_MAX <= len(told) < asked
    assert any("more requests failed" in line for line in told) or len(told) == LINES_PER_SECOND_MAX


def test_a_defect_is_told_with_the_request_that_met_it(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    prepare(settings)
    env = build_server(settings).env

    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines([]))
    logging.getLogger("tidegate").addHandler(handler)
    try:
        with serving(app_of(replace(env, database=Defective()))) as address:  # type: ignore[arg-type]
            sent = {"Authorization": "Bearer admin", "X-Request-Id": "defect-1"}
            assert httpx.get(f"{address}/api/2.1/unity-catalog/catalogs", headers=sent).status_code == 500
    finally:
        logging.getLogger("tidegate").removeHandler(handler)
    told = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [line["request_id"] for line in told] == ["defect-1", "defect-1"]
    assert "RuntimeError" in told[0]["exception"]
    assert told[1]["error"] == "InternalFailure"


# The two formats


def record(message: str, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("tidegate.x", logging.WARNING, __file__, 1, message, (), None)
    made.__dict__.update(about(**fields))
    return made


@pytest.mark.parametrize("lines", [TextLines, JsonLines])
@pytest.mark.parametrize(
    "message", ["the token is t0ken", "postgresql://u:p%40ss@h/db", "Authorization: Bearer whatever.it-is"]
)
def test_secrets_are_taken_out_of_whatever_is_logged(lines: type[logging.Formatter], message: str) -> None:
    written = lines(["t0ken", "p%40ss", "p@ss"]).format(record(message))  # type: ignore[arg-type]
    assert "***" in written
    assert not re.search("t0ken|p%40ss|whatever", written)


def test_a_line_says_what_is_at_work_and_what_it_is_about() -> None:
    before = CURRENT.set(JobAtWork("publishing"))
    try:
        made = record("a\nb", table="c.s.t", version=None)
        assert json.loads(JsonLines([]).format(made)) | {"time": ""} == {
            "time": "",
            "level": "warning",
            "logger": "tidegate.x",
            "message": "a\nb",
            "job": "publishing",
            "table": "c.s.t",
        }
        assert TextLines([]).format(made).endswith("a\\nb [job=publishing table=c.s.t]")
        CURRENT.set(RequestAtWork(b"id-1", "GET"))
        assert json.loads(JsonLines([]).format(made))["request_id"] == "id-1"
    finally:
        CURRENT.reset(before)
