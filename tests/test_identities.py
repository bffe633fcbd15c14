"""Users, groups, service accounts and their tokens, on running servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import error_of
from tests.postgres import PostgresServer
from tests.servers import ServerProcess
from tests.test_drop_commands import run
from tests.waiting import wait_until

API = "/api/tidegate/v1"


def add(http: httpx.Client, name: str, kind: str = "user") -> None:
    added = http.post(f"{API}/identities", json={"name": name, "kind": kind})
    assert added.status_code == 200, added.text


def make_token(http: httpx.Client, **request: Any) -> dict[str, Any]:
    made = http.post(f"{API}/tokens", json=request)
    assert made.status_code == 200, made.text
    return made.json()


def whoami(server: ServerProcess, token: str) -> httpx.Response:
    return httpx.get(f"{server.url}{API}/whoami", headers={"Authorization": f"Bearer {token}"}, timeout=60)


def test_a_token_tells_who_is_calling_until_it_is_revoked(
    server: ServerProcess, http: httpx.Client, unique: str
) -> None:
    add(http, f"{unique}@sea.org")
    made = make_token(http, principal=f"{unique}@sea.org", comment="laptop")
    for _ in range(2):
        assert whoami(server, made["token"]).json() == {"name": f"{unique}@sea.org", "kind": "user", "groups": []}
    assert http.delete(f"{API}/tokens/{made['info']['id']}").status_code == 204
    assert error_of(whoami(server, made["token"])) == (401, "UNAUTHENTICATED")


def test_a_token_is_shown_once_and_kept_as_a_hash_alone(server: ServerProcess, http: httpx.Client, unique: str) -> None:
    add(http, unique, "service account")
    token = make_token(http, principal=unique)["token"]
    assert token not in http.get(f"{API}/tokens", params={"principal": unique}).text
    assert whoami(server, token).status_code == 200
    refused = whoami(server, token[:-1] + ("A" if token[-1] != "A" else "B"))
    assert refused.status_code == 401
    assert token[:-1] not in refused.text
    assert token[:-1] not in "".join(server.log)
    if server.database is None:
        for file in server.home.glob("catalog.db*"):
            assert token.encode() not in file.read_bytes()


def test_a_token_ends(server: ServerProcess, http: httpx.Client, unique: str) -> None:
    add(http, unique)
    token = make_token(http, principal=unique, lifetime_seconds=1)["token"]
    wait_until(lambda: whoami(server, token).status_code == 401, "the token ends")
    assert "expired" in whoami(server, token).json()["message"]


def test_everybody_sees_to_their_own_tokens_and_to_no_others(
    server: ServerProcess, http: httpx.Client, unique: str
) -> None:
    add(http, f"{unique}_ada")
    add(http, f"{unique}_bob")
    ada, bob = (make_token(http, principal=f"{unique}_{who}") for who in ("ada", "bob"))
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {ada['token']}"}, timeout=60) as hers:
        another = make_token(hers, comment="another")
        listed = hers.get(f"{API}/tokens").json()["tokens"]
        assert {one["id"] for one in listed} == {ada["info"]["id"], another["info"]["id"]}
        assert error_of(hers.get(f"{API}/tokens", params={"principal": f"{unique}_bob"}))[0] == 403
        assert error_of(hers.post(f"{API}/tokens", json={"principal": f"{unique}_bob"}))[0] == 403
        # Bob's token is as good as none.
        missing = hers.delete(f"{API}/tokens/absent")
        hidden = hers.delete(f"{API}/tokens/{bob['info']['id']}")
        assert error_of(missing) == error_of(hidden) == (404, "NOT_FOUND")
        assert hers.delete(f"{API}/tokens/{another['info']['id']}").status_code == 204
        for refused in (hers.get(f"{API}/identities"), hers.post(f"{API}/identities", json={"name": "eve"})):
            assert refused.status_code == 403
    assert whoami(server, bob["token"]).status_code == 200


def test_who_is_removed_is_gone_with_tokens_memberships_and_grants(
    server: ServerProcess, http: httpx.Client, unique: str
) -> None:
    add(http, unique)
    add(http, f"{unique}_crew", "group")
    token = make_token(http, principal=unique)["token"]
    assert http.put(f"{API}/groups/{unique}_crew/members/{unique}").json() == {"members": [unique]}
    assert whoami(server, token).json()["groups"] == [f"{unique}_crew"]
    granted = {"changes": [{"principal": unique, "add": ["SELECT"], "remove": []}]}
    permissions = "/api/2.1/unity-catalog/permissions/catalog/main"
    assert http.patch(permissions, json=granted).status_code == 200
    assert http.delete(f"{API}/identities/{unique}").status_code == 204
    assert whoami(server, token).status_code == 401
    assert http.get(f"{API}/groups/{unique}_crew/members").json() == {"members": []}
    assert http.get(permissions, params={"principal": unique}).json() == {"privilege_assignments": []}
    # Somebody who is called the same later gets nothing of it.
    add(http, unique)
    assert whoami(server, token).status_code == 401
    assert http.get(f"{API}/tokens", params={"principal": unique}).json() == {"tokens": []}


@pytest.mark.parametrize("name", ["admin", "anonymous", "", "a b", "a/b", "ä", "a" * 256])
def test_a_name_that_cannot_be_is_refused(http: httpx.Client, name: str) -> None:
    refused = http.post(f"{API}/identities", json={"name": name})
    assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")


def test_groups_hold_no_groups_and_have_no_tokens(http: httpx.Client, unique: str) -> None:
    add(http, unique, "group")
    assert error_of(http.put(f"{API}/groups/{unique}/members/{unique}"))[0] == 400
    assert error_of(http.post(f"{API}/tokens", json={"principal": unique}))[0] == 400
    assert error_of(http.post(f"{API}/tokens", json={}))[0] == 400, "the admin's token is in its file"


def test_identities_are_listed_in_pages(http: httpx.Client, unique: str) -> None:
    wanted = [f"{unique}.{number}@sea" for number in range(3)]
    for name in wanted:
        add(http, name, "group")
    found, page = [], ""
    while page is not None:
        query = {"kind": "group", "max_results": "2", **({"page_token": page} if page else {})}
        answer = http.get(f"{API}/identities", params=query).json()
        found += [one["name"] for one in answer["identities"]]
        page = answer["next_page_token"]
    assert [name for name in found if name in wanted] == wanted


@pytest.fixture
def pair(postgres: PostgresServer, tmp_path: Path) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers on one PostgreSQL, which share a home."""
    database = postgres.create_database()
    one = ServerProcess(tmp_path, database, {"access_cache_ms": "500"}).start()
    two = ServerProcess(tmp_path, database, {"access_cache_ms": "500"}).start()
    yield one, two
    assert (one.stop(), two.stop()) == (0, 0)


