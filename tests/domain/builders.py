"""Valid domain objects, and Hypothesis strategies for them. A test changes the one thing that it is about.

managed_table()                     a managed table at version 0
managed_table(latest=7, published=3)  versions 4 to 7 are ratified and not published
commit(5, writer="b")               what writer b proposes as version 5
proposal(AddCommit(commit(5), None))  the update request around it
"""

from __future__ import annotations

import string
import uuid
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tidegate.domain.columns import ArrayType, DataType, Field, MapType, StructType
from tidegate.domain.commit_policies import ADMISSION_PROPERTY
from tidegate.domain.commits import TIMESTAMP_MAX, Commit
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.protocol import REQUIRED_PROTOCOL, Protocol, required_properties
from tidegate.domain.ratification import Limits, Proposal
from tidegate.domain.requirements import Requirements
from tidegate.domain.tables import DELTA, Table, TableMetadata, TableType
from tidegate.domain.uniform import ENABLED_FORMATS_PROPERTY, Uniform
from tidegate.domain.updates import Action

TABLE_ID = TableId("7d3f2c1a-0000-4000-8000-00000000000a")
NAME = TableName("main", "default", "tides")
LOCATION = f"file:///lake/tables/{TABLE_ID}"
CREATED_AT = 1_700_000_000_000
NOW = CREATED_AT + 3_600_000
LIMITS = Limits(unpublished_max=1000)
ICEBERG_ON = {ENABLED_FORMATS_PROPERTY: "iceberg"}


def field(name: str, type: DataType = "long", *, nullable: bool = True, **metadata: Any) -> Field:
    return Field(name=name, type=type, nullable=nullable, metadata=metadata)


def struct(*fields: Field) -> StructType:
    return StructType(fields)


def columns() -> StructType:
    return struct(field("id", nullable=False), field("port", "string", comment="where"), field("height", "double"))


def protocol(*, reader: frozenset[str] = frozenset(), writer: frozenset[str] = frozenset()) -> Protocol:
    """The required protocol, the features that domain metadata needs, and those given on top."""
    return replace(
        REQUIRED_PROTOCOL,
        reader_features=REQUIRED_PROTOCOL.reader_features | reader,
        writer_features=REQUIRED_PROTOCOL.writer_features
        | reader
        | writer
        | {"clustering", "domainMetadata", "rowTracking"},
    )


def metadata(**changes: Any) -> TableMetadata:
    """`properties` are added to the required ones; everything else replaces what is there.

    What commits say is trusted, unless a test is about that.
    """
    properties = required_properties(TABLE_ID) | changes.pop("properties", {})
    sound = TableMetadata(
        columns=columns(),
        partition_columns=(),
        protocol=protocol(),
        properties=properties,
        domains={},
        comment=None,
        catalog_properties={ADMISSION_PROPERTY: "declared"},
    )
    return replace(sound, **changes)


def managed_table(*, latest: int = 0, published: int = 0, **changes: Any) -> Table:
    """A managed table whose versions after `published` are ratified, by writer a."""
    table = Table(
        id=TABLE_ID,
        name=NAME,
        type=TableType.MANAGED,
        format=DELTA,
        location=LOCATION,
        owner="ada",
        created_at=CREATED_AT,
        created_by="ada",
        updated_at=CREATED_AT,
        updated_by="ada",
        metadata=metadata(),
        revision=1,
        metadata_version=Version(0),
        metadata_timestamp=timestamp_of(0),
        latest=Version(latest),
        latest_timestamp=timestamp_of(latest),
        published=Version(published),
        unpublished=tuple(commit(version) for version in range(published + 1, latest + 1)),
        uniform=None,
    )
    return replace(table, **changes)


def external_table(**changes: Any) -> Table:
    plain = Protocol(1, 2, frozenset(), frozenset())
    outside = metadata(protocol=plain, catalog_properties={})
    return replace(
        managed_table(),
        type=TableType.EXTERNAL,
        location="file:///elsewhere/tides",
        **({"metadata": replace(outside, properties={})} | changes),
    )


def iceberg_table(*, latest: int = 0) -> Table:
    """A table with UniForm, converted up to its latest version."""
    return managed_table(latest=latest, metadata=metadata(properties=ICEBERG_ON), uniform=uniform(latest))


def timestamp_of(version: int) -> int:
    return min(CREATED_AT + 1000 * version, TIMESTAMP_MAX)


def staged_name(version: int, writer: str = "a") -> str:
    """The name under which a writer stages a version: the same each time it is asked for."""
    return f"{version:020}.{uuid.uuid5(uuid.NAMESPACE_OID, f'{writer}{version}')}.json"


