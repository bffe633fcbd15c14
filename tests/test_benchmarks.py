"""The benchmark tells the truth: what it counts is what the catalog says, and whatever is odd ends it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from benchmarks import cases, database_limit, markdown, plot
from benchmarks.__main__ import main as benchmark
from benchmarks.drive import Timing, Watched, drive
from benchmarks.drive import main as drive_command
from benchmarks.driver import Driver, DriverError, Step, UnexpectedAnswer
from benchmarks.fill import Filling, fill
from benchmarks.guarded_workloads import WRITER
from benchmarks.inline_workloads import AppendOpen
from benchmarks.processes import cost
from benchmarks.results import ECHO, Results, large_of, publishing_of
from benchmarks.samples import Samples, percentile, summarize
from benchmarks.suite import Run, in_order
from benchmarks.tables import make_schema
from benchmarks.targets import Target as Wanted
from benchmarks.targets import targets
from benchmarks.wire import TIDEGATE, Target
from benchmarks.workers import Work
from benchmarks.workloads import Options
from benchmarks.writing import write_new

from tests.lake import Lake, LakeTable
from tests.postgres import free_port
from tests.servers import ServerProcess
from tests.waiting import wait_until

WHOLE_STAGED = {"commits": 1, "requests": 1, "files": 2, "syncs": 4}
"""What such a commit takes its writer; each file is synced, and so is its folder."""
SHORT = Timing(seconds=0.25, warm_up_seconds=0.1)
ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def target(server: ServerProcess, unique: str) -> Target:
    """A schema of its own on the server that the tests share."""
    target = Target([server.url], server.token, schema=f"bench_{unique}")
    make_schema(Driver(target.addresses, 1), target)
    return target


@pytest.fixture
def lake(target: Target, lake: Lake) -> Lake:
    return Lake(lake.http, schema=target.schema)


def done(result: dict[str, Any]) -> int:
    """All that was done, before and after the clock too."""
    return sum(result["done_by_client"]) + sum(result["warm_up"]["done_by_client"])


def posted(request: bytes | Work) -> tuple[str, bytes]:
    """Path and body of a request."""
    assert isinstance(request, bytes)
    head, _, body = request.partition(b"\r\n\r\n")
    return head.split()[1].decode(), body


def log_of(loaded: dict[str, Any]) -> Path:
    return Path(loaded["metadata"]["location"].removeprefix("file://")) / "_delta_log"


# --- each workload against a real server


def test_commits_that_were_counted_are_ratified_published_and_reported(target: Target, lake: Lake) -> None:
    first = drive("commit", target, Options(clients=3, tables=4), SHORT, Watched())
    again = drive("commit", target, Options(clients=2, tables=4), SHORT, Watched())
    loaded = [lake.load(f"commit_{number:03}").json() for number in range(4)]
    assert sum(table["latest-table-version"] for table in loaded) == done(first) + done(again)
    for table in loaded:
        latest = table["latest-table-version"]
        # Each commit reported the one before it; the last is published too, and nobody has said so yet.
        assert [commit["version"] for commit in table["commits"]] == [latest]
        staged = {int(file.name[:20]): file for file in (log_of(table) / "_staged_commits").iterdir()}
        assert sorted(staged) == list(range(1, latest + 1))
        for version, file in staged.items():
            content = file.read_bytes()
            assert content == (log_of(table) / f"{version:020}.json").read_bytes()
            assert 1500 < len(content) < 2500
            info, *added = [json.loads(line) for line in content.splitlines()]
            assert {"inCommitTimestamp", "txnId"} <= info["commitInfo"].keys()
            assert all(json.loads(action["add"]["stats"])["numRecords"] for action in added)


@ON_SQLITE
def test_loads_find_as_many_pending_commits_as_were_asked_for(target: Target, lake: Lake) -> None:
    result = drive("load", target, Options(clients=3, tables=2, pending=4), SHORT, Watched())
    answers = [lake.load(f"load_4_{number:02}") for number in range(2)]
    assert [len(answer.json()["commits"]) for answer in answers] == [4, 4]
    assert result["body_bytes"] == len(answers[0].content)
    assert result["count"] <= sum(result["done_by_client"])
    assert result["per_second"] == pytest.approx(result["count"] / result["seconds"])


def test_a_server_that_publishes_is_left_to_it_and_cannot_be_asked_for_what_is_unpublished(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={"publish_after_ms": "10"}).start()
    target = Target([server.url], server.token)
    result = drive("leave", target, Options(clients=2, tables=2), SHORT, Watched())
    with server.lake() as lake:
        tables = [LakeTable(lake, f"commit_{number:03}", "", "") for number in range(2)]
        assert sum(table.load()["latest-table-version"] for table in tables) == done(result)
        wait_until(lambda: all(table.versions() == [] for table in tables), "published by the server")
    with pytest.raises(DriverError, match="unpublished commits, not 3"):
        drive("load", target, Options(clients=2, tables=1, pending=3), SHORT, Watched())
    assert server.stop() == 0


def test_commits_by_granted_rights_are_a_users_and_leave_no_token(target: Target, lake: Lake) -> None:
    result = drive("commit-granted", target, Options(clients=2, tables=2), SHORT, Watched())
    versions = [lake.load(f"commit_{number:03}").json()["latest-table-version"] for number in range(2)]
    assert sum(versions) == done(result) > 0
    asked = {"principal": WRITER, "table": f"main.{target.schema}", "max_results": "1000"}
    records = lake.http.get(f"{TIDEGATE}/audit", params=asked).json()["records"]
    assert len([record for record in records if record["version"] is not None]) == min(done(result), 1000)
    assert lake.http.get(f"{TIDEGATE}/tokens", params={"principal": WRITER}).json() == {"tokens": []}


@ON_SQLITE
def test_tables_whose_requests_are_trusted_are_others_than_those_that_are_read(target: Target, lake: Lake) -> None:
    result = drive("commit-declared", target, Options(clients=1, tables=1), SHORT, Watched())
    assert lake.load("declared_000").json()["latest-table-version"] == done(result) > 0
    policies = lake.http.get(f"{TIDEGATE}/tables/main.{target.schema}.declared_000/policies").json()
    assert policies["admission"] == "declared"


@pytest.mark.parametrize(("granted", "verdict"), [(901, "reached"), (899, "not reached")])
def test_granted_rights_may_cost_a_tenth_of_the_commits(granted: float, verdict: str) -> None:
    results = Results({}, {})
    for case, rate in ((cases.BY_ADMIN, 1000), (cases.GRANTED, granted)):
        results.add("sqlite", case, {"per_second": rate})
    assert [target.verdict for target in targets(results)] == [verdict]


@ON_SQLITE
def test_a_mix_has_five_loads_for_each_commit(target: Target, lake: Lake) -> None:
    result = drive("mix", target, Options(clients=2, tables=2), SHORT, Watched())
    commits, loads = (result["kinds"][kind]["count"] for kind in ("commit", "load"))
    assert result["count"] == commits + loads
    assert 5 * commits <= loads <= 5 * (commits + 2)
    versions = [lake.load(f"commit_{number:03}").json()["latest-table-version"] for number in range(2)]
    assert sum(versions) == done(result)


def test_contending_writers_win_each_version_once(target: Target, lake: Lake) -> None:
    result = drive("contend", target, Options(clients=4), SHORT, Watched())
    loaded = lake.load("contended").json()
    assert loaded["latest-table-version"] == done(result)
    assert all((log_of(loaded) / f"{version:020}.json").is_file() for version in range(1, done(result) + 1))
    assert len(loaded["commits"]) <= 4
    assert result["count"] <= sum(result["done_by_client"])


def test_whole_staged_commits_are_written_and_published_with_their_syncs_counted(target: Target, lake: Lake) -> None:
    sync = os.fsync
    results = [drive("whole-staged", target, Options(clients, tables=4), SHORT, Watched()) for clients in (3, 1)]
    assert os.fsync is sync
    loaded = [lake.load(f"whole_staged_{number:03}").json() for number in range(4)]
    assert sum(table["latest-table-version"] for table in loaded) == sum(map(done, results))
    for table in loaded:
        assert [commit["version"] for commit in table["commits"]] == [table["latest-table-version"]]
        # Of the latest version the clock may have left one file unwritten, and of the next one another behind.
        staged = {(int(file.name[:20]), file.read_bytes()) for file in (log_of(table) / "_staged_commits").iterdir()}
        for version in range(1, table["latest-table-version"]):
            assert (version, (log_of(table) / f"{version:020}.json").read_bytes()) in staged
    for result in results:
        spent = result["spent"]
        assert spent["commits"] >= result["count"] > 0
        assert spent == {kind: each * spent["commits"] for kind, each in WHOLE_STAGED.items()}


def test_whole_inline_commits_take_one_request_and_are_all_published(database_url: str, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", database_url, settings={"publish_after_ms": "10"}).start()
    target = Target([server.url], server.token)
    results = [drive("whole-inline", target, Options(clients, tables=4), SHORT, Watched()) for clients in (3, 1)]
    with server.lake() as lake:
        loaded = [lake.load(f"whole_inline_{number:03}").json() for number in range(4)]
    assert sum(table["latest-table-version"] for table in loaded) == sum(map(done, results))
    for table in loaded:
        versions = range(table["latest-table-version"] + 1)
        assert table["commits"] == []
        assert all((log_of(table) / f"{version:020}.json").is_file() for version in versions)
        assert not list((log_of(table) / "_staged_commits").iterdir())
    assert all(result["spent"].keys() == {"commits", "requests"} for result in results)
    assert all(result["spent"]["commits"] == result["spent"]["requests"] > 0 for result in results)
    assert server.stop() == 0


def test_open_appends_that_were_counted_are_versions_of_one_table(database_url: str, tmp_path: Path) -> None:
    settings = {"publishing": "off", "unpublished_commits_max": "100000"}
    server = ServerProcess(tmp_path / "home", database_url, settings=settings).start()
    target = Target([server.url], server.token)
    appends = AppendOpen(Driver(target.addresses, 4), target, Options(clients=4))
    appends.prepare()
    appends.driver.lap(appends.steps({"commit": Samples()}, seconds=0.3, per_second=None), seconds=0.3)
    with server.lake() as lake:
        table = lake.load(appends.table.name).json()
        assert sorted(commit["version"] for commit in table["commits"]) == list(range(1, sum(appends.done) + 1))
        stranger = appends.steps({"commit": Samples()}, seconds=1, per_second=None)[0]
        path, body = posted(next(stranger))
        assert lake.http.post(path, content=body).status_code == 200
    with pytest.raises(DriverError, match=f"is at version {sum(appends.done) + 1}, but {sum(appends.done)} commits"):
        appends.verify()
    assert done(drive("append", target, Options(clients=3), SHORT, Watched())) > 0
    assert server.stop() == 0


def test_open_appends_that_the_server_publishes_are_waited_for(tmp_path: Path) -> None:
    settings = {"publish_after_ms": "10", "unpublished_commits_max": "50"}
    server = ServerProcess(tmp_path / "home", settings=settings).start()
    result = drive("append-published", Target([server.url], server.token), Options(clients=3), SHORT, Watched())
    logs = list((tmp_path / "home" / "tables").rglob("_delta_log"))
    assert [len(list(log.glob("*.json"))) for log in logs] == [done(result) + 1]
    with server.lake() as lake:
        query = {"catalog_name": "main", "schema_name": "default"}
        assert lake.http.get("/api/2.1/unity-catalog/tables", params=query).json()["tables"] == []
    assert server.stop() == 0


@ON_SQLITE
def test_what_was_created_is_dropped_again(target: Target, lake: Lake) -> None:
    result = drive("create", target, Options(clients=2), Timing(seconds=1, warm_up_seconds=0.1), Watched())
    assert done(result) >= result["count"] > 0
    query = {"catalog_name": "main", "schema_name": target.schema}
    left = lake.http.get("/api/2.1/unity-catalog/tables", params=query).json()["tables"]
    assert len(left) <= 2 * 2  # what each client was at when its clock stopped, twice


@ON_SQLITE
def test_a_listing_shows_every_table_or_fails(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.workloads.PAGE_SIZE", 3)
    result = drive("list", target, Options(clients=2, tables=5), SHORT, Watched())
    pages, listings = (result["kinds"][kind]["count"] for kind in ("page", "listing"))
    assert 2 * listings <= pages <= 2 * (listings + 2)
    with pytest.raises(DriverError, match="shows 5 tables, not 4"):
        drive("list", target, Options(clients=1, tables=4), Timing(seconds=30, warm_up_seconds=30), Watched())


@ON_SQLITE
def test_clients_take_turns_between_several_servers(target: Target, lake: Lake) -> None:
    twice = Target(target.urls * 2, target.token, schema=target.schema)
    result = drive("commit", twice, Options(clients=2, tables=2), SHORT, Watched())
    versions = [lake.load(f"commit_{number:03}").json()["latest-table-version"] for number in range(2)]
    assert sum(versions) == done(result)
    with_dead = Target([*target.urls, f"http://127.0.0.1:{free_port()}"], target.token, schema=target.schema)
    with pytest.raises(ConnectionRefusedError):
        drive("commit", with_dead, Options(clients=1, tables=2), SHORT, Watched())


# --- the driver itself


@contextmanager
def answering(*answers: bytes) -> Iterator[Target]:
    """A server that gives one answer after the other, then closes the connection; piece by piece, as networks do."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            for answer in answers:
                connection.recv(65536)
                for start in range(0, len(answer), 100_000):
                    connection.sendall(answer[start : start + 100_000])
            connection.recv(65536)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listening:
        yield Target([f"http://127.0.0.1:{listening.getsockname()[1]}"], "")
        thread.join(10)


