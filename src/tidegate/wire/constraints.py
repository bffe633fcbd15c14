"""Keys of tables: their JSON in the Unity Catalog API, and in Tidegate's own."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class PrimaryKeyConstraint(Struct, frozen=True):
    child_columns: list[str]
    """Its columns, as that API calls them."""
    name: str | None = None


class ForeignKeyConstraint(Struct, frozen=True):
    child_columns: list[str]
    parent_table: str
    name: str | None = None
    parent_columns: list[str] | None = None
    """Left out: those of the primary key of `parent_table`."""


class NamedTableConstraint(Struct, frozen=True):
    name: str | None = None


class TableConstraint(Struct, frozen=True, omit_defaults=True):
    """One of these."""

    primary_key_constraint: PrimaryKeyConstraint | UnsetType | None = UNSET
    foreign_key_constraint: ForeignKeyConstraint | UnsetType | None = UNSET
    named_table_constraint: NamedTableConstraint | UnsetType | None = UNSET


class CreateTableConstraint(Struct, frozen=True):
    full_name_arg: str
    constraint: TableConstraint


class DeleteConstraintQuery(Struct, frozen=True):
    constraint_name: str
    cascade: bool = False


class ReferringKey(Struct, frozen=True):
    """A foreign key of `table` that refers to the table that was asked about."""

    table: str
    foreign_key_constraint: ForeignKeyConstraint


class Constraints(Struct, frozen=True):
    table_constraints: list[TableConstraint]
    referred_by: list[ReferringKey]
