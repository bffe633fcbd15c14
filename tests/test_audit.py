"""The audit log: every decision is in it, nothing can be taken out of it, and it holds up nobody."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from tests.conftest import DATABASES
from tests.lake import Lake, add_commit, error_of, set_properties
from tests.servers import ServerProcess
from tests.test_inline_commits import Inline, add
from tests.waiting import wait_until
from tidegate.cli.main import app
from tidegate.compose import build_server, prepare
from tidegate.db.engines import parse_url
from tidegate.db.schema import audit
from tidegate.domain.errors import NotAuthenticated, PermissionDenied
from tidegate.services.audit import Audit
from tidegate.services.read_audit import forget_audit
from tidegate.settings import Settings
from tidegate.steps import STEPS, VARIABLE
from tidegate.telemetry.current import RequestAtWork
from tidegate.telemetry.server import ServerMeasures

TIDEGATE = "/api/tidegate/v1"
HOUR_MS = 3_600_000


@pytest.fixture(scope="module", params=DATABASES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Of its own, with lines in a file."""
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    home = tmp_path_factory.mktemp("home")
    process = ServerProcess(home, database, {"audit_lines": str(home / "audit.jsonl")}).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])


@contextmanager
def database_of(server: ServerProcess) -> Iterator[sa.Connection]:
    url = server.database or f"sqlite:///{server.home}/catalog.db"
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def read(http: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    response = http.get(f"{TIDEGATE}/audit", params=query)
    assert response.status_code == 200, response.text
    return response.json()["records"]


def waited_for(http: httpx.Client, count: int, **query: Any) -> list[dict[str, Any]]:
    """Refusals are written within a second or two."""
    wait_until(lambda: len(read(http, **query)) >= count, f"{count} records of {query}")
    return read(http, **query)


def test_what_was_changed_is_in_the_log_at_once_with_who_what_and_where(lake: Lake, unique: str) -> None:
    name = f"main.default.{unique}"
    table = lake.new_table(unique)
    commit = table.stage_commit(1)
    staged = (table.log / "_staged_commits" / commit["file-name"]).read_text()
    txn_id = json.loads(staged.splitlines()[0])["commitInfo"]["txnId"]
    headers = {"X-Request-Id": f"request-{unique}"}
    url = f"{lake.tables_url()}/{unique}"
    assert lake.http.post(url, json=table.request(add_commit(commit)), headers=headers).status_code == 200
    newest, *_, oldest = read(lake.http, table=name)
    assert {**newest, "id": 0, "at": 0} == {
        "id": 0,
        "at": 0,
        "principal": "admin",
        "operation": "updateTable",
        "subject": name,
        "allowed": True,
        "reason": None,
        "message": None,
        "request_id": f"request-{unique}",
        "address": "127.0.0.1",
        "version": 1,
        "txn_id": txn_id,
        "times": 1,
    }
    assert abs(newest["at"] - time.time() * 1000) < HOUR_MS
    assert oldest["operation"] == "createStagingTable"
    assert lake.http.delete(url).status_code < 300
    assert read(lake.http, table=name)[0]["operation"] == "deleteTable"


def test_an_inline_commit_is_told_with_its_transaction(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    txn = str(uuid.uuid4())
    done = Inline(table).append(add("a.parquet"), txn=txn)
    assert done.status_code == 200, done.text
    newest = read(lake.http, table=f"main.default.{unique}")[0]
    assert (newest["version"], newest["txn_id"], newest["allowed"]) == (1, txn, True)


def test_refusals_and_repetitions_are_told_a_moment_later(lake: Lake, unique: str) -> None:
    name = f"main.default.{unique}"
    table = lake.new_table(unique)
    first = add_commit(table.stage_commit(1))
    assert table.update(first).status_code == 200
    assert table.update(first).status_code == 200, "sent again"
    assert table.commit(1).status_code == 409
    assert table.update(set_properties(no="commit"), etag="wrong").status_code in {400, 409}
    refused = waited_for(lake.http, 2, table=name, allowed="false")
    assert {record["reason"] for record in refused} >= {"CommitVersionConflict"}
    assert all(record["message"] for record in refused)
    assert any(record["reason"] == "replay" for record in waited_for(lake.http, 3, table=name, operation="updateTable"))


def test_reads_are_told_when_they_are_refused_and_strangers_are_counted(
    server: ServerProcess, lake: Lake, unique: str
) -> None:
    lake.new_table(unique)
    assert lake.load(unique).status_code == 200
    before = sum(record["times"] for record in read(lake.http, operation="authenticate"))
    secret = f"stolen-{unique}"
    for _ in range(20):
        httpx.get(f"{server.url}{lake.tables_url()}/{unique}", headers={"Authorization": f"Bearer {secret}"})
    wait_until(
        lambda: sum(record["times"] for record in read(lake.http, operation="authenticate")) == before + 20,
        "every one is counted",
    )
    strangers = read(lake.http, operation="authenticate")
    assert strangers[0]["principal"] is None
    assert strangers[0]["allowed"] is False
    assert read(lake.http, operation="loadTable") == []
    wait_until(lambda: "authenticate" in (server.home / "audit.jsonl").read_text(), "lines are written")
    assert secret not in (server.home / "audit.jsonl").read_text()


def test_who_has_no_right_is_told_of_whatever_they_are_told(server: ServerProcess, lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    guest = f"guest_{unique}"
    assert lake.http.post(f"{TIDEGATE}/identities", json={"name": guest, "kind": "user"}).status_code == 200
    token = lake.http.post(f"{TIDEGATE}/tokens", json={"principal": guest}).json()["token"]
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as theirs:
        url = f"{lake.tables_url()}/{unique}"
        assert theirs.get(url).status_code == 404
        assert theirs.post(url, json=table.request(set_properties(a="b"))).status_code == 404
        assert error_of(theirs.get(f"{TIDEGATE}/audit"))[0] == 403
    refused = waited_for(lake.http, 3, principal=guest)
    assert {record["operation"] for record in refused} == {"loadTable", "updateTable", "readAudit"}
    assert not any(record["allowed"] for record in refused)
    told = next(record for record in refused if record["operation"] == "loadTable")
    assert (told["subject"], told["reason"]) == (f"main.default.{unique}", "NoSuchTable")
    assert token not in str(read(lake.http, table="metastore")) + str(refused)


def test_lines_tell_what_rows_tell(server: ServerProcess, lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    assert table.commit(1).status_code == 200
    assert table.commit(1).status_code == 409
    file = server.home / "audit.jsonl"

    def told() -> list[tuple[Any, ...]]:
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        mine = [line for line in lines if line.get("subject") == f"main.default.{unique}"]
        return [(line["operation"], line["allowed"], line.get("version")) for line in mine]

    wait_until(lambda: ("updateTable", False, 1) in told(), "the lines")
    assert ("updateTable", True, 1) in told()
    assert ("createTable", True, None) in told()


def test_pages_and_filters_find_the_same_records(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    for version in range(1, 6):
        assert table.commit(version).status_code == 200
    name = f"main.default.{unique}"
    whole = read(lake.http, table=name)
    paged, before = list[dict[str, Any]](), dict[str, int]()
    while True:
        answer = lake.http.get(f"{TIDEGATE}/audit", params={"table": name, "max_results": 2, **before}).json()
        paged += answer["records"]
        if answer["next_before"] is None:
            break
        before = {"before": answer["next_before"]}
    assert paged == whole
    assert [record["version"] for record in whole[:5]] == [5, 4, 3, 2, 1]
    assert [record["version"] for record in read(lake.http, table=name, operation="updateTable")] == [5, 4, 3, 2, 1]
    assert read(lake.http, table=name, principal="nobody") == []
    assert read(lake.http, table=name, since=whole[0]["at"] + HOUR_MS) == []
    assert read(lake.http, table=name, until=whole[-1]["at"]) == []
    assert read(lake.http, table="main.default", max_results=1)[0]["id"] >= whole[0]["id"]
    for wrong in ({"max_results": 0}, {"max_results": 100_000}, {"before": 0}, {"since": -1}, {"allowed": "perhaps"}):
        assert error_of(lake.http.get(f"{TIDEGATE}/audit", params=wrong))[0] == 400, wrong


@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit SET principal = 'nobody'", "DELETE FROM audit", "DELETE FROM audit WHERE allowed = 0 OR id > 0"],
)
def test_rows_cannot_be_changed_or_removed(server: ServerProcess, lake: Lake, unique: str, statement: str) -> None:
    lake.new_table(unique)
    before = read(lake.http, table=f"main.default.{unique}")
    with pytest.raises(sa.exc.DBAPIError, match="audit log"), database_of(server) as database:
        database.execute(sa.text(statement))
    assert read(lake.http, table=f"main.default.{unique}") == before


def test_the_command_shows_what_is_asked_for(server: ServerProcess, lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    assert table.commit(1).status_code == 200
    name = f"main.default.{unique}"

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["audit", *arguments, "--uri", server.url, "--token", server.token])
        return result.exit_code, result.output

    code, output = run("--table", name, "--since", "1h", "--allowed")
    assert code == 0, output
    assert output.splitlines()[-1].endswith(f"updateTable  {name}  version 1")
    assert json.loads(run("--table", name, "--limit", "1", "--json")[1])["version"] == 1
    code, output = run("--since", "yesterday")
    assert code != 0
    assert "no moment" in output


@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("audit.")])
def test_old_records_go_from_the_front_also_when_the_server_dies_over_it(
    tmp_path: Path, database_url: str, step: str
) -> None:
    home = tmp_path / "home"
    prepare(Settings(home=home, database=database_url))
    now = int(time.time() * 1000)
    old, young = now - 2 * HOUR_MS, now
    engine = sa.create_engine(parse_url(database_url))
    with engine.begin() as connection:
        rows = [{"at": at, "operation": "x", "allowed": 1, "times": 1} for at in (old, old, young, old)]
        connection.execute(audit.insert(), rows)
    program = f"from tests.test_audit import forget; forget({str(home)!r}, {database_url!r})"
    killed = subprocess.run([sys.executable, "-c", program], env={**os.environ, VARIABLE: f"{step}:kill"})
    assert killed.returncode == -9
    with engine.begin() as connection:
        assert [at for (at,) in connection.execute(sa.select(audit.c.at).order_by(audit.c.id))][-2:] == [young, old]
    forget(str(home), database_url)
    with engine.begin() as connection:
        left = [at for (at,) in connection.execute(sa.select(audit.c.at).order_by(audit.c.id))]
        assert left == [young, old], "from the front only"
    engine.dispose()


def forget(home: str, url: str) -> None:
    """As the job does, with records kept for an hour."""
    server = build_server(Settings(home=Path(home), database=url))

    async def work() -> None:
        server.env.database.start()  # type: ignore[attr-defined]
        await forget_audit(server.env, kept_ms=HOUR_MS)
        server.env.database.stop()  # type: ignore[attr-defined]

    asyncio.run(work())


def test_what_does_not_fit_is_counted_and_never_waited_for() -> None:
    lost = ServerMeasures().audit_lost
    waiting = Audit(lambda: 1, lost, waiting_max=3)
    for number in range(10):
        request = RequestAtWork(b"%d" % number, "POST")
        request.endpoint = Endpoint()
        waiting.decided(request, PermissionDenied("no"))
    assert lost.value == 7
    for _ in range(10_000):
        waiting.decided(RequestAtWork(b"x", "GET"), NotAuthenticated("no"))
    assert lost.value == 7, "strangers are counted, however many they are"


class Endpoint:
    name = "updateTable"
    template = "/tables"
    face = None
