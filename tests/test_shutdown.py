"""A server that is asked to stop, and a server whose database goes away and comes back.

Asked to stop, it takes no new connections, answers every request it has accepted, and ends with exit code 0. That a
request was accepted is seen in two ways: it asked for `100 Continue` and got it; or it left a trace in the catalog.

Without its database the server answers with errors that say so, soon, and needs no restart when the database is back.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.lake import UNITY, Lake, LakeTable, add_commit, error_of
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tidegate.db.database import GROUP_SECONDS_MAX

WRITERS = 6
STEPS_MAX = 100_000
ANSWER_SECONDS_MAX = GROUP_SECONDS_MAX + 10
"""Within this every request is answered, whatever the database does: also when a process of a dead PostgreSQL lives on
and says nothing. The rest is for a busy machine."""

UNKNOWN = (500, "CommitStateUnknownException")
UNAVAILABLE = (503, "InternalServerErrorException")


@pytest.fixture
def own_server(database_url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that the test may stop."""
    server = ServerProcess(tmp_path / "home", database_url).start()
    yield server
    if server.process is not None and server.process.poll() is None:
        server.kill()


@dataclass
class Writer:
    """Commits version after version to a table of its own."""

    table: LakeTable
    acknowledged: dict[int, str] = field(default_factory=dict)
    unanswered: str | None = None
    """The staged file whose request got no answer."""

    def run(self, server: ServerProcess, under_way: threading.Semaphore) -> None:
        """Until the server has gone away."""
        with server.http(verify=False) as http, contextlib.suppress(httpx.TransportError):
            for version in range(1, STEPS_MAX):
                commit = self.table.stage_commit(version)
                self.unanswered = commit["file-name"]
                answer = Lake(http).update(self.table.name, self.table.request(add_commit(commit)))
                assert answer.status_code == 200, answer.text
                self.acknowledged[version], self.unanswered = commit["file-name"], None
                under_way.release()
            raise AssertionError("the server never stopped")

    def check(self, lake: Lake) -> None:
        """What was answered happened; what was not answered was never accepted, so it did not happen."""
        loaded = LakeTable(lake, self.table.name, self.table.id, self.table.location).load()
        listed = {c["version"]: c["file-name"] for c in loaded["commits"]}
        assert self.unanswered not in listed.values(), "a request was accepted and not answered"
        assert listed == self.acknowledged
        assert loaded["latest-table-version"] == len(self.acknowledged)


def wait_for(under_way: threading.Semaphore, count: int) -> None:
    for _ in range(count):
        assert under_way.acquire(timeout=60)


