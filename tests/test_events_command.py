"""`tidegate events` and `tidegate subscriptions`: what a person sees, and what a script gets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import Lake
from tests.receivers import Receiver
from tests.servers import ServerProcess
from tests.test_cli import tidegate
from tidegate.cli import events
from tidegate.cli.server import Target
from tidegate.domain.errors import InvalidRequest


def ask(server: ServerProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    return tidegate(*arguments, "--uri", server.url, TIDEGATE_TOKEN=server.token)


def last(lake: Lake) -> str:
    return str(lake.http.get("/api/tidegate/v1/events", params={"kind": "table.purged"}).json()["last"])


def test_events_are_shown_one_a_line_in_order(server: ServerProcess, lake: Lake, unique: str) -> None:
    before = last(lake)
    table = lake.new_table(unique)
    table.commit(1)
    shown = ask(server, "events", "--after", before, "--table", f"main.default.{unique}")
    assert shown.returncode == 0, shown.stderr
    created, committed = shown.stdout.splitlines()
    assert f"table.created           main.default.{unique}  by admin" in created
    assert f"main.default.{unique}  version 1: WRITE, by admin" in committed
    as_json = ask(server, "events", "--after", before, "--table", table.id, "--kind", "table.committed", "--json")
    assert [json.loads(line)["version"] for line in as_json.stdout.splitlines()] == [1]


def test_followed_events_come_as_they_happen_until_the_reader_has_enough(
    server: ServerProcess, lake: Lake, unique: str
) -> None:
    table = lake.new_table(unique)
    command = [sys.executable, "-m", "tidegate", "events", "--follow", "--json", "--after", last(lake)]
    environ = {**os.environ, "TIDEGATE_URI": server.url, "TIDEGATE_TOKEN": server.token, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*command, "--table", table.id], stdout=subprocess.PIPE, text=True, env=environ) as following:
        assert following.stdout is not None
        for version in range(1, 4):
            table.commit(version)
            assert json.loads(following.stdout.readline())["version"] == version
        following.send_signal(signal.SIGINT)
        assert following.wait(timeout=30) == 0


def test_followed_events_go_on_after_a_server_that_was_away_without_a_gap(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "home").start()
    server.port = httpx.URL(server.url).port or 0
    with server.lake() as lake:
        table = lake.new_table("t")
        table.commit(1)
    command = [sys.executable, "-m", "tidegate", "events", "--follow", "--json", "--kind", "table.committed"]
    environ = {**os.environ, "TIDEGATE_URI": server.url, "TIDEGATE_TOKEN": server.token, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["version"] == 1
        server.kill()
        server.start()
        with server.lake() as lake:
            table.lake = lake
            for version in (2, 3):
                assert table.commit(version).status_code == 200
        assert [json.loads(following.stdout.readline())["version"] for _ in range(2)] == [2, 3]
        following.send_signal(signal.SIGINT)
        assert following.wait(timeout=30) == 0
    assert server.stop() == 0


def test_followed_events_go_on_after_refusals_that_will_be_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that is away, no room for another reader, a proxy whose server is away."""
    monkeypatch.setattr(events, "AGAIN_SECONDS", 0.01)
    told = [{"sequence": number} for number in (1, 2)]
    answers: list[tuple[int, bytes]] = [
        (200, json.dumps({"events": told[:1], "next_after": 1, "last": 1}).encode()),
        (503, b'{"error_code": "TEMPORARILY_UNAVAILABLE", "message": "The database does not answer."}'),
        (429, b'{"error_code": "RESOURCE_EXHAUSTED", "message": "Too many wait."}'),
        (502, b"<html>Bad Gateway</html>"),
        (200, json.dumps({"events": told[1:], "next_after": 2, "last": 2}).encode()),
        (401, b'{"error_code": "UNAUTHENTICATED", "message": "The token is wrong."}'),
    ]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.pop(0)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        seen = events.read_events(Target(f"http://127.0.0.1:{server.server_port}", None), {}, follow=True)
        assert [next(seen), next(seen)] == told
        with pytest.raises(InvalidRequest, match="Give --token"):
            next(seen)
        server.shutdown()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["events", "--kind", "table.exploded"], "table.committed"),
        (["events", "--after", "999999999999"], "no event"),
        (["events", "--token", "wrong"], "--token"),
        (["subscriptions", "add", "s"], "one target"),
        (["subscriptions", "pause", "absent"], "no subscription absent"),
        (["subscriptions", "dead-letters", "absent"], "no subscription absent"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_an_exit_code(
    server: ServerProcess, arguments: list[str], says: str
) -> None:
    ended = ask(server, *arguments)
    assert ended.returncode == 2
    assert says in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_server_that_is_not_there_is_named(server: ServerProcess) -> None:
    ended = tidegate("events", "--uri", "http://127.0.0.1:9")
    assert ended.returncode == 2
    assert "http://127.0.0.1:9" in ended.stderr


def test_a_subscription_is_added_listed_paused_resumed_and_removed(
    server: ServerProcess, lake: Lake, unique: str
) -> None:
    with Receiver() as receiver:
        added = ask(server, "subscriptions", "add", unique, "--url", receiver.url, "--kind", "table.created")
        assert added.returncode == 0, added.stderr
        secret = added.stdout.split()[-1]
        lake.new_table(unique)
        receiver.wait_for(lambda: len(receiver.deliveries) == 1, "the event")
        assert receiver.deliveries[0].is_signed_with(secret)
        listed = ask(server, "subscriptions", "list").stdout
        assert unique in listed and receiver.url in listed and secret not in listed
        assert "is paused" in ask(server, "subscriptions", "pause", unique).stdout
        shown = json.loads(ask(server, "subscriptions", "list", "--json").stdout)["subscriptions"]
        assert next(one for one in shown if one["name"] == unique)["paused"]
        assert "goes on" in ask(server, "subscriptions", "resume", unique).stdout
        assert ask(server, "subscriptions", "dead-letters", unique).stdout == ""
        assert ask(server, "subscriptions", "resend", unique).stdout == "0 to be sent again.\n"
        assert "is gone" in ask(server, "subscriptions", "remove", unique).stdout
        assert ask(server, "subscriptions", "remove", unique).returncode == 2
