"""Catalogs and schemas through the client."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate import client


def test_a_catalog_is_created_listed_altered_and_deleted(catalog: Any, unique: str) -> None:
    made = catalog.create_catalog(unique, comment="tides", properties={"sea": "north"})
    assert (made.name, made.comment, made.properties) == (unique, "tides", {"sea": "north"})
    assert catalog.get_catalog(unique) == made
    assert unique in [one.name for one in catalog.list_catalogs()]
    altered = catalog.alter_catalog(unique, new_name=f"{unique}x", comment="ebb")
    assert (altered.id, altered.name, altered.comment) == (made.id, f"{unique}x", "ebb")
    catalog.delete_catalog(f"{unique}x")
    with pytest.raises(client.NoSuchCatalog):
        catalog.get_catalog(f"{unique}x")


def test_a_schema_is_created_listed_altered_and_deleted(catalog: Any, unique: str) -> None:
    made = catalog.create_schema(f"main.{unique}", comment="tides")
    assert (made.full_name, made.comment) == (f"main.{unique}", "tides")
    assert catalog.get_schema(f"main.{unique}") == made
    assert unique in [one.name for one in catalog.list_schemas("main")]
    altered = catalog.alter_schema(f"main.{unique}", new_name=f"{unique}x", properties={"sea": "north"})
    assert (altered.schema_id, altered.full_name) == (made.schema_id, f"main.{unique}x")
    catalog.delete_schema(f"main.{unique}x")
    with pytest.raises(client.NoSuchSchema):
        catalog.get_schema(f"main.{unique}x")


def test_what_holds_something_goes_by_force_only(catalog: Any, unique: str) -> None:
    catalog.create_schema(f"main.{unique}")
    catalog.create_table(f"main.{unique}.t", {"id": "long"})
    with pytest.raises(client.NotEmpty, match="force"):
        catalog.delete_schema(f"main.{unique}")
    catalog.delete_schema(f"main.{unique}", force=True)
    assert not catalog.has_table(f"main.{unique}.t")


def test_a_taken_name_is_refused(catalog: Any, unique: str) -> None:
    catalog.create_schema(f"main.{unique}")
    with pytest.raises(client.AlreadyExists, match=unique):
        catalog.create_schema(f"main.{unique}")


@pytest.mark.parametrize("name", ["main", "main.", "a.b.c", ""])
def test_a_schema_has_two_names(catalog: Any, name: str) -> None:
    with pytest.raises(client.InvalidRequest, match=r"catalog\.schema"):
        catalog.get_schema(name)
