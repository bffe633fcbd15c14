"""HTTP as clients really speak it: upgrades that are asked for and not given, connections that are kept, HEAD."""

from __future__ import annotations

import fcntl
import json
import socket
import sys
import termios
import time
from urllib.parse import urlparse

import httpx
import pytest

from tests.lake import DELTA, Lake
from tests.servers import ServerProcess

# What Java's HTTP client adds to every request on a connection without TLS.
UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"

PIPELINED = 200
"""Answers that are more than the sockets on both sides can hold before anybody reads."""


class RawConnection:
    """A socket that speaks HTTP byte for byte as it is told."""

    def __init__(self, server: ServerProcess) -> None:
        address = urlparse(server.url)
        self.socket = socket.create_connection((address.hostname, address.port), timeout=10)
        self.stream = self.socket.makefile("rb")
        self.authorization = f"Host: x\r\nAuthorization: Bearer {server.token}\r\n".encode()

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.socket.sendall(part)

    def wait_until_full(self) -> None:
        """Reads nothing until nothing more arrives."""
        before, waiting = -1, 0
        for _ in range(200):
            if before == waiting > 0:
                return
            time.sleep(0.1)
            before, waiting = (
                waiting,
                int.from_bytes(fcntl.ioctl(self.socket, termios.FIONREAD, bytes(4)), sys.byteorder),
            )
        raise TimeoutError("the server sends on and on")

    def answer(self) -> tuple[int, bytes]:
        status, _, body = self.whole_answer()
        return status, body

    def whole_answer(self) -> tuple[int, dict[bytes, bytes], bytes]:
        status = int(self.stream.readline().split()[1])
        headers: dict[bytes, bytes] = {}
        while (line := self.stream.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        return status, headers, self.stream.read(int(headers.get(b"content-length", 0)))


@pytest.mark.parametrize("length", [b"Content-Length: 1000000000", b"Transfer-Encoding: chunked"])
def test_who_is_refused_while_still_sending_is_told_not_to_use_the_connection_again(
    server: ServerProcess, length: bytes
) -> None:
    """It is cut off when it goes on sending, and a next request would be cut off with it."""
    connection = RawConnection(server)
    connection.send(b"POST /nowhere HTTP/1.1\r\n" + connection.authorization + length + b"\r\n\r\n")
    status, headers, _ = connection.whole_answer()
    assert (status, headers.get(b"connection")) == (404, b"close")


@pytest.mark.parametrize("way", ["in one piece", "in two pieces", "byte by byte", "in chunks"])
def test_a_request_that_asks_for_http_2_keeps_its_body(server: ServerProcess, unique: str, way: str) -> None:
    connection = RawConnection(server)
    body = json.dumps({"name": unique}).encode()
    head = f"POST {DELTA}/catalogs/main/schemas/default/staging-tables HTTP/1.1\r\n".encode()
    head += UPGRADE + connection.authorization
    sized = head + b"Content-Length: %d\r\n\r\n" % len(body)
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    pieces = {
        "in one piece": [sized + body],
        "in two pieces": [sized, body],
        "byte by byte": [bytes([byte]) for byte in sized + body],
        "in chunks": [chunked],
    }
    for _ in range(2):  # the connection stays usable
        connection.send(*pieces[way])
        status, answer = connection.answer()
        assert status == 200, answer
        assert json.loads(answer)["table-type"] == "MANAGED"


def test_a_request_that_asks_for_http_2_and_to_close_is_answered_and_closed(server: ServerProcess) -> None:
    connection = RawConnection(server)
    upgrade = UPGRADE.replace(b"Connection: Upgrade", b"Connection: close, Upgrade")
    connection.send(b"GET /health HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n")
    assert connection.answer()[0] == 200
    assert connection.stream.read() == b""


def test_garbage_on_the_socket_is_a_400_and_the_server_goes_on(server: ServerProcess, http: httpx.Client) -> None:
    connection = RawConnection(server)
    connection.send(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
    assert connection.answer()[0] == 400
    assert http.get("/health").status_code == 200


def test_a_client_that_reads_slowly_gets_every_answer_whole_and_in_order(server: ServerProcess) -> None:
    connection = RawConnection(server)
    known = b"GET /openapi.json HTTP/1.1\r\n" + connection.authorization + b"\r\n"
    unknown = b"GET /nowhere HTTP/1.1\r\n" + connection.authorization + b"\r\n"
    connection.send(*[known + unknown] * PIPELINED)
    connection.wait_until_full()
    answers = [connection.answer() for _ in range(2 * PIPELINED)]
    assert [status for status, _ in answers] == [200, 404] * PIPELINED
    assert len({body for _, body in answers}) == 2
    assert all(json.loads(body) for _, body in answers[:2])


def test_head_answers_without_a_body(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    there = lake.http.head(f"{lake.tables_url()}/{table.name}")
    gone = lake.http.head(f"{lake.tables_url()}/{table.name}_not")
    assert (there.status_code, there.content) == (204, b"")
    assert (gone.status_code, gone.content) == (404, b"")


def test_only_health_opens_without_a_token(server: ServerProcess) -> None:
    with httpx.Client(base_url=server.url) as stranger:
        assert stranger.get("/health").json() == {"status": "ok"}
        for path in ("/openapi.json", f"{DELTA}/config", "/api/2.1/unity-catalog/catalogs", "/", "/nowhere"):
            refused = stranger.get(path)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
