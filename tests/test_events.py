"""Events: everybody who reads them sees each one once, in the same order, and none without its cause."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import DATABASES
from tests.lake import Lake, LakeTable, error_of, set_properties
from tests.servers import ServerProcess
from tidegate.http import streams
from tidegate.http.protocol import ABORT

EVENTS = "/api/tidegate/v1/events"
PATIENCE_SECONDS = 60


def read(http: httpx.Client, **query: Any) -> dict[str, Any]:
    answer = http.get(EVENTS, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def read_all(http: httpx.Client, after: int, **query: Any) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while True:
        page = read(http, after=after, **query)
        events += page["events"]
        after = page["next_after"]
        if after == page["last"]:
            return events


def last(http: httpx.Client) -> int:
    return read(http, kind="table.purged")["last"]


def told(events: list[dict[str, Any]], table: LakeTable) -> list[tuple[str, int | None]]:
    return [(event["kind"], event["version"]) for event in events if event["table_id"] == table.id]


# What is told


def test_events_tell_what_happened_to_a_table_in_order(http: httpx.Client, lake: Lake, unique: str) -> None:
    before = last(http)
    table = lake.new_table(unique)
    table.commit(1)
    table.publish(1)
    table.commit(2, {"action": "set-latest-backfilled-version", "latest-published-version": 1})
    lake.http.post(f"{lake.tables_url()}/{unique}/rename", json={"new-name": f"{unique}_new"}).raise_for_status()
    lake.http.delete(f"{lake.tables_url()}/{unique}_new").raise_for_status()
    events = read_all(http, before, table=table.id)
    assert told(events, table) == [
        ("table.created", None),
        ("table.committed", 1),
        ("table.committed", 2),
        ("table.published", 1),
        ("table.renamed", None),
        ("table.dropped", None),
    ]
    assert [event["sequence"] for event in events] == sorted({event["sequence"] for event in events})
    assert {event["by"] for event in events} == {"admin"}
    assert [event["table"] for event in events[-2:]] == [f"main.default.{unique}", f"main.default.{unique}_new"]


def test_a_refused_commit_leaves_no_event(http: httpx.Client, lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    table.commit(1)
    before = last(http)
    assert table.commit(1).status_code == 409
    assert table.commit(3).status_code == 409
    assert table.update(set_properties(delta__minReaderVersion="99")).status_code == 400
    assert told(read_all(http, before), table) == []


def test_a_commit_sent_twice_is_told_once(http: httpx.Client, lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    before = last(http)
    commit = {"action": "add-commit", "commit": table.stage_commit(1)}
    assert [table.update(commit).status_code for _ in range(3)] == [200, 200, 200]
    assert told(read_all(http, before), table) == [("table.committed", 1)]


ADDED = [{"add": {"path": f"{n}.parquet", "dataChange": True, "stats": '{"numRecords": 7}'}} for n in range(3)]


@pytest.mark.parametrize(
    ("info", "actions", "known"),
    [
        (
            {"operation": "WRITE", "operationMetrics": {"numOutputRows": "12"}, "engineInfo": "hand"},
            [*ADDED, {"remove": {"path": "old.parquet"}}],
            {"operation": "WRITE", "rows": 12, "files_added": 3, "files_removed": 1, "engine": "hand"},
        ),
        ({"operation": "MERGE"}, ADDED, {"operation": "MERGE", "rows": 21, "files_added": 3, "files_removed": 0}),
        (
            {"operation": 5, "operationMetrics": []},
            [{"add": {"path": "x", "stats": "odd"}}],
            {"files_added": 1, "files_removed": 0},
        ),
    ],
    ids=["metrics", "statistics", "nonsense"],
)
def test_a_committed_event_tells_what_the_commit_did(
    http: httpx.Client, lake: Lake, unique: str, info: dict[str, Any], actions: list[Any], known: dict[str, Any]
) -> None:
    table = lake.new_table(unique)
    before = last(http)
    table.timestamp += 1
    lines = [{"commitInfo": {"inCommitTimestamp": table.timestamp, "txnId": "t", **info}}, *actions]
    content = "\n".join(map(json.dumps, lines)).encode()
    commit = table.stage_commit(1, timestamp=table.timestamp, content=content)
    assert table.update({"action": "add-commit", "commit": commit}).status_code == 200
    (event,) = read(http, after=before, table=table.id)["events"]
    sizes = {"timestamp": commit["timestamp"], "file_name": commit["file-name"], "file_size": len(content)}
    assert event["data"] == {**known, "txn_id": "t", **sizes}


def test_a_commit_whose_file_is_gone_is_told_without_what_only_the_file_knows(
    http: httpx.Client, lake: Lake, unique: str
) -> None:
    table = lake.new_table(unique)
    before = last(http)
    table.commit(1)
    (table.log / "_staged_commits" / table.staged[1]).unlink()
    (event,) = read(http, after=before, table=table.id)["events"]
    assert set(event["data"]) == {"timestamp", "file_name", "file_size"}


# What is asked for


def test_a_filter_passes_over_events_and_next_after_counts_them(http: httpx.Client, lake: Lake, unique: str) -> None:
    before = last(http)
    tables = [lake.new_table(f"{unique}_{letter}") for letter in "ab"]
    for table in tables:
        for version in (1, 2):
            table.commit(version)
    name = f"main.default.{unique}_b"
    by_name = read(http, after=before, table=name, kind="table.committed")
    assert told(by_name["events"], tables[1]) == [("table.committed", 1), ("table.committed", 2)]
    assert len(by_name["events"]) == 2
    assert by_name["next_after"] == by_name["last"]
    nothing = read(http, after=before, table=name, kind="table.dropped,table.purged")
    assert (nothing["events"], nothing["next_after"]) == ([], nothing["last"])
    of_schema = read_all(http, before, table="main.default.*", kind="table.created")
    assert [event["table_id"] for event in of_schema] == [table.id for table in tables]
    assert read_all(http, before, table="main.def_ult.*") == []


def test_pages_follow_each_other_without_a_gap(http: httpx.Client, lake: Lake, unique: str) -> None:
    before = last(http)
    table = lake.new_table(unique)
    for version in range(1, 8):
        table.commit(version)
    whole = read_all(http, before)
    assert read_all(http, before, max_results=3) == whole
    assert told(whole, table) == [("table.created", None), *(("table.committed", version) for version in range(1, 8))]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"after": 10**12}, "no event"),
        ({"after": -1}, "after"),
        ({"kind": "table.exploded"}, "table.committed"),
        ({"table": "one.two"}, "catalog.schema.table"),
        ({"table": "nothing"}, "UUID"),
        ({"table": "a.b*"}, "catalog.schema.table"),
        ({"table": "a.*"}, "catalog.schema"),
        ({"table": "a b.c.*"}, "catalog"),
        ({"wait_seconds": 61}, "60"),
        ({"max_results": -1}, "max_results"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_one_sentence(
    http: httpx.Client, query: dict[str, Any], says: str
) -> None:
    for path in (EVENTS, f"{EVENTS}/stream"):
        asked = {name: value for name, value in query.items() if path == EVENTS or name in {"after", "kind", "table"}}
        if asked:
            refused = http.get(path, params=asked)
            assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")
            assert says in refused.json()["message"]


@pytest.mark.parametrize("header", ["x", "-1", "1e3", ""])
def test_a_last_event_id_that_is_no_number_is_refused(http: httpx.Client, header: str) -> None:
    refused = http.get(f"{EVENTS}/stream", headers={"Last-Event-ID": header})
    assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")


# Waiting


def test_who_waits_is_told_at_once_when_something_happens(http: httpx.Client, lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(read, http, after=last(http), table=table.id, wait_seconds=60)
        started = time.monotonic()
        table.commit(1)
        assert told(waiting.result(timeout=PATIENCE_SECONDS)["events"], table) == [("table.committed", 1)]
        assert time.monotonic() - started < 10


def test_who_waits_for_nothing_is_told_so_when_the_time_is_over(http: httpx.Client) -> None:
    before, started = last(http), time.monotonic()
    answer = read(http, after=before, kind="table.purged", wait_seconds=1)
    assert time.monotonic() - started >= 1
    assert (answer["events"], answer["next_after"]) == ([], answer["last"])


@dataclass
class Stream:
    """A reader of server-sent events that parses them by the book."""

    http: httpx.Client
    query: dict[str, Any]
    last_id: str | None = None
    seen: list[dict[str, Any]] = field(default_factory=list)
    connections: int = 0

    def read(self, enough: int, *, hang_up_after: int | None = None) -> None:
        """Until `enough` were seen; hangs up every so often, and goes on after the last id."""
        while len(self.seen) < enough:
            self.connections += 1
            headers = {} if self.last_id is None else {"Last-Event-ID": self.last_id}
            with self.http.stream("GET", f"{EVENTS}/stream", params=self.query, headers=headers) as answer:
                assert answer.status_code == 200
                assert answer.headers["content-type"] == "text/event-stream"
                until = min(enough, len(self.seen) + (hang_up_after or enough))
                for event in self._events(answer.iter_lines()):
                    self.seen.append(event)
                    if len(self.seen) >= until:
                        break

    def _events(self, lines: Iterator[str]) -> Iterator[dict[str, Any]]:
        data, kind = "", ""
        for line in lines:
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "event":
                kind = value
            elif name == "data":
                data += value
            elif line == "" and data:
                event = json.loads(data)
                assert event["kind"] == kind
                assert str(event["sequence"]) == self.last_id
                yield event
                data, kind = "", ""


def test_a_stream_goes_on_where_the_last_one_was_cut(
    server: ServerProcess, http: httpx.Client, lake: Lake, unique: str
) -> None:
    before = last(http)
    table = lake.new_table(unique)
    with server.http() as own, ThreadPoolExecutor(1) as pool:
        stream = Stream(own, {"after": before, "table": table.id})
        reading = pool.submit(stream.read, 21, hang_up_after=4)
        for version in range(1, 21):
            table.commit(version)
        reading.result(timeout=PATIENCE_SECONDS)
    assert told(stream.seen, table) == [("table.created", None), *(("table.committed", v) for v in range(1, 21))]
    assert stream.connections == 6


def test_a_stream_ends_after_the_time_that_was_asked_for(http: httpx.Client) -> None:
    with http.stream("GET", f"{EVENTS}/stream", params={"after": last(http), "seconds_max": 1}) as answer:
        text = "".join(answer.iter_text())
    assert text.startswith("retry: ")
    assert "data:" not in text


# Everybody sees the same


@pytest.mark.parametrize("database", DATABASES)
def test_with_many_writers_every_reader_sees_each_commit_once_and_in_order(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """On PostgreSQL with two servers, whose transactions end in another order than they began."""
    url = request.getfixturevalue("postgres").create_database() if database == "postgresql" else None
    shared = {"publishing": "off", "storage_root": f"file://{tmp_path}/tables"}
    servers = [ServerProcess(tmp_path / "home", url, settings=shared).start()]
    if url is not None:
        servers.append(ServerProcess(tmp_path / "home", url, settings=shared).start())
    writers, commits = 6, 40
    enough = writers * (commits + 1)
    try:
        with ThreadPoolExecutor(writers + 4) as pool:
            polled = [pool.submit(poll, server, enough, {}) for server in servers]
            paged = pool.submit(poll, servers[-1], enough, {"max_results": 2})
            clients = [server.http() for server in servers]
            streams = [Stream(client, {"after": 0}) for client in clients]
            streamed = [pool.submit(stream.read, enough, hang_up_after=37) for stream in streams]
            tables = [
                table.result(timeout=PATIENCE_SECONDS)
                for table in [
                    pool.submit(write, servers[number % len(servers)], f"w{number}", commits)
                    for number in range(writers)
                ]
            ]
            seen = [reading.result(timeout=PATIENCE_SECONDS) for reading in [*polled, paged]]
            for reading in streamed:
                reading.result(timeout=PATIENCE_SECONDS)
            seen += [stream.seen for stream in streams]
            for client in clients:
                client.close()
        for events in seen:
            assert [event["sequence"] for event in events] == list(range(1, enough + 1))
            assert [key(event) for event in events] == [key(event) for event in seen[0]]
            for table in tables:
                expected = [("table.created", None), *(("table.committed", v) for v in range(1, commits + 1))]
                assert told(events, table) == expected
    finally:
        assert [server.stop() for server in servers] == [0] * len(servers)


def key(event: dict[str, Any]) -> tuple[Any, ...]:
    return event["sequence"], event["kind"], event["table_id"], event["version"]


def write(server: ServerProcess, name: str, commits: int) -> LakeTable:
    with server.lake() as lake:
        table = lake.new_table(name)
        for version in range(1, commits + 1):
            assert table.commit(version).status_code == 200
        return table


def poll(server: ServerProcess, enough: int, query: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    after, deadline = 0, time.monotonic() + PATIENCE_SECONDS
    with server.http() as http:
        while len(events) < enough and time.monotonic() < deadline:
            page = read(http, after=after, wait_seconds=5, **query)
            events += page["events"]
            after = page["next_after"]
    return events


# Bounds and ends


@pytest.fixture
def small(tmp_path: Path) -> Iterator[ServerProcess]:
    settings = {"event_readers_max": "3", "requests_in_flight_max": "2", "publishing": "off"}
    server = ServerProcess(tmp_path / "home", settings=settings).start()
    yield server
    if server.process is not None and server.process.poll() is None:
        assert server.stop() == 0


def begin_to_wait(server: ServerProcess, path: str, **query: Any) -> tuple[httpx.Client, Iterator[str]]:
    """A stream whose first line has come: the server has it."""
    client = server.http()
    request = client.build_request("GET", path, params=query)
    lines = client.send(request, stream=True).iter_lines()
    assert next(lines)
    return client, lines


def test_those_who_wait_keep_nobody_from_committing_and_are_bounded_themselves(small: ServerProcess) -> None:
    waiting = [begin_to_wait(small, f"{EVENTS}/stream") for _ in range(3)]
    with small.lake() as lake:
        refused = lake.http.get(EVENTS)
        assert error_of(refused) == (429, "TOO_MANY_REQUESTS")
        assert refused.headers["retry-after"] == "1"
        table = lake.new_table("t")
        assert [table.commit(version).status_code for version in (1, 2, 3)] == [200] * 3
        for client, _ in waiting:
            client.close()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while lake.http.get(EVENTS).status_code == 429:
            assert time.monotonic() < deadline, "readers that went away are still counted"
        assert len(read(lake.http)["events"]) == 4


def test_a_server_that_stops_ends_its_streams_and_answers_those_who_wait(small: ServerProcess) -> None:
    client, lines = begin_to_wait(small, f"{EVENTS}/stream")
    other, _ = begin_to_wait(small, f"{EVENTS}/stream")
    answers: list[httpx.Response] = []
    with small.http() as http, small.http() as asking:

        def poll() -> None:
            # Whoever asks whether a place is left takes it for a moment.
            while (answer := http.get(EVENTS, params={"wait_seconds": 60})).status_code == 429:
                pass
            answers.append(answer)

        poller = threading.Thread(target=poll)
        poller.start()
        while asking.get(EVENTS).status_code != 429:  # until the poller has taken the last place
            assert poller.is_alive()
        started = time.monotonic()
        assert small.stop() == 0
        poller.join(timeout=PATIENCE_SECONDS)
    assert time.monotonic() - started < 10
    assert [answer.status_code for answer in answers] == [200]
    for _ in lines:  # to its end, which is a clean one: httpx raises for any other
        pass
    client.close()
    other.close()
    assert "Traceback" not in "".join(small.log)


def test_a_reader_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket is full when `send` does not return."""
    monkeypatch.setattr(streams, "STALLED_SECONDS_MAX", 0.05)
    made: list[int] = []
    cut_off: list[bool] = []

    async def chunks() -> AsyncIterator[bytes]:
        for number in range(1000):
            made.append(number)
            yield b"chunk"

    async def send(message: dict[str, Any]) -> None:
        if len(made) > 2:
            await asyncio.Event().wait()

    scope = {"path": "/", "extensions": {ABORT: lambda: cut_off.append(True)}}
    asyncio.run(streams.send_stream(scope, send, chunks(), content_type=b"text/event-stream", id=b"1"))
    assert (len(made), cut_off) == (3, [True])


def test_events_are_not_for_those_without_a_token(server: ServerProcess) -> None:
    for path in (EVENTS, f"{EVENTS}/stream"):
        assert error_of(httpx.get(f"{server.url}{path}")) == (401, "UNAUTHENTICATED")
