"""Catalogs and schemas over HTTP: create, get, list in pages, update, delete, and where they put their tables."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake import UNITY, Lake, error_of

CATALOGS, SCHEMAS, TABLES = f"{UNITY}/catalogs", f"{UNITY}/schemas", f"{UNITY}/tables"
INVALID = (400, "INVALID_PARAMETER_VALUE")
PAGES_MAX = 50


def created(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    return response.json()


def make_catalog(http: httpx.Client, name: str, **others: Any) -> dict[str, Any]:
    return created(http.post(CATALOGS, json={"name": name, **others}))


def make_schema(http: httpx.Client, catalog: str, name: str, **others: Any) -> dict[str, Any]:
    return created(http.post(SCHEMAS, json={"name": name, "catalog_name": catalog, **others}))


def lake_in(http: httpx.Client, catalog: str, schema: str = "s") -> Lake:
    """A new catalog with one schema in it."""
    make_catalog(http, catalog)
    make_schema(http, catalog, schema)
    return Lake(http, catalog, schema)


def read_pages(http: httpx.Client, url: str, key: str, **query: Any) -> list[list[str]]:
    """The names on each page, until there is no further one."""
    pages: list[list[str]] = []
    token: str | None = None
    for _ in range(PAGES_MAX):
        parameters = {**query} if token is None else {**query, "page_token": token}
        answer = created(http.get(url, params=parameters))
        pages.append([item["name"] for item in answer[key]])
        token = answer["next_page_token"]
        if token is None:
            return pages
    raise AssertionError(f"more than {PAGES_MAX} pages: {pages}")


# Create and get


def test_a_catalog_comes_back_as_it_was_created(http: httpx.Client, unique: str) -> None:
    earliest = int(time.time() * 1000)
    catalog = make_catalog(http, unique, comment="of the sea", properties={"team": "sea", "a.b": ""})
    assert http.get(f"{CATALOGS}/{unique}").json() == catalog
    assert (catalog["name"], catalog["comment"]) == (unique, "of the sea")
    assert catalog["properties"] == {"team": "sea", "a.b": ""}
    assert earliest <= catalog["created_at"] <= int(time.time() * 1000)
    assert catalog["updated_at"] == catalog["created_at"]
    assert catalog["owner"] == catalog["created_by"] == "admin"
    assert catalog["storage_root"] is None


def test_a_schema_comes_back_as_it_was_created(http: httpx.Client, unique: str) -> None:
    make_catalog(http, unique)
    schema = make_schema(http, unique, "s", comment="of the sea", properties={"team": "sea"})
    assert http.get(f"{SCHEMAS}/{unique}.s").json() == schema
    assert (schema["name"], schema["catalog_name"], schema["full_name"]) == ("s", unique, f"{unique}.s")
    assert (schema["comment"], schema["properties"]) == ("of the sea", {"team": "sea"})


def test_a_name_is_taken_once_and_case_makes_another_name(http: httpx.Client, unique: str) -> None:
    make_catalog(http, unique)
    make_schema(http, unique, "s")
    assert error_of(http.post(CATALOGS, json={"name": unique})) == (400, "CATALOG_ALREADY_EXISTS")
    again = http.post(SCHEMAS, json={"name": "s", "catalog_name": unique})
    assert error_of(again) == (400, "SCHEMA_ALREADY_EXISTS")
    make_catalog(http, unique.upper())
    make_schema(http, unique, "S")
    make_schema(http, unique.upper(), "s")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (f"{CATALOGS}/{{}}", "CATALOG_DOES_NOT_EXIST"),
        (f"{SCHEMAS}/{{}}.s", "CATALOG_DOES_NOT_EXIST"),
        (f"{SCHEMAS}/main.{{}}", "SCHEMA_DOES_NOT_EXIST"),
    ],
    ids=["catalog", "schema's catalog", "schema"],
)
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_what_does_not_exist_is_not_found(http: httpx.Client, unique: str, url: str, code: str, method: str) -> None:
    body = {"comment": "x"} if method == "PATCH" else None
    assert error_of(http.request(method, url.format(unique), json=body)) == (404, code)


def test_nothing_is_made_or_listed_in_a_catalog_or_schema_that_is_not_there(http: httpx.Client, unique: str) -> None:
    missing_catalog = (404, "CATALOG_DOES_NOT_EXIST")
    assert error_of(http.post(SCHEMAS, json={"name": "s", "catalog_name": unique})) == missing_catalog
    assert error_of(http.get(SCHEMAS, params={"catalog_name": unique})) == missing_catalog
    tables = {"catalog_name": "main", "schema_name": unique}
    assert error_of(http.get(TABLES, params=tables)) == (404, "SCHEMA_DOES_NOT_EXIST")
    assert error_of(Lake(http, "main", unique).stage("t")) == (404, "NoSuchSchemaException")


# Lists

NAMES = ["a", "B", "b", "a-1", "a_1", "a@1", "A", "z", "a1", "1a"]
"""Ordered otherwise by a database that goes by a language's rules."""


