"""Keys that are declared on tables: what they keep commits and drops from, through every door, on both databases."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.lake import COLUMNS, UNITY, Lake, LakeTable, error_of, set_properties
from tests.old_lake import OldLake
from tests.servers import ServerProcess
from tests.test_drop_commands import run
from tests.test_external_tables import registered
from tests.test_inline_commits import Inline, content
from tests.test_rights import Enter, enter, grant
from tidegate.client import InvalidRequest, connect, connect_async

__all__ = ["enter"]

API = "/api/tidegate/v1"
INVALID = (400, "InvalidParameterValueException")
ID, NAME = COLUMNS["fields"]
CUSTOMER = {"name": "customer", "type": "long", "nullable": True, "metadata": {}}
CHANGES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "dropped": ([NAME], "dropped or renamed"),
    "renamed": ([{**ID, "name": "key"}, NAME], "dropped or renamed"),
    "nullable": ([{**ID, "nullable": True}, NAME], "made nullable"),
    "another type": ([{**ID, "type": "string"}, NAME], "given another type"),
}


@dataclass
class Shop:
    """Orders have customers; both tables are new and have no keys yet."""

    http: httpx.Client
    customers: LakeTable
    orders: LakeTable

    def declare(self, table: LakeTable, **constraint: Any) -> httpx.Response:
        body = {"full_name_arg": full(table), "constraint": constraint}
        return self.http.post(f"{UNITY}/constraints", json=body)

    def primary(self, *columns: str, **more: Any) -> httpx.Response:
        key = {"child_columns": list(columns or ["id"]), **more}
        return self.declare(self.customers, primary_key_constraint=key)

    def foreign(self, *columns: str, **more: Any) -> httpx.Response:
        key = {"child_columns": list(columns or ["customer"]), "parent_table": full(self.customers), **more}
        return self.declare(self.orders, foreign_key_constraint=key)

    def remove(self, table: LakeTable, name: str, **query: str) -> httpx.Response:
        return self.http.delete(f"{UNITY}/constraints/{full(table)}", params={"constraint_name": name, **query})

    def shown(self, table: LakeTable, http: httpx.Client | None = None) -> dict[str, Any]:
        answer = (http or self.http).get(f"{API}/tables/{full(table)}/constraints")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def with_keys(self) -> Shop:
        assert self.primary(name="pk").status_code == 200
        assert self.foreign(name="fk").status_code == 200
        return self


def full(table: LakeTable) -> str:
    return f"{table.lake.catalog}.{table.lake.schema}.{table.name}"


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def set_columns(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"action": "set-columns", "columns": struct(*fields)}


@pytest.fixture
def shop(lake: Lake, unique: str) -> Shop:
    orders = lake.new_table(f"{unique}_orders", columns=struct(ID, CUSTOMER))
    return Shop(lake.http, lake.new_table(f"{unique}_customers"), orders)


def test_keys_are_declared_shown_and_removed(shop: Shop) -> None:
    customers, orders = full(shop.customers), full(shop.orders)
    assert "table_constraints" not in shop.http.get(f"{UNITY}/tables/{orders}").json()
    primary = {"primary_key_constraint": {"name": f"{shop.customers.name}_pk", "child_columns": ["id"]}}
    assert shop.primary("ID").json() == primary
    made = shop.foreign().json()["foreign_key_constraint"]
    assert made == {
        "name": f"{shop.orders.name}_{shop.customers.name}_fk",
        "child_columns": ["customer"],
        "parent_table": customers,
        "parent_columns": ["id"],
    }
    assert shop.http.get(f"{UNITY}/tables/{orders}").json()["table_constraints"] == [{"foreign_key_constraint": made}]
    of_customers = {"table": orders, "foreign_key_constraint": made}
    assert shop.shown(shop.customers) == {"table_constraints": [primary], "referred_by": [of_customers]}
    assert shop.remove(shop.orders, made["name"]).json() == {}
    assert shop.remove(shop.orders, made["name"]).status_code == 404
    assert shop.remove(shop.customers, primary["primary_key_constraint"]["name"]).status_code == 200
    assert shop.shown(shop.customers) == {"table_constraints": [], "referred_by": []}


def test_keys_that_cannot_be_are_refused(shop: Shop, lake: Lake, unique: str) -> None:
    assert "has no primary key" in shop.foreign().json()["message"]
    for columns, told in ((["absent"], "no column"), (["name"], "may be null"), (["id", "ID"], "named twice")):
        assert told in shop.primary(*columns).json()["message"]
    assert "1 to 32 columns" in shop.declare(shop.customers, primary_key_constraint={"child_columns": []}).text
    assert shop.primary(name="a.b").status_code == 400
    assert shop.primary(name="pk").status_code == 200
    assert "has a primary key already: pk" in shop.primary(name="pk2").json()["message"]
    for more, told in (
        ({"parent_columns": ["name"]}, "which is (id)"),
        ({"parent_table": "main.default.absent"}, "no table"),
        ({"parent_table": "absent"}, "full name"),
    ):
        assert told in shop.foreign(**more).json()["message"]
    assert "has 2 columns" in shop.foreign("customer", "id").json()["message"]
    text = lake.new_table(f"{unique}_text", columns=struct(ID, {**CUSTOMER, "type": "string"}))
    assert "have the types" in Shop(shop.http, shop.customers, text).foreign().json()["message"]
    assert shop.foreign(name="fk").status_code == 200
    assert "constraint fk already" in shop.foreign(name="fk").json()["message"]
    for neither in ({}, {"named_table_constraint": {"name": "positive"}}):
        assert "in its log" in shop.declare(shop.orders, **neither).json()["message"]
    outside = registered(lake, f"{unique}_outside", f"file:///elsewhere/{unique}")
    assert "is external" in shop.declare(outside, primary_key_constraint={"child_columns": ["id"]}).json()["message"]


@pytest.mark.parametrize("change", list(CHANGES))
def test_no_commit_touches_a_column_that_a_key_rests_on(shop: Shop, change: str) -> None:
    shop.with_keys()
    fields, told = CHANGES[change]
    table, before = shop.customers, shop.customers.load()
    metadata = {**table.metadata(), "schemaString": json.dumps(struct(*fields))}
    old = OldLake(shop.http).table(table.name, table.id, table.location, timestamp=table.timestamp)
    refused = [
        table.commit(1, set_columns(*fields)),
        old.commit(1, {"metaData": metadata}),
        Inline(table).commit(content({"metaData": metadata}), version=1),
    ]
    for answer in refused:
        assert answer.status_code == 400
        assert f"Column id of {full(table)} belongs to the primary key pk and cannot be {told}" in answer.text
    assert table.load() == before
    # What no key rests on may change.
    assert table.commit(1, set_columns(ID, {**NAME, "name": "called"}), set_properties(team="sea")).status_code == 200


def test_the_columns_of_a_foreign_key_stay_and_may_become_not_null(shop: Shop) -> None:
    shop.with_keys()
    assert "foreign key fk" in shop.orders.commit(1, set_columns(ID)).text
    assert shop.orders.commit(1, set_columns(ID, {**CUSTOMER, "nullable": False})).status_code == 200
    assert shop.remove(shop.orders, "fk").status_code == 200
    assert shop.orders.commit(2, set_columns(ID)).status_code == 200


def test_a_column_that_is_swapped_for_another_by_its_id_is_not_kept(shop: Shop, lake: Lake, unique: str) -> None:
    def mapped(name: str, id: int) -> dict[str, Any]:
        metadata = {"delta.columnMapping.id": id, "delta.columnMapping.physicalName": f"col-{id}"}
        return {**ID, "name": name, "metadata": metadata}

    properties = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    draft = lake.draft(unique, columns=struct(mapped("id", 1), mapped("other", 2)), properties=properties)
    for features in ("reader-features", "writer-features"):
        draft.request["protocol"][features] = [*draft.request["protocol"][features], "columnMapping"]
    draft.write_version_0()
    created = lake.create(draft.request)
    assert created.status_code == 200, created.text
    table = LakeTable(lake, unique, draft.id, draft.location, timestamp=draft.request["last-commit-timestamp-ms"])
    assert shop.declare(table, primary_key_constraint={"child_columns": ["id"]}).status_code == 200
    assert "dropped or renamed" in table.commit(1, set_columns(mapped("other", 1), mapped("id", 2))).text
    assert table.commit(1, set_columns(mapped("id", 1), mapped("another", 2))).status_code == 200


def test_a_primary_key_stays_while_foreign_keys_refer_to_it(shop: Shop) -> None:
    shop.with_keys()
    refused = shop.remove(shop.customers, "pk")
    assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")
    assert f"fk of {full(shop.orders)}" in refused.json()["message"]
    assert shop.remove(shop.customers, "pk", cascade="true").status_code == 200
    assert shop.shown(shop.orders) == {"table_constraints": [], "referred_by": []}
    assert shop.orders.commit(1, set_columns(ID)).status_code == 200


def test_a_table_that_is_referred_to_is_dropped_by_force_alone(server: ServerProcess, shop: Shop) -> None:
    shop.with_keys()
    customers, orders = full(shop.customers), full(shop.orders)
    new, old = f"{shop.customers.lake.tables_url()}/{shop.customers.name}", f"{UNITY}/tables/{customers}"
    for answer in (shop.http.delete(new), shop.http.delete(old), shop.http.delete(old, params={"force": "false"})):
        assert answer.status_code == 400
        assert f"cannot be dropped: foreign keys refer to it: fk of {orders}" in answer.text
    by_command = run(server, "drop", customers)
    assert by_command.exit_code == 2
    assert f"fk of {orders}" in by_command.stderr
    released = shop.http.post(f"{API}/tables/{customers}/release", json={"keep": "external"})
    assert f"cannot be released: foreign keys refer to it: fk of {orders}" in released.text
    assert shop.http.get(old).status_code == 200
    assert run(server, "drop", customers, "--force").exit_code == 0
    assert shop.http.get(old).status_code == 404
    assert shop.shown(shop.orders) == {"table_constraints": [], "referred_by": []}
    assert shop.orders.commit(1, set_columns(ID)).status_code == 200
    # It comes back with its own key; who referred to it has to say so again.
    assert run(server, "restore", customers).exit_code == 0
    assert shop.shown(shop.customers)["table_constraints"] == [
        {"primary_key_constraint": {"name": "pk", "child_columns": ["id"]}}
    ]


def test_a_dropped_table_keeps_nobody_and_comes_back_with_its_keys(server: ServerProcess, shop: Shop) -> None:
    shop.with_keys()
    assert run(server, "drop", full(shop.orders)).exit_code == 0
    assert shop.shown(shop.customers)["referred_by"] == []
    assert run(server, "restore", full(shop.orders)).exit_code == 0
    assert len(shop.shown(shop.customers)["referred_by"]) == 1
    assert run(server, "drop", full(shop.orders)).exit_code == 0
    new = f"{shop.customers.lake.tables_url()}/{shop.customers.name}"
    assert shop.http.delete(new).status_code == 204, "nobody refers to it any more"
    assert run(server, "restore", full(shop.orders)).exit_code == 0
    assert shop.shown(shop.orders)["table_constraints"] == []


def test_force_on_a_schema_takes_keys_of_others_along(shop: Shop, lake: Lake, unique: str) -> None:
    assert shop.http.post(f"{UNITY}/schemas", json={"name": unique, "catalog_name": "main"}).status_code == 200
    elsewhere = Shop(shop.http, Lake(shop.http, schema=unique).new_table("customers"), shop.orders).with_keys()
    assert shop.http.delete(f"{UNITY}/schemas/main.{unique}", params={"force": "true"}).status_code == 200
    assert elsewhere.shown(shop.orders)["table_constraints"] == []
    assert lake.load(shop.orders.name).status_code == 200


def test_a_table_may_refer_to_itself_and_is_dropped_all_the_same(shop: Shop) -> None:
    assert shop.primary(name="pk").status_code == 200
    key = {"child_columns": ["id"], "parent_table": full(shop.customers), "name": "self"}
    assert shop.declare(shop.customers, foreign_key_constraint=key).status_code == 200
    assert "its foreign key self" in shop.remove(shop.customers, "pk").json()["message"]
    assert shop.shown(shop.customers)["referred_by"] == []
    url = f"{shop.customers.lake.tables_url()}/{shop.customers.name}"
    assert shop.http.delete(url).status_code == 204


def test_a_foreign_key_takes_who_manages_both_tables_and_is_hidden_with_its_parent(
    shop: Shop, http: httpx.Client, unique: str, enter: Enter
) -> None:
    ann, who = enter("ann"), f"{unique}_ann"
    grant(http, who, "main", "USE CATALOG", "USE SCHEMA")
    grant(http, who, full(shop.orders), "MANAGE")
    assert shop.primary(name="pk").status_code == 200
    hers = Shop(ann, shop.customers, shop.orders)
    assert hers.foreign().status_code == 404, "she cannot see that table"
    grant(http, who, full(shop.customers), "SELECT")
    assert hers.foreign().status_code == 403
    assert hers.remove(shop.customers, "pk").status_code == 403
    grant(http, who, full(shop.customers), "MANAGE")
    assert hers.foreign(name="fk").status_code == 200
    grant(http, who, full(shop.customers), remove=("MANAGE", "SELECT"))
    assert shop.shown(shop.orders, ann)["table_constraints"] == []
    assert "table_constraints" not in ann.get(f"{UNITY}/tables/{full(shop.orders)}").json()
    grant(http, who, full(shop.customers), "SELECT")
    grant(http, who, full(shop.orders), remove=("MANAGE",))
    assert shop.shown(shop.customers, ann)["referred_by"] == []


def test_the_command_shows_declares_and_removes(server: ServerProcess, shop: Shop) -> None:
    customers, orders = full(shop.customers), full(shop.orders)
    told = run(server, "constraints", customers, "--primary-key", "id", "--name", "pk")
    assert (told.exit_code, told.stdout) == (0, "pk  primary key (id)\n")
    told = run(server, "constraints", orders, "--foreign-key", "customer", "--references", customers, "--name", "fk")
    fk = f"fk  foreign key (customer) references {customers} (id)"
    assert (told.exit_code, told.stdout) == (0, f"{fk}\n")
    assert run(server, "constraints", customers).stdout == f"pk  primary key (id)\n{fk} of {orders}\n"
    assert run(server, "constraints", customers, "--remove", "pk").exit_code == 2
    for wrong in (["--foreign-key", "customer"], ["--remove", "pk", "--primary-key", "id"]):
        assert run(server, "constraints", customers, *wrong).exit_code == 2
    told = run(server, "constraints", customers, "--remove", "pk", "--cascade")
    assert told.stdout == f"{customers} has no keys, and none refers to it.\n"


def test_the_client_declares_removes_and_drops_by_force(server: ServerProcess, shop: Shop) -> None:
    with connect(server.url, token=server.token) as catalog:
        customers, orders = catalog.table(full(shop.customers)), catalog.table(full(shop.orders))
        assert customers.add_primary_key(["id"], name="pk").columns == ["id"]
        key = orders.add_foreign_key(["customer"], references=full(shop.customers), name="fk")
        assert (key.parent_table, key.parent_columns) == (full(shop.customers), ["id"])
        assert orders.constraints().foreign_keys == [key]
        primary = customers.constraints().primary_key
        assert primary is not None
        assert (primary.name, primary.columns) == ("pk", ["id"])
        assert [(one.table, one.name) for one in customers.constraints().referred_by] == [(full(shop.orders), "fk")]
        with pytest.raises(InvalidRequest, match="fk of"):
            customers.remove_constraint("pk")
        with pytest.raises(InvalidRequest, match="cannot be dropped"):
            customers.drop()
        orders.remove_constraint("fk")
        orders.add_foreign_key(["customer"], references=full(shop.customers))
        asyncio.run(drop_by_force(server, full(shop.customers)))
        assert orders.constraints().foreign_keys == []


async def drop_by_force(server: ServerProcess, name: str) -> None:
    async with connect_async(server.url, token=server.token) as catalog:
        table = catalog.table(name)
        primary = (await table.constraints()).primary_key
        assert primary is not None
        with pytest.raises(InvalidRequest, match="fk of"):
            await table.remove_constraint(primary.name)
        await table.drop(force=True)
