"""What all of these tests have, besides the server, the session and the schema of `shared`.

After each test that used the server, every table in it is compared with its log (see `logs`): whatever a statement
did, the catalog and the log say the same.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import Row, SparkSession

Sql = Callable[[str], list[Row]]


@pytest.fixture
def table(schema: str, unique: str) -> str:
    """The full name of a table that does not exist yet."""
    return f"{schema}.{unique}"


@pytest.fixture
def sql(spark: SparkSession) -> Sql:
    """Runs a statement and answers its rows, which compare with plain tuples."""
    return lambda statement: spark.sql(statement).collect()