@pytest.fixture
def filled(http: httpx.Client, unique: str) -> str:
    """A catalog with a schema for each of the names."""
    make_catalog(http, unique)
    for name in NAMES:
        make_schema(http, unique, name)
    return unique


@pytest.mark.parametrize("size", [1, 3, 5, len(NAMES) - 1, len(NAMES), len(NAMES) + 1, 2**31 - 1])
def test_pages_hold_every_schema_once_in_order(http: httpx.Client, filled: str, size: int) -> None:
    pages = read_pages(http, SCHEMAS, "schemas", catalog_name=filled, max_results=size)
    assert [name for page in pages for name in page] == sorted(NAMES)
    assert all(len(page) == size for page in pages[:-1])
    assert len(pages) == -(-len(NAMES) // size)


@pytest.mark.parametrize("query", [{}, {"max_results": 0}, {"page_token": ""}], ids=["without", "zero", "empty token"])
def test_without_a_page_size_the_server_takes_its_own(http: httpx.Client, filled: str, query: dict[str, Any]) -> None:
    answer = http.get(SCHEMAS, params={"catalog_name": filled, **query}).json()
    assert [schema["name"] for schema in answer["schemas"]] == sorted(NAMES)
    assert answer["next_page_token"] is None


def test_an_empty_catalog_has_one_empty_page(http: httpx.Client, unique: str) -> None:
    make_catalog(http, unique)
    assert read_pages(http, SCHEMAS, "schemas", catalog_name=unique, max_results=1) == [[]]


def test_pages_of_catalogs_hold_every_catalog(http: httpx.Client, unique: str) -> None:
    """Other tests make catalogs too; ours are among them, once each and in order."""
    mine = [f"{unique}_{number}" for number in range(5)]
    for name in reversed(mine):
        make_catalog(http, name)
    pages = read_pages(http, CATALOGS, "catalogs", max_results=25)
    names = [name for page in pages for name in page]
    assert [name for name in names if name in mine] == mine
    assert names == sorted(set(names))
    assert "main" in names
    first = http.get(CATALOGS, params={"max_results": 1}).json()
    assert [catalog["name"] for catalog in first["catalogs"]] == names[:1]


def test_pages_of_tables_hold_every_table_whole(http: httpx.Client, unique: str) -> None:
    lake = lake_in(http, unique)
    for name in ("b", "A", "c", "a"):
        lake.new_table(name).commit(1)
    place = {"catalog_name": unique, "schema_name": "s"}
    assert read_pages(http, TABLES, "tables", **place, max_results=2) == [["A", "a"], ["b", "c"]]
    listed = http.get(TABLES, params={**place, "max_results": 0}).json()["tables"]
    assert listed == [http.get(f"{TABLES}/{unique}.s.{name}").json() for name in ("A", "a", "b", "c")]


def test_what_comes_and_goes_between_pages_disturbs_nothing_else(http: httpx.Client, filled: str) -> None:
    first = http.get(SCHEMAS, params={"catalog_name": filled, "max_results": 4}).json()
    seen = [schema["name"] for schema in first["schemas"]]
    assert http.delete(f"{SCHEMAS}/{filled}.{seen[-1]}").status_code == 200
    make_schema(http, filled, "0")
    make_schema(http, filled, "zz")
    rest = {"catalog_name": filled, "page_token": first["next_page_token"]}
    names = [schema["name"] for schema in http.get(SCHEMAS, params=rest).json()["schemas"]]
    assert seen + names == [*sorted(NAMES), "zz"]


@pytest.mark.parametrize("query", [{"max_results": -1}, {"max_results": "many"}, {"page_token": "%%%"}])
def test_a_page_that_cannot_be_is_refused(http: httpx.Client, query: dict[str, Any]) -> None:
    assert error_of(http.get(CATALOGS, params=query)) == INVALID
    assert error_of(http.get(SCHEMAS, params={"catalog_name": "main", **query})) == INVALID
    place = {"catalog_name": "main", "schema_name": "default"}
    assert error_of(http.get(TABLES, params={**place, **query})) == INVALID


# Update


@pytest.mark.parametrize("kind", ["catalog", "schema"])
def test_an_update_changes_what_it_names_and_nothing_else(http: httpx.Client, unique: str, kind: str) -> None:
    make_catalog(http, unique, comment="old", properties={"a": "1"})
    before = make_schema(http, unique, "s", comment="old", properties={"a": "1"})
    url = f"{SCHEMAS}/{unique}.s"
    if kind == "catalog":
        url = f"{CATALOGS}/{unique}"
        before = http.get(url).json()
    expected = before
    for change in ({"comment": "new"}, {"properties": {"b": "2"}}, {"properties": {}}, {"comment": ""}, {}):
        after = created(http.patch(url, json=change))
        expected = {**expected, **change, "updated_at": after["updated_at"]}
        assert after == expected == http.get(url).json()
        assert after["updated_at"] >= before["updated_at"]


def test_tables_stay_reachable_when_their_catalog_is_renamed(http: httpx.Client, unique: str) -> None:
    lake = lake_in(http, unique)
    table, draft = lake.new_table("t"), lake.draft("staged")
    assert table.commit(1).status_code == 200
    before = table.load()
    renamed = created(http.patch(f"{CATALOGS}/{unique}", json={"new_name": f"{unique}_new"}))
    assert renamed["name"] == f"{unique}_new"
    assert error_of(http.get(f"{CATALOGS}/{unique}")) == (404, "CATALOG_DOES_NOT_EXIST")
    assert error_of(lake.load("t"))[0] == 404
    lake.catalog = f"{unique}_new"
    assert table.load() == before
    assert table.commit(2).status_code == 200
    draft.write_version_0()
    assert lake.create(draft.request).status_code == 200
    assert http.get(f"{SCHEMAS}/{unique}_new.s").json()["full_name"] == f"{unique}_new.s"


def test_tables_stay_reachable_when_their_schema_is_renamed(http: httpx.Client, unique: str) -> None:
    lake = lake_in(http, unique)
    table, draft = lake.new_table("t"), lake.draft("staged")
    assert table.commit(1).status_code == 200
    before = table.load()
    renamed = created(http.patch(f"{SCHEMAS}/{unique}.s", json={"new_name": "new"}))
    assert (renamed["name"], renamed["full_name"]) == ("new", f"{unique}.new")
    assert error_of(lake.load("t"))[0] == 404
    lake.schema = "new"
    assert table.load() == before
    assert table.commit(2).status_code == 200
    draft.write_version_0()
    assert lake.create(draft.request).status_code == 200


def test_a_name_that_is_freed_by_renaming_can_be_taken_again(http: httpx.Client, unique: str) -> None:
    lake = lake_in(http, unique)
    first = lake.new_table("t")
    created(http.patch(f"{SCHEMAS}/{unique}.s", json={"new_name": "old"}))
    make_schema(http, unique, "s")
    second = lake.new_table("t")
    assert second.load()["metadata"]["table-uuid"] == second.id != first.id
    assert Lake(http, unique, "old").load("t").json()["metadata"]["table-uuid"] == first.id


@pytest.mark.parametrize("name", ["a.b", "", "with space", "x" * 256, "ü", "a/b"])
def test_nothing_is_renamed_to_what_is_no_name(http: httpx.Client, unique: str, name: str) -> None:
    lake_in(http, unique)
    for url in (f"{CATALOGS}/{unique}", f"{SCHEMAS}/{unique}.s"):
        before = http.get(url).json()
        assert error_of(http.patch(url, json={"new_name": name, "comment": "not this either"})) == INVALID
        assert http.get(url).json() == before


def test_nothing_is_renamed_to_a_name_that_is_taken(http: httpx.Client, unique: str) -> None:
    lake_in(http, unique)
    make_schema(http, unique, "other")
    taken = http.patch(f"{CATALOGS}/{unique}", json={"new_name": "main"})
    assert error_of(taken) == (400, "CATALOG_ALREADY_EXISTS")
    taken = http.patch(f"{SCHEMAS}/{unique}.s", json={"new_name": "other"})
    assert error_of(taken) == (400, "SCHEMA_ALREADY_EXISTS")
    assert created(http.patch(f"{SCHEMAS}/{unique}.s", json={"new_name": "s"}))["name"] == "s"


# Delete


@pytest.mark.parametrize("force", ["", "?force=false", "?force=true"])
def test_what_is_empty_is_deleted_with_and_without_force(http: httpx.Client, unique: str, force: str) -> None:
    lake_in(http, unique)
    assert http.delete(f"{SCHEMAS}/{unique}.s{force}").status_code == 200
    assert error_of(http.get(f"{SCHEMAS}/{unique}.s")) == (404, "SCHEMA_DOES_NOT_EXIST")
    assert http.delete(f"{CATALOGS}/{unique}{force}").status_code == 200
    assert error_of(http.get(f"{CATALOGS}/{unique}")) == (404, "CATALOG_DOES_NOT_EXIST")
    assert error_of(http.delete(f"{CATALOGS}/{unique}{force}")) == (404, "CATALOG_DOES_NOT_EXIST")
    make_schema(http, make_catalog(http, unique)["name"], "s")


@pytest.mark.parametrize("force", ["", "?force=false"])
def test_what_is_not_empty_stays_without_force(http: httpx.Client, unique: str, force: str) -> None:
    lake = lake_in(http, unique)
    table = lake.new_table("t")
    before = table.load()
    for url in (f"{SCHEMAS}/{unique}.s", f"{CATALOGS}/{unique}"):
        refused = http.delete(f"{url}{force}")
        assert refused.status_code == 400, refused.text
        assert "force" in refused.json()["message"]
        assert http.get(url).status_code == 200
    assert table.load() == before


def test_a_catalog_with_an_empty_schema_is_not_empty(http: httpx.Client, unique: str) -> None:
    lake_in(http, unique)
    assert http.delete(f"{CATALOGS}/{unique}").status_code == 400
    assert http.get(f"{SCHEMAS}/{unique}.s").status_code == 200


def test_a_schema_whose_tables_were_dropped_is_empty(http: httpx.Client, unique: str) -> None:
    lake = lake_in(http, unique)
    lake.new_table("t")
    assert http.delete(f"{lake.tables_url()}/t").status_code == 204
    assert http.delete(f"{SCHEMAS}/{unique}.s").status_code == 200
    assert http.delete(f"{CATALOGS}/{unique}").status_code == 200


@pytest.mark.parametrize("kind", ["catalog", "schema"])
def test_a_forced_delete_drops_the_tables_and_frees_all_names(http: httpx.Client, unique: str, kind: str) -> None:
    """Nothing of the old tables is seen under the names that are given anew, and their files stay."""
    lake = lake_in(http, unique)
    old = [lake.new_table(f"t{number}") for number in range(3)]
    for table in old:
        assert table.commit(1).status_code == 200
    staged = lake.draft("staged")
    url = f"{SCHEMAS}/{unique}.s" if kind == "schema" else f"{CATALOGS}/{unique}"
    assert http.delete(url, params={"force": "true"}).status_code == 200
    for table in old:
        assert error_of(lake.load(table.name))[0] == 404
        assert error_of(table.commit(2))[0] == 404
        assert (table.log / f"{0:020}.json").is_file()
    staged.write_version_0()
    assert error_of(lake.create(staged.request))[0] == 404
    if kind == "catalog":
        make_catalog(http, unique)
    make_schema(http, unique, "s")
    assert http.get(TABLES, params={"catalog_name": unique, "schema_name": "s"}).json()["tables"] == []
    new = lake.new_table("t0")
    assert new.versions() == []
    assert new.load()["metadata"]["table-uuid"] == new.id != old[0].id
    assert error_of(lake.create(staged.request)) == (404, "NoSuchTableException")


def test_a_forced_delete_of_a_catalog_takes_all_of_its_schemas(http: httpx.Client, filled: str) -> None:
    Lake(http, filled, "a").new_table("t")
    Lake(http, filled, "z").new_table("t")
    assert http.delete(f"{CATALOGS}/{filled}?force=true").status_code == 200
    make_catalog(http, filled)
    assert read_pages(http, SCHEMAS, "schemas", catalog_name=filled) == [[]]


def test_a_forced_delete_leaves_what_lies_beside_alone(http: httpx.Client, unique: str) -> None:
    lake = lake_in(http, unique)
    make_schema(http, unique, "kept")
    kept = Lake(http, unique, "kept").new_table("t")
    lake.new_table("t")
    before = kept.load()
    assert http.delete(f"{SCHEMAS}/{unique}.s?force=true").status_code == 200
    assert kept.load() == before
    assert kept.commit(1).status_code == 200


# Where tables are put


@pytest.mark.parametrize(
    ("catalog_root", "schema_root", "expected"),
    [(False, False, None), (True, False, "catalog"), (False, True, "schema"), (True, True, "schema")],
)
def test_the_nearest_storage_root_decides_where_tables_are_staged(
    http: httpx.Client,
    unique: str,
    tmp_path: Path,
    catalog_root: bool,
    schema_root: bool,
    expected: str | None,
) -> None:
    roots = {kind: f"file://{tmp_path}/{kind}" for kind in ("catalog", "schema")}
    catalog = make_catalog(http, unique, **({"storage_root": roots["catalog"]} if catalog_root else {}))
    schema = make_schema(http, unique, "s", **({"storage_root": roots["schema"]} if schema_root else {}))
    assert catalog["storage_root"] == (roots["catalog"] if catalog_root else None)
    assert schema["storage_root"] == (roots["schema"] if schema_root else None)
    table = Lake(http, unique, "s").new_table("t")
    home = Lake(http).draft(unique).location.rpartition("/")[0]
    assert table.location.startswith(f"{home if expected is None else roots[expected]}/")
    assert table.location.endswith(f"/{table.id}")
    assert table.load()["metadata"]["location"] == table.location
    assert table.commit(1).status_code == 200


def test_tables_stay_where_they_are_when_their_namespaces_are_renamed(
    http: httpx.Client, unique: str, tmp_path: Path
) -> None:
    make_catalog(http, unique, storage_root=f"file:{tmp_path}/root/")
    make_schema(http, unique, "s")
    lake = Lake(http, unique, "s")
    table = lake.new_table("t")
    created(http.patch(f"{CATALOGS}/{unique}", json={"new_name": f"{unique}_new"}))
    created(http.patch(f"{SCHEMAS}/{unique}_new.s", json={"new_name": "new"}))
    lake.catalog, lake.schema = f"{unique}_new", "new"
    assert table.load()["metadata"]["location"] == table.location
    neighbour = lake.new_table("t2")
    assert neighbour.location.rpartition("/")[0] == table.location.rpartition("/")[0]


@pytest.mark.parametrize("root", ["/plain/path", "relative", "", "file:///", "file:///a/../b", "ftp://x/y", "s3://b/x"])
def test_a_storage_root_that_the_server_cannot_use_is_refused(http: httpx.Client, unique: str, root: str) -> None:
    assert error_of(http.post(CATALOGS, json={"name": unique, "storage_root": root})) == INVALID
    assert error_of(http.get(f"{CATALOGS}/{unique}")) == (404, "CATALOG_DOES_NOT_EXIST")
    body = {"name": unique, "catalog_name": "main", "storage_root": root}
    assert error_of(http.post(SCHEMAS, json=body)) == INVALID
    assert error_of(http.get(f"{SCHEMAS}/main.{unique}")) == (404, "SCHEMA_DOES_NOT_EXIST")
