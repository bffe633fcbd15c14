"""DataFrames of pandas: written and read value by value, and refused in one sentence."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.python_client.conftest import log_of
from tests.python_client.written import EVERYTHING, ROWS
from tidegate import client
from tidegate.client.data.frames import frame_of
from tidegate.client.data.rows import arrow_tables
from tidegate.client.data.schema import delta_schema

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LOCAL = NOON.replace(tzinfo=None)


def read(table: Any) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def one_column(catalog: Any, unique: str, type: Any) -> Any:
    return catalog.create_table(f"main.default.{unique}", {"id": "long", "value": type})


def test_all_types_go_through_a_frame_and_back(catalog: Any, unique: str) -> None:
    table = catalog.create_table(f"main.default.{unique}", EVERYTHING)
    table.append(ROWS)
    frame = table.scan().to_pandas()
    assert table.overwrite(frame).version == 2
    assert read(table) == ROWS
    assert table.append(frame[frame["id"] == 2]).version == 3
    assert read(table) == [ROWS[0], ROWS[1], ROWS[1], ROWS[2]]


LIST, STRUCT = (
    {"type": "array", "elementType": "long", "containsNull": True},
    {
        "type": "struct",
        "fields": [{"name": "x", "type": "long"}, {"name": "t", "type": "timestamp"}],
    },
)
MAP = {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True}
TIMES = pd.Series([NOON, None]).astype("datetime64[us, UTC]")
GIVEN: dict[str, tuple[Any, Any, list[Any]]] = {
    "text": ("string", ["ebb", None], ["ebb", None]),
    "text in objects": ("string", pd.Series(["ebb", float("nan")], dtype=object), ["ebb", None]),
    "text of Arrow": ("string", pd.Series(["ebb", None], dtype=pd.ArrowDtype(pa.string())), ["ebb", None]),
    "integers": ("long", [2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
    "integers with a gap": ("long", [1, None], [1, None]),
    "integers with nulls": ("integer", pd.array([7, None], dtype="Int64"), [7, None]),
    "integers in objects": ("long", pd.Series([2**62 + 1, None], dtype=object), [2**62 + 1, None]),
    "integers of numpy": ("short", pd.Series([np.int64(3), pd.NA], dtype=object), [3, None]),
    "narrow integers": ("long", np.array([1, 2], dtype="uint8"), [1, 2]),
    "doubles": ("double", [0.1, float("nan")], [0.1, None]),
    "infinity": ("double", [float("inf"), -0.5], [float("inf"), -0.5]),
    "floats": ("float", np.array([0.25, 1.5], dtype="float32"), [0.25, 1.5]),
    "integers as doubles": ("double", [1, 2], [1.0, 2.0]),
    "booleans": ("boolean", [True, False], [True, False]),
    "booleans with a gap": ("boolean", [True, None], [True, None]),
    "booleans with nulls": ("boolean", pd.array([False, None], dtype="boolean"), [False, None]),
    "binary": ("binary", [b"\x00\xff", None], [b"\x00\xff", None]),
    "dates": ("date", [date(1, 1, 1), None], [date(1, 1, 1), None]),
    "decimals": ("decimal(12,3)", [Decimal("1.125"), None], [Decimal("1.125"), None]),
    "times": ("timestamp", TIMES, [NOON, None]),
    "times elsewhere": ("timestamp", TIMES.dt.tz_convert("Asia/Kathmandu"), [NOON, None]),
    "whole nanoseconds": ("timestamp", TIMES.astype("datetime64[ns, UTC]"), [NOON, None]),
    "times in objects": ("timestamp", pd.Series([pd.Timestamp(NOON), pd.NaT], dtype=object), [NOON, None]),
    "times of several zones": (
        "timestamp",
        pd.Series([NOON, NOON.astimezone(timezone(timedelta(hours=2)))], dtype=object),
        [NOON, NOON],
    ),
    "times without zone": ("timestamp_ntz", pd.to_datetime([LOCAL, None]), [LOCAL, None]),
    "categories": ("string", pd.Categorical(["ebb", None]), ["ebb", None]),
    "categories of integers": ("long", pd.Categorical([5, 5]), [5, 5]),
    "nothing": ("date", [None, None], [None, None]),
    "lists": (LIST, [[1, None], None], [[1, None], None]),
    "arrays of numpy": (LIST, [np.array([1, 2]), np.array([], dtype="int64")], [[1, 2], []]),
    "dicts": (STRUCT, [{"x": 2**60 + 1, "t": pd.Timestamp(NOON)}, None], [{"x": 2**60 + 1, "t": NOON}, None]),
    "maps": (MAP, [{"a": 1.5}, [("b", None)]], [[("a", 1.5)], [("b", None)]]),
}


@pytest.mark.parametrize("what", GIVEN)
def test_every_dtype_arrives_value_by_value(catalog: Any, unique: str, what: str) -> None:
    type, given, wanted = GIVEN[what]
    table = one_column(catalog, unique, type)
    frame = pd.DataFrame({"id": [1, 2], "value": given})
    table.append(frame)
    assert [row["value"] for row in read(table)] == wanted
    table.overwrite(frame)
    assert [row["value"] for row in read(table)] == wanted


def test_a_list_keeps_a_number_that_is_none(catalog: Any, unique: str) -> None:
    table = one_column(catalog, unique, {"type": "array", "elementType": "double", "containsNull": True})
    table.append(pd.DataFrame({"id": [1], "value": [[float("nan"), None]]}))
    ((first, second),) = [row["value"] for row in read(table)]
    assert first != first and second is None


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "numbers as text": ("string", [1, 2], "Column 'value' is of type string, not int64: cast it first."),
    "text as numbers": ("long", ["1", "2"], "Column 'value' is of type long, not large_string: cast it first."),
    "fractions": ("long", [1.5, None], "Column 'value' is of type long, and a value does not fit"),
    "too large": ("byte", [1, 300], "Column 'value' is of type byte, and a value does not fit"),
    "a mix": ("string", ["ebb", 1], "Column 'value' takes values of type string, not the int '1'."),
    "times without zone": ("timestamp", pd.to_datetime([LOCAL, None]), "Column 'value' is of type timestamp, not"),
    "a mix of times": (
        "timestamp",
        pd.Series([NOON, LOCAL], dtype=object),
        "Column 'value' takes values of type timestamp, a datetime with a time zone",
    ),
    "times with zone": ("timestamp_ntz", TIMES, "Column 'value' is of type timestamp_ntz, not"),
    "nanoseconds": (
        "timestamp",
        TIMES.astype("datetime64[ns, UTC]") + pd.Timedelta(1, "ns"),
        "Column 'value' is of type timestamp, and a value does not fit",
    ),
    "nanoseconds in objects": (
        "timestamp",
        pd.Series([pd.Timestamp(NOON) + pd.Timedelta(1, "ns"), None], dtype=object),
        "Delta has no nanoseconds: round it first.",
    ),
    "times as dates": ("date", TIMES, "Column 'value' is of type date, not timestamp"),
    "durations": ("long", pd.to_timedelta([1, 2], unit="s"), "Column 'value' is of type long, not duration"),
    "periods": ("date", pd.period_range("2026-01", periods=2, freq="M"), "Column 'value' is of type date, not ext"),
    "complex numbers": ("double", [1j, 2j], "Column 'value' has the dtype complex128, which Arrow does not know"),
    "sparse": ("long", pd.arrays.SparseArray([0, 1]), "Column 'value' has the dtype Sparse"),
    "a key too many": (STRUCT, [{"x": 1, "z": 2}, None], "The table has no column 'value.z'"),
    "scalars as lists": (LIST, pd.Series([1, 2], dtype=object), "Column 'value' takes lists, not the int '1'."),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_and_nothing_is_written(catalog: Any, unique: str, what: str) -> None:
    type, given, told = REFUSED[what]
    table = one_column(catalog, unique, type)
    for write in (table.append, table.overwrite):
        with pytest.raises(client.InvalidRows) as refused:
            write(pd.DataFrame({"id": [1, 2], "value": given}))
        assert told in str(refused.value)
        assert refused.value.column in {"value", "value.z"}
    assert table.load().latest_table_version == 0
    assert list(log_of(table).parent.rglob("*.parquet")) == []


def test_the_index_is_no_column(table: Any) -> None:
    frame = pd.DataFrame({"id": [1, 2], "name": ["ebb", "flood"]}, index=pd.Index([7, 8], name="row"))
    table.append(frame)
    table.append(frame[frame["id"] == 2].set_axis(["x"], axis="index"))
    assert [row["id"] for row in read(table)] == [1, 2, 2]


def test_an_index_that_was_a_column_is_told_of(table: Any) -> None:
    frame = pd.DataFrame({"id": [1], "name": ["ebb"]})
    for indexed in (frame.set_index("id"), frame.set_index(["name", "id"])):
        with pytest.raises(client.InvalidRows, match=r"is the index of the DataFrame, .*: call reset_index\(\) first"):
            table.append(indexed)
    table.append(frame.set_index("id").reset_index())
    table.append(frame.set_index("id", drop=False))
    assert read(table) == [{"id": 1, "name": "ebb"}] * 2


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame({"id": [], "name": []}),
        pd.DataFrame({"id": [1], "name": ["ebb"]}).iloc[:0],
        pd.DataFrame(columns=["name"]),
    ],
    ids=["bare", "untyped", "typed", "names"],
)
def test_an_empty_frame_is_a_commit_without_files(table: Any, frame: pd.DataFrame) -> None:
    assert table.append(frame).version == 1
    assert table.snapshot().files == ()
    assert table.overwrite(frame).version == 2
    empty = table.scan().to_pandas()
    assert (list(empty.columns), len(empty), str(empty.dtypes["id"])) == (["id", "name"], 0, "Int64")


def test_columns_that_are_missing_are_null_and_others_are_found_in_any_case(table: Any) -> None:
    table.append(pd.DataFrame({"ID": [1]}))
    table.append(pd.DataFrame({"Name": ["ebb"], "Id": [2]}))
    assert read(table) == [{"id": 1, "name": None}, {"id": 2, "name": "ebb"}]


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (pd.DataFrame({"id": [1], "nome": ["ebb"]}), "The table has no column 'nome': it has 'id', 'name'."),
        (pd.DataFrame({"id": [1], "x": [object()]}), "The table has no column 'x': it has 'id', 'name'."),
        (pd.DataFrame([[1, "ebb"]]), "The table has no column '0': it has 'id', 'name'."),
        (pd.DataFrame([[1, 2]], columns=["id", "id"]), "Column 'id' is given twice."),
        (pd.DataFrame([[1, 2]], columns=["id", "ID"]), "Column 'ID' is given twice."),
    ],
    ids=["extra", "extra object", "numbers", "twice", "twice in another case"],
)
def test_columns_that_the_table_does_not_have_are_refused(table: Any, frame: pd.DataFrame, told: str) -> None:
    with pytest.raises(client.InvalidRows) as refused:
        table.append(frame)
    assert str(refused.value) == told
    assert table.load().latest_table_version == 0


def test_a_column_that_must_have_values_must_have_them(catalog: Any, unique: str) -> None:
    columns = [{"name": "id", "type": "long", "nullable": False}, {"name": "name", "type": "string"}]
    table = catalog.create_table(f"main.default.{unique}", columns)
    with pytest.raises(client.InvalidRows, match="Column 'id' is NOT NULL, and a row has no value for it"):
        table.append(pd.DataFrame({"id": [1, None], "name": ["ebb", "flood"]}))
    with pytest.raises(client.InvalidRows, match="Column 'id' is NOT NULL: give its values"):
        table.append(pd.DataFrame({"name": ["ebb"]}))
    table.append(pd.DataFrame({"id": [1], "name": [None]}))
    assert read(table) == [{"id": 1, "name": None}]


def test_a_series_is_no_table(table: Any) -> None:
    with pytest.raises(client.InvalidRows, match="The Series is not read as a table"):
        table.append(pd.Series([1, 2], name="id"))


def test_the_dtypes_do_not_depend_on_the_values(catalog: Any, unique: str) -> None:
    table = catalog.create_table(f"main.default.{unique}", EVERYTHING)
    table.append(ROWS)
    everything = table.scan().to_pandas()
    assert everything.index.equals(pd.RangeIndex(3))
    for some in (table.scan(filter=[("id", "=", 3)]), table.scan(filter=[("id", "=", 1)]), table.scan(version=0)):
        assert some.to_pandas().dtypes.to_dict() == everything.dtypes.to_dict()
    dtypes = everything.dtypes.astype(str).to_dict()
    assert {name: dtypes[name] for name in ("a_long", "a_byte", "a_boolean", "a_float", "a_double")} == {
        "a_long": "Int64",
        "a_byte": "Int8",
        "a_boolean": "boolean",
        "a_float": "float32",
        "a_double": "float64",
    }
    assert (dtypes["a_time"], dtypes["a_local_time"]) == ("datetime64[us, UTC]", "datetime64[us]")
    assert list(everything["a_long"]) == [-(2**63), 2**63 - 1, pd.NA]
    assert list(everything["a_decimal"]) == [row["a_decimal"] for row in ROWS]
    assert list(everything["a_map"]) == [row["a_map"] for row in ROWS]


def test_chosen_columns_keep_their_order_and_rows_without_columns_their_number(table: Any) -> None:
    table.append(pd.DataFrame({"id": [1, 2], "name": ["ebb", "flood"]}))
    assert list(table.scan(columns=["name", "id"]).to_pandas().columns) == ["name", "id"]
    nothing = frame_of(pa.table({"id": [1, 2]}).select([]))
    assert nothing.shape == (2, 0)
    (again,) = arrow_tables(nothing, delta_schema(pa.schema({"id": pa.int64()})))
    assert again.num_rows == 2


def test_without_pandas_the_error_says_what_to_install(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append([{"id": 1, "name": "ebb"}])
    scan = table.scan()
    monkeypatch.setitem(sys.modules, "pandas", None)  # Which is how Python notes that there is no such module.
    with pytest.raises(client.PandasMissing, match=r"DataFrames need pandas: pip install 'tidegate\[pandas\]'"):
        scan.to_pandas()
    table.append([{"id": 2, "name": "flood"}])
    assert [row["id"] for row in read(table)] == [1, 2]


def test_pandas_is_not_imported_for_others() -> None:
    code = "import sys, tidegate.client.data.rows, tidegate.client.data.scan; print('pandas' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
