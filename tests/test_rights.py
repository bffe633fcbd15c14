"""Rights on a running server: what is hidden, what is listed, owners, guarded tables, the commands and the client."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, Lake, LakeTable, add_commit, error_of, set_properties
from tests.servers import ServerProcess
from tests.test_drop_commands import run
from tidegate.client import connect, connect_async

API = "/api/tidegate/v1"
INVALID = (400, "InvalidParameterValueException")
Enter = Callable[[str], httpx.Client]


@pytest.fixture
def enter(server: ServerProcess, http: httpx.Client, unique: str) -> Iterator[Enter]:
    """Lets users come in, by the ends of their names, with connections of their own."""
    clients: list[httpx.Client] = []

    def come(name: str) -> httpx.Client:
        who = f"{unique}_{name}"
        assert http.post(f"{API}/identities", json={"name": who}).status_code == 200
        token = http.post(f"{API}/tokens", json={"principal": who}).json()["token"]
        clients.append(httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60))
        return clients[-1]

    yield come
    for client in clients:
        client.close()


def grant(http: httpx.Client, who: str, on: str, *privileges: str, remove: tuple[str, ...] = ()) -> None:
    kind = "metastore" if on == "metastore" else ("catalog", "schema", "table")[on.count(".")]
    changes = [{"principal": who, "add": list(privileges), "remove": list(remove)}]
    changed = http.patch(f"{UNITY}/permissions/{kind}/{on}", json={"changes": changes})
    assert changed.status_code == 200, changed.text


def namespace(http: httpx.Client, catalog: str) -> Lake:
    assert http.post(f"{UNITY}/catalogs", json={"name": catalog}).status_code == 200
    assert http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": catalog}).status_code == 200
    return Lake(http, catalog, "s")


def names(http: httpx.Client, kind: str, **query: str) -> list[str]:
    found, page = list[str](), ""
    while page is not None:
        answer = http.get(f"{UNITY}/{kind}", params={**query, "max_results": "2", "page_token": page}).json()
        found += [one["name"] for one in answer[kind]]
        page = answer.get("next_page_token")
    return found


def test_what_is_hidden_cannot_be_told_from_what_is_not_there(http: httpx.Client, unique: str, enter: Enter) -> None:
    lake = namespace(http, unique)
    table = lake.new_table("tides")
    draft = lake.draft("staged")
    draft.write_version_0()
    ada = enter("ada")
    grant(http, f"{unique}_ada", unique, "USE CATALOG", "USE SCHEMA", "CREATE TABLE")
    hers = Lake(ada, unique, "s")
    absent = str(uuid.uuid4())

    def same(method: str, path: str, there: str, missing: str, **request: Any) -> None:
        hidden = ada.request(method, path.format(there), **request)
        gone = ada.request(method, path.format(missing), **request)
        assert hidden.status_code == gone.status_code == 404, hidden.text
        told = hidden.text
        for one, other in zip(there.split("."), missing.split("."), strict=True):
            told = told.replace(one, other)
        assert told == gone.text

    same("GET", f"{hers.tables_url()}/{{}}", "tides", "absent")
    same("POST", f"{hers.tables_url()}/{{}}/rename", "tides", "absent", json={"new-name": "x"})
    same("GET", f"{UNITY}/tables/{{}}", f"{unique}.s.tides", f"{unique}.s.absent")
    same("GET", f"{API}/tables/{{}}/timeline", f"{unique}.s.tides", f"{unique}.s.absent")
    same("GET", f"{UNITY}/schemas/{{}}", "main.default", "absent.default")
    same("GET", f"{UNITY}/tables/{{}}", "main.default.x", "absent.default.x")
    same("GET", f"{UNITY}/delta/v1/staging-tables/{{}}/credentials", draft.id, absent)
    for id in (table.id, absent):
        asked = ada.post(f"{UNITY}/temporary-table-credentials", json={"table_id": id, "operation": "READ"})
        assert asked.json()["message"] == f"There is no table with id {id}."
    # A staging table of somebody else is not there to be finished.
    refused = hers.create(draft.request)
    assert refused.status_code == 404, refused.text
    assert http.head(f"{lake.tables_url()}/staged").status_code == 404


def test_listings_events_and_dropped_tables_show_what_one_may_use(
    http: httpx.Client, unique: str, enter: Enter
) -> None:
    lake = namespace(http, unique)
    tables = {name: lake.new_table(name) for name in ("a", "b", "c", "d", "e")}
    ada = enter("ada")
    who = f"{unique}_ada"
    assert names(ada, "catalogs") == []
    grant(http, who, unique, "USE CATALOG")
    assert names(ada, "catalogs") == [unique]
    assert names(ada, "schemas", catalog_name=unique) == []
    grant(http, who, f"{unique}.s", "USE SCHEMA")
    assert names(ada, "schemas", catalog_name=unique) == ["s"]
    for name in ("a", "c", "e"):
        grant(http, who, f"{unique}.s.{name}", "SELECT")
    assert names(ada, "tables", catalog_name=unique, schema_name="s") == ["a", "c", "e"]

    def told() -> set[str]:
        page, seen = ada.get(f"{API}/events").json(), set[str]()
        while True:
            seen |= {event["table_id"] for event in page["events"]}
            if page["next_after"] >= page["last"]:
                return seen
            page = ada.get(f"{API}/events", params={"after": page["next_after"]}).json()

    assert told() == {tables[name].id for name in ("a", "c", "e")}
    for name in ("a", "b"):
        assert http.delete(f"{lake.tables_url()}/{name}").status_code == 204
    assert ada.get(f"{API}/dropped-tables").json()["tables"] == []
    grant(http, who, f"{unique}.s", "MANAGE")
    shown = [one["table_id"] for one in ada.get(f"{API}/dropped-tables").json()["tables"]]
    assert shown == [tables["b"].id, tables["a"].id]
    assert ada.post(f"{API}/dropped-tables/{tables['b'].id}/restore", json={}).status_code == 200


def test_a_table_of_the_same_name_inherits_nothing_and_a_renamed_one_keeps_what_it_has(
    http: httpx.Client, unique: str, enter: Enter
) -> None:
    lake = namespace(http, unique)
    lake.new_table("t")
    ada = enter("ada")
    grant(http, f"{unique}_ada", unique, "USE CATALOG", "USE SCHEMA")
    grant(http, f"{unique}_ada", f"{unique}.s.t", "SELECT")
    hers = Lake(ada, unique, "s")
    assert hers.load("t").status_code == 200
    assert http.post(f"{lake.tables_url()}/t/rename", json={"new-name": "u"}).status_code == 204
    lake.new_table("t")
    assert (hers.load("t").status_code, hers.load("u").status_code) == (404, 200)
    assert http.delete(f"{lake.tables_url()}/u").status_code == 204
    lake.new_table("u")
    assert hers.load("u").status_code == 404


def test_a_writer_by_the_old_name_is_told_where_the_table_went_if_they_may_see_it_there(
    http: httpx.Client, unique: str, enter: Enter
) -> None:
    lake = namespace(http, unique)
    table = lake.new_table("t")
    ada, bob = enter("ada"), enter("bob")
    for who in (f"{unique}_ada", f"{unique}_bob"):
        grant(http, who, unique, "USE CATALOG", "USE SCHEMA")
    grant(http, f"{unique}_ada", f"{unique}.s.t", "MODIFY")
    commit, content = add_commit(table.stage_commit(1)), inline(table, 1)

    def said(caller: httpx.Client) -> list[str]:
        """By each way in which a commit names its table."""
        staged = caller.post(f"{lake.tables_url()}/t", json=table.request(commit))
        sent = caller.post(f"{API}/tables/{unique}.s.t/commits", json=content)
        assert (staged.status_code, sent.status_code) == (404, 404)
        return [staged.json()["error"]["message"], sent.json()["message"]]

    assert http.post(f"{lake.tables_url()}/t/rename", json={"new-name": "u"}).status_code == 204
    moved = f"There is no table {unique}.s.t. The table with id {table.id} is called {unique}.s.u now."
    assert said(ada) == [moved, moved]
    assert said(bob) == [f"There is no table {unique}.s.t."] * 2, "it tells nobody of what they may not see"
    lake.new_table("t")
    grant(http, f"{unique}_ada", f"{unique}.s.t", "MODIFY")
    assert said(ada) == [moved, moved], "also where another table has the name"


def test_an_owner_may_do_everything_and_can_give_it_away(http: httpx.Client, unique: str, enter: Enter) -> None:
    namespace(http, unique)
    ada, bob = enter("ada"), enter("bob")
    for who in ("ada", "bob"):
        grant(http, f"{unique}_{who}", unique, "USE CATALOG", "USE SCHEMA")
    grant(http, f"{unique}_ada", f"{unique}.s", "CREATE TABLE")
    table = Lake(ada, unique, "s").new_table("t")
    assert table.commit(1).status_code == 200
    access = f"{API}/access/table/{unique}.s.t"
    assert error_of(bob.patch(access, json={"owner": f"{unique}_bob"}))[0] == 404
    given = ada.patch(access, json={"owner": f"{unique}_bob"})
    assert given.json() == {"owner": f"{unique}_bob", "guarded": False}
    assert ada.get(access).status_code == 404
    assert Lake(bob, unique, "s").load("t").status_code == 200
    assert bob.get(f"{UNITY}/tables/{unique}.s.t").json()["owner"] == f"{unique}_bob"


def inline(table: LakeTable, version: int, **configuration: str) -> dict[str, Any]:
    """A commit with its content, that changes the table's configuration."""
    info = {"inCommitTimestamp": table.stage_commit(version)["timestamp"], "txnId": str(uuid.uuid4())}
    first = [json.loads(line) for line in (table.log / f"{0:020}.json").read_text().splitlines()]
    metadata = next(action["metaData"] for action in first if "metaData" in action)
    changed = {**metadata, "configuration": {**metadata["configuration"], **configuration}}
    content = "".join(json.dumps(line) + "\n" for line in ({"commitInfo": info}, {"metaData": changed}))
    return {"table_id": table.id, "content": content, "version": version}


