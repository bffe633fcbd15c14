"""Arrow's columns, fitted to a table's: the same values, in arrays that are sound, wherever a slice begins."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.client.data.fitting import fitted
from tidegate.client.data.schema import arrow_schema
from tidegate.client.log.types import ArrayType, DeltaType, Field, MapType, StructType

PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "long": st.integers(-(2**63), 2**63 - 1),
    "string": st.text(alphabet="aé🌊", max_size=4),
    "boolean": st.booleans(),
    "decimal(9,2)": st.decimals(-1_000_000, 1_000_000, places=2),
}
types = st.recursive(
    st.sampled_from(list(PRIMITIVES)),
    lambda inner: (
        st.builds(ArrayType, inner)
        | st.builds(MapType, st.just("string"), inner)
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: StructType(tuple(Field(f"f{place}", kind) for place, kind in enumerate(kinds)))
        )
    ),
    max_leaves=5,
)


def values(type: DeltaType) -> st.SearchStrategy[Any]:
    match type:
        case StructType(fields):
            told = st.fixed_dictionaries({field.name: values(field.type) for field in fields})
        case ArrayType(element):
            told = st.lists(values(element), max_size=3)
        case MapType(_, value):
            told = st.lists(st.tuples(PRIMITIVES["string"], values(value)), max_size=3, unique_by=lambda pair: pair[0])
        case str():
            told = PRIMITIVES[type]
    return st.none() | told


@given(st.data())
@settings(max_examples=200)
def test_values_stay_what_they_are_in_any_slice(data: st.DataObject) -> None:
    schema = StructType((Field("c", data.draw(types)),))
    rows = data.draw(st.lists(st.fixed_dictionaries({"c": values(schema.fields[0].type)}), max_size=8))
    start, end = sorted((data.draw(st.integers(0, len(rows))), data.draw(st.integers(0, len(rows)))))
    given_rows = pa.Table.from_pylist(rows, arrow_schema(schema)).slice(start, end - start)
    result = fitted(given_rows, schema, "none")
    result.validate(full=True)
    assert result.to_pylist() == rows[start:end]
    assert result.schema == arrow_schema(schema)


@given(st.lists(st.none() | st.lists(st.none() | PRIMITIVES["long"], max_size=3), max_size=8), st.integers(0, 8))
def test_lists_of_every_kind_are_the_same_lists(lists: list[Any], start: int) -> None:
    schema = StructType((Field("c", ArrayType("long")),))
    for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view):
        result = fitted(pa.table({"c": pa.array(lists, kind(pa.int64()))}).slice(start), schema, "none")
        result.validate(full=True)
        assert result["c"].to_pylist() == lists[start:]