def test_a_token_that_one_server_revokes_soon_opens_no_other(pair: tuple[ServerProcess, ServerProcess]) -> None:
    one, two = pair
    with one.http() as http:
        add(http, "ada")
        made = make_token(http, principal="ada")
        assert whoami(two, made["token"]).status_code == 200
        assert http.delete(f"{API}/tokens/{made['info']['id']}").status_code == 204
        assert whoami(one, made["token"]).status_code == 401
        wait_until(lambda: whoami(two, made["token"]).status_code == 401, "the other server knows")


def test_the_commands(server: ServerProcess, unique: str) -> None:
    ada, crew = f"{unique}@sea", f"{unique}_crew"
    assert run(server, "users", "add", ada).stdout.startswith(f"{ada} is a user now.")
    assert run(server, "users", "add", f"{unique}_job", "--service").exit_code == 0
    listed = run(server, "users", "list").stdout.splitlines()
    assert {ada, f"{unique}_job  (service account)"} <= set(listed)
    assert run(server, "groups", "add", crew).stdout == f"{crew} is a group now.\n"
    assert crew in run(server, "groups", "list").stdout.splitlines()
    assert run(server, "groups", "members", crew).stdout == "Nobody is in it.\n"
    assert run(server, "groups", "join", crew, ada).stdout == f"{ada} is in {crew}.\n"
    assert run(server, "groups", "members", crew).stdout == f"{ada}\n"
    token = run(server, "tokens", "create", "--for", ada, "--hours", "1").stdout.strip()
    assert whoami(server, token).json()["name"] == ada
    assert run(server, "whoami").stdout == "admin\n"
    assert run(server, "whoami", "--token", token).stdout == f"{ada}, user, in {crew}\n"
    id = run(server, "tokens", "list", "--for", ada).stdout.split()[0]
    assert run(server, "tokens", "revoke", id).stdout == "The token is revoked.\n"
    refused = run(server, "whoami", "--token", token)
    assert (refused.exit_code, token in refused.stderr) == (2, False)
    assert run(server, "groups", "leave", crew, ada).exit_code == 0
    assert run(server, "groups", "remove", crew).exit_code == 0
    assert run(server, "users", "remove", ada).stdout == f"{ada} is removed.\n"
    assert run(server, "users", "remove", ada).exit_code == 2
