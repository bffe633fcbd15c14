"""UniForm: which Iceberg metadata mirrors the table, and up to which version."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.domain.commits import check_timestamp
from tidegate.domain.errors import InvalidRequest, RequirementConflict
from tidegate.domain.frozen import frozen
from tidegate.domain.locations import lies_under, normalize_location

ENABLED_FORMATS_PROPERTY = "delta.universalFormat.enabledFormats"


@frozen
class Uniform:
    metadata_location: str
    converted_version: int
    converted_timestamp: int
    base_converted_version: int | None


def is_iceberg_enabled(properties: Mapping[str, str]) -> bool:
    formats = properties.get(ENABLED_FORMATS_PROPERTY)
    return formats is not None and "iceberg" in (part.strip().lower() for part in formats.split(","))


def check_uniform(
    uniform: Uniform | None,
    *,
    properties: Mapping[str, str],
    location: str,
    version: int,
    stored: Uniform | None,
) -> None:
    """`uniform` is there exactly when the properties enable Iceberg, and speaks of this very version."""
    if uniform is None:
        if is_iceberg_enabled(properties):
            raise InvalidRequest(
                f"{ENABLED_FORMATS_PROPERTY} enables Iceberg, so each commit must carry 'uniform'. Send it."
            )
        return
    if not is_iceberg_enabled(properties):
        raise InvalidRequest(
            f"'uniform' is sent, but {ENABLED_FORMATS_PROPERTY} does not enable Iceberg. Enable it or leave it out."
        )
    if not lies_under(normalize_location(uniform.metadata_location), location):
        raise InvalidRequest(
            f"The Iceberg metadata-location {uniform.metadata_location[:200]!r} must lie under {location}."
        )
    if uniform.converted_version != version:
        raise InvalidRequest(
            f"converted-delta-version must be the version of this commit, {version}, not {uniform.converted_version}."
        )
    check_timestamp("converted-delta-timestamp", uniform.converted_timestamp)
    if version == 0 and uniform.base_converted_version is not None:
        raise InvalidRequest("base-converted-delta-version is sent with a new table, which has none. Leave it out.")
    _check_base(uniform, stored)


def _check_base(uniform: Uniform, stored: Uniform | None) -> None:
    base = uniform.base_converted_version
    if base is None:
        return
    converted = None if stored is None else stored.converted_version
    if base != converted:
        raise RequirementConflict(
            f"base-converted-delta-version is {base}, but the version converted last is {converted}. "
            "Reload the table and convert from there."
        )
