"""Large catalogs, made in the database itself: a hundred thousand creations by HTTP would take longer than all cases.

The rows are copies of a real table's, whatever columns they have, with ids, names and places of their own, and with
random ids as real ones, so that indexes are as scattered as they would be. Only the folders of the tables are missing;
nothing looks at them unless it commits. No server may run on the database meanwhile.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tidegate.db.engines import parse_url, writing_engine
from tidegate.db.schema import commits, schemas, table_metadata, tables

_ROWS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Filling:
    schema: str
    prefix: str
    """Tables are named <prefix>_000000 and so on."""
    tables: int
    commits_each: int
    """All of them published, so that the server has no work of its own to do on files that are not there."""


def fill(url: str, template: str, filling: Filling) -> None:
    """`template` names a table with at least one commit."""
    engine = writing_engine(parse_url(url))
    try:
        with engine.begin() as connection:
            model = connection.execute(sa.select(tables).where(tables.c.name == template)).one()._asdict()
            schema_id = _schema(connection, model["schema_id"], filling.schema)
            _add_tables(connection, model, schema_id, filling)
            _add_metadata(connection, model, schema_id, filling)
            if filling.commits_each:
                _add_commits(connection, model, schema_id, filling)
    finally:
        engine.dispose()


def settle(url: str) -> None:
    """What PostgreSQL would do in the background, while the cases run: there it would be taken for their cost."""
    engine = writing_engine(parse_url(url))
    try:
        if engine.dialect.name == "postgresql":
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for command in ("VACUUM (ANALYZE)", "CHECKPOINT"):
                    connection.exec_driver_sql(command)
    finally:
        engine.dispose()


def _schema(connection: sa.Connection, model: str, name: str) -> str:
    """The id of the schema of this name, beside the model's."""
    row = connection.execute(sa.select(schemas).where(schemas.c.id == model)).one()._asdict()
    of_name = sa.select(schemas.c.id).where(schemas.c.catalog_id == row["catalog_id"], schemas.c.name == name)
    found = connection.execute(of_name).scalar_one_or_none()
    if found is not None:
        return found
    row |= {"id": str(uuid.uuid4()), "name": name}
    connection.execute(schemas.insert().values(**row))
    return row["id"]


def _add_tables(connection: sa.Connection, model: dict[str, Any], schema_id: str, filling: Filling) -> None:
    latest = filling.commits_each
    for first in range(0, filling.tables, _ROWS_AT_ONCE):
        rows: list[dict[str, Any]] = []
        for number in range(first, min(first + _ROWS_AT_ONCE, filling.tables)):
            id = str(uuid.uuid4())
            own: dict[str, Any] = {
                "id": id,
                "schema_id": schema_id,
                "name": f"{filling.prefix}_{number:06}",
                "location": model["location"].replace(model["id"], id),
                "latest": latest,
                "published": latest,
                "latest_timestamp": model["metadata_timestamp"] + latest,
            }
            if "state" in tables.c:
                own["state"] = random.getrandbits(62)
            rows.append(model | own)
        connection.execute(tables.insert(), rows)


def _filled(schema_id: str, filling: Filling) -> sa.ColumnElement[bool]:
    return sa.and_(tables.c.schema_id == schema_id, tables.c.name.startswith(f"{filling.prefix}_", autoescape=True))


def _add_metadata(connection: sa.Connection, model: dict[str, Any], schema_id: str, filling: Filling) -> None:
    of_model = sa.select(table_metadata).where(table_metadata.c.table_id == model["id"])
    row = connection.execute(of_model).one()._asdict()
    # The table's id also stands among its properties.
    own = {"table_id": tables.c.id, "document": sa.func.replace(row["document"], model["id"], tables.c.id)}
    copied = _copy(table_metadata, row, own).where(_filled(schema_id, filling))
    connection.execute(table_metadata.insert().from_select(list(table_metadata.c), copied))


def _add_commits(connection: sa.Connection, model: dict[str, Any], schema_id: str, filling: Filling) -> None:
    of_model = sa.select(commits).where(commits.c.table_id == model["id"]).limit(1)
    row = connection.execute(of_model).one()._asdict()
    versions = sa.union_all(
        *[
            sa.select(sa.literal(version).label("version"), sa.literal(f"{version:020}.").label("digits"))
            for version in range(1, filling.commits_each + 1)
        ]
    ).subquery()
    own = {
        "table_id": tables.c.id,
        "version": versions.c.version,
        "timestamp": tables.c.metadata_timestamp + versions.c.version,
        "file_name": versions.c.digits + tables.c.id + ".json",
    }
    copied = _copy(commits, row, own).join_from(tables, versions, sa.true()).where(_filled(schema_id, filling))
    connection.execute(commits.insert().from_select(list(commits.c), copied))


def _copy(table: sa.Table, row: dict[str, Any], own: dict[str, Any]) -> sa.Select[Any]:
    """A row like this one, but for the columns that are the copy's own."""
    return sa.select(
        *[own[column.name] if column.name in own else sa.literal(row[column.name], column.type) for column in table.c]
    )
