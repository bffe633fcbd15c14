"""Storage locations: one normal form, nothing that could lead elsewhere, and where managed tables are put."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.builders import CREATED_AT, TABLE_ID
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.locations import LOCATION_LENGTH_MAX, lies_under, normalize_location, with_ancestors
from tidegate.domain.names import SchemaName
from tidegate.domain.namespaces import Catalog, Details, Schema, Stamps, check_details, managed_location


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("file:/data/t", "file:///data/t"),
        ("file:/data/t/", "file:///data/t"),
        ("file:///data/t", "file:///data/t"),
        ("file:////data//t//", "file:///data/t"),
        ("file://localhost/data/t", "file:///data/t"),
        ("file:///localhost/t", "file:///localhost/t"),
        ("file:///data/my table", "file:///data/my table"),
        ("file:///data/...", "file:///data/..."),
        ("file:///data/.hidden", "file:///data/.hidden"),
        (f"file:/data/{'t' * 255}/", f"file:///data/{'t' * 255}"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3a://bucket/a//b/", "s3a://bucket/a/b"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("abfss://box@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net/a"),
    ],
)
def test_the_spellings_of_one_place_have_one_normal_form(written: str, normal: str) -> None:
    assert normalize_location(written) == normal


@pytest.mark.parametrize(
    ("location", "advice"),
    [
        ("", "is not a storage location. Write an absolute URI"),
        ("/data/t", "such as file:///data/table"),
        ("data/t", "Write an absolute URI"),
        ("file:data/t", "Write an absolute URI"),
        ("http://host/t", "one of the schemes abfs, abfss, file, gs, s3, s3a"),
        ("FILE:///data/t", "one of the schemes"),
        (" file:///data/t", "Write an absolute URI"),
        ("file:///data/\nt", "control character. Remove it"),
        ("file:///data/t\0", "control character. Remove it"),
        ("file:///data/\x7ft", "control character. Remove it"),
        ("file:///data/t?x=1", "without a query"),
        ("file:///data/t#x", "without a query"),
        ("file:///data/../t", "Write the plain path"),
        ("file:///data/./t", "Write the plain path"),
        ("file:///data/%2e%2E/t", "Write the plain path"),
        ("file:///..", "Write the plain path"),
        ("s3://bucket/../other", "Write the plain path"),
        ("file:///", "cannot be the root of the file system"),
        ("file:/", "cannot be the root of the file system"),
        ("file://localhost", "cannot be the root of the file system"),
        ("file://host/data/t", "names a host. Write file:/// and an absolute path"),
        ("s3:/bucket/t", "names no bucket"),
        ("s3:///t", "names no bucket"),
        ("file:///" + "t" * LOCATION_LENGTH_MAX, "longer than 4096 characters"),
        ("file:///data/" + "t" * 256, "A path segment of the location is longer than 255 bytes. Shorten it"),
        ("file:///data/" + "é" * 128 + "/t", "A path segment of the location is longer than 255 bytes"),
    ],
)
def test_what_is_no_plain_absolute_place_is_refused_with_advice(location: str, advice: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        normalize_location(location)
    assert advice in refused.value.message
    assert len(refused.value.message) < 500


@pytest.mark.parametrize("segment", ["..%2F..%2Fetc", "%2e%2e%2fetc", "t%2F..", "a%2F%2e%2e%2Fb", "..%2f"])
def test_an_encoded_slash_does_not_hide_a_step_upwards(segment: str) -> None:
    """Clients that decode the location must not end up outside of it."""
    assert ".." in unquote(segment).split("/")
    with pytest.raises(InvalidRequest, match="Write the plain path"):
        normalize_location(f"file:///data/{segment}")


pieces = st.text(max_size=6) | st.sampled_from(["", ".", "..", "%2e", "/", "//", "localhost", "a b", "a@b", "%"])
heads = st.sampled_from(["file:", "file:/", "file://", "file:///", "file://localhost/", "s3://", "s3:/", "gs://b/", ""])


@st.composite
def near_locations(draw: st.DrawFn) -> str:
    return draw(heads) + "/".join(draw(st.lists(pieces, max_size=5)))


@given(location=near_locations())
@settings(deadline=None, max_examples=300)
def test_normalizing_twice_is_normalizing_once(location: str) -> None:
    try:
        normal = normalize_location(location)
    except InvalidRequest:
        return
    assert normalize_location(normal) == normal
    assert not normal.endswith("/")
    assert "//" not in normal.partition("://")[2]


@given(
    segments=st.lists(st.text(min_size=1, max_size=8).map(lambda text: quote(text, safe="")), min_size=1, max_size=4)
)
@settings(deadline=None)
def test_a_path_below_a_location_lies_under_it_and_the_location_not_under_itself(segments: list[str]) -> None:
    parent = normalize_location("file:/data//t/")
    path = "/".join(f"{segment}-" for segment in segments)
    child = normalize_location(f"file:///data/t/{path}/")
    assert lies_under(child, parent)
    assert not lies_under(parent, child)
    assert not lies_under(parent, parent)


def test_a_neighbour_whose_name_begins_the_same_does_not_lie_under() -> None:
    assert not lies_under("file:///data/tides", "file:///data/tide")
    assert not lies_under("s3://bucket2/t", "s3://bucket")


@pytest.mark.parametrize(
    ("location", "places"),
    [
        ("file:///data/t", ["file:///data/t", "file:///data", "file://"]),
        ("s3://bucket/a/b", ["s3://bucket/a/b", "s3://bucket/a", "s3://bucket"]),
        ("s3://bucket", ["s3://bucket"]),
    ],
)
def test_the_places_above_a_location_end_with_the_bucket_or_the_root(location: str, places: list[str]) -> None:
    assert with_ancestors(location) == places


steps = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=4)


@given(one=steps, other=steps)
@settings(deadline=None)
def test_a_place_is_above_a_location_exactly_when_the_location_lies_under_it(one: list[str], other: list[str]) -> None:
    child, parent = (f"file:///{'/'.join(path)}" for path in (one, other))
    assert (parent in with_ancestors(child)) == (parent == child or lies_under(child, parent))


def catalog(**changes: Any) -> Catalog:
    return Catalog("c-id", "main", check_details(Details(**changes)), Stamps.new("ada", CREATED_AT))


def schema(**changes: Any) -> Schema:
    name = SchemaName("main", "default")
    return Schema("s-id", name, check_details(Details(**changes)), Stamps.new("ada", CREATED_AT))


@pytest.mark.parametrize(
    ("of_catalog", "of_schema", "location"),
    [
        (None, None, f"file:///lake/{TABLE_ID}"),
        ("file:/c/", None, f"file:///c/catalogs/c-id/tables/{TABLE_ID}"),
        (None, "file:/s/", f"file:///s/schemas/s-id/tables/{TABLE_ID}"),
        ("file:/c/", "file:/s/", f"file:///s/schemas/s-id/tables/{TABLE_ID}"),
    ],
)
def test_a_managed_table_is_put_at_the_nearest_storage_root(
    of_catalog: str | None, of_schema: str | None, location: str
) -> None:
    placed = managed_location(
        catalog=catalog(storage_root=of_catalog),
        schema=schema(storage_root=of_schema),
        storage_root="file:///lake",
        table_id=TABLE_ID,
    )
    assert placed == location


@pytest.mark.parametrize("build", [catalog, schema])
def test_a_storage_root_on_a_store_that_cannot_be_read_is_refused(build: Any) -> None:
    with pytest.raises(InvalidRequest, match="Use a file:/// location"):
        build(storage_root="s3://bucket/root")
