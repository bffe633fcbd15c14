"""The database limit: the rows of commits written in synced groups, with nothing around it.

A group is what a server can write at once when so many clients wait: for each of them one row of `commits` and the
change of its row of `tables`. SQLite: one transaction of two prepared statements. PostgreSQL: one statement, one trip.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import sqlalchemy as sa

from benchmarks.samples import Samples, summarize
from tidegate.db.engines import parse_url, writing_engine
from tidegate.db.schema import commits, tables

_CHANGED = ("latest", "latest_timestamp", "published", "updated_at")

Row = dict[str, Any]
WriteGroup = Callable[[Sequence[Row], Sequence[Row]], None]


@dataclass(slots=True)
class _Table:
    id: str
    latest: int


def measure(url: str, *, group: int, seconds: float) -> dict[str, Any]:
    """Groups of commits to tables that exist already, for this long. No server may run on the database."""
    engine = writing_engine(parse_url(url))
    try:
        with engine.connect() as connection:
            found = connection.execute(sa.select(tables.c.id, tables.c.latest).order_by(tables.c.name))
            written = [_Table(id, latest) for id, latest in found]
            model = connection.execute(sa.select(commits).limit(1)).one()._asdict()
            connection.rollback()
            raw = connection.connection.driver_connection
            write = _sqlite(raw) if engine.dialect.name == "sqlite" else _postgresql(raw)
            return _run(write, written, model, group=group, seconds=seconds)
    finally:
        engine.dispose()


def _run(write: WriteGroup, written: list[_Table], model: Row, *, group: int, seconds: float) -> dict[str, Any]:
    if len(written) < group:
        raise ValueError(f"A group of {group} commits needs as many tables; there are {len(written)}.")
    groups, place = Samples(), 0
    deadline = (started := perf_counter()) + seconds
    while perf_counter() < deadline:
        members = [written[(place + number) % len(written)] for number in range(group)]
        place += group
        begun = perf_counter()
        write(*_rows(members, model))
        groups.add(begun)
    summary = summarize(groups.took, seconds=perf_counter() - started)
    per_second = summary["per_second"] or 0
    return {**summary, "count": group * len(groups.took), "per_second": group * per_second, "seconds": seconds}


def _rows(members: Sequence[_Table], model: Row) -> tuple[list[Row], list[Row]]:
    now = time.time_ns() // 1_000_000
    added, changed = [], []
    for table in members:
        table.latest += 1
        own = {
            "table_id": table.id,
            "version": table.latest,
            "timestamp": now,
            "file_name": f"{table.latest:020}.{uuid.uuid4()}.json",
        }
        added.append(model | own)
        change = {"latest": table.latest, "latest_timestamp": now, "published": table.latest - 1, "updated_at": now}
        if "state" in tables.c:
            change["state"] = random.getrandbits(62)
        changed.append({**change, "id": table.id})
    return added, changed


def _changed_columns() -> list[str]:
    return [*_CHANGED, *(["state"] if "state" in tables.c else [])]


def _sqlite(raw: Any) -> WriteGroup:
    names = [column.name for column in commits.c]
    insert = f"INSERT INTO commits ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"
    update = f"UPDATE tables SET {', '.join(f'{name} = :{name}' for name in _changed_columns())} WHERE id = :id"

    def write(added: Sequence[Row], changed: Sequence[Row]) -> None:
        raw.execute("BEGIN IMMEDIATE")
        raw.executemany(insert, added)
        raw.executemany(update, changed)
        raw.execute("COMMIT")

    return write


def _postgresql(raw: Any) -> WriteGroup:
    raw.autocommit = True
    names, changing = [column.name for column in commits.c], [*_changed_columns(), "id"]
    sources = ", ".join(f"%(c_{column.name})s::{_array(column)}" for column in commits.c)
    changes = ", ".join(f"%(t_{name})s::{_array(tables.c[name])}" for name in changing)
    statement = (
        f"WITH added AS (INSERT INTO commits ({', '.join(names)}) SELECT * FROM unnest({sources})) "
        f"UPDATE tables SET {', '.join(f'{name} = new.{name}' for name in _changed_columns())} "
        f"FROM unnest({changes}) AS new ({', '.join(changing)}) WHERE tables.id = new.id"
    )

    def write(added: Sequence[Row], changed: Sequence[Row]) -> None:
        columns = {f"c_{name}": [row[name] for row in added] for name in names}
        columns |= {f"t_{name}": [row[name] for row in changed] for name in changing}
        raw.execute(statement, columns, prepare=True)

    return write


def _array(column: sa.Column[Any]) -> str:
    return "text[]" if isinstance(column.type, sa.Text) else "bigint[]"
