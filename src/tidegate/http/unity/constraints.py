"""Keys of tables, as the Unity Catalog API declares and shows them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from tidegate.domain import errors
from tidegate.domain.constraints import Constraint
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.names import TableName, parse_table_name
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.face import UNITY
from tidegate.services.constraints import NewForeignKey, NewPrimaryKey, Shown, add_constraint, remove_constraint
from tidegate.wire import constraints as wire
from tidegate.wire.unity import Empty


async def create(call: Call) -> wire.TableConstraint:
    body: wire.CreateTableConstraint = call.body
    new = _new(body.constraint)
    return from_shown(await add_constraint(call.env, call.caller, parse_table_name(body.full_name_arg), new))


async def delete(call: Call) -> Empty:
    query: wire.DeleteConstraintQuery = call.query
    name = parse_table_name(call.path["full_name"])
    await remove_constraint(call.env, call.caller, name, query.constraint_name, cascade=query.cascade)
    return Empty()


def _new(sent: wire.TableConstraint) -> NewPrimaryKey | NewForeignKey:
    primary, foreign = sent.primary_key_constraint, sent.foreign_key_constraint
    match (primary, foreign, sent.named_table_constraint):
        case (wire.PrimaryKeyConstraint(), UnsetType() | None, UnsetType() | None):
            return NewPrimaryKey(primary.name, primary.child_columns)
        case (UnsetType() | None, wire.ForeignKeyConstraint(), UnsetType() | None):
            parent = parse_table_name(foreign.parent_table)
            return NewForeignKey(foreign.name, foreign.child_columns, parent, foreign.parent_columns)
        case _:
            raise InvalidRequest(
                "The constraint is either a primary_key_constraint or a foreign_key_constraint. Other constraints of a "
                "table are in its log: ALTER TABLE ... ADD CONSTRAINT ... CHECK."
            )


def from_shown(shown: Shown) -> wire.TableConstraint:
    one = shown.constraint
    if shown.parent is None:
        return wire.TableConstraint(primary_key_constraint=wire.PrimaryKeyConstraint(list(one.columns), one.name))
    return wire.TableConstraint(foreign_key_constraint=from_foreign_key(one, shown.parent))


def from_foreign_key(one: Constraint, parent: TableName) -> wire.ForeignKeyConstraint:
    return wire.ForeignKeyConstraint(list(one.columns), str(parent), one.name, list(one.parent_columns))


def from_all(shown: Sequence[Shown]) -> list[wire.TableConstraint] | UnsetType:
    """Of a table that has none, nothing is said."""
    return [from_shown(one) for one in shown] if shown else UNSET


_MISSING = (errors.NoSuchTable, errors.UnsupportedTableFormat)

ENDPOINTS: list[Endpoint] = [
    Endpoint(
        UNITY,
        "POST",
        "/constraints",
        "createTableConstraint",
        "Declare a primary or a foreign key on a managed table; a foreign key takes the management of both tables.",
        create,
        body=wire.CreateTableConstraint,
        answer=wire.TableConstraint,
        errors=(errors.InvalidRequest, *_MISSING),
    ),
    Endpoint(
        UNITY,
        "DELETE",
        "/constraints/{full_name}",
        "deleteTableConstraint",
        "Remove a key from a table; with cascade=true also the foreign keys that refer to it.",
        delete,
        query=wire.DeleteConstraintQuery,
        answer=Empty,
        errors=(errors.InvalidRequest, errors.NotFound, *_MISSING),
    ),
]
