"""UniForm: the Iceberg metadata that mirrors a table comes with every commit exactly when the table enables Iceberg.

It is stored with the commit that brought it and served with the load, and says up to which version it was converted.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.lake import Draft, Lake, LakeTable, add_commit, error_of, report

INVALID = (400, "InvalidParameterValueException")
CONFLICT = (409, "UpdateRequirementConflictException")
FORMATS = "delta.universalFormat.enabledFormats"
ENABLED = {FORMATS: "iceberg"}


def uniform(location: str, version: int, **changes: Any) -> dict[str, Any]:
    iceberg = {
        "metadata-location": f"{location}/metadata/{version:05}.metadata.json",
        "converted-delta-version": version,
        "converted-delta-timestamp": 1_700_000_000_000 + version,
    }
    return {"iceberg": iceberg | {key.replace("_", "-"): value for key, value in changes.items()}}


def draft_of(lake: Lake, name: str, **changes: Any) -> Draft:
    """A draft that enables Iceberg, and carries what that asks for."""
    draft = lake.draft(name, properties=ENABLED)
    draft.request["uniform"] = uniform(draft.location, 0, **changes)
    draft.write_version_0()
    return draft


def enabled_table(lake: Lake, name: str) -> LakeTable:
    draft = draft_of(lake, name)
    response = lake.create(draft.request)
    assert response.status_code == 200, response.text
    return LakeTable(lake, name, draft.id, draft.location, timestamp=draft.request["last-commit-timestamp-ms"])


def commit_with(table: LakeTable, version: int, *others: dict[str, Any], **changes: Any) -> httpx.Response:
    """Commits the version with its UniForm metadata."""
    commit = add_commit(table.stage_commit(version, *others), uniform=uniform(table.location, version, **changes))
    response = table.update(commit, *others)
    if response.status_code == 200:
        table.staged[version] = commit["commit"]["file-name"]
    return response


def switched(formats: str | None) -> dict[str, Any]:
    if formats is None:
        return {"action": "remove-properties", "removals": [FORMATS]}
    return {"action": "set-properties", "updates": {FORMATS: formats}}


def check_refused(table: LakeTable, response: httpx.Response, error: tuple[int, str], before: dict[str, Any]) -> str:
    assert response.status_code == error[0], response.text
    assert error_of(response) == error
    assert table.load() == before
    return response.json()["error"]["message"]


# Creation


def test_a_table_that_enables_iceberg_is_created_with_its_metadata_and_serves_it(lake: Lake, unique: str) -> None:
    table = enabled_table(lake, unique)
    assert table.load()["uniform"] == uniform(table.location, 0)


def test_a_table_that_does_not_enable_iceberg_serves_no_uniform(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    assert "uniform" not in table.load()
    assert "uniform" not in table.commit(1).json()


def refused_creation(lake: Lake, draft: Draft, request: dict[str, Any]) -> str:
    """The creation is a 400; the sound request, sent afterwards, succeeds. Gives the message."""
    response = lake.create(request)
    assert response.status_code == 400, response.text
    assert error_of(response) == INVALID
    assert lake.create(draft.request).status_code == 200
    return response.json()["error"]["message"]


def test_a_table_that_enables_iceberg_is_not_created_without_uniform(lake: Lake, unique: str) -> None:
    draft = draft_of(lake, unique)
    without = {key: value for key, value in draft.request.items() if key != "uniform"}
    assert "uniform" in refused_creation(lake, draft, without)


def test_a_table_that_does_not_enable_iceberg_is_not_created_with_uniform(lake: Lake, unique: str) -> None:
    draft = lake.draft(unique)
    draft.write_version_0()
    message = refused_creation(lake, draft, {**draft.request, "uniform": uniform(draft.location, 0)})
    assert FORMATS in message


def test_the_first_conversion_is_that_of_version_0(lake: Lake, unique: str) -> None:
    draft = draft_of(lake, unique)
    message = refused_creation(lake, draft, {**draft.request, "uniform": uniform(draft.location, 1)})
    assert "converted-delta-version" in message


def test_the_first_conversion_has_no_base(lake: Lake, unique: str) -> None:
    draft = draft_of(lake, unique)
    based = uniform(draft.location, 0, base_converted_delta_version=0)
    assert error_of(lake.create({**draft.request, "uniform": based})) == INVALID
    assert lake.create(draft.request).status_code == 200


OUTSIDE = {
    "elsewhere": "file:///elsewhere/metadata/v1.json",
    "a neighbour": "{location}-2/metadata/v1.json",
    "the table itself": "{location}",
    "the folder above": "{above}/v1.json",
    "upwards": "{location}/../v1.json",
    "upwards, encoded": "{location}/%2E%2E/v1.json",
    "another store": "s3://bucket/metadata/v1.json",
    "no location": "metadata/v1.json",
    "empty": "",
}


def outside(place: str, location: str) -> str:
    return OUTSIDE[place].format(location=location, above=location.rpartition("/")[0])


@pytest.mark.parametrize("place", OUTSIDE)
def test_the_metadata_of_a_new_table_lies_under_the_table(lake: Lake, unique: str, place: str) -> None:
    draft = draft_of(lake, unique)
    wrong = uniform(draft.location, 0, metadata_location=outside(place, draft.location))
    refused_creation(lake, draft, {**draft.request, "uniform": wrong})


# Commits


def test_every_commit_brings_its_metadata_and_load_serves_the_latest(lake: Lake, unique: str) -> None:
    table = enabled_table(lake, unique)
    for version in (1, 2, 3):
        response = commit_with(table, version)
        assert response.status_code == 200, response.text
        assert response.json()["uniform"] == table.load()["uniform"] == uniform(table.location, version)


def test_a_commit_without_uniform_is_refused_while_iceberg_is_enabled(lake: Lake, unique: str) -> None:
    table = enabled_table(lake, unique)
    before = table.load()
    assert "uniform" in check_refused(table, table.commit(1), INVALID, before)
    assert commit_with(table, 1).status_code == 200


def test_a_commit_with_uniform_is_refused_while_iceberg_is_not_enabled(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    before = table.load()
    assert FORMATS in check_refused(table, commit_with(table, 1), INVALID, before)
    assert table.commit(1).status_code == 200


@pytest.mark.parametrize("place", OUTSIDE)
def test_the_metadata_of_a_commit_lies_under_the_table(lake: Lake, unique: str, place: str) -> None:
    table = enabled_table(lake, unique)
    before = table.load()
    response = commit_with(table, 1, metadata_location=outside(place, table.location))
    check_refused(table, response, INVALID, before)


@pytest.mark.parametrize("converted", [0, 2, 7, -1])
def test_the_converted_version_is_that_of_the_commit(lake: Lake, unique: str, converted: int) -> None:
    table = enabled_table(lake, unique)
    before = table.load()
    response = commit_with(table, 1, converted_delta_version=converted)
    assert "converted-delta-version" in check_refused(table, response, INVALID, before)


def test_a_base_that_is_the_version_converted_last_is_accepted_and_served(lake: Lake, unique: str) -> None:
    table = enabled_table(lake, unique)
    for version in (1, 2):
        response = commit_with(table, version, base_converted_delta_version=version - 1)
        assert response.status_code == 200, response.text
        assert table.load()["uniform"]["iceberg"]["base-converted-delta-version"] == version - 1


@pytest.mark.parametrize("base", [0, 2, 3, -1])
def test_a_base_that_is_not_the_version_converted_last_is_a_conflict(lake: Lake, unique: str, base: int) -> None:
    table = enabled_table(lake, unique)
    assert commit_with(table, 1).status_code == 200
    before = table.load()
    response = commit_with(table, 2, base_converted_delta_version=base)
    message = check_refused(table, response, CONFLICT, before)
    assert "base-converted-delta-version" in message
    assert commit_with(table, 2, base_converted_delta_version=1).status_code == 200


def test_a_commit_that_enables_iceberg_has_no_base_yet(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    before = table.load()
    response = commit_with(table, 1, switched("iceberg"), base_converted_delta_version=0)
    check_refused(table, response, CONFLICT, before)


def test_a_replayed_commit_leaves_the_metadata_of_the_commits_since(lake: Lake, unique: str) -> None:
    table = enabled_table(lake, unique)
    first = add_commit(table.stage_commit(1), uniform=uniform(table.location, 1))
    assert table.update(first).status_code == 200
    assert commit_with(table, 2).status_code == 200
    assert table.update(first).json()["uniform"] == uniform(table.location, 2)


# Switching on and off


@pytest.mark.parametrize("formats", ["iceberg", "hudi,iceberg", " Iceberg , hudi"])
def test_iceberg_is_switched_on_and_off_with_commits(lake: Lake, unique: str, formats: str) -> None:
    table = lake.new_table(unique)
    response = commit_with(table, 1, switched(formats))
    assert response.status_code == 200, response.text
    assert table.load()["uniform"] == uniform(table.location, 1)
    assert commit_with(table, 2).status_code == 200
    off = table.commit(3, switched(None))
    assert off.status_code == 200, off.text
    assert "uniform" not in off.json()
    assert "uniform" not in table.load()
    assert table.commit(4).status_code == 200


@pytest.mark.parametrize("formats", ["hudi", "", None])
def test_the_commit_that_switches_iceberg_off_carries_no_uniform(lake: Lake, unique: str, formats: str | None) -> None:
    table = enabled_table(lake, unique)
    before = table.load()
    check_refused(table, commit_with(table, 1, switched(formats)), INVALID, before)
    assert table.commit(1, switched(formats)).status_code == 200
    assert "uniform" not in table.load()


def test_the_commit_that_switches_iceberg_on_carries_uniform(lake: Lake, unique: str) -> None:
    table = lake.new_table(unique)
    before = table.load()
    check_refused(table, table.commit(1, switched("iceberg")), INVALID, before)


def test_iceberg_is_not_switched_without_a_commit(lake: Lake, unique: str) -> None:
    """The property lives in the log."""
    on, off = enabled_table(lake, unique), lake.new_table(f"{unique}_off")
    check_refused(on, on.update(switched(None)), INVALID, on.load())
    check_refused(off, off.update(switched("iceberg")), INVALID, off.load())


def test_switched_off_and_on_again_the_conversion_starts_without_a_base(lake: Lake, unique: str) -> None:
    table = enabled_table(lake, unique)
    assert table.commit(1, switched(None)).status_code == 200
    before = table.load()
    response = commit_with(table, 2, switched("iceberg"), base_converted_delta_version=0)
    check_refused(table, response, CONFLICT, before)
    assert commit_with(table, 2, switched("iceberg")).status_code == 200


def test_updates_without_a_commit_keep_the_metadata(lake: Lake, unique: str) -> None:
    table = enabled_table(lake, unique)
    assert commit_with(table, 1).status_code == 200
    table.publish(1)
    assert table.update({"action": "set-table-comment", "comment": "mirrored"}).status_code == 200
    assert table.update({"action": "set-properties", "updates": {"team": "sea"}}).status_code == 200
    assert table.update(report(1)).status_code == 200
    assert table.load()["uniform"] == uniform(table.location, 1)
