"""Rename keeps writers going: by id it just works, by the old name the error says where the table went."""

from __future__ import annotations

import httpx
import pytest

from tests.lake import UNITY, Lake, LakeTable, add_commit, error_of


@pytest.fixture
def table(lake: Lake, unique: str) -> LakeTable:
    """At version 1, renamed."""
    table = lake.new_table(unique)
    assert table.commit(1).status_code == 200
    renamed = lake.http.post(f"{lake.tables_url()}/{unique}/rename", json={"new-name": f"{unique}_new"})
    assert renamed.status_code == 204
    return table


def commit_by_id(table: LakeTable, version: int, path: str) -> httpx.Response:
    sent = {key.replace("-", "_"): value for key, value in table.stage_commit(version).items()}
    body = {"table_id": table.id, "table_uri": table.location, "commit_info": sent}
    return table.lake.http.post(f"{UNITY}{path}", json=body)


def test_a_commit_by_the_old_name_is_told_where_the_table_went(table: LakeTable) -> None:
    refused = table.commit(2)
    assert error_of(refused) == (404, "NoSuchTableException")
    assert f"is called main.default.{table.name}_new now" in refused.json()["error"]["message"]
    by_new_name = LakeTable(table.lake, f"{table.name}_new", table.id, table.location)
    assert by_new_name.versions() == [1]
    assert by_new_name.commit(2).status_code == 200


def test_a_commit_that_lost_its_answer_is_still_recognised_by_the_new_name(table: LakeTable) -> None:
    again = {**table.stage_commit(1), "file-name": table.staged[1]}
    by_new_name = LakeTable(table.lake, f"{table.name}_new", table.id, table.location)
    assert by_new_name.update(add_commit(again)).status_code == 200


@pytest.mark.parametrize("path", ["/delta/commit", "/delta/preview/commits"])
def test_a_commit_by_id_just_works(table: LakeTable, path: str) -> None:
    assert commit_by_id(table, 2, path).status_code == 200
    assert LakeTable(table.lake, f"{table.name}_new", table.id, table.location).versions() == [2, 1]


def test_a_commit_by_id_to_a_dropped_table_is_told_that_there_is_none(table: LakeTable) -> None:
    assert table.lake.http.delete(f"{table.lake.tables_url()}/{table.name}_new").status_code == 204
    assert error_of(commit_by_id(table, 2, "/delta/commit")) == (404, "TABLE_DOES_NOT_EXIST")
