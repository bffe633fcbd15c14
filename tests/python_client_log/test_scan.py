"""Scans of data files made by hand: what Spark does not write, or not on demand."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.python_client_log import vectors
from tests.python_client_log.logs import FIRST, Table, add, fields, metadata, protocol
from tidegate.client.data.scan import Scan, scan
from tidegate.client.log.errors import ColumnNotFound, InvalidFilter, LogDamaged, UnsupportedTable
from tidegate.client.log.storage import resolve

Row = dict[str, Any]


def write(table: Table, name: str, rows: Any, schema: Any = None, **told: Any) -> dict[str, Any]:
    """A data file, and the action that adds it."""
    data = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema)
    path = table.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path, row_group_size=3)
    return add(told.pop("address", name), size=path.stat().st_size, **told)


def rows(table: Table, **others: Any) -> list[Row]:
    return scan(table.snapshot(), table.files, **others).to_arrow().to_pylist()


def opened(table: Table, **others: Any) -> Scan:
    return scan(table.snapshot(), table.files, **others)


def test_empty_table_has_its_columns(table: Table) -> None:
    table.publish(FIRST[0], metadata(fields(("id", "long"), ("day", "date")), partitions=["day"]))
    found = opened(table).to_arrow()
    assert found.schema == pa.schema({"id": pa.int64(), "day": pa.date32()})
    assert found.num_rows == 0


def mapped(name: str, type: Any, id: int) -> dict[str, Any]:
    told = {"delta.columnMapping.id": id, "delta.columnMapping.physicalName": f"col-{id}"}
    return {"name": name, "type": type, "nullable": True, "metadata": told}


def with_id(name: str, type: Any, id: int) -> Any:
    return pa.field(name, type, metadata={b"PARQUET:field_id": str(id).encode()})


PLACE = {"type": "struct", "fields": [mapped("x", "integer", 3), mapped("y", "integer", 4)]}
POINTS = {"type": "array", "elementType": {"type": "struct", "fields": [mapped("z", "long", 7)]}, "containsNull": True}
NOTES = {"type": "map", "keyType": "string", "valueType": PLACE, "valueContainsNull": True}
MAPPED = [mapped("id", "long", 1), mapped("place", PLACE, 2), mapped("points", POINTS, 6), mapped("notes", NOTES, 8)]


def mapped_file(names: list[str]) -> Any:
    """Columns by ids, under whatever names; `y` is not there, and `dropped` is no longer in the table."""
    x = pa.struct([with_id(names[2], pa.int32(), 3), with_id("dropped", pa.int32(), 5)])
    points = pa.list_(pa.struct([with_id(names[4], pa.int64(), 7)]))
    schema = pa.schema(
        [
            with_id(names[1], x, 2),
            with_id(names[0], pa.int64(), 1),
            with_id(names[3], points, 6),
            with_id(names[5], pa.map_(pa.string(), x), 8),
        ]
    )
    place = {names[2]: 7, "dropped": 8}
    values = [
        {names[0]: 1, names[1]: place, names[3]: [{names[4]: 5}, None], names[5]: [("k", place), ("n", None)]},
        {names[0]: 2, names[1]: None, names[3]: None, names[5]: None},
        {names[0]: None, names[1]: {names[2]: None, "dropped": 1}, names[3]: [], names[5]: []},
    ]
    return pa.Table.from_pylist(values, schema)


@pytest.mark.parametrize(
    ("mode", "names"),
    [("name", ["col-1", "col-2", "col-3", "col-6", "col-7", "col-8"]), ("id", ["a", "b", "c", "d", "e", "f"])],
)
def test_columns_are_found_by_physical_name_or_by_id(table: Table, mode: str, names: list[str]) -> None:
    table.publish(FIRST[0], metadata(MAPPED, columnMapping__mode=mode), write(table, "f", mapped_file(names)))
    place = {"x": 7, "y": None}
    assert rows(table) == [
        {"id": 1, "place": place, "points": [{"z": 5}, None], "notes": [("k", place), ("n", None)]},
        {"id": 2, "place": None, "points": None, "notes": None},
        {"id": None, "place": {"x": None, "y": None}, "points": [], "notes": []},
    ]


def test_file_without_ids_has_only_nulls_where_columns_go_by_id(table: Table) -> None:
    plain = pa.table({"id": [1], "col-1": [2]})
    table.publish(FIRST[0], metadata([mapped("id", "long", 1)], columnMapping__mode="id"), write(table, "f", plain))
    assert rows(table) == [{"id": None}]


WIDER: list[tuple[Any, Any, str, Any]] = [
    (pa.int8(), 5, "short", 5),
    (pa.int8(), -5, "integer", -5),
    (pa.int32(), 5, "long", 5),
    (pa.int32(), 5, "double", 5.0),
    (pa.float32(), 0.5, "double", 0.5),
    (pa.date32(), date(2026, 1, 2), "timestamp_ntz", datetime(2026, 1, 2)),  # noqa: DTZ001
    (pa.decimal128(6, 2), Decimal("1.25"), "decimal(10,4)", Decimal("1.2500")),
    (pa.int32(), 5, "decimal(10,0)", Decimal(5)),
    (pa.int32(), 5, "decimal(12,2)", Decimal("5.00")),
    (pa.int64(), 5, "decimal(20,0)", Decimal(5)),
]


@pytest.mark.parametrize(("narrow", "value", "wide", "expected"), WIDER)
def test_values_of_types_that_were_widened_since(
    table: Table, narrow: Any, value: Any, wide: str, expected: Any
) -> None:
    nested = {"type": "array", "elementType": wide, "containsNull": True}
    data = pa.Table.from_pylist([{"x": value, "xs": [value, None]}], pa.schema({"x": narrow, "xs": pa.list_(narrow)}))
    table.publish(protocol("typeWidening"), metadata(fields(("x", wide), ("xs", nested))), write(table, "f", data))
    assert rows(table) == [{"x": expected, "xs": [expected, None]}]


def test_type_that_cannot_become_the_columns_is_told(table: Table) -> None:
    table.publish(*FIRST, write(table, "f", [{"id": "seven"}]))
    with pytest.raises(LogDamaged, match="its string cannot become int64"):
        rows(table)


NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize("moment", [NOON, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)])
@pytest.mark.parametrize("int96", [True, False])
def test_times_of_every_age_and_writer(table: Table, moment: datetime, int96: bool) -> None:
    data = pa.table({"at": pa.array([moment, None], pa.timestamp("us", tz="UTC"))})
    pq.write_table(data, table.folder / "f", use_deprecated_int96_timestamps=int96)
    table.publish(FIRST[0], metadata(fields(("at", "timestamp"))), add("f"))
    assert rows(table) == [{"at": moment}, {"at": None}]
    assert rows(table, filter=[("at", "=", moment)]) == [{"at": moment}]


PARTITIONS: list[tuple[str, str, Any]] = [
    ("string", "a b/%ü=", "a b/%ü="),
    ("long", "-7", -7),
    ("byte", "7", 7),
    ("double", "-0.25", -0.25),
    ("float", "NaN", None),
    ("boolean", "true", True),
    ("date", "2026-01-02", date(2026, 1, 2)),
    ("decimal(10,2)", "1.5", Decimal("1.50")),
    ("timestamp", "2026-01-02T12:00:00.123456Z", NOON),
    ("timestamp", "2026-01-02 12:00:00.123456", NOON),
    ("timestamp", "2026-01-02 12:00:00", NOON.replace(microsecond=0)),
    ("timestamp_ntz", "2026-01-02 12:00:00.123456", NOON.replace(tzinfo=None)),
    ("binary", "\u0001\u0002", b"\x01\x02"),
]


@pytest.mark.parametrize(("type", "text", "value"), PARTITIONS)
def test_partition_values_have_the_types_of_their_columns(table: Table, type: str, text: str, value: Any) -> None:
    files = [
        write(table, f"f{number}", [{"id": number}], partitionValues={"p": told})
        for number, told in enumerate((text, None, ""))
    ]
    table.publish(FIRST[0], metadata(fields(("p", type), ("id", "long")), partitions=["p"]), *files)
    found = {row["id"]: row["p"] for row in rows(table)}
    if value is not None:  # NaN is not equal to itself.
        assert found[0] == value
        assert rows(table, filter=[("p", "=", value)], columns=["id"]) == [{"id": 0}]
        assert len(opened(table, filter=[("p", "=", value)]).files) == 1
    assert (found[1], found[2]) == (None, None)
    assert {row["id"] for row in rows(table, filter=[("p", "is null")])} == {1, 2}
    assert rows(table, columns=["p"], filter=[("p", "is not null"), ("id", "=", 0)])[0].keys() == {"p"}


def test_partition_value_that_is_none_is_told(table: Table) -> None:
    file = write(table, "f", [{"id": 1}], partitionValues={"p": "many"})
    table.publish(FIRST[0], metadata(fields(("p", "long"), ("id", "long")), partitions=["p"]), file)
    with pytest.raises(LogDamaged, match="partition value 'many' cannot be used: column 'p' is a long"):
        rows(table)


@pytest.mark.parametrize("deleted", [[0], [2, 3], [0, 1, 2, 3, 4, 5, 6], [6], []])
def test_deleted_rows_are_left_out(table: Table, deleted: list[int]) -> None:
    """Over the borders of row groups, and with a filter that looks at what is left."""
    told = {"deletionVector": vectors.inline(deleted), "stats": '{"numRecords":7}'}
    table.publish(*FIRST, write(table, "f", [{"id": number} for number in range(7)], **told))
    expected = [number for number in range(7) if number not in deleted]
    assert [row["id"] for row in rows(table)] == expected
    assert [row["id"] for row in rows(table, filter=[("id", ">", 2)])] == [id for id in expected if id > 2]


def test_vector_of_more_rows_than_its_file_has_is_refused(table: Table) -> None:
    told = {"deletionVector": vectors.inline([7]), "stats": '{"numRecords":7}'}
    table.publish(*FIRST, write(table, "f", [{"id": number} for number in range(7)], **told))
    with pytest.raises(LogDamaged, match="it has 7 rows, and its deletion vector deletes row 7"):
        rows(table)


def test_addresses_of_data_files_are_decoded_once(table: Table, tmp_path: Path) -> None:
    """A name with what URIs encode, relative and absolute."""
    inside = write(table, "p=a b%25/f 1", [{"id": 1}], address="p=a%20b%2525/f%201")
    pq.write_table(pa.table({"id": [2]}), tmp_path / "outside f")
    outside = add(f"file:{tmp_path}/outside%20f")
    third = write(table, "third", [{"id": 3}], address=quote(f"{table.folder}/third"))
    table.publish(*FIRST, inside, outside, third)
    assert {row["id"] for row in rows(table)} == {1, 2, 3}


@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_data_file_that_is_gone_or_torn_is_told_by_name(table: Table, damage: str) -> None:
    table.publish(*FIRST, write(table, "f", [{"id": 1}]))
    path = table.folder / "f"
    content = path.read_bytes()
    path.unlink()
    if damage == "torn":
        path.write_bytes(content[:-9])
    with pytest.raises(LogDamaged, match="/f cannot be used"):
        rows(table)


OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null"]
COLUMNS: dict[str, tuple[str, Any, st.SearchStrategy[Any]]] = {
    "n": ("integer", pa.int32(), st.integers(-3, 3)),
    "s": ("string", pa.string(), st.text("ab\u00fc", max_size=2)),
    "d": ("date", pa.date32(), st.dates(date(2026, 1, 1), date(2026, 1, 4))),
    "m": ("decimal(5,2)", pa.decimal128(5, 2), st.decimals(-2, 2, places=2)),
    "f": ("float", pa.float32(), st.sampled_from([0.1, 0.2, -0.1, 1e30])),
    "t": (
        "timestamp",
        pa.timestamp("us", tz="UTC"),
        st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 5000), timezones=st.just(UTC)),  # noqa: DTZ001
    ),
}


def statistics(rows: list[Row]) -> str:
    """As Spark writes them: times cut off at milliseconds, columns without values left out."""
    told: dict[str, Any] = {"numRecords": len(rows), "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in COLUMNS:
        values = [row[name] for row in rows if row[name] is not None]
        told["nullCount"][name] = len(rows) - len(values)
        if values:
            told["minValues"][name], told["maxValues"][name] = _told(min(values)), _told(max(values))
    return json.dumps(told)


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    return value.isoformat() if isinstance(value, date) else float(value) if isinstance(value, Decimal) else value


def model(row: Row, name: str, op: str, value: Any) -> bool:
    told = row[name]
    if op in {"is null", "is not null"}:
        return (told is None) == (op == "is null")
    if told is None:
        return False
    single_precision = pa.scalar(told, COLUMNS[name][1]).as_py()
    if op in {"in", "not in"}:
        return (single_precision in [pa.scalar(v, COLUMNS[name][1]).as_py() for v in value]) == (op == "in")
    other = pa.scalar(value, COLUMNS[name][1]).as_py()
    return {
        "=": single_precision == other,
        "!=": single_precision != other,
        "<": single_precision < other,
        "<=": single_precision <= other,
        ">": single_precision > other,
        ">=": single_precision >= other,
    }[op]


row_sets = st.lists(st.fixed_dictionaries({n: st.none() | values for n, (_, _, values) in COLUMNS.items()}), max_size=4)


@st.composite
def filters(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    chosen: list[tuple[Any, ...]] = []
    for name in draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=2)):
        op = draw(st.sampled_from(OPERATORS))
        values = COLUMNS[name][2]
        if "null" in op:
            chosen.append((name, op))
        else:
            chosen.append((name, op, draw(st.lists(values, max_size=2) if "in" in op else values)))
    return chosen


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(groups=st.lists(row_sets, max_size=3), filter=filters())
def test_filters_find_the_rows_that_a_model_finds_with_and_without_statistics(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[Row]], filter: list[tuple[Any, ...]]
) -> None:
    table = Table(tmp_path_factory.mktemp("t") / "t")
    schema = pa.schema({name: arrow for name, (_, arrow, _) in COLUMNS.items()})
    columns = fields(*((name, type) for name, (type, _, _) in COLUMNS.items()))
    files = [write(table, f"f{n}", group, schema, stats=statistics(group)) for n, group in enumerate(groups)]
    table.publish(FIRST[0], metadata(columns), *files)
    expected = [
        row
        for group in groups
        for row in group
        if all(model(row, *part, *([None] if len(part) == 2 else [])) for part in filter)
    ]
    found = opened(table, filter=filter)
    plain = pa.Table.from_pylist(expected, schema).to_pylist()
    assert found.to_arrow().to_pylist() == plain
    assert len(found.files) <= len(groups)


@pytest.mark.parametrize(
    ("filter", "files"),
    [
        ([("id", "=", 15)], ["f1"]),
        ([("id", "<", 10)], ["f0"]),
        ([("id", "<=", 10)], ["f0", "f1"]),
        ([("id", ">", 19)], ["f2"]),
        ([("id", ">=", 19)], ["f1", "f2"]),
        ([("id", "in", [3, 25])], ["f0", "f2"]),
        ([("id", "in", [])], []),
        ([("id", "is null")], []),
        ([("id", ">", 5), ("id", "<", 5)], ["f0"]),
        ([("id", "=", 99)], []),
    ],
)
def test_files_without_wanted_rows_are_not_read(table: Table, filter: list[Any], files: list[str]) -> None:
    written: list[dict[str, Any]] = []
    for number in range(3):
        ids = range(10 * number, 10 * number + 10)
        stats = {"numRecords": 10, "minValues": {"id": ids[0]}, "maxValues": {"id": ids[-1]}, "nullCount": {"id": 0}}
        written.append(write(table, f"f{number}", [{"id": id} for id in ids], stats=json.dumps(stats)))
    table.publish(*FIRST, *written)
    found = opened(table, filter=filter)
    assert [file.path for file in found.files] == files
    table.files.reads.clear()
    found.to_arrow()
    assert table.files.reads == files


@pytest.mark.parametrize("told", ["9999-12-31T23:59:59.999Z", "+10000-01-01T00:00:00.000Z", "NaN", 7, [], {}])
def test_statistics_at_the_end_of_the_calendar_or_beyond_skip_nothing(table: Table, told: Any) -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    data = pa.table({"at": pa.array([last], pa.timestamp("us", tz="UTC"))})
    stats = json.dumps({"numRecords": 1, "minValues": {"at": told}, "maxValues": {"at": told}})
    table.publish(FIRST[0], metadata(fields(("at", "timestamp"))), write(table, "f", data, stats=stats))
    assert rows(table, filter=[("at", "=", last), ("at", ">=", last)]) == [{"at": last}]


def test_mode_of_column_mapping_that_is_not_known_is_refused(table: Table) -> None:
    table.publish(FIRST[0], metadata(columnMapping__mode="both"))
    with pytest.raises(UnsupportedTable, match="Column mapping 'both'"):
        opened(table)


def test_filter_may_be_an_expression_of_pyarrow(table: Table) -> None:
    table.publish(
        FIRST[0],
        metadata(fields(("id", "long"), ("name", "string"))),
        write(table, "f", [{"id": number, "name": str(number)} for number in range(5)]),
    )
    wanted = pc.field("id").isin([0, 2, 4])
    assert rows(table, columns=["name"], filter=wanted) == [{"name": "0"}, {"name": "2"}, {"name": "4"}]


@pytest.mark.parametrize(
    ("filter", "told"),
    [
        ([("id", "~", 1)], "'~' is no operator"),
        ([("id", "=")], "has a value"),
        ([("id", "is null", 1)], "has no value"),
        ([("id", "=", None)], "Nothing compares with null"),
        ([("id", "in", [1, None])], "Nothing compares with null"),
        ([("id", "in", 1)], "needs a list"),
        ([("id", "in", "ab")], "needs a list"),
        ([("id", "=", "one")], "Column 'id' is a long, and 'one' is none"),
        ([("id", "=", 2**63)], "Column 'id' is a long"),
        (["id = 1"], "A condition is"),
        ([("places", "=", 1)], "is nested"),
        ([("ID", "=", 1)], "no column 'ID'"),
    ],
)
def test_filter_that_cannot_be_meant_is_refused(table: Table, filter: list[Any], told: str) -> None:
    nested = {"type": "array", "elementType": "long", "containsNull": True}
    table.publish(FIRST[0], metadata(fields(("id", "long"), ("places", nested))))
    with pytest.raises((InvalidFilter, ColumnNotFound), match=told):
        opened(table, filter=filter)


def test_columns_are_answered_in_the_order_asked_for(table: Table) -> None:
    columns = fields(("a.b", "long"), ("a", "long"), ("c d", "long"))
    table.publish(FIRST[0], metadata(columns), write(table, "f", [{"a": 1, "a.b": 2, "c d": 3}]))
    assert opened(table).to_arrow().schema.names == ["a.b", "a", "c d"]
    found = opened(table, columns=["c d", "a.b"], filter=[("a", "=", 1)]).to_arrow()
    assert (found.schema.names, found.to_pylist()) == (["c d", "a.b"], [{"c d": 3, "a.b": 2}])
    with pytest.raises(ColumnNotFound, match=r"no column 'x': it has 'a\.b', 'a', 'c d'"):
        opened(table, columns=["x"])
    with pytest.raises(ValueError, match=r"say \['a'\]"):
        opened(table, columns="a")


def test_struct_that_a_file_has_nothing_of_is_null_only_where_it_is_missing(table: Table) -> None:
    """A field that was added to a struct: the struct is there, its new field is null."""
    inner = {
        "type": "struct",
        "fields": fields(("old", "long"), ("new", {"type": "struct", "fields": fields(("x", "long"))})),
    }
    table.publish(FIRST[0], metadata(fields(("s", inner), ("later", inner))), write(table, "f", [{"s": {"old": 1}}]))
    assert rows(table) == [{"s": {"old": 1, "new": None}, "later": None}]


def test_void_columns_are_null(table: Table) -> None:
    table.publish(FIRST[0], metadata(fields(("id", "long"), ("nothing", "void"))), write(table, "f", [{"id": 1}]))
    assert rows(table) == [{"id": 1, "nothing": None}]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("part-0.parquet", "s3://b/t/part-0.parquet"),
        ("d=a%20b%2525/f", "s3://b/t/d=a b%25/f"),
        ("at=12:30/f", "s3://b/t/at=12:30/f"),
        ("s3://other/t%20u/f", "s3://other/t u/f"),
        ("file:/lake/f", "file:///lake/f"),
        ("file:///lake/f", "file:///lake/f"),
        ("/lake/f", "s3:///lake/f"),
    ],
)
def test_uris_of_the_log_become_paths(uri: str, path: str) -> None:
    assert resolve("s3://b/t/", uri) == path
