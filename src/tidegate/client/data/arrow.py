"""pyarrow for all of this package: importing it without pyarrow is an error that says what to install."""

from __future__ import annotations

from typing import Any

from tidegate.client.log.arrow import load

_PURPOSE = "Reading and writing rows"

pa: Any = load("pyarrow", purpose=_PURPOSE)
pc: Any = load("pyarrow.compute", purpose=_PURPOSE)
pq: Any = load("pyarrow.parquet", purpose=_PURPOSE)