def old(table: LakeTable, version: int, **configuration: str) -> dict[str, Any]:
    """The same through specification v0.1.0."""
    commit = {key.replace("-", "_"): value for key, value in table.stage_commit(version).items()}
    properties = {**table.load()["metadata"]["properties"], **configuration}
    identity = {"table_id": table.id, "table_uri": table.location}
    return {**identity, "commit_info": commit, "metadata": {"properties": properties}}


def test_metadata_of_a_guarded_table_is_changed_only_by_those_who_may(
    http: httpx.Client, unique: str, enter: Enter
) -> None:
    lake = namespace(http, unique)
    table = lake.new_table("t")
    ada = enter("ada")
    grant(http, f"{unique}_ada", unique, "USE CATALOG", "USE SCHEMA", "MODIFY")
    hers = Lake(ada, unique, "s")
    assert hers.update("t", table.request(set_properties(team="sea"))).status_code == 200, "nobody guards it yet"
    guarded = http.patch(f"{API}/access/table/{unique}.s.t", json={"guarded": True})
    assert guarded.json() == {"owner": "admin", "guarded": True}
    # Data goes on as ever.
    assert hers.update("t", table.request(add_commit(table.stage_commit(1)))).status_code == 200
    changes = [  # with a commit it is a 400: for a 403 the stock client would try again for minutes
        table.request(set_properties(team="land")),
        table.request(add_commit(table.stage_commit(2)), set_properties(**{"delta.appendOnly": "true"})),
        table.request({"action": "set-table-comment", "comment": "hers"}),
    ]
    for change in changes:
        refused = hers.update("t", change)
        commits = any(update["action"] == "add-commit" for update in change["updates"])
        assert error_of(refused) == (INVALID if commits else (403, "PermissionDeniedException"))
        assert "MODIFY METADATA" in refused.text
    append_only = {"delta.appendOnly": "true"}
    refused = ada.post(f"{API}/tables/{unique}.s.t/commits", json=inline(table, 2, **append_only))
    assert (refused.status_code, "MODIFY METADATA" in refused.text) == (403, True), refused.text
    refused = ada.post(f"{UNITY}/delta/commit", json=old(table, 2, **append_only))
    assert (refused.status_code, "MODIFY METADATA" in refused.text) == (403, True), refused.text
    grant(http, f"{unique}_ada", f"{unique}.s.t", "MODIFY METADATA")
    assert hers.update("t", changes[0]).status_code == 200


