"""Commits that are looked at: forged files on both faces, and policies, on real servers."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.lake import COLUMNS, Lake, LakeTable, add_commit, domain_action, error_of, set_properties
from tests.old_lake import OldLake
from tests.servers import ServerProcess
from tests.test_drop_commands import run
from tests.test_inline_commits import Inline, content

INVALID = (400, "InvalidParameterValueException")
ADD = {"add": {"path": "part-0.parquet", "size": 600, "dataChange": True, "partitionValues": {}}}


def policies_url(table: LakeTable) -> str:
    return f"/api/tidegate/v1/tables/main.default.{table.name}/policies"


def smuggled(table: LakeTable) -> dict[str, list[dict[str, Any]]]:
    """Actions that change metadata, as a forger would write them into a file whose request says nothing of it."""
    now = table.metadata()
    fields = [*COLUMNS["fields"], {"name": "extra", "type": "string", "nullable": True, "metadata": {}}]
    first = (table.log / f"{0:020}.json").read_text().splitlines()
    protocol = next(json.loads(line)["protocol"] for line in first if '"protocol"' in line)
    grown = {**protocol, "writerFeatures": [*protocol["writerFeatures"], "appendOnly"]}
    return {
        "metaData.schemaString": [
            {"metaData": {**now, "schemaString": json.dumps({"type": "struct", "fields": fields})}}
        ],
        "metaData.configuration['delta.appendOnly']": [
            {"metaData": {**now, "configuration": {**now["configuration"], "delta.appendOnly": "true"}}}
        ],
        "metaData.partitionColumns": [{"metaData": {**now, "partitionColumns": ["name"]}}],
        "protocol.writerFeatures": [{"protocol": grown}],
        "domainMetadata 'delta.clustering'": [domain_action("delta.clustering", {"clusteringColumns": [["id"]]})],
    }


def test_forged_files_are_refused_and_change_nothing(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    before = table.load()
    for field, actions in smuggled(table).items():
        refused = table.update(add_commit(table.stage_commit(1, actions=[ADD, *actions])))
        assert error_of(refused) == INVALID
        assert f"Line 3 of the staged commit, {field}, is not what the request says" in refused.text
    outside = table.stage_commit(1, actions=[{"add": {**ADD["add"], "path": "%2e%2e/other/part-0.parquet"}}])
    assert "Line 2 of the staged commit leaves the table: add.path" in table.update(add_commit(outside)).text
    unsaid = table.update(add_commit(table.stage_commit(1)), set_properties(team="sea"))
    assert "the staged commit has no such metaData" in unsaid.text
    missing = table.stage_commit(1)
    (table.log / "_staged_commits" / missing["file-name"]).unlink()
    assert error_of(table.update(add_commit(missing))) == INVALID
    assert table.load() == before
    assert table.commit(1, set_properties(team="sea")).status_code == 200
    assert table.load()["metadata"]["properties"]["team"] == "sea"


def test_a_link_is_no_staged_file(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    commit = table.stage_commit(1)
    staged = table.log / "_staged_commits" / commit["file-name"]
    staged.rename(table.log / "elsewhere.json")
    staged.symlink_to(table.log / "elsewhere.json")
    assert "is no plain file" in table.update(add_commit(commit)).text


def test_the_old_face_takes_metadata_from_the_file_and_nothing_that_it_does_not_say(
    http: httpx.Client, unique: str
) -> None:
    """There the file is what says what changes: a forger cannot hide a change, because it is never hidden."""
    table = OldLake(http).new_table(unique)
    changed = table.files.metadata()
    changed = {**changed, "configuration": {**changed["configuration"], "team": "sea"}}
    assert table.commit(1, {"metaData": changed}).status_code == 200
    assert table.get()["properties"]["team"] == "sea"
    refused = table.commit(2, metadata={"properties": {**changed["configuration"], "team": "land"}})
    assert error_of(refused) == (400, "INVALID_PARAMETER_VALUE")
    assert "the staged commit has no such metaData" in refused.text
    assert table.get()["properties"]["team"] == "sea"


def test_who_lost_or_sends_again_hears_so_whatever_has_become_of_the_file(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    won, lost = table.stage_commit(1), table.stage_commit(1, actions=[{"nonsense": {}}])
    assert table.update(add_commit(won)).status_code == 200
    (table.log / "_staged_commits" / lost["file-name"]).unlink()
    assert table.update(add_commit(lost)).status_code == 409
    assert table.update(add_commit(won)).status_code == 200


def test_policies_are_set_held_and_taken_back(server: ServerProcess, lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    shown = run(server, "policies", f"main.default.{unique}", "--append-only", "--files-max", "1", "--writer", "admin")
    assert shown.stdout.splitlines() == [
        "admission      full",
        "append_only    yes",
        "schema_frozen  no",
        "writers        admin",
        "files_max      1",
        "bytes_max      any",
    ]
    gone = {"remove": {"path": "part-0.parquet", "dataChange": True}}
    two = [ADD, {"add": {**ADD["add"], "path": "part-1.parquet"}}]
    for actions, told in (([gone], "is append-only"), (two, "adds 2 files")):
        refused = table.update(add_commit(table.stage_commit(1, actions=actions)))
        assert error_of(refused) == INVALID
        assert told in refused.text
    assert "adds 2 files" in Inline(table).commit(content(*two), version=1).text
    for change in (
        set_properties(tidegate__admission="declared"),
        {"action": "remove-properties", "removals": ["tidegate.policy.append-only"]},
    ):
        assert "is a policy of the table" in table.update(change).text
        assert "is a policy of the table" in table.commit(1, change).text
    others = lake.http.patch(policies_url(table), json={"writers": ["etl"], "append_only": False})
    assert others.json() == lake.http.get(policies_url(table)).json()
    refused = table.commit(1)
    assert error_of(refused) == INVALID, "for a 403 the stock client would try again for minutes"
    assert "takes commits of certain writers only" in refused.text
    run(server, "policies", f"main.default.{unique}", "--any-writer", "--files-max", "-1", "--schema-frozen")
    assert table.update(add_commit(table.stage_commit(1, actions=[gone, *two]))).status_code == 200
    wider = {"type": "struct", "fields": [*COLUMNS["fields"], {**COLUMNS["fields"][1], "name": "more"}]}
    assert "is frozen" in table.commit(2, {"action": "set-columns", "columns": wider}).text


@pytest.mark.parametrize("change", [{"files_max": -1}, {"admission": "maybe"}, {"writers": [""]}])
def test_policies_that_are_none_are_refused(lake: Lake, unique: str, change: dict[str, Any]) -> None:
    table = lake.new_table(unique)
    assert lake.http.patch(policies_url(table), json=change).status_code == 400


def test_requests_are_trusted_where_the_table_says_so(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    assert lake.http.patch(policies_url(table), json={"admission": "declared"}).status_code == 200
    assert table.update(add_commit(table.stage_commit(1, content=b"nonsense"))).status_code == 200
    # As soon as it does not, the next commit is read.
    assert lake.http.patch(policies_url(table), json={"admission": "full"}).status_code == 200
    assert error_of(table.update(add_commit(table.stage_commit(2, content=b"nonsense")))) == INVALID