def commit(version: int, *, writer: str = "a", **changes: Any) -> Commit:
    proposed = Commit(
        version=Version(version),
        timestamp=timestamp_of(version),
        file_name=staged_name(version, writer),
        file_size=1024,
        file_modified_at=timestamp_of(version),
    )
    return replace(proposed, **changes)


def uniform(version: int, **changes: Any) -> Uniform:
    converted = Uniform(
        metadata_location=f"{LOCATION}/metadata/v{version}.metadata.json",
        converted_version=version,
        converted_timestamp=timestamp_of(version),
        base_converted_version=None,
    )
    return replace(converted, **changes)


def proposal(*actions: Action, etag: str | None = None, verified: int | None = None) -> Proposal:
    return Proposal(
        name=NAME,
        principal="bob",
        requirements=Requirements(table_id=TABLE_ID, etag=etag),
        actions=actions,
        proposed_at=NOW,
        verified=None if verified is None else Version(verified),
    )


# Strategies


@cache
def json_values() -> st.SearchStrategy[Any]:
    """What JSON can say, small."""
    scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | _numbers() | texts()
    return scalars | st.lists(scalars, max_size=2) | st.dictionaries(texts(), scalars, max_size=2)


def _numbers() -> st.SearchStrategy[float]:
    return st.floats(allow_nan=False, allow_infinity=False)


@cache
def texts(*, min_size: int = 0) -> st.SearchStrategy[str]:
    return st.text(min_size=min_size, max_size=6)


@cache
def type_names() -> st.SearchStrategy[str]:
    named = ("long", "integer", "string", "binary", "date", "timestamp_ntz", "variant", "interval day to second")
    decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"decimal({p},{s})"))
    return st.sampled_from(named) | decimals


def structs(types: st.SearchStrategy[DataType], *, min_size: int = 0) -> st.SearchStrategy[StructType]:
    """Structs whose names differ also when case is ignored."""
    described = st.just({}) | st.dictionaries(texts(), json_values(), max_size=2)
    fields = st.builds(Field, name=texts(min_size=1), type=types, nullable=st.booleans(), metadata=described)
    distinct = st.lists(fields, min_size=min_size, max_size=3, unique_by=lambda one: one.name.lower())
    return distinct.map(lambda some: StructType(tuple(some)))


@cache
def data_types() -> st.SearchStrategy[DataType]:
    return st.recursive(
        type_names(),
        lambda inner: (
            st.builds(ArrayType, inner, st.booleans())
            | st.builds(MapType, inner, inner, st.booleans())
            | structs(inner)
        ),
        max_leaves=4,
    )


@cache
def schemas() -> st.SearchStrategy[StructType]:
    """The columns of a table: a struct with at least one field, of any types."""
    return structs(data_types(), min_size=1)


@cache
def feature_names() -> st.SearchStrategy[str]:
    return st.text(string.ascii_letters, min_size=1, max_size=12)


@st.composite
def metadatas(draw: st.DrawFn) -> TableMetadata:
    """Metadata that keeps the managed contract, with anything that the contract leaves open."""
    drawn = draw(schemas())
    marked = draw(st.lists(st.booleans(), min_size=len(drawn.fields), max_size=len(drawn.fields)))
    partition_columns = tuple(name for name, mark in zip(drawn.names(), marked, strict=True) if mark)
    return metadata(
        columns=drawn,
        partition_columns=partition_columns if len(partition_columns) < len(marked) else (),
        protocol=protocol(reader=draw(feature_sets()), writer=draw(feature_sets())),
        properties=draw(properties()),
        domains=draw(domains()),
        comment=draw(texts()),
    )


@cache
def feature_sets() -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(feature_names(), max_size=2)


@cache
def properties() -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(texts(min_size=1), texts(), max_size=2)


@cache
def domains() -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """Domain metadata: of users, and the two domains whose content the catalog shows."""
    path = st.lists(texts(min_size=1), min_size=1, max_size=2)
    clustering = st.fixed_dictionaries({"clusteringColumns": st.lists(path, max_size=2)})
    row_tracking = st.fixed_dictionaries({"rowIdHighWaterMark": st.integers(-1, 2**63 - 1)})
    users = st.dictionaries(st.text(string.ascii_lowercase, min_size=1, max_size=4), _configurations(), max_size=2)
    shown = st.fixed_dictionaries({}, optional={"delta.clustering": clustering, "delta.rowTracking": row_tracking})
    return st.builds(lambda one, other: {**one, **other}, users, shown)


@cache
def _configurations() -> st.SearchStrategy[dict[str, Any]]:
    """`domainName` is left out: clients repeat the domain's name there, and it says nothing."""
    keys = texts().filter(lambda key: key != "domainName")
    return st.dictionaries(keys, json_values(), max_size=2)
