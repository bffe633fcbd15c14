"""UniForm in the old API: as in Delta REST v1.0, but for moments, which are ISO 8601 texts here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.uniform import Uniform
from tidegate.wire import unity as wire

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_uniform(sent: wire.Uniform | None) -> Uniform | None:
    if sent is None or sent.iceberg is None:
        return None
    return Uniform(
        metadata_location=sent.iceberg.metadata_location,
        converted_version=sent.iceberg.converted_delta_version,
        converted_timestamp=_to_milliseconds(sent.iceberg.converted_delta_timestamp),
        base_converted_version=sent.iceberg.base_converted_delta_version,
    )


def from_uniform(known: Uniform) -> wire.Uniform:
    return wire.Uniform(
        wire.Iceberg(
            metadata_location=known.metadata_location,
            converted_delta_version=known.converted_version,
            converted_delta_timestamp=_from_milliseconds(known.converted_timestamp),
            base_converted_delta_version=known.base_converted_version,
        )
    )


def _to_milliseconds(text: str) -> int:
    """The text must name its time zone; what it says beyond milliseconds is dropped."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None and "T" in text:
            return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        pass
    raise InvalidRequest(
        f"converted_delta_timestamp {text[:50]!r} is not a moment. Write it like 2026-02-09T17:00:00.000000Z."
    )


def _from_milliseconds(moment: int) -> str:
    """27 characters, as specification v0.1.0 has it."""
    known = _EPOCH + timedelta(milliseconds=moment)
    return known.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
