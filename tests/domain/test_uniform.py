"""UniForm: Iceberg metadata is told exactly when the properties enable it, and of the very version."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.domain.builders import ICEBERG_ON, LOCATION, uniform
from tidegate.domain.errors import InvalidRequest, RequirementConflict
from tidegate.domain.uniform import ENABLED_FORMATS_PROPERTY, Uniform, check_uniform, is_iceberg_enabled


def check(
    sent: Uniform | None, *, properties: Mapping[str, str] = ICEBERG_ON, version: int = 5, stored: Uniform | None = None
) -> None:
    check_uniform(sent, properties=properties, location=LOCATION, version=version, stored=stored)


@pytest.mark.parametrize("formats", ["iceberg", "ICEBERG", " iceberg ", "hudi,iceberg", "iceberg, hudi"])
def test_iceberg_is_found_among_the_enabled_formats(formats: str) -> None:
    assert is_iceberg_enabled({ENABLED_FORMATS_PROPERTY: formats})
    check(uniform(5), properties={ENABLED_FORMATS_PROPERTY: formats})


@pytest.mark.parametrize(
    "properties",
    [{}, {ENABLED_FORMATS_PROPERTY: ""}, {ENABLED_FORMATS_PROPERTY: "hudi"}, {ENABLED_FORMATS_PROPERTY: "icebergs"}],
)
def test_without_iceberg_nothing_may_be_sent(properties: dict[str, str]) -> None:
    check(None, properties=properties)
    with pytest.raises(InvalidRequest, match=r"does not enable Iceberg\. Enable it or leave it out"):
        check(uniform(5), properties=properties)


def test_with_iceberg_every_commit_must_tell() -> None:
    with pytest.raises(InvalidRequest, match=rf"{ENABLED_FORMATS_PROPERTY} enables Iceberg.*must carry 'uniform'"):
        check(None)


@pytest.mark.parametrize(
    "location",
    [
        f"{LOCATION}/metadata/v5.json",
        f"file:{LOCATION.removeprefix('file://')}/metadata/v5.json",
        f"{LOCATION}//metadata//v5.json",
    ],
)
def test_the_iceberg_metadata_lies_under_the_table_in_any_spelling(location: str) -> None:
    check(uniform(5, metadata_location=location))


@pytest.mark.parametrize(
    "location",
    [
        LOCATION,
        f"{LOCATION}/",
        f"{LOCATION}2/metadata/v5.json",
        "file:///elsewhere/v5.json",
        f"s3://bucket{LOCATION.removeprefix('file://')}/v5.json",
    ],
)
def test_metadata_outside_of_the_table_is_refused_with_both_places(location: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check(uniform(5, metadata_location=location))
    assert "metadata-location" in refused.value.message
    assert repr(location) in refused.value.message
    assert f"must lie under {LOCATION}" in refused.value.message


@pytest.mark.parametrize(
    "location",
    ["", "v5.json", f"{LOCATION}/../other/v5.json", f"{LOCATION}/%2e%2e/v5.json", f"{LOCATION}/..%2Fv5.json"],
)
def test_metadata_at_no_plain_location_is_refused(location: str) -> None:
    with pytest.raises(InvalidRequest, match=r"Write an absolute URI|Write the plain path"):
        check(uniform(5, metadata_location=location))


@pytest.mark.parametrize("converted", [4, 6, 0, -1])
def test_the_converted_version_is_that_of_the_commit(converted: int) -> None:
    with pytest.raises(InvalidRequest, match=rf"converted-delta-version must be .* 5, not {converted}\."):
        check(uniform(5, converted_version=converted))


@pytest.mark.parametrize(("base", "stored"), [(None, None), (None, uniform(4)), (4, uniform(4)), (0, uniform(0))])
def test_a_base_version_may_be_left_out_or_be_the_stored_one(base: int | None, stored: Uniform | None) -> None:
    check(uniform(5, base_converted_version=base), stored=stored)


@pytest.mark.parametrize(
    ("base", "stored", "converted"), [(3, uniform(4), "4"), (5, uniform(4), "4"), (0, None, "None"), (4, None, "None")]
)
def test_another_base_version_is_a_conflict_that_names_the_stored_one(
    base: int, stored: Uniform | None, converted: str
) -> None:
    with pytest.raises(RequirementConflict) as refused:
        check(uniform(5, base_converted_version=base), stored=stored)
    assert f"base-converted-delta-version is {base}" in refused.value.message
    assert f"converted last is {converted}" in refused.value.message
    assert "Reload the table" in refused.value.message


def test_a_new_table_was_converted_from_nothing() -> None:
    check(uniform(0), version=0)
    with pytest.raises(InvalidRequest, match=r"base-converted-delta-version is sent with a new table.*Leave it out"):
        check(uniform(0, base_converted_version=0), version=0)
