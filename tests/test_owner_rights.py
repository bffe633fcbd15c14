"""Who may take a table over, commit to it and give it back, where the catalog is its commit owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, Lake
from tests.owned import FEATURE, PROTOCOL, WRITER_FEATURES, Owned
from tests.servers import ServerProcess
from tests.test_ownership import TIDEGATE, Plain, allow, is_ours, promises, release
from tests.test_rights import grant

Enter = Callable[..., httpx.Client]


@pytest.fixture
def schema(http: httpx.Client, tmp_path: Path, unique: str) -> str:
    """A catalog and a schema of its own."""
    allow(http, tmp_path)
    return new_schema(http, unique)


def new_schema(http: httpx.Client, catalog: str, **properties: str) -> str:
    body = {"name": catalog, "properties": properties}
    assert http.post(f"{UNITY}/catalogs", json=body).status_code == 200
    assert http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": catalog}).status_code == 200
    return f"{catalog}.s"


@pytest.fixture
def enter(server: ServerProcess, http: httpx.Client, unique: str) -> Iterator[Enter]:
    """Lets a user come in who may pass the catalog and the schema, and has these privileges there."""
    clients: list[httpx.Client] = []

    def come(name: str, schema: str, *privileges: str) -> httpx.Client:
        who = f"{unique}_{name}"
        assert http.post(f"{TIDEGATE}/identities", json={"name": who}).status_code == 200
        token = http.post(f"{TIDEGATE}/tokens", json={"principal": who}).json()["token"]
        grant(http, who, schema.partition(".")[0], "USE CATALOG")
        grant(http, who, schema, "USE SCHEMA", *privileges)
        clients.append(httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60))
        return clients[-1]

    yield come
    for client in clients:
        client.close()


def owned(http: httpx.Client, plain: Plain, schema: str, version: int = 1) -> tuple[Owned, str]:
    """The table, and its name."""
    table = Owned(http, plain)
    agreed = table.register(version, schema=schema)
    assert agreed.status_code == 200, agreed.text
    table.id = agreed.json()["table_id"]
    assert table.put(version + 1)
    assert table.latest() == version + 1
    return table, agreed.json()["full_name"]


def rename(http: httpx.Client, name: str, new_name: str) -> httpx.Response:
    catalog, schema, table = name.split(".")
    url = f"{Lake(http, catalog, schema).tables_url()}/{table}/rename"
    return http.post(url, json={"new-name": new_name.rpartition(".")[2]})


def without_owner(table: Owned, version: int) -> dict[str, Any]:
    """The last commit as the text of the RFC has it: owner and feature go at once."""
    protocol = {**PROTOCOL, "writerFeatures": [one for one in WRITER_FEATURES if one != FEATURE]}
    return table.stage(version, {"protocol": protocol}, {"metaData": table.metadata({})})


def as_another(table: Owned, http: httpx.Client) -> Owned:
    return Owned(http, table.plain, table.id, timestamp=table.timestamp)


def test_giving_back_takes_the_right_to_manage(http: httpx.Client, tmp_path: Path, schema: str, enter: Enter) -> None:
    table, _ = owned(http, Plain(tmp_path / "t").create(), schema)
    writer = as_another(table, enter("writer", schema, "MODIFY", "SELECT"))
    assert writer.commit(3).status_code == 200
    refused = writer.send(writer.giving_back(4))
    assert refused.status_code == 403, refused.text
    assert promises(http) == []
    assert writer.commit(4).status_code == 200, "and the table goes on"
    manager = as_another(writer, enter("manager", schema, "MODIFY", "MANAGE"))
    assert manager.send(manager.giving_back(5)).status_code == 200
    assert table.plain.append(6), "the file system decides"


def test_a_policy_is_not_got_around_through_another_catalog(
    http: httpx.Client, tmp_path: Path, schema: str, unique: str
) -> None:
    kept = new_schema(http, f"{unique}_kept", **{"tidegate.release": "forbidden"})
    plain = Plain(tmp_path / "t").create()
    owned(http, plain, kept)
    adopting = {"location": plain.location, "full_name": f"{schema}.t"}
    for dry_run in (True, False):
        refused = http.post(f"{TIDEGATE}/adoptions", json={**adopting, "dry_run": dry_run})
        assert (refused.status_code, "tidegate.release" in refused.text) == (403, True), refused.text
    assert (is_ours(plain), promises(http)) == (False, [])
    there = http.post(f"{TIDEGATE}/adoptions", json={**adopting, "full_name": f"{kept}.t"})
    assert there.status_code == 200, there.text
    assert http.post(f"{TIDEGATE}/tables/{kept}.t/release").status_code == 403


def test_who_takes_a_table_over_with_somebody_else_may_make_tables_where_it_is_listed(
    http: httpx.Client, tmp_path: Path, schema: str, unique: str, enter: Enter
) -> None:
    other = new_schema(http, f"{unique}_other")
    plain = Plain(tmp_path / "t").create()
    first = Owned(http, plain).register(1, schema=schema)
    assert first.status_code == 200
    stranger = Owned(enter("stranger", other, "CREATE TABLE"), plain).register(1, schema=other)
    assert stranger.status_code == 400, stranger.text
    assert schema not in stranger.text
    assert Owned(http, plain).register(1, schema=other).json() == first.json(), "who may is told the same"


def test_a_schema_that_lists_a_table_of_ours_stays(http: httpx.Client, tmp_path: Path, schema: str) -> None:
    table, name = owned(http, Plain(tmp_path / "t").create(), schema)
    for what in (f"schemas/{schema}", f"catalogs/{schema.partition('.')[0]}"):
        refused = http.delete(f"{UNITY}/{what}", params={"force": "true"})
        assert refused.status_code == 400, refused.text
        assert f"commit owner of {name}" in refused.json()["message"]
    assert table.commit(3).status_code == 200


def test_what_is_taken_over_again_keeps_its_name_its_owner_and_its_rights(
    http: httpx.Client, tmp_path: Path, schema: str, unique: str, enter: Enter
) -> None:
    table, name = owned(http, Plain(tmp_path / "t").create(), schema)
    assert table.commit(3).status_code == 200
    writer, manager = enter("writer", schema), enter("manager", schema, "MANAGE")
    grant(http, f"{unique}_writer", name, "MODIFY", "SELECT")
    access = f"{TIDEGATE}/access/table/{name}"
    assert http.patch(access, json={"guarded": True}).status_code == 200
    before = http.get(access).json()
    assert table.send(without_owner(table, 4)).status_code == 200
    new_name = f"{name}_again"
    again = as_another(table, manager)
    again.id = again.register(4).json()["table_id"]
    assert again.id != table.id, "versions that come in between are not ours"
    assert rename(http, name, new_name).status_code == 204
    assert again.put(5)
    assert as_another(again, http).latest() == 5
    after = http.get(f"{TIDEGATE}/access/table/{new_name}").json()
    assert [after[key] for key in ("owner", "guarded")] == [before[key] for key in ("owner", "guarded")]
    hers = as_another(again, writer)
    assert hers.commit(6).status_code == 200, "she may go on writing"
    metadata = table.plain.actions(5)["metaData"]
    changed = {**metadata, "configuration": {**metadata["configuration"], "team": "sea"}}
    assert hers.commit(7, {"metaData": changed}).status_code == 403, "and the table is still guarded"


def test_the_last_commit_is_looked_at_like_every_other(http: httpx.Client, tmp_path: Path, schema: str) -> None:
    table, _ = owned(http, Plain(tmp_path / "t").create(), schema)
    outside = {"path": "../theirs.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    refused = table.send(table.stage(3, {"add": outside}, {"metaData": table.metadata({})}))
    assert (refused.status_code, "Line 2" in refused.text) == (400, True), refused.text
    assert promises(http) == []
    assert table.commit(3).status_code == 200


def test_the_last_commit_may_take_the_feature_along(http: httpx.Client, tmp_path: Path, schema: str) -> None:
    table, name = owned(http, Plain(tmp_path / "t").create(), schema)
    assert table.send(without_owner(table, 3)).json() == {"version": 3, "latest_version": 3, "published": True}
    assert table.plain.append(4)
    assert release(http, "x").status_code == 404
    assert http.delete(f"{UNITY}/tables/{name}").status_code == 200, "an external table may be forgotten"
