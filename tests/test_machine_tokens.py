"""Service accounts get short tokens for their client secrets, by OAuth 2's client credentials grant."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import error_of
from tests.servers import ServerProcess
from tests.test_drop_commands import run
from tests.test_identities import API, add, make_token, whoami
from tests.waiting import wait_until

TOKEN_URL = f"{API}/oauth/token"
GRANT = {"grant_type": "client_credentials"}


def make_secret(http: httpx.Client, name: str, **request: Any) -> dict[str, Any]:
    add(http, name, "service account")
    return make_token(http, principal=name, kind="client secret", **request)


def ask(server: ServerProcess, id: str, secret: str, form: dict[str, str] = GRANT) -> httpx.Response:
    """As the stock client does."""
    return httpx.post(server.url + TOKEN_URL, data={**form, "scope": "all-apis"}, auth=(id, secret), timeout=60)


def test_a_service_account_gets_a_token_for_its_secret(server: ServerProcess, http: httpx.Client, unique: str) -> None:
    name = f"{unique}+job@sea"
    secret = make_secret(http, name)["token"]
    given = ask(server, name, secret)
    assert given.headers["cache-control"] == "no-store"
    answer = given.json()
    assert (answer["token_type"], answer["expires_in"]) == ("Bearer", 3600)
    assert whoami(server, answer["access_token"]).json()["name"] == name
    in_the_form = httpx.post(server.url + TOKEN_URL, data={**GRANT, "client_id": name, "client_secret": secret})
    assert in_the_form.status_code == 200
    encoded = base64.b64encode(f"{unique}%2Bjob%40sea:{secret}".encode()).decode()
    as_the_rfc_says = httpx.post(server.url + TOKEN_URL, data=GRANT, headers={"Authorization": f"Basic {encoded}"})
    assert as_the_rfc_says.status_code == 200


def test_tokens_go_with_the_secret_that_they_were_given_for(
    server: ServerProcess, http: httpx.Client, unique: str
) -> None:
    one = make_secret(http, unique)
    two = make_token(http, principal=unique, kind="client secret")
    first, second = (ask(server, unique, made["token"]).json()["access_token"] for made in (one, two))
    listed = http.get(f"{API}/tokens", params={"principal": unique}).json()["tokens"]
    assert [(each["id"], each["kind"]) for each in listed] == [
        (made["info"]["id"], "client secret") for made in (one, two)
    ]
    assert whoami(server, first).status_code == 200
    assert http.delete(f"{API}/tokens/{one['info']['id']}").status_code == 204
    assert [whoami(server, token).status_code for token in (first, second)] == [401, 200]
    assert ask(server, unique, one["token"]).status_code == 401
    assert http.delete(f"{API}/identities/{unique}").status_code == 204
    assert whoami(server, second).status_code == 401


def test_a_secret_opens_nothing_itself_and_no_token_stands_in_for_it(
    server: ServerProcess, http: httpx.Client, unique: str
) -> None:
    secret = make_secret(http, unique)["token"]
    assert whoami(server, secret).status_code == 401
    token = ask(server, unique, secret).json()["access_token"]
    for wrong_id, wrong in ((unique, token), (unique, secret[:-1] + "!"), (f"{unique}x", secret), ("admin", secret)):
        refused = ask(server, wrong_id, wrong)
        assert refused.status_code == 401
        assert refused.json()["error"] == "invalid_client"
        assert refused.headers["www-authenticate"] == "Basic"
        assert wrong not in refused.text
    as_itself = {"Authorization": f"Bearer {token}"}
    grasping = httpx.post(f"{server.url}{API}/tokens", json={"kind": "client secret"}, headers=as_itself)
    assert error_of(grasping)[0] == 403


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({**GRANT, "client_secret": "twice"}, "invalid_request"),
    ],
)
def test_another_request_is_refused_as_the_rfc_says(
    server: ServerProcess, http: httpx.Client, unique: str, form: dict[str, str], error: str
) -> None:
    refused = ask(server, unique, "tgs_" + "x" * 43, form)
    assert (refused.status_code, refused.json()["error"]) == (400, error)


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (b"grant_type=client_credentials&grant_type=x", {}),
        (b"\xff=1", {}),
        (b'{"grant_type": "client_credentials"}', {}),
        (b"grant_type=client_credentials", {}),
        (b"grant_type=client_credentials", {"Authorization": "Basic !!!"}),
        (b"grant_type=client_credentials", {"Authorization": "Bearer tg_x"}),
    ],
)
def test_nonsense_is_refused(server: ServerProcess, content: bytes, headers: dict[str, str]) -> None:
    refused = httpx.post(server.url + TOKEN_URL, content=content, headers=headers)
    assert refused.status_code in {400, 401}
    assert refused.json()["error"] in {"invalid_request", "invalid_client"}


def test_secrets_are_for_service_accounts_and_end(server: ServerProcess, http: httpx.Client, unique: str) -> None:
    add(http, f"{unique}_user")
    add(http, f"{unique}_group", "group")
    for whose in (f"{unique}_user", f"{unique}_group", "admin"):
        refused = http.post(f"{API}/tokens", json={"principal": whose, "kind": "client secret"})
        assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")
    secret = make_secret(http, unique, lifetime_seconds=2)["token"]
    wait_until(lambda: "expired" in ask(server, unique, secret).text, "the secret ends")


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path, settings={"machine_tokens_max": "2"}).start()
    yield server
    assert server.stop() == 0


def test_tokens_of_machines_are_bounded_and_the_command_makes_secrets(strict: ServerProcess) -> None:
    assert run(strict, "users", "add", "nightly", "--service").exit_code == 0
    secret = run(strict, "tokens", "create", "--for", "nightly", "--secret").stdout.strip()
    assert "client secret" in run(strict, "tokens", "list", "--for", "nightly").stdout
    assert [ask(strict, "nightly", secret).status_code for _ in range(3)] == [200, 200, 429]
