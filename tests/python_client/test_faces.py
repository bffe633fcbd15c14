"""What the package offers: both faces the same, every error in the tree, light to import."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from typing import Any

import pytest

from tidegate import client
from tidegate.client import errors
from tidegate.client.proposals import Proposal


def offered(face: type) -> dict[str, Any]:
    return {name: member for name, member in vars(face).items() if not name.startswith("_")}


def signature(member: Any) -> Any:
    """Names, kinds and defaults of the parameters; None for a property."""
    if not callable(member):
        return None
    parameters = inspect.signature(member).parameters.values()
    return [(one.name, one.kind, one.default, one.annotation) for one in parameters]


@pytest.mark.parametrize(("sync", "other"), [(client.Catalog, client.AsyncCatalog), (client.Table, client.AsyncTable)])
def test_sync_and_async_offer_the_same(sync: type, other: type) -> None:
    ours, theirs = offered(sync), offered(other)
    assert {name: signature(member) for name, member in ours.items()} == {
        name: signature(member) for name, member in theirs.items()
    }
    assert {name: member.__doc__ for name, member in ours.items()} == {
        name: member.__doc__ for name, member in theirs.items()
    }


def test_both_are_connected_alike() -> None:
    assert signature(client.connect) == signature(client.connect_async)


def error_classes() -> list[type]:
    return [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]


def test_every_error_is_exported_and_drawn() -> None:
    assert errors.__doc__ is not None
    for kind in error_classes():
        assert kind.__name__ in client.__all__
        assert f"{kind.__name__}" in errors.__doc__
        assert issubclass(kind, client.TidegateError)


PROPOSAL = Proposal(
    table="a.b.c",
    table_id="id",
    location="file:///t",
    version=7,
    timestamp=1,
    txn_id="txn",
    file_name="f",
    file_size=1,
    modified_at=1,
    updates=[{"action": "set-protocol"}],
)


@pytest.mark.parametrize(
    "error",
    [
        client.NoSuchTable("There is no table a.b.c."),
        client.Unreachable("http://x", "refused"),
        client.CommitConflict("a.b.c", version=7, latest=8, commits=[client.Commit(8, 1, "f", 1, 1)]),
        client.CommitOutcomeUnknown(PROPOSAL, "silence"),
        client.ProtocolChanged("a.b.c", version=7, what="dropped tides", features=["tides"]),
        client.MetadataChanged("a.b.c", version=7, changed=["columns"]),
        client.DomainMetadataChanged("a.b.c", version=7, domain="mine"),
        client.ConcurrentTransaction("a.b.c", version=7, app_id="gauge", recorded=5),
        client.ConcurrentAppend("a.b.c", version=7, path="f", partition_values={"day": None}),
        client.ConcurrentDeleteRead("a.b.c", version=7, path="f"),
        client.ConcurrentDeleteDelete("a.b.c", version=7, path="f"),
    ],
)
def test_an_error_travels_between_processes_whole(error: client.TidegateError) -> None:
    arrived = pickle.loads(pickle.dumps(error))
    assert (type(arrived), str(arrived), vars(arrived)) == (type(error), str(error), vars(error))


def test_every_exported_name_is_there() -> None:
    assert [name for name in client.__all__ if not hasattr(client, name)] == []
    assert sorted(client.__all__) == list(client.__all__)


def test_the_client_is_light() -> None:
    heavy = ["sqlalchemy", "uvicorn", "alembic", "typer", "pyarrow", "obstore", "psycopg", "uvloop", "pyspark"]
    server = [f"tidegate.{room}" for room in ("domain", "http", "wire", "services", "db", "settings", "cli", "spark")]
    code = f"import sys, tidegate.client; print([name for name in {heavy + server} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