def ask(target: Target, times: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []

    def step() -> Step:
        while len(found) < times:
            answer = yield target.load("x")
            found.append(answer)

    Driver(target.addresses, 1).complete([step()])
    return found


def test_what_is_compared_is_measured_together() -> None:
    runs = [Run(site, case, dict) for site in ("ours", "theirs") for case in (*cases.COMMITS, cases.MIX)]
    runs += [Run(ECHO, case, dict) for case in cases.LIMITS]
    found = [(run.site, run.case.workload, run.case.clients) for run in in_order(runs)]
    expected = [
        (site, workload, clients)
        for clients in cases.CONCURRENCY
        for site, workload in (("ours", "commit"), ("theirs", "commit"), (ECHO, "ask"))
    ]
    assert found == [*expected, ("ours", "mix", 32), ("theirs", "mix", 32)]


def test_answers_are_framed_by_their_content_length() -> None:
    large = b"y" * 450_000
    answers = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 409 Conflict\r\nDate: now\r\nContent-Length:   3\r\nX: 1\r\n\r\nabc",
        b"HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 450000\r\n\r\n" + large,
    ]
    with answering(*answers) as target:
        assert ask(target, 4) == [(200, b"{}"), (409, b"abc"), (204, b""), (200, large)]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([], "closed a connection"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"], "does not say how long it is"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}more"], "more than it announced"),
    ],
)
def test_an_odd_answer_ends_the_run(answers: list[bytes], told: str) -> None:
    with answering(*answers) as target, pytest.raises(DriverError, match=told):
        ask(target, 1)


