"""What a program is told when something is wrong: one sentence that says what to do, and never a token."""

from __future__ import annotations

import socket
import traceback
from typing import Any

import pytest

from tests.python_client.faces import close_face, open_face
from tests.python_client.proxy import Fault, made, proxy_to
from tests.servers import ServerProcess
from tidegate import client
from tidegate.client import Patience

IMPATIENT = Patience(attempts_max=2, first_seconds=0.01)
SECRET = "a-secret-that-nobody-may-see"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return unused.getsockname()[1]


def told(opened: Any, call: Any, kind: type[Exception]) -> str:
    """The message; it, its traceback and the client itself keep the token to themselves."""
    try:
        with pytest.raises(kind) as raised:
            call(opened)
    finally:
        close_face(opened)
    whole = "".join(traceback.format_exception(raised.value)) + repr(opened) + repr(vars(raised.value))
    assert SECRET not in whole
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_server_that_is_not_there(face: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    opened = open_face(face, url, token=SECRET, patience=IMPATIENT)
    message = told(opened, lambda lake: lake.list_catalogs(), client.Unreachable)
    assert url in message
    assert "tidegate serve" in message


def test_a_change_that_could_not_be_sent_surely_did_not_happen(face: str) -> None:
    opened = open_face(face, f"http://127.0.0.1:{free_port()}", token=SECRET, patience=IMPATIENT)
    told(opened, lambda lake: lake.create_catalog("x"), client.Unreachable)


@pytest.mark.parametrize("token", [SECRET, None])
def test_a_wrong_or_missing_token(server: ServerProcess, face: str, token: str | None) -> None:
    opened = open_face(face, server.url, token=token, patience=IMPATIENT)
    assert "TIDEGATE_TOKEN" in told(opened, lambda lake: lake.list_catalogs(), client.NotAuthenticated)


def test_a_wrong_token_is_told_of_by_a_question_without_a_body_too(server: ServerProcess, face: str) -> None:
    opened = open_face(face, server.url, token=SECRET, patience=IMPATIENT)
    told(opened, lambda lake: lake.has_table("main.default.x"), client.NotAuthenticated)


@pytest.mark.parametrize(
    "answer",
    [
        made("200 OK", b"<html>Welcome</html>"),
        made("200 OK", b'{"hello":"world"}'),
        made("404 Not Found", b"<html>not here</html>"),
        made("301 Moved Permanently", b"", "Location: http://127.0.0.1:1/elsewhere\r\n"),
        made("500 Internal Server Error", b"oops"),
    ],
    ids=["page", "other JSON", "404", "redirect", "500"],
)
def test_something_else_that_answers(face: str, answer: bytes) -> None:
    with proxy_to("http://127.0.0.1:1", lambda _: answer) as stranger:
        opened = open_face(face, stranger.url, token=SECRET, patience=IMPATIENT)
        message = told(opened, lambda lake: lake.list_catalogs(), client.NotATidegate)
    assert "not a Tidegate server" in message


def test_a_change_whose_answer_is_lost_may_have_happened(server: ServerProcess, face: str, unique: str) -> None:
    with proxy_to(server.url, lambda line: Fault.PASS if line.startswith("GET") else Fault.DROP_ANSWER) as proxy:
        opened = open_face(face, proxy.url, token=server.token, patience=IMPATIENT)
        message = told(opened, lambda lake: lake.create_schema(f"main.{unique}"), client.OutcomeUnknown)
        assert "may have happened" in message
        assert len([line for line in proxy.heard if line.startswith("POST")]) == 1


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        ("", "t", "TIDEGATE_URI"),
        ("127.0.0.1:8080", "t", "http://host:port"),
        ("ftp://host", "t", "http://host:port"),
        ("http://user:pass@host", "t", "token="),
        ("http://host:99999", "t", "cannot be read"),
        ("http://host", "two words", "as it was issued"),
    ],
)
def test_an_address_that_cannot_be_is_refused_before_anything_is_sent(
    url: str, token: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEGATE_URI", raising=False)
    with pytest.raises(client.InvalidRequest, match=words):
        client.connect(url, token=token)


def test_address_and_token_may_come_from_the_environment(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_URI", server.url)
    monkeypatch.setenv("TIDEGATE_TOKEN", server.token)
    with client.connect() as lake:
        assert "main" in [one.name for one in lake.list_catalogs()]