def test_a_reader_gets_no_credentials_that_write(http: httpx.Client, unique: str, enter: Enter) -> None:
    lake = namespace(http, unique)
    table = lake.new_table("t")
    ada = enter("ada")
    grant(http, f"{unique}_ada", unique, "USE CATALOG", "USE SCHEMA", "SELECT")
    url = f"{lake.tables_url()}/t/credentials"
    assert ada.get(url, params={"operation": "READ"}).status_code == 200
    assert ada.get(url, params={"operation": "READ_WRITE"}).status_code == 403
    old = {"table_id": table.id, "operation": "READ_WRITE"}
    assert ada.post(f"{UNITY}/temporary-table-credentials", json=old).status_code == 403
    refused = Lake(ada, unique, "s").update("t", table.request(add_commit(table.stage_commit(1))))
    assert refused.status_code == 403
    assert "MODIFY" in refused.text


def test_the_commands_and_the_client_grant_explain_and_revoke(
    server: ServerProcess, http: httpx.Client, unique: str, enter: Enter
) -> None:
    namespace(http, unique).new_table("t")
    enter("ada")
    who, on = f"{unique}_ada", f"{unique}.s.t"
    refused = run(server, "can", "SELECT", on, "--who", who)
    assert refused.exit_code == 1
    assert refused.stdout.startswith("no: It takes MANAGE or USE CATALOG on catalog")

    def done(*arguments: str) -> str:
        result = run(server, *arguments)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    assert done("grant", who, "use_catalog", unique) == f"{who} has USE CATALOG on {unique}.\n"
    with connect(server.url, token=server.token) as catalog:
        assert catalog.grants(unique) == {who: ["USE CATALOG"]}
        assert catalog.grant(who, "use_schema", f"{unique}.s") == {who: ["USE SCHEMA"]}

    async def client() -> None:
        async with connect_async(server.url, token=server.token) as catalog:
            assert await catalog.grant(who, "MODIFY", on) == {who: ["MODIFY"]}
            assert await catalog.grant(who, "SELECT", on) == {who: ["MODIFY", "SELECT"]}
            assert await catalog.revoke(who, "MODIFY", on) == await catalog.grants(on) == {who: ["SELECT"]}

    asyncio.run(client())
    assert done("can", "SELECT", on, "--who", who) == f"yes: {who} has SELECT on table {on}.\n"
    done("revoke", who, "SELECT", on)
    done("guard", on)
    done("give", on, who)
    assert http.get(f"{API}/access/table/{on}").json() == {"owner": who, "guarded": True}
    assert done("can", "MODIFY METADATA", on, "--who", who) == f"yes: {who} owns table {on}.\n"
    assert done("can", "MANAGE", on) == "yes: admin may do everything.\n"
