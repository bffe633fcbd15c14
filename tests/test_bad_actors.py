"""Who means no good: they guess, send twice, send slowly, send for ever, and listen on when they are sent away."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlparse

import httpx
import pytest

from tests.lake import Lake, add_commit, error_of
from tests.servers import ServerProcess
from tests.test_endpoint_errors import serving, url
from tests.test_external_tables import external_request
from tests.test_identities import API, add, make_token, whoami
from tests.test_inline_commits import content
from tests.test_ownership import Plain
from tests.waiting import wait_until
from tidegate.auth.tokens import ADMIN
from tidegate.compose import build_server, prepare
from tidegate.domain.errors import NotAuthenticated
from tidegate.domain.privileges import Principal
from tidegate.http.failed_logins import FREE, FailedLogins
from tidegate.http.protocol import HEAD_BYTES_MAX, LEFT_BYTES_MAX
from tidegate.settings import Settings


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that waits a second for requests."""
    settings = {"request_seconds_max": "1", "access_cache_ms": "200", "log_requests": "all"}
    server = ServerProcess(tmp_path_factory.mktemp("hurried"), settings=settings).start()
    yield server
    assert server.stop() == 0, "".join(server.log[-50:])


def connected(server: ServerProcess) -> socket.socket:
    address = urlparse(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def rest_of(connection: socket.socket) -> bytes:
    """What comes until the server closes; it must."""
    told = b""
    try:
        while chunk := connection.recv(65536):
            told += chunk
    except ConnectionResetError:
        pass
    return told


def head(server: ServerProcess, *lines: str) -> bytes:
    own = (f"POST {API}/identities HTTP/1.1", "Host: x", f"Authorization: Bearer {server.token}", *lines)
    return "\r\n".join(own).encode() + b"\r\n\r\n"


SLOW = {
    "nothing at all": [],
    "half a head": [b"GET /health HTTP/1.1\r\nHost:"],
    "half a body": [b"HEAD", b"{"],
    "half a chunk": [b"CHUNKED", b"5\r\n{"],
}


@pytest.mark.parametrize("what", SLOW)
def test_a_request_that_does_not_arrive_is_cut_off(hurried: ServerProcess, what: str) -> None:
    whole = {
        b"HEAD": head(hurried, "Content-Length: 100"),
        b"CHUNKED": head(hurried, "Transfer-Encoding: chunked"),
    }
    with connected(hurried) as connection:
        for part in SLOW[what]:
            connection.sendall(whole.get(part, part))
        assert b" 200 " not in rest_of(connection)
    assert httpx.get(f"{hurried.url}/health").status_code == 200


def is_cut_off(server: ServerProcess, first: bytes, again: bytes, bytes_max: int) -> bool:
    """Whether the server closes before it has got many times what it takes."""
    with connected(server) as connection:
        try:
            connection.sendall(first)
            for _ in range(100 * bytes_max // len(again)):
                connection.sendall(again)
        except (ConnectionResetError, BrokenPipeError):
            return True
    return False


def test_a_head_and_a_body_without_an_end_are_cut_off(hurried: ServerProcess) -> None:
    header = b"x: " + b"y" * 1000 + b"\r\n"
    assert is_cut_off(hurried, b"GET /health HTTP/1.1\r\n", header, HEAD_BYTES_MAX)
    wrong = b"POST /x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer no\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert is_cut_off(hurried, wrong, b"10000\r\n" + b"y" * 65536 + b"\r\n", LEFT_BYTES_MAX)


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 2", "Content-Length: 3"),
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 2"),
        ("Transfer-Encoding: chunked, identity",),
        ("Content-Length : 2",),
        ("Content-Length: +2",),
        ("Content-Length: 2", "Authorization: Bearer another"),
    ],
)
def test_a_request_that_two_readers_could_read_differently_is_refused(
    hurried: ServerProcess, lines: tuple[str, ...]
) -> None:
    smuggled = f"{{}}GET {API}/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {hurried.token}\r\n\r\n".encode()
    with connected(hurried) as connection:
        connection.sendall(head(hurried, *lines) + b"0\r\n\r\n" + smuggled)
        answer = rest_of(connection)
    assert answer.split()[1] in {b"400", b"401"}
    assert b'"admin"' not in answer


PATHS = ["..", "%2e%2e", "..%2F..%2Fetc", "a%2Fb", "%252e%252e", "a%00b", "a\\b"]


