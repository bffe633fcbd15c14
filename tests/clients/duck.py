"""DuckDB as a user of Tidegate gets it: its extensions come from wheels, nothing is downloaded."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

EXTENSIONS = ("httpfs", "delta", "unity_catalog")


def extension_file(name: str) -> Path:
    module = importlib.import_module(f"duckdb_extension_{name}")
    assert module.__file__ is not None
    (file,) = Path(module.__file__).parent.glob(f"extensions/v{duckdb.__version__}/{name}.duckdb_extension")
    return file


def start() -> duckdb.DuckDBPyConnection:
    """An instance with the extensions that must not look for any other, here or in the network."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for name in EXTENSIONS:
        connection.execute(f"LOAD '{extension_file(name)}'")
    return connection


@dataclass(frozen=True)
class Duck:
    """A connection in which the catalog `main` is attached as `lake`."""

    connection: duckdb.DuckDBPyConnection
    url: str
    token: str

    def attach(self, *options: str, catalog: str = "main", token: str | None = None) -> None:
        """Attaches anew, which is what makes it ask the catalog anew."""
        self.detach()
        self.connection.execute(
            f"CREATE OR REPLACE SECRET (TYPE unity_catalog, TOKEN '{token or self.token}', ENDPOINT '{self.url}')"
        )
        told = ", ".join(("TYPE unity_catalog", *options))
        self.connection.execute(f"ATTACH '{catalog}' AS lake ({told})")

    def detach(self) -> None:
        """It complains about a table whose first use failed; `lake` is detached all the same."""
        try:
            self.connection.execute("DETACH DATABASE IF EXISTS lake")
        except duckdb.BinderException as error:
            if "__unity_catalog_internal" not in str(error):
                raise
        assert ("lake",) not in self("SHOW DATABASES")

    def __call__(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement).fetchall()

    def frame(self, query: str) -> pl.DataFrame:
        return pl.DataFrame(self.connection.sql(query))
