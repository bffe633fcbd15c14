"""`tidegate timeline`: what people see of a table's timeline, and one clear line when there is nothing to see."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import Result
from rich.console import Console
from typer.testing import CliRunner

from tests.lake import Lake, LakeTable, add_commit
from tests.servers import ServerProcess
from tests.test_cli import tidegate
from tidegate.cli.main import app
from tidegate.cli.timeline import Target, fetch_timeline, render_timelines


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    """At version 3; 1 is verified, 2 published; a conflict and two replays were met."""
    table = lake.new_table(unique)
    for version in (1, 2, 3):
        assert table.commit(version).status_code == 200
    table.publish(1)
    table.publish(2)
    assert table.report(1).status_code == 200
    assert table.commit(2).status_code == 409
    for _ in range(2):
        assert table.update(add_commit({**table.stage_commit(3), "file-name": table.staged[3]})).status_code == 200
    return table


def name_of(table: LakeTable) -> str:
    return f"main.default.{table.name}"


def rows(printed: str) -> dict[str, list[str]]:
    """The lines of the table by version, cut at two or more spaces."""
    lines = [[cell for cell in line.strip().split("  ") if cell] for line in printed.splitlines()]
    return {cells[0]: [cell.strip() for cell in cells[1:]] for cells in lines if cells and cells[0].isdigit()}


def run(*arguments: str, **variables: str) -> Result:
    """The command in this process, which is faster than one of its own."""
    return CliRunner().invoke(app, ["timeline", *arguments], env={"COLUMNS": "120", **variables})


# The command


def test_the_command_shows_what_happened_to_each_version(server: ServerProcess, table: LakeTable) -> None:
    shown = tidegate("timeline", name_of(table), "--uri", server.url, "--token", server.token)
    assert shown.returncode == 0, shown.stderr
    head = shown.stdout.splitlines()[0]
    assert head.startswith(f"{name_of(table)}  latest 3, verified up to 1, 1 conflict and 2 replays since 20")
    seen = rows(shown.stdout)
    assert list(seen) == ["3", "2", "1", "0"]
    assert all(cells[1].endswith((" ms", " s")) for version, cells in seen.items() if version != "0")
    assert ["✓" in cells[2] for cells in seen.values()] == [False, False, True, True]
    assert seen["3"][2] == "not yet"
    assert seen["0"][1:3] == ["created", "before ✓"]


def test_a_version_whose_file_is_not_what_was_ratified_is_not_shown_as_published(
    server: ServerProcess, table: LakeTable
) -> None:
    (table.log / f"{2:020}.json").write_text("something else")
    assert table.report(2).status_code == 200
    shown = run(name_of(table), "--uri", server.url, "--token", server.token).stdout
    assert "ALARM: 00000000000000000002.json" in shown
    assert [cells[2] for cells in rows(shown).values()][:2] == ["not yet", "ALARM"]


def test_the_server_and_its_token_may_come_from_the_environment(server: ServerProcess, table: LakeTable) -> None:
    shown = run(name_of(table), "--json", TIDEGATE_URI=server.url, TIDEGATE_TOKEN=server.token)
    assert shown.exit_code == 0, shown.stderr
    answer = table.lake.http.get(f"/api/tidegate/v1/tables/{name_of(table)}/timeline").json()
    assert json.loads(shown.stdout) == answer


def test_without_an_address_it_is_the_server_of_this_machine_with_the_token_of_its_home(
    server: ServerProcess, table: LakeTable
) -> None:
    port = str(urlsplit(server.url).port)
    # A proxy, where one is set, is for the world outside.
    away = "http://127.0.0.1:1"
    shown = run(name_of(table), "--home", str(server.home), TIDEGATE_PORT=port, http_proxy=away, no_proxy="")
    assert shown.exit_code == 0, shown.stderr
    assert name_of(table) in shown.stdout


def test_the_token_of_the_home_is_not_sent_to_a_server_that_was_named(server: ServerProcess, table: LakeTable) -> None:
    check_one_line(run(name_of(table), "--home", str(server.home), "--uri", server.url), "Give --token")


@pytest.mark.parametrize(
    ("limit", "left"),
    [(1, ["3 older versions not shown"]), (3, ["1 older version not shown"]), (4, []), (50, [])],
)
def test_the_newest_commits_are_shown_up_to_the_limit(
    server: ServerProcess, table: LakeTable, limit: int, left: list[str]
) -> None:
    shown = run(name_of(table), "--uri", server.url, "--token", server.token, "--limit", str(limit)).stdout
    assert list(rows(shown)) == ["3", "2", "1", "0"][:limit]
    assert [line.strip() for line in shown.splitlines() if "not shown" in line] == left


def test_a_limit_beyond_a_page_takes_several(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, settings={"page_size_max": "2"}).start()
    with server.lake() as lake:
        table = lake.new_table("t")
        for version in range(1, 5):
            assert table.commit(version).status_code == 200
    target = Target(server.url, server.token)
    seen = {
        limit: [commit["version"] for commit in fetch_timeline(target, "main.default.t", limit=limit)["commits"]]
        for limit in (1, 2, 3, 5, 9)
    }
    assert seen == {limit: [4, 3, 2, 1, 0][:limit] for limit in seen}
    assert server.stop() == 0


def check_one_line(ended: Result, told: str) -> None:
    assert ended.exit_code == 2, ended.exception
    assert ended.stdout == ""
    assert told in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("table", "options", "told"),
    [
        ("main.default.absent", [], "There is no table main.default.absent."),
        ("absent", [], "Write catalog.schema.table."),
        ("main.default.t", ["--token", "wrong"], "The token is not valid."),
        ("main.default.t", ["--token", "wröng"], "characters that no token has"),
        ("main.default.t", ["--uri", "http://127.0.0.1:1"], "No server answers at http://127.0.0.1:1"),
        ("main.default.t", ["--uri", "http://127.0.0.1:port"], "No server answers"),
        ("main.default.t", ["--uri", "http://no such host"], "No server answers"),
        ("main.default.t", ["--uri", "127.0.0.1:8080"], "Write http://host:port."),
        ("main.default.t", ["--uri", "file:///etc/passwd"], "Write http://host:port."),
    ],
)
def test_what_cannot_be_shown_is_told_in_one_line(
    server: ServerProcess, table: str, options: list[str], told: str
) -> None:
    check_one_line(run(table, *options, TIDEGATE_URI=server.url, TIDEGATE_TOKEN=server.token), told)


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """A server that is not ours; its address."""

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        thread = threading.Thread(target=stranger.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{stranger.server_address[1]}"
        finally:
            stranger.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"<html>"), (200, b"[]"), (200, b"{}"), (404, b"<html>"), (500, b"[1]"), (200, b"\xff")]
)
def test_a_stranger_is_recognised_as_one(status: int, body: bytes) -> None:
    with answering(status, body) as address:
        check_one_line(run("main.default.t", "--uri", address), f"What answers at {address} is not a Tidegate")


# The rendering


def entry(version: int, **changes: Any) -> dict[str, Any]:
    sound = {"timestamp": 1000, "proposed_at": 1000, "ratified_at": 1004, "published_at": 1012}
    return {"version": version, **sound, "verified": True, "file_name": "", "file_size": 1234, **changes}


def answer(*commits: dict[str, Any], **changes: Any) -> dict[str, Any]:
    sound = {"full_name": "main.default.t", "latest_version": 9, "verified_version": 9, "conflicts": 0, "replays": 0}
    return {**sound, "since": 0, "commits": list(commits), **changes}


def rendered(*timelines: dict[str, Any], width: int = 80) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(render_timelines(timelines))
    return captured.get()


@pytest.mark.parametrize(
    ("commit", "cells"),
    [
        (entry(7), ["4 ms", "8 ms ✓", "1.2 kB"]),
        (entry(7, verified=False), ["4 ms", "8 ms", "1.2 kB"]),
        (entry(7, verified=False, published_at=None), ["4 ms", "not yet", "1.2 kB"]),
        (entry(7, published_at=None), ["4 ms", "- ✓", "1.2 kB"]),
        (entry(7, proposed_at=None, ratified_at=None), ["-", "- ✓", "1.2 kB"]),
        (entry(7, ratified_at=3500, published_at=1004 + 90_000), ["2.5 s", "1.5 min ✓", "1.2 kB"]),
        (entry(7, published_at=1004 + 9_000_000), ["4 ms", "2.5 h ✓", "1.2 kB"]),
        (entry(7, published_at=1004 + 864_000_000), ["4 ms", "10.0 d ✓", "1.2 kB"]),
        # Some stores round to seconds.
        (entry(7, published_at=1000), ["4 ms", "0 ms ✓", "1.2 kB"]),
        (entry(0, timestamp=None, proposed_at=None, published_at=900), ["created", "before ✓", "1.2 kB"]),
        (entry(0, proposed_at=None, published_at=None, file_size=None), ["created", "- ✓"]),
    ],
)
def test_a_row_says_how_long_each_step_took(commit: dict[str, Any], cells: list[str]) -> None:
    assert rows(rendered(answer(commit)))[str(commit["version"])][1:] == cells


def test_several_tables_are_shown_below_each_other_and_fit_a_terminal() -> None:
    external = {"full_name": "main.default.ext", "latest_version": None, "verified_version": None}
    printed = rendered(answer(entry(9), entry(8)), answer(full_name="main.default.u", conflicts=3), answer(**external))
    lines = [line.rstrip() for line in printed.splitlines()]
    assert max(len(line) for line in lines) <= 80
    heads = [line.split("  ")[0] for line in lines if line.startswith("main.")]
    assert heads == ["main.default.t", "main.default.u", "main.default.ext"]
    assert "8 older versions not shown" in printed
    assert "3 conflicts and 0 replays" in " ".join(printed.split())
    assert "external: its commits are decided elsewhere" in printed
