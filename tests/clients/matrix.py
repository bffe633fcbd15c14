"""Which client can do what. Tests claim it, and docs/clients.md is held to their claims.

    @can("DuckDB", "read", "filter")                      the test does it, and checks what came back
    @cannot("DuckDB", "create", saying="Not implemented") the test tries it, in `with refused(...)`, and is told so

What a client refuses is part of the page, word for word: `refused` fails when the client says something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

SPARK, OLD_SPARK, TYPED, DUCKDB, DELTALAKE, POLARS, CURL = CLIENTS = (
    "Spark",
    "Spark on v0.1.0",
    "unitycatalog-client",
    "DuckDB",
    "deltalake",
    "Polars",
    "curl",
)

OPERATIONS = (
    "list tables",
    "describe",
    "read",
    "filter, project",
    "join",
    "time travel",
    "unpublished commits",
    "append",
    "update, delete, merge",
    "create",
    "drop",
    "register external",
    "read external",
    "append to external",
)

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Claim:
    client: str
    operations: tuple[str, ...]
    saying: str | None
    """What the client says when it refuses; None for what it can do."""
    test: Callable[..., Any]


CLAIMS: list[Claim] = []


def can(client: str, *operations: str) -> Callable[[Test], Test]:
    return _claim(client, operations, None)


def cannot(client: str, *operations: str, saying: str) -> Callable[[Test], Test]:
    return _claim(client, operations, saying)


def _claim(client: str, operations: tuple[str, ...], saying: str | None) -> Callable[[Test], Test]:
    assert client in CLIENTS, client
    assert set(operations) <= set(OPERATIONS), operations

    def note(test: Test) -> Test:
        CLAIMS.append(Claim(client, operations, saying, test))
        return test

    return note


@dataclass
class Refused:
    """Expects the error that the test claims, `with refused(SomeError): ...`, and what follows in its text."""

    saying: str
    seen: int = 0

    @contextmanager
    def __call__(self, kind: type[BaseException], then: str = "") -> Iterator[None]:
        with pytest.raises(kind, match=re.escape(self.saying + then)):
            yield
        self.seen += 1


def refused_by(test: Callable[..., Any]) -> Refused:
    (claim,) = (claim for claim in CLAIMS if claim.test is test and claim.saying is not None)
    assert claim.saying is not None
    return Refused(claim.saying)
