"""Traces: a collector that speaks OTLP gets spans of requests, transactions and jobs, and never holds up a request."""

from __future__ import annotations

import gzip
import http.server
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.conftest import DATABASES
from tests.lake import Lake
from tests.servers import ServerProcess
from tests.test_publishing import wait_until
from tidegate import __version__

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"


class Span:
    """A span as the collector got it."""

    def __init__(self, span: Any, resource: dict[str, Any]) -> None:
        self.name: str = span.name
        self.trace = span.trace_id.hex()
        self.id = span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.links = [link.span_id.hex() for link in span.links]
        self.failed = span.status.code == 2
        self.seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
        self.about = attributes(span.attributes)
        self.resource = resource

    def __getitem__(self, name: str) -> Any:
        return self.about.get(f"tidegate.{name}")


def attributes(given: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in given}


class Collector:
    """Takes OTLP over HTTP. `hangs` until it is told to go on."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.paths: set[str] = set()
        self.hangs = threading.Event()
        self.url = ""

    def take(self, path: str, body: bytes, encoding: str | None) -> None:
        self.paths.add(path)
        request = ExportTraceServiceRequest.FromString(gzip.decompress(body) if encoding == "gzip" else body)
        for told in request.resource_spans:
            resource = attributes(told.resource.attributes)
            self.spans += [Span(span, resource) for scope in told.scope_spans for span in scope.spans]

    def named(self, name: str, **about: Any) -> list[Span]:
        return [s for s in list(self.spans) if s.name == name and all(s[key] == value for key, value in about.items())]

    def one(self, name: str, **about: Any) -> Span:
        wait_until(lambda: bool(self.named(name, **about)), f"a span {name} with {about}")
        [span] = self.named(name, **about)
        return span


@contextmanager
def collecting(act: Callable[[Collector], None] = lambda collector: None) -> Iterator[Collector]:
    collector = Collector()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            act(collector)
            collector.take(self.path, body, self.headers["Content-Encoding"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        collector.hangs.set()
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="module", params=DATABASES)
def traced(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> Iterator[ServerProcess]:
    database = request.getfixturevalue("postgres").create_database() if request.param == "postgresql" else None
    settings = {"otel_endpoint": collector.url, "publish_after_ms": "20"}
    process = ServerProcess(tmp_path_factory.mktemp("home"), database, settings=settings).start()
    yield process
    assert process.stop() == 0, "".join(process.log[-50:])


@pytest.fixture
def lake(traced: ServerProcess) -> Iterator[Lake]:
    with traced.lake() as lake:
        yield lake


def test_a_commit_goes_on_with_the_callers_trace_and_is_linked_from_its_group(
    collector: Collector, lake: Lake, unique: str
) -> None:
    table = lake.new_table(unique)
    lake.http.headers["traceparent"] = f"00-{TRACE}-{CALLER}-01"
    answer = table.commit(1)
    span = collector.one("updateTable", table=f"main.default.{unique}")
    assert (span.trace, span.parent) == (TRACE, CALLER)
    assert (span["principal"], span["version"], span["outcome"]) == ("admin", 1, "ratified")
    assert span["request_id"] == answer.headers["x-request-id"]
    assert span.about["http.response.status_code"] == 200
    assert span.about["http.route"].endswith("/tables/{table}")
    assert span.resource["service.name"] == "tidegate"
    assert span.resource["service.version"] == __version__
    # A server that does not know the table yet finds out in a group of its own that the commit is to be read first.

    def groups() -> list[Span]:
        return [group for group in collector.named("ratify group") if span.id in group.links and group["ratified"]]

    wait_until(lambda: groups() != [], "the group is told")
    [group] = groups()
    assert group["ratified"] == group["group_size"] == 1
    assert 0 < group.seconds <= span.seconds
    assert collector.paths == {"/v1/traces"}


def test_a_request_without_a_trace_begins_one_and_its_transaction_is_a_part_of_it(
    collector: Collector, lake: Lake, unique: str
) -> None:
    lake.new_table(unique)
    request_id = last_id(collector, lake, "createTable")
    created = collector.one("createTable", table=f"main.default.{unique}", request_id=request_id)
    assert created.parent == ""
    wait_until(lambda: any(s.parent == created.id for s in collector.named("transaction")), "its transaction is told")
    [transaction] = [span for span in collector.named("transaction") if span.parent == created.id]
    assert transaction.trace == created.trace


def last_id(collector: Collector, lake: Lake, name: str) -> str:
    """Of the newest span of this name."""
    wait_until_all_is_told(collector, lake)
    return collector.named(name)[-1]["request_id"]


def wait_until_all_is_told(collector: Collector, lake: Lake) -> None:
    """Spans are sent in the order in which they end."""
    id = lake.http.get("/openapi.json").headers["x-request-id"]
    wait_until(lambda: any(span["request_id"] == id for span in list(collector.spans)), "all is told")


def test_a_refusal_is_told_by_its_kind_and_only_a_failure_is_an_error(
    collector: Collector, lake: Lake, unique: str
) -> None:
    table = lake.new_table(unique)
    table.commit(1)
    assert table.commit(1).status_code == 409
    span = collector.one("updateTable", table=f"main.default.{unique}", outcome="CommitVersionConflict")
    assert (span["version"], span.failed) == (1, False)


def test_publishing_and_jobs_have_spans(collector: Collector, lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    table.commit(1)
    span = collector.one("publish", table=f"main.default.{unique}", outcome="done")
    assert (span["version"], span["table_id"]) == (1, table.id)
    wait_until(lambda: bool(collector.named("job", job="heartbeat")), "the heartbeat is told")
    heartbeat = collector.named("job", job="heartbeat")[0]
    assert (heartbeat.parent, heartbeat.failed) == ("", False)


def test_a_trace_that_its_caller_does_not_keep_is_not_told(collector: Collector, lake: Lake, unique: str) -> None:
    id = lake.http.get("/metrics", headers={"traceparent": f"00-{TRACE}-{CALLER}-00"}).headers["x-request-id"]
    wait_until_all_is_told(collector, lake)
    assert not collector.named("metrics", request_id=id)


@pytest.mark.parametrize("sent", ["nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "\xff" * 300])
def test_a_trace_that_cannot_be_read_begins_a_new_one(collector: Collector, lake: Lake, sent: str) -> None:
    answer = lake.http.get("/metrics", headers={"traceparent": sent.encode("latin-1")})  # type: ignore[dict-item]
    assert answer.status_code == 200
    assert collector.one("metrics", request_id=answer.headers["x-request-id"]).parent == ""


# When something is wrong


def hang(collector: Collector) -> None:
    collector.hangs.wait(60)


def test_a_collector_that_hangs_holds_up_neither_a_request_nor_a_stop(tmp_path: Path) -> None:
    with collecting(hang) as collector:
        server = ServerProcess(tmp_path / "home", settings={"otel_endpoint": collector.url}).start()
        with server.lake() as lake:
            table = lake.new_table("t")
            started = time.monotonic()
            for version in range(1, 51):
                assert table.commit(version).status_code == 200
            # More than the queue holds.
            for _ in range(5000):
                assert lake.http.get("/nowhere").status_code == 404
        assert time.monotonic() - started < 60
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 20


def test_without_a_collector_the_server_serves_as_ever(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home", settings={"otel_endpoint": "http://127.0.0.1:9"}).start()
    with server.lake() as lake:
        assert lake.new_table("t").commit(1).status_code == 200
    assert server.stop() == 0


def test_missing_packages_are_one_clear_line(tmp_path: Path) -> None:
    without = "import sys; sys.modules['opentelemetry'] = None; from tidegate.cli.main import app; app()"
    asked = ["serve", "--home", str(tmp_path / "home"), "--port", "0"]
    ended = subprocess.run(
        [sys.executable, "-c", without, *asked],
        env={**os.environ, "TIDEGATE_OTEL_ENDPOINT": "http://127.0.0.1:4318"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("tidegate: The setting otel_endpoint needs packages that are not installed")
    assert "tidegate[otel]" in ended.stderr
    assert not (tmp_path / "home").exists()


def test_nothing_of_it_is_loaded_while_it_is_off() -> None:
    look = "import sys, tidegate.compose; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    ended = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.strip() == "[]"


def test_the_settings_of_the_packages_hold_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "catalog-of-ours")
    with collecting() as collector:
        server = ServerProcess(tmp_path / "home", settings={"otel_endpoint": f"{collector.url}/v1/traces"}).start()
        assert httpx.get(f"{server.url}/metrics").status_code == 401
        assert server.stop() == 0
        wait_until(lambda: bool(collector.spans), "spans are sent with the stop")
        assert {span.resource["service.name"] for span in collector.spans} == {"catalog-of-ours"}
        assert collector.paths == {"/v1/traces"}