@pytest.mark.parametrize("asked_by", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_under_load_it_answers_what_it_accepted_and_ends_well(
    own_server: ServerProcess, asked_by: signal.Signals
) -> None:
    with own_server.lake() as lake:
        writers = [Writer(lake.new_table(f"t{number}")) for number in range(WRITERS)]
    under_way = threading.Semaphore(0)
    with ThreadPoolExecutor(WRITERS) as pool:
        ends = [pool.submit(writer.run, own_server, under_way) for writer in writers]
        wait_for(under_way, 10 * WRITERS)
        assert own_server.process is not None
        own_server.process.send_signal(asked_by)
        assert own_server.process.wait(timeout=60) == 0, "".join(own_server.log[-50:])
        for end in ends:
            end.result(timeout=60)
    own_server.start()
    with own_server.lake() as lake:
        for writer in writers:
            writer.check(lake)
    assert own_server.stop() == 0
    assert "Traceback" not in "".join(own_server.log)


@dataclass
class Upload:
    """A request that was accepted, head first: the body is still to come."""

    connection: socket.socket
    body: bytes

    @staticmethod
    def begin(server: ServerProcess, path: str, body: dict[str, Any]) -> Upload:
        address = urlsplit(server.url)
        encoded = json.dumps(body).encode()
        connection = socket.create_connection((address.hostname, address.port), timeout=60)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {server.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(encoded)}\r\nExpect: 100-continue\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        return Upload(connection, encoded)

    def send(self, start: int, end: int) -> None:
        self.connection.sendall(self.body[start:end])

    def answer(self) -> tuple[int, dict[str, Any]]:
        answer = b""
        with self.connection:
            while piece := self.connection.recv(65_536):
                answer += piece
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head, "the connection was closed without an answer"
        return int(head.split()[1]), json.loads(body)


def send_slowly(uploads: list[Upload]) -> None:
    """In pieces over a second: a server that stops must wait for slow clients too."""
    pieces = 10
    size = max(len(upload.body) for upload in uploads) // pieces + 1
    for piece in range(pieces):
        for upload in uploads:
            upload.send(piece * size, (piece + 1) * size)
        time.sleep(0.1)


def wait_until_closed(server: ServerProcess) -> None:
    """Until new connections are refused: the server has begun to stop."""
    address = urlsplit(server.url)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection((address.hostname, address.port), timeout=5).close()
        except ConnectionError:
            return
        time.sleep(0.01)
    raise AssertionError("a server that is asked to stop still takes connections")


def test_requests_accepted_before_the_stop_are_answered_after_it(own_server: ServerProcess) -> None:
    assert own_server.process is not None
    with own_server.lake() as lake:
        writers = [Writer(lake.new_table(f"t{number}")) for number in range(WRITERS)]
        uploads: list[Upload] = []
        for writer in writers:
            commit = writer.table.stage_commit(1)
            writer.acknowledged[1] = commit["file-name"]
            path = f"{lake.tables_url()}/{writer.table.name}"
            uploads.append(Upload.begin(own_server, path, writer.table.request(add_commit(commit))))
    own_server.process.send_signal(signal.SIGTERM)
    wait_until_closed(own_server)
    send_slowly(uploads)
    for upload in uploads:
        status, answer = upload.answer()
        assert (status, answer.get("latest-table-version")) == (200, 1)
    assert own_server.process.wait(timeout=60) == 0, "".join(own_server.log[-50:])
    own_server.start()
    with own_server.lake() as lake:
        for writer in writers:
            writer.check(lake)


def test_a_client_that_never_finishes_its_request_does_not_keep_the_server_from_stopping(
    own_server: ServerProcess,
) -> None:
    own_server.stop()
    own_server.settings["shutdown_seconds_max"] = "1"
    own_server.start()
    assert own_server.process is not None
    with own_server.lake() as lake:
        table = lake.new_table("t")
        request = table.request(add_commit(table.stage_commit(1)))
        upload = Upload.begin(own_server, f"{lake.tables_url()}/t", request)
    with upload.connection:
        own_server.process.send_signal(signal.SIGTERM)
        assert own_server.process.wait(timeout=30) == 0, "".join(own_server.log[-50:])
    own_server.start()
    with own_server.lake() as lake:
        assert lake.load("t").json()["latest-table-version"] == 0


# ---- the database goes away ----


@pytest.fixture(scope="module")
def mortal_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of its own: the others must not notice."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def on_mortal_postgres(mortal_postgres: PostgresServer, tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "home", mortal_postgres.create_database()).start()
    yield server
    if server.process is not None and server.process.poll() is None:
        server.kill()


@dataclass
class Client:
    """Sends the same request until it succeeds, as one does after an error; then the next. Never waits long."""

    lake: Lake
    attempt: Callable[[Lake, int], httpx.Response]
    errors: set[tuple[int, str]] = field(default_factory=set)
    successes: int = 0
    slowest_s: float = 0
    failing: threading.Event = field(default_factory=threading.Event)

    def run(self, stop: threading.Event) -> None:
        for _ in range(STEPS_MAX):
            if stop.is_set():
                return
            begun = time.monotonic()
            answer = self.attempt(self.lake, self.successes + 1)
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
            if answer.status_code < 400:
                self.successes += 1
                self.failing.clear()
            else:
                self.errors.add(error_of(answer))
                self.failing.set()
        raise AssertionError("never told to stop")


@dataclass
class Resender:
    """Proposes version after version; a version that was not acknowledged is sent again unchanged."""

    table: LakeTable
    requests: dict[int, dict[str, Any]] = field(default_factory=dict)

    def attempt(self, lake: Lake, version: int) -> httpx.Response:
        if version not in self.requests:
            commit = self.table.stage_commit(version)
            self.requests[version] = self.table.request(add_commit(commit))
        return lake.update(self.table.name, self.requests[version])

    def check(self, lake: Lake, acknowledged: int) -> None:
        """Every acknowledged version under its file, and at most one more, which nobody was told of."""
        loaded = LakeTable(lake, self.table.name, self.table.id, self.table.location).load()
        names = {v: request["updates"][0]["commit"]["file-name"] for v, request in self.requests.items()}
        listed = {c["version"]: c["file-name"] for c in loaded["commits"]}
        assert len(listed) in (acknowledged, acknowledged + 1)
        assert listed == {version: names[version] for version in range(1, len(listed) + 1)}


def until(condition: Callable[[], bool], ends: list[Future[None]], what: str) -> None:
    """Polls, because several threads have to get there. A thread that failed ends the wait at once."""
    deadline = time.monotonic() + 60
    while not condition():
        for end in ends:
            if end.done():
                end.result()
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_postgresql_killed_under_load_is_an_error_meanwhile_and_no_loss_afterwards(
    on_mortal_postgres: ServerProcess, mortal_postgres: PostgresServer
) -> None:
    stop = threading.Event()
    with contextlib.ExitStack() as stack:
        lakes = [Lake(stack.enter_context(on_mortal_postgres.http(verify=False))) for _ in range(WRITERS + 2)]
        resenders = [Resender(lakes[0].new_table(f"t{number}")) for number in range(WRITERS)]
        writers = [Client(lake, each.attempt) for lake, each in zip(lakes[:-2], resenders, strict=True)]
        reader = Client(lakes[-2], lambda lake, _: lake.load("t0"))
        stager = Client(lakes[-1], lambda lake, number: lake.stage(f"staged{number}"))
        clients = [*writers, reader, stager]
        pool = stack.enter_context(ThreadPoolExecutor(len(clients)))
        stack.callback(stop.set)
        ends = [pool.submit(client.run, stop) for client in clients]
        for _ in range(3):
            outage(clients, ends, mortal_postgres)
        stop.set()
        for end in ends:
            end.result(timeout=60)
        for client, resender in zip(writers, resenders, strict=True):
            resender.check(lakes[0], client.successes)
    assert set().union(*(writer.errors for writer in writers)) == {UNKNOWN}
    assert reader.errors == stager.errors == {UNAVAILABLE}
    assert max(client.slowest_s for client in clients) < ANSWER_SECONDS_MAX
    assert on_mortal_postgres.stop() == 0


def outage(clients: list[Client], ends: list[Future[None]], postgres: PostgresServer) -> None:
    """Killed under load, and started again once every client has noticed; over when every client is served again."""
    before = [client.successes for client in clients]
    until(lambda: all(c.successes > b + 5 for c, b in zip(clients, before, strict=True)), ends, "there is no load")
    postgres.kill()
    until(lambda: all(client.failing.is_set() for client in clients), ends, "a client noticed nothing")
    postgres.start()
    during = [client.successes for client in clients]
    until(lambda: all(c.successes > d for c, d in zip(clients, during, strict=True)), ends, "it does not recover")


def test_without_its_database_the_server_says_so_and_stops_when_asked(
    on_mortal_postgres: ServerProcess, mortal_postgres: PostgresServer
) -> None:
    with on_mortal_postgres.lake() as lake:
        table = lake.new_table("t")
        mortal_postgres.kill()
        try:
            assert error_of(table.commit(1)) == UNKNOWN
            assert error_of(lake.load("t")) == UNAVAILABLE
            assert error_of(lake.stage("u")) == UNAVAILABLE
            listed = lake.http.get(f"{UNITY}/catalogs")
            assert error_of(listed) == (503, "TEMPORARILY_UNAVAILABLE")
            assert "postgres" not in listed.text.lower()
            assert on_mortal_postgres.stop() == 0
        finally:
            mortal_postgres.start()