@ON_SQLITE
@pytest.mark.parametrize("workload", ["load", "commit", "contend", "create", "list", "whole-staged", "append"])
def test_an_unexpected_status_fails_loudly(
    workload: str, server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    target = Target([server.url], "wrong")
    with pytest.raises(UnexpectedAnswer) as failure:
        drive(workload, target, Options(clients=2, tables=2), SHORT, Watched())
    assert failure.value.status == 401
    assert drive_command([workload, "--url", server.url, "--token", "wrong", "--clients", "2"]) == 1
    told = capsys.readouterr()
    assert (told.out, "answered 401" in told.err) == ("", True)


def test_a_client_that_runs_out_of_work_stops_the_clock() -> None:
    with answering(*[b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"] * 3) as target:

        def step() -> Step:
            for _ in range(3):
                yield target.load("x")

        lap = Driver(target.addresses, 1).lap([step()], seconds=30)
    assert lap.seconds < 10


def together(steps: list[Step]) -> None:
    """Without a server: they ask nothing."""
    Driver([], len(steps)).complete(steps)


def test_what_clients_do_themselves_keeps_no_other_client_waiting() -> None:
    met = threading.Barrier(3)

    def meet() -> None:
        met.wait(20)

    def step() -> Step:
        assert (yield meet) == (0, b"")

    together([step() for _ in range(3)])
    assert not met.broken


def test_a_client_that_is_alone_does_its_own_work_without_a_thread() -> None:
    threads: list[threading.Thread] = []

    def step() -> Step:
        for _ in range(3):
            yield lambda: threads.append(threading.current_thread())

    together([step()])
    assert threads == [threading.current_thread()] * 3


@pytest.mark.parametrize("clients", [1, 3])
def test_work_that_fails_ends_the_run(clients: int, tmp_path: Path) -> None:
    taken = tmp_path / "7.json"
    taken.write_bytes(b"theirs")

    def step() -> Step:
        yield lambda: write_new(f"file://{taken}", b"ours", Counter())

    with pytest.raises(DriverError, match="with other bytes"):
        together([step() for _ in range(clients)])
    assert taken.read_bytes() == b"theirs"


def test_the_cost_of_a_process_is_that_of_its_children_too() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True); input()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    command = [sys.executable, "-c", parent]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        found = cost([process.pid])
        process.communicate(b"\n")
    assert found.cpu_seconds >= 0.3
    assert found.rss_bytes > 2_000_000


# --- large catalogs and the database limit


def test_a_filled_catalog_is_like_one_made_by_hand_and_takes_groups_of_commits(
    database_url: str, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path / "home", database_url).start()
    target = Target([server.url], server.token)
    drive("commit", target, Options(clients=2, tables=4), SHORT, Watched())
    assert server.stop() == 0
    fill(database_url, "commit_000", Filling("default", "filled", tables=12, commits_each=3))
    fill(database_url, "commit_000", Filling("other", "listed", tables=5, commits_each=0))
    written = database_limit.measure(database_url, group=16, seconds=0.2)
    assert written["count"] % 16 == 0 < written["count"]

    server.start()
    with server.http() as http:
        lake = Lake(http)
        filled = [lake.load(f"filled_{number:06}").json() for number in range(12)]
        made = [lake.load(f"commit_{number:03}").json() for number in range(4)]
        listed = [Lake(http, schema="other").load(f"listed_{number:06}").json() for number in range(5)]
    before = 12 * 3 + sum(version_on_disk(table) for table in made)
    latest = [table["latest-table-version"] for table in (*filled, *made, *listed)]
    assert sum(latest) == before + written["count"]
    for table in filled:
        version, metadata = table["latest-table-version"], table["metadata"]
        assert [commit["version"] for commit in table["commits"]] == [version]
        assert metadata["properties"]["io.unitycatalog.tableId"] == metadata["table-uuid"]
        assert metadata["location"].endswith(metadata["table-uuid"])
    assert server.process is not None
    watched = Watched(server=[server.process.pid])
    browsed = drive("browse", Target([server.url], server.token), Options(clients=2, tables=12), SHORT, watched)
    assert browsed["count"] > 0
    assert browsed["server_cpu_seconds"] > 0
    assert server.stop() == 0


def version_on_disk(loaded: dict[str, Any]) -> int:
    """The latest version that the driver published, before the database was written to directly."""
    return max(int(file.name[:20]) for file in log_of(loaded).glob("*.json"))


# --- numbers and pictures


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [
        ([5.0], 0.99, 5.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([4.0, 1.0, 2.0, 3.0], 0.5, 2.0),
        ([float(n) for n in range(1, 101)], 0.99, 99.0),
        ([float(n) for n in range(1, 102)], 0.99, 100.0),
    ],
)
def test_percentiles(values: list[float], share: float, found: float) -> None:
    assert percentile(values, share) == found


def test_only_what_was_done_while_the_clock_ran_is_counted() -> None:
    samples = Samples()
    samples.ended.extend([1.0, 2.0, 3.0])
    samples.took.extend([0.1, 0.2, 0.3])
    assert samples.until(2.0) == [0.1, 0.2]
    assert summarize(samples.until(2.0), seconds=2) == {
        "count": 2,
        "per_second": 1.0,
        "p50_ms": 100.0,
        "p99_ms": 200.0,
        "max_ms": 200.0,
    }
    assert summarize([], seconds=2)["p99_ms"] is None


def test_who_never_gets_it_shows_in_the_percentiles_but_not_in_the_rate() -> None:
    found = summarize([0.1] * 50, seconds=1, waiting=[0.05, 2.0])
    assert (found["count"], found["p50_ms"], found["p99_ms"]) == (50, 100.0, 2000.0)
    assert summarize([], seconds=1, waiting=[1.0])["p99_ms"] == 1000.0


def results_of(*found: tuple[str, cases.Case, list[float]]) -> Results:
    """Results with the given rates, one for each repeat."""
    machine = {"cpu": "Cpu", "cores": 2, "memory_gib": 4, "kernel": "6", "python": "3", "sqlite": "3", "sync_ms": 1}
    settings = {"seconds": 2, "warm_up_seconds": 1, "repeats": 3, "large_tables": 100, "large_commits_each": 10}
    results = Results(machine, settings)
    for site, case, rates in found:
        for rate in rates:
            repeat = {"per_second": rate, "count": 100, "p50_ms": 10.0, "p99_ms": 1e5 / rate, "server_cpu_seconds": 0.5}
            results.add(site, case, {**repeat, "done_by_client": [10, 20, 30]})
    return results


def test_targets_are_judged_by_medians_against_the_limits_of_the_same_run() -> None:
    results = results_of(
        (ECHO, cases.LIMIT, [10_000, 9_000, 20_000]),
        ("sqlite", cases.commit(), [3_000, 9_999, 1]),
        ("postgresql", cases.commit(), [1_000]),
        ("postgresql, 2 servers", cases.commit(), [1_100]),
        (large_of("sqlite"), cases.commit(), [2_400]),
        ("sqlite", cases.CONTEND, [700, 500, 600]),
    )
    results.starts["sqlite"] = {"first_seconds": 0.9, "again_seconds": 1.2, "idle_rss_bytes": 100_000_000}
    judged = {target.what: (pytest.approx(target.measured), target.verdict) for target in targets(results)}
    assert judged == {
        "commit, 32 clients, SQLite: share of the echo limit": (0.3, "reached"),
        "the same: the goal beyond": (0.3, "not reached"),
        "commit, 32 clients, SQLite: p99 over p50": (10 / 3, "reached"),
        "commit, 32 clients, PostgreSQL: share of the echo limit": (0.1, "not reached"),
        "commit: two servers on one PostgreSQL, against one": (1.1, "reached"),
        "32 contend, sqlite: wins": (600, "reached"),
        "32 contend, sqlite: p99 of a win": (1e5 / 600, "reached"),
        "32 contend, sqlite: wins of the unluckiest writer, as a share of what is fair": (0.5, "reached"),
        "commit, 32 clients, sqlite: the large catalog against the small one": (0.8, "not reached"),
        "start, sqlite: to the first 200": (1.2, "not reached"),
        "start, sqlite: idle memory": (100, "reached"),
    }


def whole_and_open() -> Results:
    site = publishing_of("sqlite")
    results = results_of(
        (site, cases.whole("staged", 1), [100]),
        (site, cases.whole("inline", 1), [160, 140, 120]),
        ("sqlite", cases.APPEND, [2_100]),
        (site, cases.APPEND_PUBLISHED, [700]),
    )
    for how, spent in {"staged": WHOLE_STAGED, "inline": {"commits": 2, "requests": 3}}.items():
        results.add(site, cases.whole(how, 1), {"per_second": 130, "count": 1, "p50_ms": 10.0, "spent": spent})
    return results


def test_inline_commits_are_judged_against_staged_ones_and_open_appends_by_their_rate() -> None:
    judged = {target.what: (pytest.approx(target.measured), target.verdict) for target in targets(whole_and_open())}
    assert judged == {
        "whole commit, 1 client, sqlite: inline against staged": (135 / 115, "not reached"),
        "open appends, one table, 32 clients, sqlite": (2_100, "reached"),
        "open appends, one table, the server publishes, 32 clients, sqlite": (700, "not reached"),
    }


def test_the_report_shows_what_a_commit_costs_its_writer() -> None:
    lines = markdown.report(whole_and_open(), "plot.svg").splitlines()
    assert "| sqlite, publishing | whole commit, staged | 1 | 2 | 4 | 10.0 |" in lines
    assert "| sqlite, publishing | whole commit, inline | 1.5 | 0 | 0 | 10.0 |" in lines
    assert "costs its writer" not in markdown.report(results_of(("sqlite", cases.commit(), [1.0])), "plot.svg")


@pytest.mark.parametrize(
    ("unit", "value", "shown"), [("%", 0.256, "26 %"), ("ms", 1234.5, "1,234 ms"), ("s", 0.8512, "0.85 s")]
)
def test_measured_values_are_shown_with_their_units(unit: str, value: float, shown: str) -> None:
    assert Wanted("what", value, 1, unit).shown(value) == shown


def test_the_report_shows_each_case_beside_its_limits() -> None:
    results = results_of(
        (ECHO, cases.LIMIT, [8_000]), ("sqlite", cases.commit(), [2_000]), ("sqlite limit", cases.commit(), [4_000])
    )
    lines = markdown.report(results, "plot.svg").splitlines()
    assert "| sqlite | commit | 32 | 2,000 | 10.0 | 50.0 | 25 % | 50 % | 5.00 |  |  |" in lines
    assert "| echo limit | 32 | 8,000 | 10.0 | 12.5 |  |" in lines
    assert "| commit, 32 clients, SQLite: share of the echo limit | 25 % | at least 25 % | reached |" in lines


def test_the_plot_puts_values_where_their_axes_say() -> None:
    series = plot.Series("commits & more", "sqlite", {1: 100.0, 128: 10_000.0}, {1: 1.0, 128: 10.0})
    drawn = ET.fromstring(plot.draw([series]))
    lines = [element for element in drawn.iter() if element.tag.endswith("polyline")]
    throughput, p99 = ([tuple(map(float, at.split(","))) for at in line.attrib["points"].split()] for line in lines)
    texts = [element for element in drawn.iter() if element.tag.endswith("text")]
    assert {"commits & more", "Throughput, per second", "p99, milliseconds"} <= {text.text for text in texts}
    ticks = {text.text: float(text.attrib["y"]) - 4 for text in texts if text.attrib.get("text-anchor") == "end"}
    assert [y for _, y in throughput] == [ticks["100"], ticks["10,000"]]
    assert [y for _, y in p99] == [ticks["1"], ticks["10"]]
    assert ticks["1,000"] == pytest.approx((ticks["100"] + ticks["10,000"]) / 2)
    assert p99[0][0] > throughput[1][0]
    assert all(0 < x < plot.WIDTH and 0 < y < plot.HEIGHT for x, y in (*throughput, *p99))


@pytest.mark.parametrize(
    ("values", "powers"), [([150.0, 9_000.0], (2, 4)), ([100.0, 1000.0], (2, 3)), ([5.0], (0, 1)), ([10.0], (1, 2))]
)
def test_axes_span_whole_decades(values: list[float], powers: tuple[int, int]) -> None:
    assert plot.decades(values) == powers


def test_a_plot_of_nothing_is_still_a_picture() -> None:
    assert ET.fromstring(plot.draw([])).tag.endswith("svg")


# --- the command


@ON_SQLITE
def test_another_server_is_measured_over_http_alone(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.cases.LIMITS", (cases.LIMIT,))
    arguments = ["--url", server.url, f"--token={server.token}", "--case", "contend", "--out", str(tmp_path)]
    assert benchmark([*arguments, "--seconds", "0.2", "--repeats", "2"]) == 0
    found = json.loads((tmp_path / "results.json").read_text())
    measured = {(result["site"], result["case"]): result for result in found["results"]}
    assert measured.keys() == {
        (server.url, "contend for one table, 32 clients"),
        ("driver", "nothing but an answer, 32 clients"),
    }
    assert all(len(result["repeats"]) == 2 for result in measured.values())
    assert measured["driver", "nothing but an answer, 32 clients"]["per_second"] > 1000
    assert server.url in (tmp_path / "report.md").read_text()
    assert ET.parse(tmp_path / "plot.svg").getroot().tag.endswith("svg")
    assert "[2/4]" in capsys.readouterr().err


@ON_SQLITE
def test_a_case_that_fails_is_told_in_one_line(
    server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--url", server.url, "--token=wrong", "--case", "mix", "--out", str(tmp_path / "out")]
    assert benchmark([*arguments, "--seconds", "0.1"]) == 1
    assert "answered 401" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_starting_alone_can_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.sites.RESTARTS", 1)
    assert benchmark(["--case", "start", "--database", "sqlite", "--out", str(tmp_path)]) == 0
    starts = json.loads((tmp_path / "results.json").read_text())["starts"]["sqlite"]
    assert 0 < starts["again_seconds"] < 60
    assert starts["idle_rss_bytes"] > 20_000_000
    assert "idle memory" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--seconds", "0"], ["--repeats", "-1"], ["--case", "everything"]])
def test_arguments_that_make_no_sense_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark(arguments)
    assert ended.value.code == 2
