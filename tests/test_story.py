"""One table's life, end to end, over real HTTP and on both databases."""

from __future__ import annotations

from tests.lake import Lake, add_commit, error_of, report


def test_a_table_is_staged_created_committed_published_renamed_and_dropped(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    assert table.load()["latest-table-version"] == 0
    assert table.versions() == []

    for version in (1, 2, 3):
        response = table.commit(version)
        assert response.status_code == 200, response.text
    loaded = table.load()
    assert table.versions() == [3, 2, 1]
    assert loaded["latest-table-version"] == 3
    assert loaded["metadata"]["last-commit-version"] == 0

    table.publish(1)
    table.publish(2)
    assert [c["version"] for c in table.report(2).json()["commits"]] == [3]

    commit = table.stage_commit(4)
    table.staged[4] = commit["file-name"]
    table.publish(3)
    answer = table.update(add_commit(commit), report(3)).json()
    assert [c["version"] for c in answer["commits"]] == [4]

    renamed = lake.http.post(f"{lake.tables_url()}/{unique}/rename", json={"new-name": f"{unique}_new"})
    assert renamed.status_code == 204
    assert error_of(lake.load(unique)) == (404, "NoSuchTableException")
    table.name = f"{unique}_new"
    assert table.load()["latest-table-version"] == 4

    assert lake.http.delete(f"{lake.tables_url()}/{unique}_new").status_code == 204
    assert error_of(lake.load(table.name)) == (404, "NoSuchTableException")