@pytest.mark.parametrize("name", PATHS)
def test_names_are_names_and_no_paths(server: ServerProcess, http: httpx.Client, name: str) -> None:
    plain = name.replace("%2e", ".").replace("%2F", "/").replace("%00", "\0")
    before = {path for path in server.home.rglob("*") if "catalog.db" not in path.name}
    with connected(server) as connection:
        asked = f"GET /api/2.1/unity-catalog/delta/v1/catalogs/main/schemas/default/tables/{name} HTTP/1.1\r\n"
        own = f"Host: x\r\nConnection: close\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        connection.sendall((asked + own).encode())
        assert rest_of(connection).split()[1] in {b"400", b"404"}
    staged = http.post(
        "/api/2.1/unity-catalog/delta/v1/catalogs/main/schemas/default/staging-tables", json={"name": plain}
    )
    if staged.status_code == 200:
        assert plain not in staged.json()["location"], "a table's folder is named by its id"
    else:
        assert staged.status_code == 400
    assert {path for path in server.home.rglob("*") if "catalog.db" not in path.name} == before


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that publishes what is ratified at once."""
    server = ServerProcess(tmp_path / "home", settings={"publish_after_ms": "10"}).start()
    yield server
    assert server.stop() == 0, "".join(server.log[-50:])


def test_a_staged_file_that_is_a_link_is_never_published_even_where_requests_are_trusted(
    publisher: ServerProcess, tmp_path: Path
) -> None:
    """What it leads to may be something that the server can read and the writer cannot."""
    hidden = tmp_path / "hidden"
    hidden.write_text("the secret of somebody else")
    with publisher.lake() as lake:
        table = lake.new_table("t").trusted()
        commit = table.stage_commit(1, content=hidden.read_bytes())
        staged = table.log / "_staged_commits" / commit["file-name"]
        staged.unlink()
        staged.symlink_to(hidden)
        assert table.update(add_commit(commit)).status_code == 200, "nobody has looked at it"
        timeline = f"{API}/tables/main.default.t/timeline"
        wait_until(lambda: bool(lake.http.get(timeline).json()["alarms"]), "the alarm")
        alarms = lake.http.get(timeline).json()["alarms"]
        assert alarms[0]["reason"] == "staged_file_changed"
        assert "no plain file" in alarms[0]["message"]
    assert not (table.log / f"{1:020}.json").exists()


@pytest.mark.parametrize("folder", ["_delta_log", "_staged_commits"])
def test_nothing_is_published_through_a_link_into_another_place(
    publisher: ServerProcess, tmp_path: Path, folder: str
) -> None:
    """Else who owns one table would have the server write into the log of another."""
    with publisher.lake() as lake:
        table = lake.new_table("t")
        moved = table.log if folder == "_delta_log" else table.log / folder
        moved.mkdir(exist_ok=True)
        commit = table.stage_commit(1)
        outside = tmp_path / "outside"
        moved.rename(outside)
        moved.symlink_to(outside)
        refused = table.update(add_commit(commit))
        assert refused.status_code in {400, 503}, refused.text
        body = {"table_id": table.id, "content": content(), "version": 1}
        before = sorted(outside.rglob("*"))
        assert lake.http.post(f"{API}/tables/main.default.t/commits", json=body).status_code == 200
        wait_until(lambda: "Too many levels of symbolic links" in "".join(publisher.log), "the publisher gave up")
        assert lake.load("t").status_code == 503, "whoever wants files waits until the link is gone"
        assert sorted(outside.rglob("*")) == before


def test_links_lead_neither_out_of_the_places_of_adoption_nor_into_those_of_managed_tables(
    server: ServerProcess, http: httpx.Client, lake: Lake, unique: str, tmp_path: Path
) -> None:
    victim = Plain(tmp_path / "elsewhere" / "victim").create()
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    assert http.post(url("allowAdoption"), json={"location": f"file://{allowed}"}).status_code == 200
    (allowed / "link").symlink_to(victim.folder)
    (allowed / "half").mkdir()
    (allowed / "half" / "_delta_log").symlink_to(victim.log)
    for name in ("link", "half"):
        for external in (False, True):
            body = {"location": f"file://{allowed}/{name}", "full_name": f"main.default.{unique}", "external": external}
            refused = http.post(url("adoptTable"), json=body)
            assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")
            assert "by a link" in refused.json()["message"]
        own = {"location": f"file://{allowed}/{name}", "version": 1, "schema": "main.default"}
        assert "by a link" in http.post(url("registerOwnedTable"), json=own).json()["message"]
    assert victim.versions() == [0, 1]
    managed = lake.new_table(unique)
    (tmp_path / "door").symlink_to(managed.location.removeprefix("file://"))
    refused = lake.create(external_request(f"{unique}_x", f"file://{tmp_path}/door"))
    assert error_of(refused) == (400, "InvalidParameterValueException")
    assert "lies in the storage of managed tables" in refused.text


def test_guessing_gets_slower_and_is_forgotten_in_bounds() -> None:
    logins = FailedLogins(seconds_max=1.0, waiting_max=1)
    pauses = [logins.pause("1.2.3.4", f"Bearer {number}") for number in range(FREE + 30)]
    assert pauses[0] == 0.0 and pauses[FREE - 1] == 0.0
    assert max(pauses) == 1.0
    assert logins.pause("5.6.7.8", "Bearer other") == 0.0
    by_prefix = [logins.pause(f"10.0.{number}.1", "Bearer tg_123456789" + str(number)) for number in range(FREE + 5)]
    assert by_prefix[-1] > 0
    logins.waiting = 1
    assert logins.pause("1.2.3.4", "Bearer x") == 0.0
    assert FailedLogins(seconds_max=0, waiting_max=1).pause("1.2.3.4", "Bearer x") == 0.0


def test_a_flood_of_wrong_tokens_is_slowed_and_a_writer_goes_on(server: ServerProcess, lake: Lake, unique: str) -> None:
    def commits_a_second(name: str) -> float:
        table, begun, done = lake.new_table(name), time.monotonic(), 0
        # Nobody publishes here, and so a table takes a thousand.
        while time.monotonic() - begun < 1.5 and done < 900:
            done += 1
            assert table.commit(done).status_code == 200
        return done / (time.monotonic() - begun)

    alone = commits_a_second(f"{unique}_alone")
    command = [sys.executable, "-m", "tests.flood", server.url]
    flood = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert flood.stdout is not None
    sent = flood.stdout.readline()
    assert sent.startswith("10000 in "), sent
    beside = commits_a_second(f"{unique}_beside")
    answers = json.loads(flood.communicate("enough\n", timeout=60)[0])
    assert answers.keys() == {"401"}, "nothing else is answered, and no connection is lost"
    assert answers["401"] < 1000, "most of them wait"
    assert beside > alone / 3, "the writer keeps its throughput, but for what the flood's own work takes"


class Revocable:
    """The admin, until the token is revoked."""

    revoked = False

    async def authenticate(self, authorization: str | None) -> Principal:
        if self.revoked:
            raise NotAuthenticated("It is revoked.")
        return ADMIN


def test_a_stream_of_events_ends_soon_after_its_token_was_revoked(tmp_path: Path) -> None:
    settings = replace(Settings(), home=tmp_path, access_cache_ms=100)
    prepare(settings)
    token = Revocable()
    headers = {"Authorization": "Bearer x"}
    with serving(build_server(settings, authenticator=token).app) as url:
        wanted = f"{url}{API}/events/stream?seconds_max=600"
        with httpx.stream("GET", wanted, headers=headers, timeout=60) as stream:
            assert stream.status_code == 200
            chunks = stream.iter_bytes()
            next(chunks)
            token.revoked = True
            for _ in chunks:  # without an end, unless the server makes one
                pass


def test_no_secret_is_in_logs_errors_and_events(hurried: ServerProcess) -> None:
    with hurried.http() as http:
        add(http, "discreet", "service account")
        token = make_token(http, principal="discreet")["token"]
        secret = make_token(http, principal="discreet", kind="client secret")["token"]
        wrong = [f"tg_{'w' * 43}", "eyJh.eyJz.c2ln", f"tgs_{'w' * 43}", "s3cr3t-of-nobody"]
        answers = [whoami(hurried, each).text for each in (token, secret, *wrong)]
        asked = {"grant_type": "client_credentials"}
        url = f"{hurried.url}{API}/oauth/token"
        given = httpx.post(url, data=asked, auth=("discreet", secret)).json()["access_token"]
        answers += [httpx.post(url, data=asked, auth=("discreet", each)).text for each in (*wrong, token)]
        answers.append(httpx.post(url, data={**asked, "client_secret": secret}, auth=("x", secret)).text)
        answers.append(http.get(f"{API}/events").text)
        answers.append(http.get("/metrics").text)
        told = "".join([*answers, *hurried.log])
    for each in (token, secret, given, hurried.token, *wrong):
        assert each not in told


def test_tls_by_flag(tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    settings = {"tls_certificate": str(certificate), "tls_key": str(key)}
    server = ServerProcess(tmp_path / "home", settings=settings).start()
    assert server.url.startswith("https://")
    trusted = ssl.create_default_context(cafile=str(certificate))
    with server.http(verify=trusted) as http:
        assert http.get(f"{API}/whoami").json()["name"] == "admin"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/health", trust_env=False)
    assert server.stop() == 0
    half = ServerProcess(tmp_path / "half", settings={"tls_certificate": str(certificate)})
    with pytest.raises(RuntimeError, match="tls_key"):
        half.start()
