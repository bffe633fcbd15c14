"""UniForm through specification v0.1.0: which Iceberg metadata mirrors the table, told with each commit."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.lake import error_of
from tests.old_lake import FEATURES, OldLake

INVALID = (400, "INVALID_PARAMETER_VALUE")
ICEBERG = {"delta.universalFormat.enabledFormats": "iceberg"}


@pytest.fixture
def old(http: httpx.Client) -> OldLake:
    return OldLake(http)


def iceberg(place: str, version: int, **others: Any) -> dict[str, Any]:
    moment = "2026-02-09T17:00:00.123000Z"
    return {
        "metadata_location": place,
        "converted_delta_version": version,
        "converted_delta_timestamp": moment,
        **others,
    }


def test_uniform_is_stored_with_the_commit_and_served_by_both_faces(old: OldLake, unique: str) -> None:
    table = old.new_table(unique, properties=ICEBERG, features=FEATURES)
    first = iceberg(f"{table.files.location}/metadata/v1.json", 1)
    assert table.commit(1, uniform={"iceberg": first}).status_code == 200
    assert table.get()["uniform"] == {"iceberg": first}
    served = table.files.load()["uniform"]["iceberg"]
    assert served["metadata-location"] == first["metadata_location"]
    assert served["converted-delta-timestamp"] == 1770656400123
    second = iceberg(f"{table.files.location}/metadata/v2.json", 2, base_converted_delta_version=1)
    assert table.commit(2, uniform={"iceberg": second}).status_code == 200
    assert table.get()["uniform"] == {"iceberg": second}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metadata_location": "file:///elsewhere/v1.json"}, "must lie under"),
        ({"converted_delta_version": 2}, "must be the version of this commit, 1"),
        ({"converted_delta_timestamp": "yesterday"}, "2026-02-09T17:00:00.000000Z"),
        ({"converted_delta_timestamp": "2026-02-09"}, "2026-02-09T17:00:00.000000Z"),
        ({"converted_delta_timestamp": "2026-02-09T17:00:00.000000"}, "2026-02-09T17:00:00.000000Z"),
        ({"converted_delta_timestamp": 5}, "converted_delta_timestamp"),
        ({"base_converted_delta_version": 7}, "base-converted-delta-version is 7"),
    ],
    ids=str,
)
def test_uniform_that_is_not_right_is_refused(old: OldLake, unique: str, change: dict[str, Any], message: str) -> None:
    table = old.new_table(unique, properties=ICEBERG)
    refused = table.commit(1, uniform={"iceberg": iceberg(f"{table.files.location}/v1.json", 1, **change)})
    assert error_of(refused) == INVALID
    assert message in refused.json()["message"]


def test_uniform_is_there_exactly_when_the_table_has_iceberg_enabled(old: OldLake, unique: str) -> None:
    with_iceberg = old.new_table(unique, properties=ICEBERG)
    assert error_of(with_iceberg.commit(1)) == INVALID
    without = old.new_table(f"{unique}_plain")
    place = f"{without.files.location}/v1.json"
    assert error_of(without.commit(1, uniform={"iceberg": iceberg(place, 1)})) == INVALID
    assert "uniform" not in without.get()
