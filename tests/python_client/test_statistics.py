"""Statistics of data files: whatever the values are, none lies outside of what is told."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.client.data.schema import arrow_schema
from tidegate.client.data.statistics import Statistics, column_paths, indexed_leaves, lower_bound, upper_bound
from tidegate.client.data.values import largest_value, statistic
from tidegate.client.log.types import ArrayType, Field, StructType

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=70)
    | st.text(alphabet="a\U0010ffff\uffff", min_size=30, max_size=70),
    "long": st.integers(-(2**63), 2**63 - 1),
    "byte": st.integers(-128, 127),
    "float": st.floats(width=32),
    "double": st.floats(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ntz": st.datetimes(),
    "decimal(12,3)": st.decimals(-999_999_999, 999_999_999, places=3),
    "boolean": st.booleans(),
    "binary": st.binary(),
}


def gathered(schema: StructType, *tables: list[dict[str, Any]], **properties: str) -> dict[str, Any]:
    statistics = Statistics(indexed_leaves(schema, properties, mapped=False))
    for rows in tables:
        statistics.add(pa.Table.from_pylist(rows, arrow_schema(schema)))
    return json.loads(statistics.to_json(), parse_float=Decimal)


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_no_value_lies_outside_of_its_bounds(kind: str, data: st.DataObject) -> None:
    rows = st.lists(st.none() | VALUES[kind], max_size=5)
    first, second = data.draw(rows), data.draw(rows)
    field = Field("c", kind)
    told = gathered(StructType((field,)), *([{"c": value} for value in part] for part in (first, second)))
    values = [value for value in (*first, *second) if value is not None]
    assert told["numRecords"] == len(first) + len(second)
    assert told["nullCount"]["c"] == told["numRecords"] - len(values)
    least, most = statistic(told["minValues"].get("c"), field), largest_value(told["maxValues"].get("c"), field)
    assert least is None or all(least <= value for value in values)
    assert most is None or all(value <= most for value in values)


@given(VALUES["string"])
def test_a_text_is_cut_to_a_bound_that_spark_agrees_with(text: str) -> None:
    """Spark compares the bytes of UTF-8."""
    least, most = lower_bound(text, "string"), upper_bound(text, "string")
    assert least.encode() <= text.encode()
    assert len(least) <= 32
    assert most is None or text.encode() <= most.encode()


def test_short_texts_are_told_whole() -> None:
    assert (lower_bound("x" * 32, "string"), upper_bound("x" * 32, "string")) == ("x" * 32, "x" * 32)
    assert (lower_bound("x" * 33, "string"), upper_bound("x" * 33, "string")) == ("x" * 32, "x" * 32 + "\U0010ffff")


def test_values_are_told_as_delta_tells_them() -> None:
    fields = [("t", "timestamp"), ("n", "timestamp_ntz"), ("d", "date"), ("p", "decimal(12,3)"), ("b", "boolean")]
    schema = StructType(tuple(Field(name, kind) for name, kind in fields))
    early = datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001
    row = {"t": early.replace(tzinfo=UTC), "n": early, "d": date(1, 2, 3), "p": Decimal("-1.500"), "b": True}
    told = gathered(schema, [row])
    assert told["minValues"] == told["maxValues"]
    assert told["minValues"] == {
        "t": "1969-12-31T23:59:59.999Z",
        "n": "1969-12-31T23:59:59.999",
        "d": "0001-02-03",
        "p": Decimal("-1.500"),
    }
    assert told["nullCount"] == dict.fromkeys("tndpb", 0)


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), -float("inf")])
def test_a_column_with_a_number_that_json_does_not_have_has_no_bounds(strange: float) -> None:
    schema = StructType((Field("x", "double"), Field("y", "long")))
    told = gathered(schema, [{"x": 1.0, "y": 1}], [{"x": strange, "y": 2}])
    assert (told["minValues"], told["maxValues"]) == ({"y": 1}, {"y": 2})


def test_times_beyond_pythons_calendar_have_no_bounds() -> None:
    schema = StructType((Field("t", "timestamp"),))
    statistics = Statistics(indexed_leaves(schema, {}, mapped=False))
    statistics.add(pa.table({"t": pa.array([2**62], pa.timestamp("us", "UTC"))}))
    assert json.loads(statistics.to_json())["maxValues"] == {}


NESTED = StructType(
    (
        Field("s", StructType((Field("x", "long"), Field("deep", StructType((Field("y", "string"),)))))),
        Field("l", ArrayType("long")),
        Field("z", "long"),
    )
)
ROWS = [{"s": {"x": 1, "deep": {"y": "a"}}, "l": [1], "z": 5}, {"s": None, "l": None, "z": None}]


def test_structs_are_told_by_their_fields() -> None:
    told = gathered(NESTED, ROWS)
    assert told["minValues"] == {"s": {"x": 1, "deep": {"y": "a"}}, "z": 5}
    assert told["nullCount"] == {"s": {"x": 1, "deep": {"y": 1}}, "l": 1, "z": 1}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"delta.dataSkippingNumIndexedCols": "0"}, {}),
        ({"delta.dataSkippingNumIndexedCols": "1"}, {"s": {"x": 1}}),
        ({"delta.dataSkippingNumIndexedCols": "3"}, {"s": {"x": 1, "deep": {"y": 1}}, "l": 1}),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, {"s": {"x": 1, "deep": {"y": 1}}, "l": 1, "z": 1}),
        ({"delta.dataSkippingStatsColumns": "z, s.deep"}, {"s": {"deep": {"y": 1}}, "z": 1}),
        ({"delta.dataSkippingStatsColumns": "`S`.`x`"}, {"s": {"x": 1}}),
    ],
)
def test_the_table_says_which_columns_have_statistics(properties: dict[str, str], expected: dict[str, Any]) -> None:
    assert gathered(NESTED, ROWS, **properties)["nullCount"] == expected


def test_columns_are_listed_with_quotes_where_names_need_them() -> None:
    assert column_paths("a, `b,c`.d ,`e``f`.`g.h`") == [("a",), ("b,c", "d"), ("e`f", "g.h")]


def test_the_first_32_columns_have_statistics() -> None:
    schema = StructType(tuple(Field(f"c{number}", "long") for number in range(40)))
    told = gathered(schema, [{f"c{number}": number for number in range(40)}])
    assert list(told["minValues"]) == [f"c{number}" for number in range(32)]


def test_an_upper_bound_of_a_time_is_at_most_a_millisecond_early() -> None:
    field, time = Field("t", "timestamp"), datetime(2026, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC)
    told = upper_bound((time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), "timestamp")
    assert told == "2026-01-01T00:00:00.999Z"
    assert largest_value(told, field) >= time


def test_columns_that_a_table_is_clustered_by_always_have_statistics() -> None:
    leaves = indexed_leaves(
        NESTED, {"delta.dataSkippingNumIndexedCols": "0"}, mapped=False, always=[("s", "x"), ("z",)]
    )
    assert [leaf.path for leaf in leaves] == [("s", "x"), ("z",)]
