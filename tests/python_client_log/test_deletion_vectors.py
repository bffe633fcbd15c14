"""Deletion vectors: every encoding is read, and nothing that a file says of itself is believed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.python_client_log import vectors
from tests.python_client_log.logs import LocalFiles
from tidegate.client.log.actions import DeletionVector
from tidegate.client.log.deletion_vectors import decode_rows, deleted_rows, vector_path, z85_decode
from tidegate.client.log.errors import LogDamaged

LOCATION = "s3://mytable"


def vector(**told: Any) -> DeletionVector:
    return msgspec.convert({"sizeInBytes": 40, "cardinality": 6, **told}, DeletionVector)


def test_examples_of_the_protocol() -> None:
    inline = vector(storageType="i", pathOrInlineDv="wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L")
    assert list(deleted_rows(inline, location=LOCATION, files=LocalFiles())) == [3, 4, 7, 11, 18, 29]
    relative = vector(storageType="u", pathOrInlineDv="ab^-aqEH.-t@S}K{vb[*k^", offset=4)
    expected = "s3://mytable/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector_path(relative, LOCATION) == expected
    assert vector_path(vector(storageType="p", pathOrInlineDv=expected, offset=4), "s3://other") == expected
    assert relative.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
    assert inline.unique_id == "i" + inline.path_or_inline_dv


spans = st.builds(
    lambda start, length: range(start, start + length),
    st.one_of(st.integers(0, 200), st.integers(60_000, 70_000), st.integers(2**32 - 50, 2**32 + 50)),
    st.integers(1, 300),
)
row_sets = st.lists(spans, max_size=4).map(lambda spans: sorted({row for span in spans for row in span}))


@settings(deadline=None)
@given(row_sets, st.booleans())
def test_what_is_written_is_read(rows: list[int], runs: bool) -> None:
    data = vectors.encode(rows, runs=runs)
    assert list(decode_rows(data, cardinality=len(rows))) == rows


@pytest.mark.parametrize(
    "rows",
    [
        range(65_536),
        range(0, 200_000, 3),
        range(65_535, 65_537),
        [2**33, 2**40 + 5],
        [key << 16 for key in range(9)],
        range(1, 10_000, 2),
    ],
)
@pytest.mark.parametrize("runs", [True, False])
def test_large_vectors_use_every_kind_of_container(rows: Iterable[int], runs: bool) -> None:
    wanted = list(rows)
    assert list(decode_rows(vectors.encode(wanted, runs=runs), cardinality=len(wanted))) == wanted


@settings(max_examples=300, deadline=None)
@given(row_sets, st.booleans(), st.data())
def test_damaged_bytes_are_refused_or_are_another_vector_of_that_size(rows: list[int], runs: bool, data: Any) -> None:
    good = vectors.encode(rows, runs=runs)
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(bad[: data.draw(st.integers(0, len(bad)))]) if data.draw(st.booleans()) else bytes(bad)
    try:
        read = list(decode_rows(cut, cardinality=len(rows)))
    except ValueError:
        return
    assert len(read) == len(rows) and read == sorted(set(read))


@pytest.mark.parametrize("size", [0, 4, 11, 12, 20, -1])
def test_cut_off_vector_is_refused(size: int) -> None:
    data = vectors.encode([1, 2, 3], runs=False)
    with pytest.raises(ValueError, match="deletion vector"):
        decode_rows(data[:size], cardinality=3)


def test_vector_that_claims_to_be_huge_costs_nothing() -> None:
    data = vectors.MAGIC.to_bytes(4, "little") + (2**63).to_bytes(8, "little")
    with pytest.raises(ValueError, match="larger than it can be"):
        decode_rows(data, cardinality=1)
    with pytest.raises(ValueError, match="larger than it can be"):
        decode_rows(vectors.encode(range(100_000), runs=True), cardinality=5)


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Path, DeletionVector, str]:
    """A file with two vectors; the descriptor is that of the second."""
    first, second = vectors.stored(vectors.encode([9], runs=False)), vectors.encode([1, 5, 6], runs=True)
    file = tmp_path / "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    file.write_bytes(vectors.in_file(second, before=first))
    told = vector(
        storageType="u",
        pathOrInlineDv="^-aqEH.-t@S}K{vb[*k^",
        offset=1 + len(first),
        sizeInBytes=len(second),
        cardinality=3,
    )
    return file, told, f"file://{tmp_path}"


def test_vector_is_found_in_its_file(stored: tuple[Path, DeletionVector, str]) -> None:
    _, told, location = stored
    assert list(deleted_rows(told, location=location, files=LocalFiles())) == [1, 5, 6]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-1], "it ends before"),
        (lambda data: data[:-1] + b"\0", "checksum"),
        (lambda data: data[:-12] + b"\x07" + data[-11:], "checksum"),
        (lambda data: b"\x02" + data[1:], "version 1"),
        (lambda data: b"", "version 1"),
        (None, "is not there"),
    ],
)
def test_damaged_file_is_told_by_name(stored: tuple[Path, DeletionVector, str], damage: Any, reason: str) -> None:
    file, told, location = stored
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(LogDamaged, match=reason) as raised:
        deleted_rows(told, location=location, files=LocalFiles())
    assert raised.value.path.endswith(file.name)


@pytest.mark.parametrize("changes", [{"size_in_bytes": 7}, {"offset": 2}, {"offset": 10**6}, {"cardinality": 4}])
def test_descriptor_that_does_not_fit_its_file_is_refused(
    stored: tuple[Path, DeletionVector, str], changes: dict[str, int]
) -> None:
    _, told, location = stored
    with pytest.raises(LogDamaged):
        deleted_rows(msgspec.structs.replace(told, **changes), location=location, files=LocalFiles())


@pytest.mark.parametrize("text", ["0000", "00~00", "#####", "ü0000"])
def test_text_that_is_no_base_85_is_refused(text: str) -> None:
    with pytest.raises(LogDamaged, match="its text"):
        z85_decode(text)


@settings(deadline=None)
@given(st.binary(max_size=64).map(lambda data: data + bytes(-len(data) % 4)))
def test_base_85_is_read_as_written(data: bytes) -> None:
    assert z85_decode(vectors.z85(data)) == data
